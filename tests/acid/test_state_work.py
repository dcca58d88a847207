"""No rule compares every directory with every other: four times the directories make four times the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from support.work import calls_of

from acidctl.acid.empty_results import empty_results
from acidctl.acid.layout import current_files
from acidctl.acid.listing import Entry, Listing, TableType
from acidctl.acid.state import Lists, select
from acidctl.acid.time_travel import bases_between, state_at
from acidctl.acid.unfinished import (
    doubtful,
    half_finished,
    layout_problems,
    live_writers,
    only_by_doubt,
    unmarked_bases,
)
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

FILES = ("bucket_00000", "_orc_acid_version")
FEW = 50


def narrow(size: int) -> Iterable[str]:
    return (f"delta_{i}_{i}_0000" for i in range(1, size + 1))


def in_pairs(size: int) -> Iterable[str]:
    """Name pairs of delete deltas, and for each pair the delta that a half-finished minor compaction of Hive 3 left."""
    yield from (f"delete_delta_{i}_{i}_0000" for i in range(1, 2 * size + 1))
    yield from (f"delta_{i}_{i + 1}" for i in range(1, 2 * size, 2))


def empty_minors(size: int) -> Iterable[str]:
    """Name pairs of deltas, and for each pair the empty result of a minor compaction."""
    yield from narrow(2 * size)
    yield from (f"delta_{i}_{i + 1}_v{i}/" for i in range(1, 2 * size, 2))


def overwritten(size: int) -> Iterable[str]:
    return (f"base_{i}" for i in range(1, size + 1))


def compacted(size: int) -> Iterable[str]:
    return (name for i in range(1, size + 1) for name in (f"delta_{2 * i}_{2 * i}_0000", f"base_{2 * i}_v{i}"))


def wider(size: int) -> Iterable[str]:
    """Name deltas of an insert-only table, and one from the first to each of them, as compactions leave them."""
    yield from (f"delta_{i}_{i}_0000" for i in range(1, size + 1))
    yield from (f"delta_1_{i}_v{i}" for i in range(2, size + 1))


def questions(listing: Listing, txns: ValidTxns | None) -> dict[str, Callable[[], object]]:
    ids = ValidWriteIds()
    state = select(listing, ids, txns)
    insert_only = replace(listing, table_type=TableType.INSERT_ONLY)
    return {
        "select": lambda: select(listing, ids, txns),
        "doubtful": lambda: doubtful(listing, state, Lists(ids, txns, {})),
        "only_by_doubt": lambda: only_by_doubt(listing, state, Lists(ids, txns, {})),
        "half_finished": lambda: half_finished(state, committed_too=True),
        "layout_problems": lambda: layout_problems(listing, state),
        "live_writers": lambda: live_writers(listing, state, 5.0),
        "unmarked_bases": lambda: unmarked_bases(listing, state),
        "empty_results": lambda: empty_results(listing, state),
        "current_files": lambda: current_files(state, listing),
        "state_at": lambda: state_at(listing, FEW // 2, ids, txns),
        "look_back_insert_only": lambda: state_at(insert_only, FEW // 2, ids, txns),
        "bases_between": lambda: bases_between(listing, FEW // 2, ids, txns),
    }


def listed(names: Iterable[str]) -> Listing:
    """List directories with a file of rows in each, except in those whose name ends with a slash."""
    paths = (f"{name.rstrip('/')}/{file}" for name in names for file in FILES if file != FILES[0] or name[-1] != "/")
    return Listing("t", tuple(Entry(path, 100, 1.0, is_dir=False) for path in sorted(paths)))


@pytest.mark.parametrize("txns", [None, ValidTxns(10**6)], ids=["unknown", "known"])
@pytest.mark.parametrize("names", [narrow, in_pairs, empty_minors, overwritten, compacted, wider])
def test_calls_grow_as_directories_do(names: Callable[[int], Iterable[str]], txns: ValidTxns | None) -> None:
    few, many = ({k: calls_of(q) for k, q in questions(listed(names(n)), txns).items()} for n in (FEW, 4 * FEW))
    grown = {name: many[name] / few[name] for name in few}
    assert max(grown.values()) < 5, grown
