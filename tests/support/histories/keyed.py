"""Histories of partitioned tables with awkward keys, ids and sources: NULLs, repeated ids, overwrites of partitions.

In :mod:`support.histories.shared` ids are unique and keys small numbers. Here columns are added between statements, ids
repeat or are NULL, partitions have names to escape or none, and sources of a MERGE have several rows of one key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.base.errors import AcidctlError, BadDataError
from support.histories.model import Model, merged
from support.histories.shared import Row, SharedHistory, Table, named
from support.servers.hive_server import HiveError

_KEYS = {"p": (1, 2, -3, None), "s": ("a", "A b", 'ü/1:z=%"', None)}
_IDS = (None, *range(1, 12))
_DEFAULT = DEFAULT_PARTITION.encode().hex()
"""NULL in a key of text as some of Hive's readers return it."""


class KeyedHistory(SharedHistory):
    """As :class:`SharedHistory`, on full-ACID tables with partitions."""

    def _made(self, name: str, version: int) -> Table:
        keys = self._chance.choice([("p",), ("s",), ("p", "s"), ("s", "p")])
        buckets, ours = self._chance.choice([0, 0, 2]), self._chance.random() < 0.5
        ours = ours and not (buckets and version == 1)
        return Table(
            f"k{name}", full=True, stored_as="orc", keys=keys, buckets=buckets, version=version, is_converted=False,
            by_acidctl=ours, key_types={"p": "int", "s": "string"},
        )  # fmt: skip

    def _steps(self, table: Table, number: int) -> list[Callable[[Table], None]]:
        if number == 0:
            return [self._insert]
        steps = [self._insert, self._overwrite, self._overwrite_partition, self._delete, self._compact] * 2
        steps += [*[self._merge] * 4, self._update, self._add_column, self._clean]
        return steps + [self._refused] * ("s" in table.keys)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _new_rows(self, table: Table, most: int = 12) -> list[Row]:
        return [self._new_row(table) for _ in range(self._chance.randrange(1, most + 1))]

    def _new_row(self, table: Table) -> Row:
        row: Row = {"id": self._chance.choice(_IDS), "v": self._text(), "n": self._chance.choice([0, -5, 1000, None])}
        for name, kind in table.columns.items():
            if name.startswith("x"):
                row[name] = self._chance.choice([None, "x'\\" if kind == "string" else 7])
        self._next += 1
        return row | {name: self._chance.choice(_KEYS[name]) for name in table.keys}

    def _condition(self, table: Table) -> tuple[str, Callable[[Row], bool]]:
        low = self._chance.randrange(1, 12)
        return self._chance.choice([
            ("id is null", lambda row: row["id"] is None),
            (f"id between {low} and {low + 3}", lambda row: row["id"] is not None and low <= row["id"] <= low + 3),
            (f"id <> {low} and n is null", lambda row: row["id"] not in (None, low) and row["n"] is None),
            (f"v is null or id = {low}", lambda row: row["v"] is None or row["id"] == low),
        ])  # fmt: skip

    def _of_hive(self) -> dict[int, list[tuple[str, str]]]:
        found = super()._of_hive()
        return {place: [(text.replace(_DEFAULT, "~"), key) for text, key in rows] for place, rows in found.items()}

    # --- statements ---------------------------------------------------------------------------------------------------

    def _add_column(self, table: Table) -> None:
        name, kind = f"x{len(table.columns)}", self._chance.choice(["int", "string", "bigint"])
        if self._sql(f"alter table {table.name} add columns ({name} {kind}) cascade"):
            table.columns[name] = kind
            for row in table.rows:
                row[name] = None

    def _overwrite_partition(self, table: Table) -> None:
        """Replace the rows of one partition, by none now and then, or of those whose first keys are given."""
        given = {name: self._chance.choice(_KEYS[name][:-1]) for name in table.keys[: self._chance.randrange(1, 3)]}
        is_whole = len(given) == len(table.keys)
        rows = [] if is_whole and self._chance.random() < 0.2 else [r | given for r in self._new_rows(table, 4)]
        replaced = {table.key_of(given)} if is_whole else {table.key_of(row) for row in rows}
        names = [name for name in table.types if name not in given]
        if self._is_ours():
            written = self._ours(table, f"overwrite {given} by {rows} in").insert(
                self._arrow(table, rows, names), partition=given, overwrite=True
            )
            self._note(written)
        else:
            keys = ", ".join(filter(None, (named(given), *(name for name in table.keys if name not in given))))
            chosen, source = ", ".join(names), self._structs(table, rows or [self._new_row(table)])
            where = "" if rows else " where false"
            rest = f"select {chosen} from ({source} as ({', '.join(table.types)})) as r{where}"
            if not self._sql(f"insert overwrite table {table.name} partition ({keys}) {rest}"):
                return
            if not rows and self._hive.version == 3:
                return  # a query without rows replaces nothing there
        table.rows = [row for row in table.rows if table.key_of(row) not in replaced] + rows

    def _delete(self, table: Table) -> None:
        if self._chance.random() < 0.6:
            super()._delete(table)
            return
        names = self._chance.choice([["id"], ["id", *table.keys], list(table.keys)])
        keys = [self._new_row(table) for _ in range(4)]  # keys repeat, and a NULL meets nothing
        self._note(self._ours(table, f"delete keys {keys} of").delete(keys=self._arrow(table, keys, names)))
        chosen = {tuple(row[name] for name in names) for row in keys}
        chosen = {key for key in chosen if None not in key}
        table.rows = [row for row in table.rows if tuple(row[name] for name in names) not in chosen]

    def _merge(self, table: Table) -> None:
        if self._is_ours():
            self._merge_of_ours(table)
        else:
            self._merge_of_hive(table)

    def _merge_of_ours(self, table: Table) -> None:
        key = self._chance.choice([["id"], ["id", *table.keys], ["id", table.keys[0]]])
        source, is_ordered = self._new_rows(table), self._chance.random() < 0.8
        deletes = [self._chance.random() < 0.5 for _ in source]
        left_out = self._chance.choice([[], [], ["n"], list(table.columns)[2:]])
        given = [name for name in table.types if name not in left_out]
        order = self._chance.sample(range(100), len(source))
        rows = self._arrow(table, source, given).append_column("lsn", pa.array(order))
        rows = rows.append_column("op", pa.array(["d" if gone else "U" for gone in deletes]))
        text = f"merge {source} key {key} columns {given} order {order} {is_ordered} deletes {deletes} into"
        expected = self._merged(table, source, key, deletes, given, order if is_ordered else None)
        try:
            written = self._ours(table, text).merge(
                rows if is_ordered else rows.drop_columns("lsn"), key, operation_column="op",
                order_by="lsn" if is_ordered else "",
            )  # fmt: skip
        except BadDataError as error:
            assert expected is None, text
            self.statements[-1] += f"  -- refused: {error}"
            return
        assert expected is not None, text
        self._note(written)
        table.rows = expected

    def _merged(
        self, table: Table, source: Sequence[Row], key: Sequence[str], deletes: Sequence[bool], given: Sequence[str],
        order: Sequence[int] | None,
    ) -> list[Row] | None:  # fmt: skip
        """Return the rows after acidctl's MERGE; None where it must refuse."""
        last: dict[Any, int] = {}
        for place in sorted(range(len(source)), key=lambda at: order[at] if order else at):
            of = tuple(source[place][name] for name in key)
            of = of if None not in of else (place, None)  # a NULL equals nothing
            if of in last and order is None:
                return None
            last[of] = place
        chosen = sorted(last.values())
        kinds = {name: table.types[name] for name in table.keys}
        model = Model(table.name, table.columns, kinds, rows=table.rows)
        return merged(model, [source[at] for at in chosen], key, [deletes[at] for at in chosen], given)

    def _merge_of_hive(self, table: Table) -> None:
        """Matched rows are deleted or updated, rows without a match inserted; two matches of a row are refused."""
        source = self._new_rows(table, 5)
        names = ", ".join(f"s_{name}" for name in table.types)
        statement = (
            f"merge into {table.name} as t using ({self._structs(table, source)} as ({names})) as s on t.id = s.s_id"
            " when matched and s.s_id % 3 = 0 then delete when matched then update set v = s.s_v, n = s.s_n"
            f" when not matched then insert values ({', '.join(f's.s_{name}' for name in table.types)})"
        )
        there = {row["id"] for row in table.rows} - {None}
        matching = [row["id"] for row in source if row["id"] in there]
        if len(set(matching)) < len(matching):
            self.statements.append(f"{statement}  -- refused")
            with pytest.raises(HiveError):
                self._hive.sql(statement)
            return
        if not self._sql(statement):
            return
        by_id = {row["id"]: row for row in source if row["id"] in there}
        kept = [row for row in table.rows if not (row["id"] in by_id and row["id"] % 3 == 0)]
        for row in kept:
            if new := by_id.get(row["id"]):
                row |= {"v": new["v"], "n": new["n"]}
        table.rows = kept + [dict(row) for row in source if row["id"] not in there]

    def _refused(self, table: Table) -> None:
        """A partition value that Hive reads as NULL is refused, and nothing is written."""
        rows = [row | {"s": self._chance.choice(["", DEFAULT_PARTITION])} for row in self._new_rows(table, 2)]
        with pytest.raises(AcidctlError):
            self._ours(table, f"insert {rows} into").insert(self._arrow(table, rows))
