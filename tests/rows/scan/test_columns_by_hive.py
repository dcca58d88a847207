"""Values of older files are converted as the Hive does it whose metastore knows the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import IDS, insert, write_by_pyorc
from support.metastore.fake_hive import FakeHive

from acidctl.metastore import interface as wire


@pytest.mark.parametrize(
    ("version", "text"), [(3, "0.1"), (4, "0.10000000149011612"), (None, "0.10000000149011612")], ids=str
)
def test_a_float_that_became_text(tmp_path: Path, acidctl: Callable[..., Any], version: int | None, text: str) -> None:
    table = tmp_path / "t"
    for write_id, kind, value in ((1, "float", 0.1), (2, "string", "x")):
        path = table / f"delta_{write_id:07}_{write_id:07}_0000"
        write_by_pyorc(path, [insert(write_id, 0, (value,))], schema=f"struct<{IDS},row:struct<a:{kind}>>")
    if version is None:
        found = acidctl("cat", "-o", "json", table)
    else:
        with FakeHive(version) as fake:
            fake.table("db", "t", f"file:{table}")
            known = fake.tables["db", "t"]
            storage = replace(known.storage, columns=(wire.FieldSchema("a", "string"),))  # type: ignore[type-var]
            fake.tables["db", "t"] = replace(known, storage=storage)
            fake.write_ids["db.t"] = [1, 2]
            found = acidctl("cat", "-o", "json", "--metastore", fake.address, "hive:db.t")
    assert found.status == 0, found.err
    assert [row["a"] for row in found.json()] == [text, "x"]
