"""What a location costs its readers, counted by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.state import select
from acidctl.acid.triggers import OPEN_BYTES, SMALL_FILE, advise


def listing(files: dict[str, int]) -> Listing:
    return Listing("t", tuple(Entry(path, size, 0.0, False) for path, size in sorted(files.items())))


def advice(files: dict[str, int]):  # type: ignore[no-untyped-def]
    found = listing(files)
    return advise(found, select(found))


def test_a_compacted_location_costs_nothing() -> None:
    for files in ({}, {"base_5/bucket_00000": 10, "base_5/bucket_00001": 10}, {"000000_0": 7}):
        found = advice(files)
        assert (found.cost, found.kind, found.rewritten, found.saved, found.gain) == (0, None, 0, 0, 0.0)


def test_a_big_base_and_small_deltas_want_a_minor_compaction() -> None:
    big = 10**12
    found = advice(
        {
            "base_5/bucket_00000": big,
            **{f"delta_{i}_{i}_0/bucket_00000": 1000 for i in range(6, 16)},
            "delete_delta_0000009_0000009_0000/bucket_00000": 500,
            "delta_3_3_0/bucket_00000": 99,  # obsolete: nobody reads it
            "delta_16_16_0/_orc_acid_version": 1,
        }
    )
    assert (found.directories, found.files, found.small_files) == (12, 12, 11)
    assert (found.bytes, found.delete_files, found.delete_bytes) == (
        big + 10_500,
        ("delete_delta_0000009_0000009_0000/bucket_00000",),
        500,
    )
    assert found.cost == (11 + 11) * OPEN_BYTES + 11 * 500
    assert found.kind is CompactionKind.MINOR
    assert found.rewritten == 10_500
    # A delta and a delete delta are left beside the base, and the deletes are read for two files.
    assert found.saved == found.cost - (4 * OPEN_BYTES + 2 * 500)
    assert found.gain == found.saved / found.rewritten
    assert found.files_after == 3  # of the base, the delta and the delete delta
    assert found.least == big + 10_000 + 2 * OPEN_BYTES
    assert found.score == 99
    assert found.seconds == (found.least + found.cost) / (100 << 20)
    assert found.seconds_after == found.seconds - found.saved / (100 << 20)


def test_many_deletes_want_a_major_compaction() -> None:
    files = {f"base_5/bucket_0000{i}": 1 << 30 for i in range(4)} | {
        "delete_delta_0000006_0000006_0000/bucket_00000": 1 << 30
    }
    found = advice(files)
    assert found.kind is CompactionKind.MAJOR
    assert found.saved == found.cost == (1 + 1) * OPEN_BYTES + 4 * (1 << 30)
    assert found.rewritten == 5 << 30
    assert found.files_after == 4
    assert found.score == 100 * found.least // (found.least + found.cost) == 50


NAMES = st.sampled_from(
    [f"{prefix}/bucket_0000{bucket}" for bucket in (0, 1) for prefix in ("base_3", "delta_4_4_0", "delta_5_5_0")]
    + [f"delete_delta_{i}_{i}_0/bucket_00000" for i in (4, 5)]
    + ["000000_0", "000001_0"]
)


@given(st.dictionaries(NAMES, st.integers(1, 2 * SMALL_FILE)))
def test_nothing_is_saved_that_was_not_paid(files: dict[str, int]) -> None:
    found = advice(files)
    assert 0 <= found.saved <= found.cost
    assert found.rewritten <= found.bytes
    assert (found.kind is None) == (found.saved == 0)
    if found.directories < 2:
        assert found.kind is not CompactionKind.MINOR
