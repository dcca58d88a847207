"""Settings of the writer: the table properties that set them, and their arguments of the ORC library."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
from pyarrow import orc

from acidctl.base.errors import UsageProblem
from acidctl.orc.write.writer_settings import ANY_STRIDE, WriterSettings


def test_properties_of_a_table_set_fields() -> None:
    given = {
        "orc.compress": "ZSTD",
        "orc.stripe.size": "1000000",
        "orc.row.index.stride": "500",
        "orc.bloom.filter.columns": "a, b.c,",
        "orc.bloom.filter.fpp": "0.01",
        "transactional": "true",
    }
    found = WriterSettings.parse(given.items())
    assert found == {
        "compression": "zstd",
        "stripe_size": 1_000_000,
        "stride": 500,
        "bloom_columns": ("a", "b.c"),
        "bloom_fpp": 0.01,
    }
    assert {one.metadata["property"] for one in fields(WriterSettings) if one.metadata} == given.keys() - {
        "transactional"
    }
    assert WriterSettings(**found).stride == 500


@pytest.mark.parametrize(
    ("key", "text", "why", "hint"),
    [
        ("orc.stripe.size", "lots", "it is not a number", ""),
        ("orc.bloom.filter.columns", " , ", "it names no column", ""),
        ("orc.compres", "zlib", "", "did you mean orc.compress?"),
        ("orc.x", "1", "", "use orc.compress, orc.stripe.size, orc.row.index.stride"),
    ],
)
def test_properties_that_cannot_be_used(key: str, text: str, why: str, hint: str) -> None:
    with pytest.raises(UsageProblem) as found:
        WriterSettings.parse([(key, text)])
    assert (found.value.why, found.value.hint[: len(hint)]) == (why, hint)


def test_every_setting_reaches_the_library() -> None:
    usual = WriterSettings().for_arrow()
    assert usual.keys() <= set(inspect.signature(orc.ORCWriter).parameters)
    others = WriterSettings("none", 65536, 1000, 0, 0.5, 10, (), 0.5).for_arrow([3])
    assert {key for key in usual if usual[key] == others[key]} == {"compression_strategy", "row_index_stride"}
    assert (others["compression"], others["row_index_stride"]) == ("uncompressed", ANY_STRIDE)
    assert WriterSettings("lz4").for_arrow()["compression_strategy"] == "compression"
