from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

from support.files.orc_bytes import ACID_SCHEMA, acid_rows, local_tail, retailed, tail_of, written

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail_document import SCHEMA_VERSION, tail_document


def test_tail_of_a_file_of_hive_is_described_whole(shared_data: Path) -> None:
    tail = local_tail(shared_data / "hive-written" / "acid5k" / "acid5k.orc")
    found = tail_document(tail, with_streams=True)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["rows"] == 5000
    assert found["acid"] == {
        "version": 2,
        "stats": {"inserts": 5000, "updates": 0, "deletes": 0},
        "keyIndex": [{"originalTransaction": 12, "bucket": 536870912, "rowId": 4999}],
    }
    assert found["stripes"][0]["lastKey"] == found["acid"]["keyIndex"][0]
    assert found["stripes"][0]["rows"] == 5000
    assert {(stream["column"], stream["kind"]) for stream in found["stripes"][0]["streams"]} >= {(4, "DATA")}
    columns = {column["name"]: column for column in found["columns"]}
    assert columns["rowId"]["statistics"]["minimum"] == 0
    assert columns["rowId"]["statistics"]["maximum"] == 4999
    assert columns["row.i"]["type"] == "int"
    assert columns["row"]["type"] == "struct"
    assert found["userMetadata"] == {}
    assert found["problems"] == []


def test_every_kind_of_statistics_is_described() -> None:
    schema = (
        "struct<i:int,d:double,s:string,b:binary,t:timestamp,e:decimal(10,2),o:boolean,a:date,"
        "l:array<int>,m:map<string,int>,u:uniontype<int,string>>"
    )
    rows = [
        (1, 0.5, "aa", b"xx", (0, 123_456_789), Decimal("1.25"), True, datetime.date(1, 1, 1), [1], {"k": 1}, 3),
        (
            -7,
            float("inf"),
            "bb",
            b"y",
            (253402300799, 0),
            Decimal("-3"),
            False,
            datetime.date(9999, 12, 31),
            [],
            {},
            "u",
        ),
        (None,) * 11,
    ]
    found = tail_document(tail_of(written(schema, rows)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    columns = {column["name"]: column for column in found["columns"]}
    statistics = {name: column["statistics"] for name, column in columns.items()}
    assert statistics["i"] == {"values": 2, "hasNull": True, "minimum": -7, "maximum": 1, "sum": -6}
    assert statistics["d"]["maximum"] == "inf"
    assert (statistics["s"]["minimum"], statistics["s"]["maximum"], statistics["s"]["sum"]) == ("aa", "bb", 4)
    assert statistics["b"]["sum"] == 3
    assert statistics["t"]["minimum"].startswith("1970-01-01 00:00:00.123")
    assert statistics["t"]["maximum"].startswith("9999-12-31 23:59:59")
    assert (statistics["e"]["minimum"], statistics["e"]["maximum"]) == ("-3", "1.25")
    assert statistics["o"]["true"] == 1
    assert (statistics["a"]["minimum"], statistics["a"]["maximum"]) == ("0001-01-01", "9999-12-31")
    assert {"l._elem", "m._key", "m._value", "u.0", "u.1"} <= set(columns)


def test_what_cannot_be_decoded_is_named_not_raised() -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.metadata.add(name="hive.acid.key.index", value=b"nonsense;")
        footer.metadata.add(name="hive.acid.stats", value=b"1,2")
        footer.metadata.add(name="hive.acid.version", value=b"two")
        footer.metadata.add(name="binary", value=b"\xff\x01")
        footer.metadata.add(name="text", value="grün".encode())
        footer.statistics[8].stringStatistics.minimum = b"\xff"

    found = tail_document(tail_of(retailed(written(ACID_SCHEMA, acid_rows(3)), change)))
    assert len(found["problems"]) == 3
    assert found["acid"] == {"version": None, "stats": None, "keyIndex": None}
    assert found["userMetadata"] == {"binary": {"base64": "/wE="}, "text": "grün"}
    assert found["columns"][8]["statistics"]["minimum"] == {"base64": "/w=="}


def test_a_short_key_index_is_named() -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.metadata.add(name="hive.acid.key.index", value=b"")

    found = tail_document(tail_of(retailed(written(ACID_SCHEMA, acid_rows(3)), change)))
    assert found["problems"] == ["hive.acid.key.index has 0 entries for 1 stripes"]
    assert found["stripes"][0]["lastKey"] is None


def test_files_of_all_kinds_can_be_described(shared_data: Path, own_data: Path) -> None:
    corpus = shared_data / "orc-corpus" / "apache-orc"
    paths = [path for path in sorted(corpus.glob("*.orc")) if path.name != "zero.orc"]
    paths += [path for path in sorted((own_data / "hive23-written").rglob("bucket_*")) if path.stat().st_size > 100]
    paths += sorted((corpus / "encrypted").glob("*.orc"))
    for path in paths:
        tail = local_tail(path)
        if tail.compression != "lzo":
            json.dumps(tail_document(tail, with_streams=len(tail.stripes) < 50), allow_nan=False)
        else:
            json.dumps(tail_document(tail), allow_nan=False)
