"""Tests of :mod:`acidctl.rows.read.moment`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from acidctl.acid.listing import Ages, Entry, Listing
from acidctl.base.errors import HistoryError
from acidctl.rows.read.moment import newest_at


def newest(at: float, *locations: dict[str, float | None]) -> int:
    def ages(times: dict[str, float | None]) -> Ages:
        return Ages.of(Listing("/t", tuple(Entry(f"{name}/f", 1, time, False) for name, time in sorted(times.items()))))

    return newest_at("t", map(ages, locations), datetime.fromtimestamp(at, UTC)).ids[0]


def refusal(at: float, *locations: dict[str, float | None]) -> str:
    with pytest.raises(HistoryError) as caught:
        newest(at, *locations)
    return str(caught.value.why)


ONE, TWO, THREE = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"
BASE, MINOR = "base_0000002_v0000007", "delta_0000001_0000002_v0000007"


def test_the_last_write_id_that_was_written_by_then() -> None:
    times: dict[str, float | None] = {ONE: 10, TWO: 20, THREE: 30}
    assert [newest(at, times) for at in (10, 19.9, 20, 29, 30, 99)] == [1, 1, 2, 2, 3, 3]


def test_a_write_id_of_several_partitions_is_there_when_all_of_it_is() -> None:
    assert newest(15, {ONE: 10}, {ONE: 12, TWO: 20}) == 1
    assert "oldest directory is of 1970-01-01T00:00:10Z" in refusal(9, {ONE: 10}, {TWO: 20})
    assert "holds nothing" in refusal(9, {})


def test_original_files_come_before_all_write_ids() -> None:
    assert newest(7, {"000000_0": 5, ONE: 10}) == 0


@pytest.mark.parametrize("at", [20, 29])
def test_times_that_run_backwards_decide_nothing(at: float) -> None:
    times: dict[str, float | None] = {ONE: 30, TWO: 20}
    assert "times run backwards: write id 1" in refusal(at, times)
    assert newest(30, times) == 2


def test_a_store_without_times() -> None:
    assert "no time for delta_" in refusal(9, {ONE: None})


def test_a_base_shows_that_its_write_ids_were_there() -> None:
    assert newest(25, {BASE: 22, THREE: 30}) == 2
    assert newest(15, {ONE: 10, BASE: 22, THREE: 30}) == 1  # whether more is missing is proven when it is read
    assert "oldest directory" in refusal(15, {BASE: 22})
    assert "backwards" in refusal(25, {BASE: 22, ONE: 40})


def test_a_merged_delta_hides_when_its_write_ids_came() -> None:
    assert "write ids 2 to 2 are only left in a delta" in refusal(15, {ONE: 10, MINOR: 40, THREE: 30})
    assert newest(15, {ONE: 10, TWO: 20, MINOR: 40, THREE: 30}) == 1
    assert newest(35, {ONE: 10, MINOR: 40, THREE: 30}) == 3


def test_a_delta_of_older_write_ids_that_was_written_later_may_be_a_stream() -> None:
    stream, later = "delta_0000001_0000004", "delta_0000005_0000005_0000"
    assert "a stream or a compaction wrote the delta of write ids 1 to 4 at" in refusal(35, {stream: 40, later: 30})
    assert newest(45, {stream: 40, later: 30}) == 5
    assert newest(35, {stream: 40, TWO: 20, later: 30}) == 5  # an input of the compaction is still there


def test_hidden_names_have_no_write_id() -> None:
    assert newest(15, {ONE: 10, "_tmp_space.db": 5, ".acidctl-log": 20}) == 1
