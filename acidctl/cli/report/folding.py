"""Many locations on one screen: partitions are folded into their table, and the largest tables come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from acidctl.cli.output.console import put_text
from acidctl.cli.output.screen import Column, Layout, number, print_table
from acidctl.wording import human_bytes, human_count

HANDFUL = 5
"""Up to this many locations have lines of their own; more are folded."""

MOST_TABLES = 40
"""Lines of a folded list, so that it fits one screen with its formats."""

_NAMED_CODES = 3
_SIZES = {"bytes": "{}", "read": "{} to read", "written": "{} written"}
"""Amounts that are sizes, as a sentence has them."""


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
        name: of its directory; of a table without partitions its only location.
    """

    name: str
    locations: int = 0
    amounts: Counter[str] = field(default_factory=Counter)


class Totals:
    """Totals of many locations by table; the locations themselves are not kept."""

    def __init__(self) -> None:
        self.tables: dict[str, TableTotal] = {}
        self.codes: Counter[str] = Counter()

    def add(self, location: str, amounts: Mapping[str, int], code: str = "") -> None:
        """Add a location to the totals of its table.

        Args:
            amounts: numbers by name, ``{"entries": 4}``; ``bytes``, ``read`` and ``written`` are sizes.
            code: the code of the reason why nothing happens there, if nothing does.
        """
        folder = folder_of_table(location)
        table = self.tables.setdefault(folder, TableTotal(location))
        table.name = folder if table.locations else location
        table.locations += 1
        table.amounts.update(amounts)
        self.codes[code] += 1


def put_folded(what: str, totals: Totals) -> None:
    """Print a line of totals, and one line for every table, the largest first.

    Args:
        what: the heading, ``to clean``.
    """
    tables = list(totals.tables.values())
    total = _sum(tables)
    put_text(f"{what}: {_places(tables)}{_amounts(total)}")
    if not total:
        return
    *_, key = total
    tables.sort(key=lambda table: -table.amounts[key])
    shown, rest = tables[:MOST_TABLES], tables[MOST_TABLES:]

    def amount(name: str) -> Column[TableTotal]:
        text: Callable[[int], str] = human_bytes if name in _SIZES else number
        return Column("size" if name == "bytes" else name, lambda table: text(table.amounts[name]), right=True)

    counted = Column[TableTotal](
        "partitions",
        lambda table: number(table.locations) if table.locations > 1 else "",
        right=True,
        worth=1,
        optional=True,
    )
    print_table(Layout((Column("table", lambda table: table.name), counted, *map(amount, total))), shown)
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


def _sum(tables: Collection[TableTotal]) -> Counter[str]:
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table.amounts)
    return total


def _amounts(total: Mapping[str, int]) -> str:
    return "".join(
        f", {_SIZES[name].format(human_bytes(count)) if name in _SIZES else f'{count:,} {name}'}"
        for name, count in total.items()
    )
