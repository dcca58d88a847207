"""Many locations on one screen: partitions folded into their table, the largest tables first, the others summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acidctl.cli.output.console import console, human_bytes, put_text
from acidctl.cli.output.screen import Row, ScreenColumn, fitted
from acidctl.wording import human_count

HANDFUL = 5
"""So many locations have lines of their own."""

MANY = HANDFUL + 1
"""So many are folded."""

MOST_TABLES = 40
"""Lines of a folded list: with what stands around it, one screen."""

_NAMED_CODES = 3


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one location.

    Attributes:
        text: lines of its own, where there is room for them.
        counts: by what is counted, ``{"entries": 4}``; what is called ``bytes``, ``read`` or ``written`` are sizes.
        code: of why nothing happens there, where nothing does.
    """

    location: str
    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    code: str = ""


def folder_of_table(location: str) -> str:
    """The location without the directories of its partition, ``day=2026-11-20``."""
    folder = location.rstrip("/")
    while "=" in (parts := folder.rpartition("/"))[2] and parts[0]:
        folder = parts[0]
    return folder


def put_folded(what: str, told: Sequence[Told]) -> None:
    """A line of totals, and one line for every table, the largest first.

    Args:
        what: is true of all of them: ``to clean``.
    """
    tables: dict[str, list[Told]] = {}
    for one in told:
        tables.setdefault(folder_of_table(one.location), []).append(one)
    total = _sum(told)
    put_text(f"{what}: {_places(tables.values())}{_amounts(total)}")
    if not total:
        return
    key = list(total)[-1]
    order = sorted(tables.items(), key=lambda item: -_sum(item[1])[key])
    shown, rest = order[:MOST_TABLES], order[MOST_TABLES:]
    is_partitioned = any(len(ones) > 1 for _, ones in shown)
    partitions = (ScreenColumn("partitions", True, 1, is_clear=False), lambda item: _partitions(*item))
    fitted(
        [
            (ScreenColumn("table"), lambda item: item[0] if len(item[1]) > 1 else item[1][0].location),
            *([partitions] * is_partitioned),
            *(
                (
                    ScreenColumn("size" if name == "bytes" else name, True, is_clear=False),
                    lambda item, name=name: _amount(name, _sum(item[1])[name]),
                )
                for name in total
            ),
        ],
        "",
        shown,
        lambda _, cells: Row(cells, ""),
    ).print(console())
    if rest:
        left = [one for _, ones in rest for one in ones]
        put_text(f"and {_places([ones for _, ones in rest])} more{_amounts(_sum(left))}: -v shows all")


def put_idle(what: str, codes: Sequence[str]) -> None:
    """Locations in which nothing happens, with why: ``nothing to do in 195 locations: few-deltas``."""
    counted = Counter(codes).most_common()
    texts = [code if len(counted) == 1 else f"{code} ({count:,})" for code, count in counted[:_NAMED_CODES] if code]
    more = [f"and {len(counted) - _NAMED_CODES} more reasons"] * (len(counted) > _NAMED_CODES)
    why = f": {', '.join([*texts, *more])}" if texts else ""
    put_text(f"{what} in {human_count(len(codes), 'location')}{why}")


def _partitions(_: str, ones: Sequence[Told]) -> str:
    return f"{len(ones):,}" if len(ones) > 1 else ""


def _places(tables: Iterable[Sequence[Told]]) -> str:
    """``12 tables, 372 locations``."""
    sizes = [len(ones) for ones in tables]
    locations = f", {human_count(sum(sizes), 'location')}" if sum(sizes) > len(sizes) else ""
    return human_count(len(sizes), "table") + locations


def _sum(told: Iterable[Told]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in told:
        for name, count in one.counts.items():
            total[name] = total.get(name, 0) + count
    return total


def _amount(name: str, count: int) -> str:
    return human_bytes(count) if name in ("bytes", "read", "written") else f"{count:,}"


def _amounts(total: Mapping[str, int]) -> str:
    texts = {"bytes": "{}", "read": "{} to read", "written": "{} written"}
    parts = [
        texts[name].format(human_bytes(count)) if name in texts else f"{count:,} {name}"
        for name, count in total.items()
    ]
    return "".join(f", {part}" for part in parts)
