"""The past of a table of a real Hive by its own SELECTs: what `history`, `diff`, `blame` and `cat --at` must say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from acidctl import Location
from acidctl.acid.names import Kind, parse_directory
from acidctl.base.errors import HistoryError
from acidctl.orc.types import OrcType
from acidctl.rows.past.blame import Blame
from acidctl.rows.past.diff import Difference
from support.engines.hive_compactor import names
from support.engines.hive_text import printed
from support.engines.real_hive import HiveTable, Row, Rows, same
from support.files.json_text import encode_json_lines

Key = tuple[int, int, int]
"""ROW__ID."""


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
        overwritten: write ids that put all rows in the place of others.
        renumbered: a REBALANCE gave all rows new ids, so that nothing can be compared with what was before it.
        copied: rows of other partitions, by write id, that a REBALANCE may have copied to here, as Hive 4.0.1's does.
        destroyed: how much could not be told for that.
    """

    table: HiveTable
    path: Path
    where: str
    rows: dict[int, Rows] = field(default_factory=lambda: {0: []})
    done: dict[int, Done] = field(default_factory=dict)
    overwritten: set[int] = field(default_factory=set)
    cleaned: bool = False
    renumbered: bool = False
    copied: Counter[int] = field(default_factory=Counter)
    destroyed: int = 0

    def location(self) -> Location:
        """By the lists of a reader who comes now."""
        return Location(self.path, snapshot=self.table.write_ids)

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
                self.overwritten.add(now)
            else:
                self.done[now] = done_by(self.rows[last], rows)
        self.rows[now] = rows

    def renumber(self, others: Iterable[Past]) -> None:
        """A REBALANCE is done."""
        self.renumbered = True
        for past in others:
            self.copied.update(key[0] for key, _ in past.rows[max(past.rows)])

    def forget(self, rows: Rows) -> None:
        """Hive removed all that was there, without a trace."""
        self.rows, self.done, self.cleaned = {self.newest(): rows}, {}, True
        self.overwritten = set()

    def judge(self, choose: Callable[[list[Any]], list[Any]] = lambda found: found) -> None:
        """`history`, `diff`, `blame` and `cat --at` say what happened.

        Args:
            choose: which pairs of write ids to compare, which write ids to look back to, and which rows to look for;
                all without it.
        """
        self._judge_history()
        ids = sorted(self.rows)
        for start, end in choose([*pairwise(ids), (ids[0], ids[-1]), (ids[-1], ids[0])]):
            self._judge_difference(start, end)
        for number in choose(list(range(ids[0], ids[-1] + 1))):
            self._judge_rows_at(number)
        if not self.renumbered:
            self._judge_lives(choose)

    def _judge_rows_at(self, number: int) -> None:
        told = (number, self.table.statements)
        wanted = self.rows[max(one for one in self.rows if one <= number)]
        try:
            scan = self.location().rows().scan(at=number, row_id=True)
            found = [self._row(row) for row in _as_printed(scan.batches_as_read(), scan.output_type)]
        except HistoryError:
            assert self.cleaned or self.renumbered or self._names_leave_open(number), told
            self.destroyed += 1
            return
        same(sorted(found), wanted, told)

    def _judge_lives(self, choose: Callable[[list[Any]], list[Any]]) -> None:
        """What became of rows that were ever seen: of those that live, and of those that went."""
        ids = sorted(self.rows)
        went: dict[Key, int] = {}
        for before, after in pairwise(ids):
            left = {key for key, _ in self.rows[after]}
            went |= {key: after for key, _ in self.rows[before] if key not in left}
        for key in choose(sorted(key for key, _ in self.rows[ids[-1]])):
            life, deleted = self._life(key)
            assert life is not None and (life.status, deleted) == ("live", set()), (key, life, self.table.statements)
            assert {one.write_id for one in life.inserts} == {key[0]}, (key, life, self.table.statements)
        for key, number in choose(sorted(went.items())):
            life, deleted = self._life(key)
            told = (key, number, life, self.table.statements)
            if number in self.overwritten:
                assert (life is None and self.cleaned) or (life and (life.status, deleted) == ("gone", set())), told
            elif self.cleaned:
                assert life is None or (life.status in {"deleted", "gone"} and deleted <= {number}), told
            else:
                assert life is not None and (life.status, deleted) == ("deleted", {number}), told

    def _life(self, key: Key) -> tuple[Blame | None, set[int]]:
        """What `blame` says of a row, if anything is left of it; and the valid write ids that deleted it."""
        lists = self.table.write_ids
        assert lists is not None
        life = self.location().blame("{}:{}:{}".format(*key))
        deleted = {event.write_id for event in life.changes if lists.is_valid(event.write_id)}
        return (life if life.status else None), deleted

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
                most = wanted.inserted + wanted.updated + self.copied[number]
                assert alive[number] <= line.inserted <= most, told
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
        changes: dict[str, Counter[Row]] = {"-": Counter(), "+": Counter()}
        for row in _as_printed(found.listed(), found.listed_type):
            changes[row.pop("change")][self._row(row)] += 1
        return changes

    def _row(self, row: dict[str, Any]) -> Row:
        """One as Hive has it, of one that `cat` prints."""
        key = row.pop("ROW__ID")
        kinds = list(self.table.types.values())
        values = list(row.values())[: len(kinds)]  # those of partitions come after them
        shown = tuple(printed(kind, value) for kind, value in zip(kinds, values, strict=True))
        return (key["writeid"], key["bucketid"], key["rowid"]), shown


def _as_printed(batches: Iterable[pa.RecordBatch], kind: OrcType) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from map(json.loads, encode_json_lines(batch, kind).decode().splitlines())
