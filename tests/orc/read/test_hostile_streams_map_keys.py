"""Maps with NULL keys end Arrow's reader and the process with it: they are found first."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pyorc
import pytest
from support.files.orc_bytes import Remote

from acidctl.base.errors import BadDataError
from acidctl.orc.read.reader import open_orc


def written(schema: str, rows: list[Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyorc.Writer(sink, schema, **options) as writer:
        writer.writerows(rows)
    return sink.getvalue()


LATE = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("struct<m:map<int,string>,a:int>", ({1: "a"}, 1), ({None: "b"}, 2)),
        ("struct<m:map<string,timestamp>,a:int>", ({"a": LATE, "b": LATE}, 1), ({"c": LATE, None: LATE}, 2)),
        ("struct<m:array<struct<x:int,m:map<string,int>>>,a:int>", ([(1, {"k": 1}), None], 1), ([(1, {None: 1})], 2)),
        ("struct<m:map<int,map<int,timestamp>>,a:int>", ({1: {2: LATE}}, 1), ({1: {None: LATE}}, 2)),
        ("struct<m:uniontype<int,map<string,int>,timestamp>,a:int>", ({"a": 1}, 1), ({None: 1}, 2)),
    ],
)
@pytest.mark.parametrize("compression", [pyorc.CompressionKind.NONE, pyorc.CompressionKind.ZLIB])
def test_null_keys_are_named(schema: str, good: Any, bad: Any, compression: Any) -> None:
    options = {"compression": compression}
    with open_orc(Remote(f=written(schema, [good, (None, 5), good], **options)), "f") as file:
        assert file.read_stripe(0).num_rows == 3
    with open_orc(Remote(f=written(schema, [good, (None, 5), bad, good], **options)), "f") as file:
        for columns in (None, ["m"]):
            with pytest.raises(BadDataError, match="NULL key"):
                file.read_stripe(0, columns)
        assert file.read_stripe(0, ["a"]).column(0).to_pylist() == [1, 5, 2, 1]


def test_null_values_are_fine() -> None:
    rows = [({1: None, 2: "x"},), ({},), (None,)]
    with open_orc(Remote(f=written("struct<m:map<int,string>>", rows)), "f") as file:
        assert file.read_stripe(0).column(0).to_pylist() == [[(1, None), (2, "x")], [], None]
