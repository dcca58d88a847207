"""Which directories count as a compaction's result that holds nothing, by the listing alone."""

from __future__ import annotations

import pytest

from acidctl.acid.empty_results import EmptyResult, empty_results
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.state import AcidState, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

MARKER = "_orc_acid_version"
INPUTS = ("delta_0000001_0000001_0000/bucket_00000", "delete_delta_0000002_0000002_0000/bucket_00000")
NAMES = tuple(path.partition("/")[0] for path in INPUTS)


def seen(*paths: str, committed: int = 99) -> tuple[Listing, AcidState]:
    """A location of files, which all have data but the markers."""
    entries = sorted(Entry(path, 1 if MARKER in path else 100, None, False) for path in paths)
    listing = Listing("/t", tuple(entries))
    return listing, select(listing, ValidWriteIds(high_watermark=9), ValidTxns(high_watermark=committed))


def found(*paths: str, committed: int = 99) -> tuple[EmptyResult, ...]:
    return empty_results(*seen(*paths, committed=committed))


@pytest.mark.parametrize("name", ["base_0000002_v0000007", "delta_0000001_0000002_v0000007", "delta_0000001_0000002"])
def test_a_result_with_a_marker_alone_hides_what_has_data(name: str) -> None:
    (result,) = found(*INPUTS, f"{name}/{MARKER}")
    assert (result.name, result.is_read) == (name, True)
    assert sorted(result.replaced) == sorted(NAMES)


def test_a_result_with_data_is_none() -> None:
    assert found(*INPUTS, "base_0000002_v0000007/bucket_00000") == ()


def test_a_base_without_a_mark_is_an_overwrite_by_nothing() -> None:
    assert found(*INPUTS, f"base_0000002/{MARKER}") == ()


def test_a_result_that_no_reader_sees_hides_nothing() -> None:
    assert found(*INPUTS, f"base_0000002_v0000007/{MARKER}", committed=6) == ()


def test_what_it_replaced_is_gone_already() -> None:
    assert found("delta_0000005_0000005_0000/bucket_00000", f"base_0000002_v0000007/{MARKER}") == ()


def test_another_result_went_by_it() -> None:
    (result,) = found(*INPUTS, f"base_0000002_v0000007/{MARKER}", "base_0000003_v0000008/bucket_00000")
    assert (result.name, result.is_read) == ("base_0000002_v0000007", False)


def test_a_later_result_is_not_asked_for_what_came_after_it() -> None:
    later = "delta_0000004_0000004_0000"
    (result,) = found(
        *INPUTS, f"base_0000002_v0000007/{MARKER}", f"{later}/bucket_00000", "base_0000004_v0000008/bucket_00000"
    )
    assert later not in result.replaced


def test_a_statement_that_wrote_nothing_is_no_result() -> None:
    """Beside another of the same write id, which a compaction made obsolete."""
    one, other = "delta_0000001_0000001_0000/bucket_00000", f"delta_0000001_0000001_0001/{MARKER}"
    assert found(one, other, "delta_0000001_0000004_v0000007/bucket_00000") == ()


def test_an_insert_only_table_has_none() -> None:
    """Its directories have no marker."""
    assert found("delta_0000001_0000001_0000/000000_0", "base_0000002_v0000007/_SUCCESS") == ()


@pytest.mark.parametrize("replaced", ["000000_0", "delta_0000001_0000001_0000/000000_0"])
def test_raw_files_alone_are_of_a_full_acid_table_where_the_result_has_a_marker(replaced: str) -> None:
    (result,) = found(replaced, f"base_0000002_v0000007/{MARKER}")
    assert result.replaced == (replaced.partition("/")[0],)


@pytest.mark.parametrize("file", [MARKER, "bucket_00000"])
def test_what_was_overwritten_or_truncated_since_is_not_missed(file: str) -> None:
    assert found(*INPUTS, f"base_0000002_v0000007/{MARKER}", f"base_0000003/{file}") == ()


def test_what_a_compaction_of_an_overwrite_lost_is_missed() -> None:
    (result,) = found("base_0000002/bucket_00000", f"base_0000002_v0000007/{MARKER}")
    assert result.replaced == ("base_0000002",)


def test_originals_are_replaced_by_a_base() -> None:
    (result,) = found("000000_0", INPUTS[1], f"base_0000002_v0000007/{MARKER}")
    assert "000000_0" in result.replaced


def test_twins_are_of_one_range_and_one_transaction() -> None:
    delta, twin = "delta_0000001_0000002_v0000007", "delete_delta_0000001_0000002_v0000007"
    listing, state = seen(*INPUTS, f"{delta}/{MARKER}", f"{twin}/{MARKER}", "delta_0000003_0000003/bucket_00000")
    results = {one.name: one for one in empty_results(listing, state)}
    assert results.keys() == {delta, twin}
    assert results[delta].twins == (twin,)
    assert results[twin].twins == (delta,)


def test_a_delta_replaces_what_lies_in_its_range() -> None:
    other = ("delta_0000001_0000001_0000/bucket_00000", "delta_0000001_0000002_v0000005/bucket_00000")
    inside = "delta_0000003_0000003_0000"
    (result,) = found(*other, f"{inside}/bucket_00000", f"delta_0000003_0000004_v0000007/{MARKER}")
    assert result.replaced == (inside,)
