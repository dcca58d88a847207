"""What counts as committed when only the user says so: nothing young or empty, and nothing above the first of those."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.assumed_commits import Assumed, Assumption, assume
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MAXL, parse_directory
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import select
from acidctl.wording import duration, text_of

NOW = 1_000_000.0
HOUR = Assumption(3600)
EVERYTHING = Assumption(0)


def located(*names: str, young: tuple[str, ...] = (), extra: tuple[Entry, ...] = ()) -> Listing:
    """Directories with a file of ten bytes, two hours old; those of `young` one minute. A trailing slash is empty."""
    entries = list(extra)
    for name in names:
        path, time = name.rstrip("/"), NOW - (60 if name.rstrip("/") in young else 7200)
        entries.append(Entry(path, 0, time, True))
        if not name.endswith("/"):
            entries.append(Entry(f"{path}/bucket_00000", 10, time, False))
    return Listing("t", tuple(sorted(entries)))


def assumed(listing: Listing, assumption: Assumption = HOUR, *compacted: str) -> Assumed:
    return assume(listing, dict.fromkeys(compacted, BaseFormat.COMPACTED), assumption, NOW)


def stop_of(listing: Listing) -> str:
    stop = assumed(listing).stop
    return text_of(stop) if stop else ""


def limit(listing: Listing, assumption: Assumption = HOUR, *compacted: str) -> int:
    return assumed(listing, assumption, *compacted).write_ids.high_watermark


def test_what_is_old_counts() -> None:
    found = assumed(located("delta_1_1_0", "delta_2_2_0", "delta_3_3_0"))
    assert (found.write_ids.high_watermark, found.undecided, found.stop) == (3, (), None)


def test_nothing_younger_and_nothing_above_it() -> None:
    listing = located("delta_1_1_0", "delta_2_2_0", "delta_3_3_0", young=("delta_2_2_0",))
    assert limit(listing) == 1
    assert stop_of(listing) == "delta_2_2_0 was written 1 min ago, so no write id from 2 on counts as committed"
    assert limit(listing, EVERYTHING) == 3
    assert limit(listing, Assumption(59)) == 3


def test_an_empty_directory_is_a_writer_s_at_any_age() -> None:
    listing = located("delta_1_1_0", "delta_2_2_0/", "delta_3_3_0")
    assert limit(listing) == limit(listing, EVERYTHING) == 1
    assert "is empty" in stop_of(listing)
    assert limit(listing, replace(EVERYTHING, force=True)) == 3
    only_a_version = located(
        "delta_1_1_0", "delta_2_2_0/", extra=(Entry("delta_2_2_0/_orc_acid_version", 1, 1.0, False),)
    )
    assert limit(only_a_version) == 1, "Hive writes it before any row"
    no_bytes = located("delta_1_1_0", "delta_2_2_0/", extra=(Entry("delta_2_2_0/bucket_00000", 0, 1.0, False),))
    assert limit(no_bytes) == 1, "a file that is being written to HDFS has no length yet"


def test_an_empty_base_that_says_what_it_is_counts() -> None:
    truncated = located("delta_1_1_0", "base_2/", extra=(Entry("base_2/_metadata_acid", 9, 1.0, False),))
    assert limit(truncated) == 2


@pytest.mark.parametrize(
    "sign",
    [
        Entry("_tmp.delta_2_2_0/000000_0.manifest", 5, 1.0, False),
        Entry("delta_2_4/bucket_00000_flush_length", 8, 1.0, False),
        Entry("_tmp.delta_2_2_0", 0, 1.0, True),
    ],
    ids=["manifest", "open batch", "nothing but a manifest"],
)
def test_a_sign_of_a_writer_stops_before_its_write_id(sign: Entry) -> None:
    names = ("delta_1_1_0", "delta_2_4", "delta_5_5_0") if "flush" in sign.path else ("delta_1_1_0", "delta_5_5_0")
    assert limit(located(*names, extra=(sign,))) == 1
    assert limit(located(*names, extra=(sign,)), replace(HOUR, force=True)) == 5


def test_a_compaction_of_before_hive_4_appears_whole() -> None:
    """However young it is: all below it was decided."""
    listing = located("base_3", "delta_2_2_0", "delta_4_4_0", young=("base_3", "delta_2_2_0"))
    assert limit(listing, HOUR, "base_3") == 4
    assert limit(listing) == 1, "an INSERT OVERWRITE, or a base of Hive 2"


def test_a_young_compaction_of_hive_4_may_be_at_work() -> None:
    """Or its inputs were cleaned away already: nothing of what it may hold can be counted."""
    base = assumed(located("base_3_v9", "delta_2_2_0", "delta_4_4_0", young=("base_3_v9",)))
    assert (base.write_ids.high_watermark, base.txns.is_valid(9)) == (0, False)
    delta = assumed(located("delta_1_1_0", "delta_2_3_v9", "delta_4_4_0", young=("delta_2_3_v9",)))
    assert (delta.write_ids.high_watermark, delta.txns.is_valid(9)) == (1, False)
    old = assumed(located("base_3_v9", "delta_2_2_0", "delta_4_4_0", young=("delta_4_4_0", "delta_2_2_0")))
    assert (old.write_ids.high_watermark, old.txns.is_valid(9)) == (3, True)


def test_young_original_files_leave_nothing_committed() -> None:
    listing = Listing("t", (Entry("000000_0", 5, NOW - 5, False), *located("delta_1_1_0").entries))
    found = assumed(listing)
    assert found.write_ids.high_watermark == 0
    assert [one.is_original for one in found.undecided] == [True]
    behind = Listing("t", (Entry("000000_0", 5, NOW - 5, False), *located("base_2", "delta_3_3_0").entries))
    assert limit(behind) == 3, "readers of a base do not look at them"


def test_where_a_store_has_no_times_nothing_counts_unless_forced() -> None:
    listing = Listing("t", (Entry("delta_1_1_0/bucket_00000", 10, None, False),))
    assert limit(listing) == 0
    assert "has no time" in stop_of(listing)
    assert limit(listing, EVERYTHING) == 1


def test_a_time_ahead_of_our_clock_is_young() -> None:
    listing = Listing("t", (Entry("delta_1_1_0/bucket_00000", 10, NOW + 1e6, False),))
    assert limit(listing) == 0
    assert "lies in the future" in stop_of(listing)
    assert limit(listing, EVERYTHING) == 1


def test_limit_is_right_for_the_smallest_and_largest_write_ids() -> None:
    assert limit(located(f"delta_1_{MAXL}")) == MAXL
    assert limit(located("base_-9223372036854775808", "delta_1_1")) == 1
    assert limit(located("base_-9223372036854775808")) == 0
    assert limit(Listing("t", ())) == 0
    assert limit(located("delta_x", "delta_5_3", "p=1")) == 3


def test_durations_are_told_in_their_largest_fitting_unit() -> None:
    shown = [duration(seconds) for seconds in (0, 59.9, 60, 119, 120, 3600, 7199, 7200, 86400, 200000)]
    assert shown == ["0 s", "59 s", "1 min", "119 s", "2 min", "1 h", "119 min", "2 h", "1 d", "2 d"]


NAMES = st.sampled_from([
    "delta_1_1_0", "delta_2_2_0", "delete_delta_2_2_0", "delta_3_3_0", "delta_4_6", "delta_1_3", "delta_5_5_v7",
    "delta_4_6_v8", "base_2", "base_3_v5", "base_5_v9", "base_6", "000000_0",
])  # fmt: skip


@given(
    st.dictionaries(NAMES, st.tuples(st.integers(0, 4), st.booleans())), st.sets(st.sampled_from(["base_2", "base_6"]))
)
def test_nothing_undecided_is_ever_read(found: dict[str, tuple[int, bool]], marked: set[str]) -> None:
    """Whatever stands around it, a directory that is young or empty is not current.

    Format section 10: "Without a list nobody knows which transactions were committed".
    """
    entries = []
    for name, (age, is_empty) in found.items():
        if name[0].isdigit():
            entries.append(Entry(name, 10, NOW - 7200, False))
            continue
        entries.append(Entry(name, 0, NOW - age * 1800, True))
        if not is_empty:
            entries.append(Entry(f"{name}/bucket_00000", 10, NOW - age * 1800, False))
    listing, formats = Listing("t", tuple(sorted(entries))), dict.fromkeys(marked, BaseFormat.COMPACTED)
    told = assume(listing, formats, HOUR, NOW)
    state = select(listing, told.write_ids, told.txns, formats)
    for name in state.current_names:
        directory = parse_directory(name)
        if directory is None or name in marked:
            continue
        age, is_empty = found[name]
        assert age >= 2, (name, told)
        assert not is_empty, (name, told)
