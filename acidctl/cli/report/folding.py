"""Many locations on one screen: partitions are folded into their table, and the largest tables come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from acidctl.cli.output.console import console, put_text
from acidctl.cli.output.screen import Row, ScreenColumn, fitted
from acidctl.wording import human_bytes, human_count

HANDFUL = 5
"""Up to this many locations have lines of their own; more are folded."""

MOST_TABLES = 40
"""Lines of a folded list, so that it fits one screen with its formats."""

_NAMED_CODES = 3


def folder_of_table(location: str) -> str:
    """Return the location without its partition directories, ``day=2026-11-20``."""
    folder = location.rstrip("/")
    while "=" in (parts := folder.rpartition("/"))[2] and parts[0]:
        folder = parts[0]
    return folder


@dataclass(slots=True)
class TableTotal:
    """The locations of one table together.

    Attributes:
        first: the location that was added first.
    """

    first: str
    locations: int = 0
    counts: dict[str, int] = field(default_factory=dict)


class Totals:
    """Totals of many locations by table; the locations themselves are not kept."""

    def __init__(self) -> None:
        self.tables: dict[str, TableTotal] = {}
        self.codes: Counter[str] = Counter()

    def add(self, location: str, counts: Mapping[str, int], code: str = "") -> None:
        """Add a location to the totals of its table.

        Args:
            counts: amounts by name, ``{"entries": 4}``; ``bytes``, ``read`` and ``written`` are sizes.
            code: the code of the reason why nothing happens there, if nothing does.
        """
        table = self.tables.setdefault(folder_of_table(location), TableTotal(location))
        table.locations += 1
        _add(table.counts, counts)
        self.codes[code] += 1


def put_folded(what: str, totals: Totals) -> None:
    """Print a line of totals, and one line for every table, the largest first.

    Args:
        what: the heading, ``to clean``.
    """
    tables = totals.tables
    total = _sum(tables.values())
    put_text(f"{what}: {_places(tables.values())}{_amounts(total)}")
    if not total:
        return
    key = list(total)[-1]
    order = sorted(tables.items(), key=lambda item: -item[1].counts.get(key, 0))
    shown, rest = order[:MOST_TABLES], [table for _, table in order[MOST_TABLES:]]
    is_partitioned = any(table.locations > 1 for _, table in shown)
    partitions = (
        ScreenColumn("partitions", True, 1, is_clear=False),
        lambda item: f"{item[1].locations:,}" if item[1].locations > 1 else "",
    )
    fitted(
        [
            (ScreenColumn("table"), lambda item: item[0] if item[1].locations > 1 else item[1].first),
            *([partitions] * is_partitioned),
            *(
                (
                    ScreenColumn("size" if name == "bytes" else name, True, is_clear=False),
                    lambda item, name=name: _amount(name, item[1].counts.get(name, 0)),
                )
                for name in total
            ),
        ],
        "",
        shown,
        lambda _, cells: Row(cells, ""),
    ).print(console())
    if rest:
        put_text(f"and {_places(rest)} more{_amounts(_sum(rest))}: -v shows all")


def put_idle(what: str, codes: Counter[str]) -> None:
    """Print how many locations are idle, and why: ``nothing to do in 195 locations: few deltas``."""
    counted = [(code.replace("-", " "), count) for code, count in codes.most_common()]
    texts = [code if len(counted) == 1 else f"{code} ({count:,})" for code, count in counted[:_NAMED_CODES] if code]
    more = [f"and {len(counted) - _NAMED_CODES} more reasons"] * (len(counted) > _NAMED_CODES)
    why = f": {', '.join([*texts, *more])}" if texts else ""
    put_text(f"{what} in {human_count(codes.total(), 'location')}{why}")


def _places(tables: Collection[TableTotal]) -> str:
    """``12 tables, 372 locations``."""
    count = sum(table.locations for table in tables)
    locations = f", {human_count(count, 'location')}" if count > len(tables) else ""
    return human_count(len(tables), "table") + locations


def _sum(tables: Iterable[TableTotal]) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in tables:
        _add(total, table.counts)
    return total


def _add(total: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count


def _amount(name: str, count: int) -> str:
    return human_bytes(count) if name in ("bytes", "read", "written") else f"{count:,}"


def _amounts(total: Mapping[str, int]) -> str:
    texts = {"bytes": "{}", "read": "{} to read", "written": "{} written"}
    parts = [
        texts[name].format(human_bytes(count)) if name in texts else f"{count:,} {name}"
        for name, count in total.items()
    ]
    return "".join(f", {part}" for part in parts)
