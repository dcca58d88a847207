"""Managed tables that are not transactional, as Hive's tools would convert them."""

from __future__ import annotations

from pathlib import Path

from support.files.acid_files import insert, struct, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.metastore import interface as wire
from acidctl.orc.types import OrcType

A = struct(a=OrcType("int"))


def test_tables_are_named_with_what_becomes_of_them(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write_acid(tmp_path / "t" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)), row=A)
    plain = {"transactional": "false"}
    with FakeHive() as fake:
        fake.table("s", "t", str(tmp_path / "t"))
        fake.begin()
        orc = {"input_format": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"}
        fake.table("s", "plain", str(tmp_path / "plain"), parameters=plain, **orc)
        text = wire.SerDeInfo(serialization_lib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
        fake.table("s", "lines", str(tmp_path / "lines"), parameters=plain, serde=text)
        found = acidctl("upgrade-check", "-o", "json", "--metastore", fake.address, "hive:s.*").json()
        shown = acidctl("upgrade-check", "-v", "--metastore", fake.address, "hive:s.*")
    becomes = {one["table"]: one["becomes"] for one in found["conversions"]}
    assert becomes == {"s.plain": "full-acid", "s.lines": "insert-only"}
    assert "ALTER TABLE s.lines SET TBLPROPERTIES ('transactional'='true', 'transactional_properties'" in shown.out
    assert [one["table"] for one in found["locations"]] == ["s.t"]
