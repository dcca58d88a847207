"""The grammar of names and the bucket codec."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import DATA

from acidctl.acid import bucket
from acidctl.acid.names import (
    MAXL,
    MINL,
    AcidDirectory,
    AcidNameError,
    BucketFile,
    Kind,
    OriginalFile,
    acid_directory,
    format_bucket,
    format_directory,
    is_hidden,
    is_native_data_file,
    is_visible_path,
    manifest_for,
    parse_directory,
    parse_file,
    parse_partition,
)
from acidctl.acid.sidefiles import parse_flush_length, parse_metadata_acid, parse_orc_acid_version
from acidctl.base.errors import BadDataError

CASES = json.loads((DATA / "name-cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_published_names_are_parsed_as_hive_does(case) -> None:  # type: ignore[no-untyped-def]
    name, expect = case["name"], case["expect"]
    if name.startswith("decode "):
        assert bucket.decode(int(name.split()[1], 16) | 1 << 29).bucket == expect["writer_id"]
        return
    if name.startswith("encode "):
        assert bucket.encode(7, 16) == expect["bucket_property"]
        return
    first, _, rest = name.partition("/")
    if "bucket_property" in expect:
        parsed_file = parse_file(first)
        assert parsed_file is not None
        assert bucket.encode(parsed_file.bucket) == expect["bucket_property"]
    elif expect.get("kind") == "original":
        assert parse_file(first) == OriginalFile(first, expect["bucket"], 0, None)
        assert parse_directory(first) is None
    elif expect.get("kind") == "not_base":
        with pytest.raises(AcidNameError):
            parse_directory(first)
    else:
        parsed = parse_directory(first)
        assert parsed is not None
        assert parsed.kind.value == expect.get("kind", parsed.kind.value)
        assert parsed.max_write_id == expect.get("write_id", expect.get("max", parsed.max_write_id))
        if parsed.kind is not Kind.BASE:
            assert parsed.min_write_id == expect.get("min", parsed.min_write_id)
        assert parsed.statement_id == expect.get("statement_id", parsed.statement_id)
        assert parsed.visibility_txn == expect.get("visibility_txn", parsed.visibility_txn)
        if "has_visibility_suffix" in expect:
            assert bool(parsed.visibility_txn) is expect["has_visibility_suffix"]
        if "bucket" in expect:
            parsed_file = parse_file(rest)
            assert parsed_file is not None
            assert parsed_file.bucket == expect["bucket"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base_0000022", AcidDirectory("base_0000022", Kind.BASE, 22, 22)),
        ("base_0000003_v0003217", AcidDirectory("base_0000003_v0003217", Kind.BASE, 3, 3, -1, 3217)),
        (f"base_{MINL}_v0000021", AcidDirectory(f"base_{MINL}_v0000021", Kind.BASE, MINL, MINL, -1, 21)),
        ("delta_0000005_0000005", AcidDirectory("delta_0000005_0000005", Kind.DELTA, 5, 5)),
        ("delta_0000005_0000005_0003", AcidDirectory("delta_0000005_0000005_0003", Kind.DELTA, 5, 5, 3)),
        (
            "delta_0000020_0000027_v0000031",
            AcidDirectory("delta_0000020_0000027_v0000031", Kind.DELTA, 20, 27, -1, 31),
        ),
        (
            "delete_delta_10000002_10000002_0000",
            AcidDirectory("delete_delta_10000002_10000002_0000", Kind.DELETE_DELTA, 10000002, 10000002, 0),
        ),
        ("delta_1_1", AcidDirectory("delta_1_1", Kind.DELTA, 1, 1)),
        ("delta_1_5_2_v7", AcidDirectory("delta_1_5_2_v7", Kind.DELTA, 1, 5, 2, 7)),
    ],
)
def test_examples_of_the_format_are_parsed_as_it_says(name: str, expected: AcidDirectory) -> None:
    assert parse_directory(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "base_", "base_tmp", "base_1_2", "base_01_02", "base_1_v", "base_1_vx", "base_--1", "delta_1", "delta_x",
        "delta_1_2_3_4", "delta_-1_2", "delete_delta_", "delete_delta_1", "base_\u0661", "delta_1_1\n", "base_1 ",
        "base_9223372036854775808", "delta_1_" + "9" * 5000,
    ],
)  # fmt: skip
def test_directory_names_that_hive_refuses_are_refused(name: str) -> None:
    with pytest.raises(AcidNameError):
        parse_directory(name)


@pytest.mark.parametrize(
    "name", ["", "base", "Base_1", "deltas_1", "sub", "000000_0", "_tmp_1", "delete_delt_1_1", "b\x00"]
)
def test_names_of_other_things_are_no_directories(name: str) -> None:
    assert parse_directory(name) is None


write_ids = st.integers(0, MAXL)


@given(st.sampled_from(list(Kind)), write_ids, write_ids, st.integers(-1, 10**6), write_ids)
def test_format_and_parse_are_inverse(kind: Kind, low: int, high: int, statement: int, txn: int) -> None:
    """Format section 1.1: "Hive pads when it writes: write ids and visibility transactions to 7 digits, statement ids
    to 4, buckets to 5".
    """
    if kind is Kind.BASE:
        low, statement = high, -1
    name = format_directory(kind, low, high, statement, txn)
    parsed = parse_directory(name)
    assert parsed == AcidDirectory(name, kind, low, high, statement, txn)
    assert parsed is not None
    assert parsed.canonical_name == name


@pytest.mark.parametrize("name", ["base_x", "delta_1", "base_99999999999999999999", "p=1", "_tmp.base_5", ""])
def test_a_name_that_is_no_directory_of_hives_is_none_where_it_may_be_anything(name: str) -> None:
    assert acid_directory(name) is None
    assert acid_directory("base_5") == parse_directory("base_5")


@given(st.text(alphabet="basedlt_v0123456789-", max_size=30) | st.text(max_size=30))
def test_any_name_parses_or_is_refused_with_its_own_error(name: str) -> None:
    """Format section 1.1: "So names are compared as numbers, never as text"."""
    try:
        parsed = parse_directory(name)
    except AcidNameError:
        return
    if parsed is not None:
        again = parse_directory(parsed.canonical_name)
        assert again is not None
        assert (again.kind, again.min_write_id, again.max_write_id, again.statement_id, again.visibility_txn) == (
            parsed.kind,
            parsed.min_write_id,
            parsed.max_write_id,
            parsed.statement_id,
            parsed.visibility_txn,
        )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bucket_00000", BucketFile("bucket_00000", 0, None)),
        ("bucket_00000_0", BucketFile("bucket_00000_0", 0, 0)),
        ("bucket_123", BucketFile("bucket_123", 123, None)),
        ("000001_1", OriginalFile("000001_1", 1, 1, None)),
        ("00000_0", OriginalFile("00000_0", 0, 0, None)),
        ("000002_0_copy_10", OriginalFile("000002_0_copy_10", 2, 0, 10)),
        ("000000_0.orc", None),
        ("bucket_00000.fixacidindex", None),
        ("bucket_00000_flush_length", None),
        ("random", None),
    ],
)
def test_file_names_give_bucket_copy_and_attempt(name: str, expected: object) -> None:
    assert parse_file(name) == expected


@pytest.mark.parametrize(
    ("name", "rebuilt"),
    [
        ("bucket_00000", "bucket_00000"), ("bucket_00000_7", "bucket_00000_7"), ("bucket_100000", "bucket_100000"),
        ("bucket_0", "bucket_00000"), ("bucket_000000", "bucket_00000"), ("bucket_00000_07", "bucket_00000_7"),
        ("bucket_2147483647", "bucket_2147483647"), ("bucket_2147483648", ""), ("bucket_00000_2147483648", ""),
    ],
)  # fmt: skip
def test_the_name_that_hive_makes_of_the_numbers_of_a_file(name: str, rebuilt: str) -> None:
    parsed = parse_file(name)
    assert isinstance(parsed, BucketFile)
    assert parsed.canonical_name == rebuilt


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("-tmp.delta_1_1_0", "delta_1_1_0"), ("_tmp.delta_1_1_0", "delta_1_1_0"), ("-tmp.base_5", "base_5"),
        ("-tmp.delete_delta_1_1", "delete_delta_1_1"), ("-tmp.mine", None), ("_tmp_1", None), ("tmp.delta_1_1", None),
    ],
)  # fmt: skip
def test_manifests_of_writers_tell_what_they_are_for(name: str, target: str | None) -> None:
    assert manifest_for(name) == target


def test_hidden_native_and_partition_names_are_told_apart() -> None:
    assert format_bucket(7) == "bucket_00007"
    assert is_hidden("_done") and is_hidden(".x") and not is_hidden("a_b")
    assert is_hidden("-tmp.delta_1_1_0") and not is_visible_path("-tmp.delta_1_1_0/000000_0.manifest")
    assert not is_hidden("-tmp.mine") and not is_hidden("-tmp") and is_visible_path("a/-tmp.delta_1_1/b")
    assert not is_visible_path("a/_tmp/b") and is_visible_path("a/b_c")
    assert is_native_data_file("bucket_00000.orc") and not is_native_data_file("bucket_00000_flush_length")
    assert parse_partition("p=a%3Db") == ("p", "a%3Db") and parse_partition("p=") == ("p", "")
    assert parse_partition("=1") is None and parse_partition("_p=1") is None


@pytest.mark.parametrize(
    ("bucket_id", "statement", "value"),
    [
        (0, 0, 536870912), (0, 1, 536870913), (1, 0, 536936448), (1, 1, 536936449), (2, 0, 537001984),
        (3, 5, 537067525), (4095, 0, 805240832), (4095, 4095, 805244927),
    ],
)  # fmt: skip
def test_bucket_property_is_encoded_and_decoded(bucket_id: int, statement: int, value: int) -> None:
    assert bucket.encode(bucket_id, statement) == value
    assert bucket.decode(value) == bucket.BucketProperty(1, bucket_id, statement)


@given(st.integers(0, 4095), st.integers(-1, 4095))
def test_codec_is_inverse_and_keeps_order(bucket_id: int, statement: int) -> None:
    """Format section 2: "A signed number of 32 bits, whose highest three tell the form"."""
    value = bucket.encode(bucket_id, statement)
    assert bucket.decode(value) == bucket.BucketProperty(1, bucket_id, max(statement, 0))
    assert 0 < value < 2**31


def test_bucket_property_out_of_range_is_refused() -> None:
    assert bucket.decode(3) == bucket.BucketProperty(0, 3, 0)
    assert bucket.encode(3, version=0) == 3
    for value in (2 << 29, 7 << 29, -1, -(2**31)):
        with pytest.raises(BadDataError):
            bucket.decode(value)
    for bucket_id, statement in ((4096, 0), (-1, 0), (0, 4096)):
        with pytest.raises(BadDataError):
            bucket.encode(bucket_id, statement)


def test_side_files_are_parsed_and_malformed_ones_refused() -> None:
    assert parse_metadata_acid(b'{"dataFormat":"compacted","thisFileVersion":"0"}', "m") == "compacted"
    assert parse_metadata_acid(b'{"thisFileVersion":"0","dataFormat":"truncated"}', "m") == "truncated"
    assert parse_metadata_acid(b'{"thisFileVersion":"0","dataFormat":"dropped"}', "m") == "dropped"
    for content in (b"", b"[]", b"{}", b'{"thisFileVersion":"1","dataFormat":"compacted"}', b"\xff", b"[" * 100000):
        with pytest.raises(BadDataError, match="cannot use m"):
            parse_metadata_acid(content, "m")
    assert parse_orc_acid_version(b"2", "v") == 2
    for content in (b"", b"x", b"\n2"):
        with pytest.raises(BadDataError):
            parse_orc_acid_version(content, "v")
    longs = (0).to_bytes(8, "big") + (513).to_bytes(8, "big")
    assert parse_flush_length(longs, "f") == 513
    assert parse_flush_length(longs + b"\0\0\1", "f") == 513
    assert parse_flush_length(longs[:8], "f") == 0
    for content in (b"", b"\0\0\0", b"\xff" * 8):
        with pytest.raises(BadDataError):
            parse_flush_length(content, "f")
