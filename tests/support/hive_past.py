"""The past of a table of a real Hive by its own SELECTs: what `history` must say, and `diff` between two write ids."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from acidctl import Location
from acidctl.acid.names import Kind, parse_directory
from acidctl.errors import HistoryError
from acidctl.rows.past.diff import Difference
from support.hive_compactor import names
from support.hive_text import printed
from support.json_text import encode_json_lines
from support.real_hive import HiveTable, Row, Rows


@dataclass(frozen=True, slots=True)
class Done:
    """Rows that a statement inserted, deleted and updated."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0


NOTHING = Done()


def done_by(before: Rows, after: Rows) -> Done:
    """What a statement did to a location, whose rows were these and are those."""
    went, came = len(set(before) - set(after)), len(set(after) - set(before))
    return Done(came - min(went, came), went - min(went, came), min(went, came))


@dataclass
class Past:
    """One location, of which Hive was asked for the rows after each statement.

    Attributes:
        path: its directory.
        where: its condition in SQL.
        rows: by the write id that was then the last one of the table.
        done: by write id.
        cleaned: directories were removed, so that not all can be told any more.
        renumbered: a REBALANCE gave all rows new ids, so that nothing can be compared with what was before it.
        destroyed: how many differences could not be told for that.
    """

    table: HiveTable
    path: Path
    where: str
    rows: dict[int, Rows] = field(default_factory=lambda: {0: []})
    done: dict[int, Done] = field(default_factory=dict)
    cleaned: bool = False
    renumbered: bool = False
    destroyed: int = 0

    def location(self) -> Location:
        """By the lists of a reader who comes now."""
        return Location(self.path, write_ids=self.table.write_ids)

    def newest(self) -> int:
        """The last write id that a reader who comes now sees."""
        lists = self.table.write_ids
        assert lists is not None
        return next(number for number in range(lists.high_watermark, -1, -1) if not number or lists.is_valid(number))

    def look(self, rows: Rows, *, overwritten: bool = False) -> None:
        """Remember the rows of now, which one statement or none changed since the last look.

        Args:
            rows: as Hive reads them.
            overwritten: it put others into their place.
        """
        now, last = self.newest(), max(self.rows)
        if now > last:
            overwritten = overwritten and (not rows or all(key[0] == now for key, _ in rows))
            if overwritten and (self.path / f"base_{now:07d}").exists():
                self.done[now] = Done(len(rows))
            else:
                self.done[now] = done_by(self.rows[last], rows)
        self.rows[now] = rows

    def forget(self, rows: Rows) -> None:
        """Hive removed all that was there, without a trace."""
        self.rows, self.done, self.cleaned = {self.newest(): rows}, {}, True

    def judge(self, choose: Callable[[list[tuple[int, int]]], list[tuple[int, int]]] = lambda pairs: pairs) -> None:
        """`history` and `diff` say what happened.

        Args:
            choose: which pairs of write ids to compare; all without it.
        """
        self._judge_history()
        ids = sorted(self.rows)
        for start, end in choose([*pairwise(ids), (ids[0], ids[-1]), (ids[-1], ids[0])]):
            self._judge_difference(start, end)

    def _judge_history(self) -> None:
        said = self.location().history()
        assert not said.problems
        lists = self.table.write_ids
        assert lists is not None
        lines = {line.write_id: line for line in said.write_ids}
        alive = Counter(key[0] for key, _ in self.rows[max(self.rows)])
        for number, line in lines.items():
            wanted = self.done.get(number, NOTHING)
            told = (number, line, wanted, self.table.statements)
            if not lists.is_valid(number):
                assert line.state in {"aborted", "open", "unknown"}, told
                continue
            assert line.state == "committed", told
            if line.is_complete:
                assert Done(line.inserted, line.deleted or 0, line.updated or 0) == wanted, told
            else:
                assert line.deleted is line.updated is None, told
                assert alive[number] <= line.inserted <= wanted.inserted + wanted.updated, told
        for number, wanted in self.done.items():
            line_is_there = number in lines and (lines[number].is_complete or self.cleaned)
            is_unknown = self.cleaned and said.unknown_below is not None and number < said.unknown_below
            assert line_is_there or is_unknown or wanted == NOTHING, (number, wanted, said, self.table.statements)

    def _judge_difference(self, start: int, end: int) -> None:
        told = (start, end, self.table.statements)
        try:
            found = self.location().diff(start, end, row_id=True)
            changes = self._changes(found)
        except HistoryError:
            assert self.cleaned or self.renumbered or self._names_leave_open(min(start, end)), told
            self.destroyed += 1
            return
        before, after = (Counter(self.rows[number]) for number in (start, end))
        assert changes == {"-": before - after, "+": after - before}, told
        assert found.count() == (changes["-"].total(), changes["+"].total()), told

    def _names_leave_open(self, number: int) -> bool:
        """Whether a base is newer, and not every write id below it has a directory: names do not tell what is gone."""
        found = [one for name in names(self.path) if (one := parse_directory(name))]
        top = max((one.max_write_id for one in found if one.kind is Kind.BASE), default=0)
        held = {i for one in found if one.kind is not Kind.BASE for i in range(one.min_write_id, one.max_write_id + 1)}
        return number < top and not held.issuperset(range(1, top + 1))

    def _changes(self, found: Difference) -> dict[str, Counter[Row]]:
        kinds = list(self.table.types.values())
        changes: dict[str, Counter[Row]] = {"-": Counter(), "+": Counter()}
        for batch in found.listed():
            for line in encode_json_lines(batch, found.listed_type).decode().splitlines():
                row = json.loads(line)
                change, key = row.pop("change"), row.pop("ROW__ID")
                values = list(row.values())[: len(kinds)]  # those of partitions come after them
                shown = tuple(printed(kind, value) for kind, value in zip(kinds, values, strict=True))
                changes[change][(key["writeid"], key["bucketid"], key["rowid"]), shown] += 1
        return changes
