"""Tables of the conformance set laid over each other at random: several oddities in one directory."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from support.conformance.cases import CASES
from support.conformance.declared import Case
from support.conformance.known import KNOWN
from support.conformance.ours import forget_tables

_FEWEST = 4
"""Tables of one group that are worth mixing."""


@contextmanager
def mixed(seed: int, count: int) -> Iterator[list[Case]]:
    """Give `count` new cases, which meanwhile are the whole set: files of two to four others of one group each.

    Where two have a file of one name, the first keeps it.
    """
    before, made = dict(CASES), {case.name: case for case in _cases(random.Random(seed), seed, count)}
    _set(made)
    try:
        yield list(made.values())
    finally:
        _set(before)


def _set(cases: Mapping[str, Case]) -> None:
    CASES.clear()
    CASES.update(cases)
    forget_tables()


def _cases(chance: random.Random, seed: int, count: int) -> Iterator[Case]:
    groups: dict[tuple[Any, ...], list[Case]] = defaultdict(list)
    for case in CASES.values():
        if not case.alter and not case.was and case.columns == "a int, b string" and case.name not in KNOWN:
            groups[case.group].append(case)
    pools = [cases for cases in groups.values() if len(cases) >= _FEWEST]
    for number in range(count):
        (pool,) = chance.choices(pools, [len(one) for one in pools])
        parts = chance.sample(pool, chance.choice([2, 2, 3, 3, 4]))
        yield replace(
            parts[0],
            name=f"mixed-{seed}-{number}",
            source=" + ".join(part.name for part in parts),
            files=_together(parts),
            unmarked=any(part.unmarked for part in parts),
        )


def _together(parts: list[Case]) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for part in parts:
        for path, content in part.files.items():
            if not any(_is_in_the_way(path, other) for other in files):
                files[path] = content
    return files


def _is_in_the_way(path: str, other: str) -> bool:
    """Return whether two paths are one, or one of them is a file where the other needs a directory."""
    pairs = ((path, other), (other, path))
    return path.rstrip("/") == other.rstrip("/") or any(below.startswith(f"{above}/") for above, below in pairs)
