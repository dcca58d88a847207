"""Histories whose statements Hive or acidctl carries out, as chance has it, on several tables at once.

:mod:`support.histories.history` has many types in few tables. Here many forms of tables have the same few columns:
full ACID, insert-only in three formats, partitions, buckets, files from before, columns added and changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import acidctl
from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.base.errors import RefusedError
from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.metastore import client
from acidctl.outcome import Result
from acidctl.rows.scan.scan import Scan
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.erase import erase
from acidctl.verbs.writing.options import EraseOptions
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions
from support.engines.own_faults import runs
from support.servers.hive_server import HiveServer
from support.tables import json_rows

Row = dict[str, Any]
MODES = (("none", "true"), ("none", "false"))
"""How Hive reads: a job by batches, and a job row by row."""

_ARROW = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}
_TEXTS = ("a", "", "ü€", "b c", "NULL", "x'y")


@dataclass
class Table:
    """A table and the rows that it must have.

    Attributes:
        keys: partition keys, ``p`` or ``p`` and ``q``.
        full: it takes updates and deletes.
        columns: types by name, without keys.
        key_types: types of keys by name; int for others.
    """

    name: str
    full: bool
    stored_as: str
    keys: tuple[str, ...]
    buckets: int
    version: int
    is_converted: bool
    by_acidctl: bool
    columns: dict[str, str] = field(default_factory=lambda: {"id": "int", "v": "string", "n": "int"})
    rows: list[Row] = field(default_factory=list)
    key_types: dict[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, name: str, chance: random.Random, version: int) -> Table:
        full = chance.random() < 0.7
        stored_as = "orc" if full else chance.choice(["orc", "parquet", "textfile"])
        keys = chance.choice([(), (), ("p",), ("p", "q")])
        buckets = chance.choice([0, 0, 2, 3]) if full else 0
        converted = full and chance.random() < 0.25
        ours = not converted and not (buckets and version == 1) and chance.random() < 0.5
        return cls(name, full, stored_as, keys, buckets, version, converted, ours)

    @property
    def types(self) -> dict[str, str]:
        return {**self.columns, **{key: self.key_types.get(key, "int") for key in self.keys}}

    def key_of(self, row: Row) -> tuple[int, ...]:
        return tuple(row[key] for key in self.keys)

    def values_of(self, partition: Mapping[str, str | None]) -> Row:
        """Return the values of a location's keys as rows have them."""
        values: Row = {}
        for name, text in partition.items():
            is_null = text is None or text == DEFAULT_PARTITION
            values[name] = None if is_null else int(text or 0) if self.types[name] == "int" else text
        return values

    def texts(self) -> list[str]:
        return sorted("|".join(shown(row[name]) for name in self.types) for row in self.rows)

    @property
    def by(self) -> str:
        return f" partition ({', '.join(self.keys)})" if self.keys else ""


def shown(value: Any) -> str:
    return "~" if value is None else str(value).encode().hex() if isinstance(value, str) else str(value)


def quoted(value: Any) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if isinstance(value, str) else str(value)


def literal(kind: str, value: Any) -> str:
    return f"cast({'null' if value is None else quoted(value)} as {kind})"


class SharedHistory:
    """Tables, and statements on them by chance; the same for the same seed.

    Attributes:
        statements: what happened so far.
    """

    def __init__(self, hive: HiveServer, seed: int, tables: int) -> None:
        self._hive, self._chance = hive, random.Random(f"shared {seed}")
        self.statements: list[str] = []
        self._door = acidctl.Hive(hive.metastore)
        version = self._chance.choice([1, 2])  # Hive refuses a UNION of tables of several
        self._tables = [self._made(f"s{seed}_{place}", version) for place in range(tables)]
        self._next = 1

    def _made(self, name: str, version: int) -> Table:
        return Table.made(name, self._chance, version)

    def live(self, rounds: int) -> None:
        """Carry out rounds of one statement a table, and judge all tables every second round."""
        try:
            self._hive.set("hive.stats.autogather", "true")
            self._hive.set("hive.stats.column.autogather", "true")
            for table in self._tables:
                self._create(table)
            for number in range(rounds):
                for table in self._tables:
                    self._chance.choice(self._steps(table, number))(table)
                if number % 2 or number == rounds - 1:
                    self._judge()
        except Exception as error:
            error.add_note(f"Hive {self._hive.version}: " + "\n".join(self.statements))
            raise
        finally:
            self._hive.reset()
            for table in self._tables:
                self._hive.sql(f"drop table if exists {table.name}")

    def _steps(self, table: Table, number: int) -> list[Callable[[Table], None]]:
        if number == 0:
            return [self._insert]
        steps = [self._insert] * 4 + [self._overwrite] * 2 + [self._truncate, self._add_column, self._compact]
        steps += [self._clean, self._widen]
        if table.full:
            steps += [self._update] * 5 + [self._delete] * 5 + [self._merge] * 5 + [self._erase, self._compact]
        if table.keys:
            steps += [self._drop_partition, self._add_partition, self._truncate_partition]
        return steps

    # --- who does it --------------------------------------------------------------------------------------------------

    def _is_ours(self) -> bool:
        return self._chance.random() < 0.6

    def _sql(self, statement: str) -> bool:
        self.statements.append(statement)
        done = runs(self._hive, statement)
        self.statements[-1] += "" if done else "  -- failed"
        return done

    def _ours(self, table: Table, text: str) -> Any:
        self.statements.append(f"-- acidctl {text} {table.name}")
        return self._door.table(f"default.{table.name}")

    def _note(self, written: Any) -> None:
        self.statements[-1] += f"  -- write id {written.written.write_id}"

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _new_rows(self, table: Table, most: int = 12) -> list[Row]:
        rows = []
        for _ in range(self._chance.randrange(1, most + 1)):
            row: Row = {"id": self._next, "v": self._text(), "n": self._chance.choice([0, 1, -5, 1000, None])}
            row |= {name: self._chance.choice([7, None]) for name in table.columns if name.startswith("x")}
            row |= {name: self._chance.choice([1, 2, 30]) for name in table.keys}
            self._next += 1
            rows.append(row)
        return rows

    def _text(self) -> str | None:
        return self._chance.choice([None, self._chance.choice(_TEXTS), f"t{self._next}"])

    def _structs(self, table: Table, rows: Sequence[Row]) -> str:
        each = (", ".join(literal(kind, row[name]) for name, kind in table.types.items()) for row in rows)
        return f"select inline(array({', '.join(f'struct({values})' for values in each)}))"

    def _arrow(self, table: Table, rows: Sequence[Row], names: Sequence[str] = ()) -> pa.Table:
        types = table.types
        chosen = names or list(types)
        return pa.table({name: pa.array([row[name] for row in rows], _ARROW[types[name]]) for name in chosen})

    def _condition(self, table: Table) -> tuple[str, Callable[[Row], bool]]:
        """SQL for both, and whether a row meets it; NULL meets nothing."""
        low = self._chance.randrange(1, self._next + 1)
        number = self._chance.choice([2, 3])
        choices: list[tuple[str, Callable[[Row], bool]]] = [
            (f"id between {low} and {low + 6}", lambda row: low <= row["id"] <= low + 6),
            (f"id >= {low}", lambda row: row["id"] >= low),
            ("n is null", lambda row: row["n"] is None),
            ("n > 0 or v = 'a'", lambda row: (row["n"] or 0) > 0 or row["v"] == "a"),
            (f"id in ({low}, {low + 2})", lambda row: row["id"] in (low, low + 2)),
        ]
        if table.keys:
            choices.append((f"p = {number}", lambda row: row["p"] == number))
        return self._chance.choice(choices)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _create(self, table: Table) -> None:
        columns = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
        keys = ", ".join(f"{name} {table.types[name]}" for name in table.keys)
        if table.by_acidctl:
            more: dict[str, Any] = {"clustered_by": "id", "buckets": table.buckets} if table.buckets else {}
            self._ours(table, f"create {columns} by {keys}, {table}").create(
                columns, partitioned_by=keys, type="full" if table.full else "insert_only",
                stored_as=table.stored_as.removesuffix("file"), **more,
            )  # fmt: skip
            return
        by = f" partitioned by ({keys})" * bool(keys)
        by += f" clustered by (id) into {table.buckets} buckets" * bool(table.buckets)
        properties = {"bucketing_version": str(table.version)} if table.buckets else {"a": "b"}
        if not table.is_converted:
            properties["transactional"] = "true"
        if not table.full:
            properties["transactional_properties"] = "insert_only"
        stated = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self._sql(f"create table {table.name} ({columns}){by} stored as {table.stored_as} tblproperties ({stated})")
        if table.is_converted:
            rows = self._new_rows(table)
            if self._sql(f"insert into {table.name}{table.by} {self._structs(table, rows)}"):
                table.rows += rows
            managed = "'EXTERNAL'='FALSE', " if self._hive.version > 3 else ""
            self._sql(f"alter table {table.name} set tblproperties({managed}'transactional'='true')")

    def _insert(self, table: Table) -> None:
        rows = self._new_rows(table)
        if not self._is_ours():
            if self._sql(f"insert into {table.name}{table.by} {self._structs(table, rows)}"):
                table.rows += rows
            return
        self._note(self._ours(table, f"insert {rows} into").insert(self._arrow(table, rows)))
        table.rows += rows

    def _overwrite(self, table: Table) -> None:
        """The whole table, or one partition; Hive's dynamic partitions are those that get rows, as ours."""
        rows = self._new_rows(table, 5)
        if self._is_ours():
            if table.keys and self._chance.random() < 0.5 and None not in table.key_of(rows[0]):  # all keys are given
                fixed = {name: rows[0][name] for name in table.keys}
                rows = [{**row, **fixed} for row in rows]
                source = self._arrow(table, rows, list(table.columns))
                written = self._ours(table, f"overwrite {fixed} by {rows} in").insert(
                    source, partition=fixed, overwrite=True
                )
            else:
                written = self._ours(table, f"overwrite by {rows}").insert(self._arrow(table, rows), overwrite=True)
            self._note(written)
        elif not self._sql(f"insert overwrite table {table.name}{table.by} {self._structs(table, rows)}"):
            return
        replaced = {table.key_of(row) for row in rows}
        table.rows = [row for row in table.rows if table.key_of(row) not in replaced] + rows

    def _update(self, table: Table) -> None:
        where, met = self._condition(table)
        text = f"u{len(self.statements)}"
        if self._is_ours():
            self._note(self._ours(table, f"update {where} {text} in").update(f"v = '{text}', n = n + 1", where))
        elif not self._sql(f"update {table.name} set v = '{text}', n = n + 1 where {where}"):
            return
        for row in table.rows:
            if met(row):
                row |= {"v": text, "n": None if row["n"] is None else row["n"] + 1}

    def _delete(self, table: Table) -> None:
        where, met = self._condition(table)
        if self._is_ours() and self._chance.random() < 0.4:
            ids = sorted({self._chance.randrange(1, self._next + 1) for _ in range(5)})
            met = lambda row: row["id"] in ids  # noqa: E731
            keys = pa.table({"id": pa.array(ids, pa.int64())})
            self._note(self._ours(table, f"delete keys {ids} of").delete(keys=keys))
        elif self._is_ours():
            self._note(self._ours(table, f"delete {where} of").delete(where))
        elif not self._sql(f"delete from {table.name} where {where}"):
            return
        table.rows = [row for row in table.rows if not met(row)]

    def _merge(self, table: Table) -> None:
        """Rows of known ids are deleted, or get new values; others are inserted."""
        known = self._chance.sample(table.rows, min(len(table.rows), 5))
        source = self._new_rows(table, 4) + [
            {**new, **{name: old[name] for name in ("id", *table.keys)}}
            for new, old in zip((row for _ in known for row in self._new_rows(table, 1)), known, strict=True)
        ]
        gone = {row["id"] for row in source if row["id"] % 3 == 0}
        ids = [row["id"] for row in table.rows]
        if self._is_ours():
            rows = self._arrow(table, source).append_column(
                "op", pa.array(["D" if row["id"] in gone else "U" for row in source])
            )
            written = self._ours(table, f"merge {source}, deletes {gone}, into").merge(
                rows, "id", operation_column="op"
            )
            self._note(written)
            by_id = {row["id"]: row for row in source}
            table.rows = [row for row in table.rows if row["id"] not in by_id]
            table.rows += [dict(row) for row in source if row["id"] not in gone]
            return
        names = ", ".join(f"s_{name}" for name in table.types)
        done = self._sql(
            f"merge into {table.name} as t using ({self._structs(table, source)} as ({names})) as s on t.id = s.s_id"
            " when matched and s.s_id % 3 = 0 then delete when matched then update set v = s.s_v, n = s.s_n"
            f" when not matched then insert values ({', '.join(f's.s_{name}' for name in table.types)})"
        )
        if done:
            by_id = {row["id"]: row for row in source}
            table.rows = [row for row in table.rows if row["id"] not in gone]
            for row in table.rows:
                if new := by_id.get(row["id"]):
                    row |= {"v": new["v"], "n": new["n"]}
            table.rows += [dict(row) for row in source if row["id"] not in ids]

    def _truncate(self, table: Table) -> None:
        if self._chance.random() < 0.5:
            return self._insert(table)
        if self._is_ours():
            self._note(self._ours(table, "truncate").truncate())
        elif not self._sql(f"truncate table {table.name}"):
            return None
        table.rows = []
        return None

    def _partition(self, table: Table) -> dict[str, int] | None:
        return {name: self._chance.choice(table.rows)[name] for name in table.keys[:1]} if table.rows else None

    def _truncate_partition(self, table: Table) -> None:
        chosen = self._partition(table)
        if not chosen:
            return
        if self._is_ours():
            self._note(self._ours(table, f"truncate {chosen} of").truncate(partition=chosen))
        else:
            whole = {name: table.rows[0][name] for name in table.keys}
            if not self._sql(f"truncate table {table.name} partition ({named(whole)})"):
                return
            chosen = whole
        table.rows = [row for row in table.rows if any(row[name] != value for name, value in chosen.items())]

    def _add_partition(self, table: Table) -> None:
        values = {name: self._chance.choice([2, 44]) for name in table.keys}
        self._sql(f"alter table {table.name} add if not exists partition ({named(values)})")

    def _drop_partition(self, table: Table) -> None:
        if (chosen := self._partition(table)) and self._sql(
            f"alter table {table.name} drop partition ({named(chosen)})"
        ):
            table.rows = [row for row in table.rows if any(row[name] != value for name, value in chosen.items())]

    def _add_column(self, table: Table) -> None:
        name = f"x{len(table.columns)}"
        if table.stored_as == "orc" and self._sql(
            f"alter table {table.name} add columns ({name} int)" + " cascade" * bool(table.keys)
        ):
            table.columns[name] = "int"
            for row in table.rows:
                row[name] = None

    def _widen(self, table: Table) -> None:
        if (
            table.stored_as == "orc"
            and table.columns["n"] == "int"
            and self._sql(f"alter table {table.name} change n n bigint" + " cascade" * bool(table.keys))
        ):
            table.columns["n"] = "bigint"

    def _erase(self, table: Table) -> None:
        """Delete, compact, clean and prove; what Hive has queued is in its way."""
        if self._hive.version == 3 or READY in compactions(self._hive, table.name):
            return self._delete(table)
        where, met = self._condition(table)
        self.statements.append(f"-- acidctl erase {where} of {table.name}")
        resolver = SnapshotResolver(warehouse=open_warehouse(self._hive.metastore))
        selection = Selection((f"hive:default.{table.name}",), {}, resolver)
        options = EraseOptions(where=where, older_than=0.0, unsafe_retention=True)
        *_, last = erase(selection, options, Events())
        assert last.result is Result.ERASED or last.exit_status == 14, last
        self.statements[-1] += f"  -- {last.result}"
        table.rows = [row for row in table.rows if not met(row)]
        return None

    def _locations(self, table: Table) -> list[acidctl.Location]:
        return list(acidctl.find(f"hive:default.{table.name}", metastore=self._hive.metastore))

    def _compact(self, table: Table) -> None:
        kind = self._chance.choice(["minor", "major"])
        states = compactions(self._hive, table.name)
        if any(state in ("initiated", READY) for state in states) or not table.rows:
            return
        if self._is_ours():
            for location in self._locations(table):
                self.statements.append(f"-- acidctl compact {kind} {location.path}")
                chosen: dict[str, Any] = {kind: True, "force": True, "offline": self._hive.version == 3}
                try:
                    location.compact(acidctl.CompactOptions(**chosen))
                except RefusedError as error:
                    assert not table.full, error
                    self.statements[-1] += f"  -- refused: {error}"
        elif table.full or self._hive.version > 3:
            if kind == "minor" and self._hive.version == 3 and not table.buckets:
                kind = "major"  # it copies deletes, and cannot read its result row by row
            known = next((row for row in table.rows if None not in table.key_of(row)), None)
            if known is None:  # Hive's SQL has no name for a partition of NULLs
                return
            part = named({name: known[name] for name in table.keys})
            self.statements.append(f"-- Hive compacts {kind} {table.name} {part}")
            self.statements[-1] += "  -- " + compact_by_hive(self._hive, table.name, kind, part)

    def _clean(self, table: Table) -> None:
        if READY in compactions(self._hive, table.name):
            self.statements.append(f"-- Hive cleans {table.name}")
            clean_by_hive(self._hive, table.name)
            return
        for location in self._locations(table):
            self.statements.append(f"-- acidctl clean {location.path}")
            location.clean(0, unsafe_retention=True)

    # --- the judges ---------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        ours = [self._of_acidctl(table) for table in self._tables]
        for table, found in zip(self._tables, ours, strict=True):
            same("acidctl", table, [text for text, _ in found], table.texts())
            ids = [(text.split("|")[len(table.columns) :], key) for text, key in found if table.full]
            assert len({str(one) for one in ids}) == len(ids), (table.name, "twice the same ROW__ID")
        for conversion, batches in MODES:
            self._hive.set("hive.fetch.task.conversion", conversion)
            self._hive.set("hive.vectorized.execution.enabled", batches)
            found = self._of_hive()
            for place, table in enumerate(self._tables):
                same(f"Hive, batches {batches},", table, sorted(found.get(place, [])), ours[place])
        self._hive.set("hive.vectorized.execution.enabled", "true")
        self._statistics()

    def _of_hive(self) -> dict[int, list[tuple[str, str]]]:
        queries = []
        for place, table in enumerate(self._tables):
            texts = (
                f"coalesce(lower(hex({name})), '~')" if kind == "string" else f"coalesce(cast({name} as string), '~')"
                for name, kind in table.types.items()
            )
            parts = ", '/', ".join(f"cast(ROW__ID.{part} as string)" for part in ("writeid", "bucketid", "rowid"))
            ids = f"concat({parts})" if table.full else "''"
            text = "concat(" + ", '|', ".join(texts) + ")"
            queries.append(f"select '{place}' as place, {ids} as ids, {text} as t from {table.name}")
        found: dict[int, list[tuple[str, str]]] = {}
        for place, ids, text in self._hive.sql(" union all ".join(queries)):
            found.setdefault(int(place), []).append((text, ids))
        return found

    def _of_acidctl(self, table: Table) -> list[tuple[str, str]]:
        found = []
        for location in self._locations(table):
            for row in json_rows(Scan(location.snapshot(), row_id=True)) if table.full else []:
                key = row.pop("ROW__ID")
                row.update(table.values_of(location.partition))
                found.append(("|".join(shown(row.get(name)) for name in table.types), "/".join(map(str, key.values()))))
            if not table.full:
                for row in location.rows().scan().to_table().to_pylist():
                    row.update(table.values_of(location.partition))
                    found.append(("|".join(shown(row.get(name)) for name in table.types), ""))
        return sorted(found)

    def _statistics(self) -> None:
        """Counts, least and greatest are right, from statistics and from rows; Hive 3 uses rows in any case."""
        expected = []
        for table in self._tables:
            ids, numbers = ([row[name] for row in table.rows if row[name] is not None] for name in ("id", "n"))
            ends = [str(end(of)) if of else "NULL" for of in (ids, numbers) for end in (min, max)]
            expected.append([str(len(table.rows)), *ends, str(len(numbers))])
        asked = [
            f"select count(*), min(id), max(id), min(n), max(n), count(n) from {table.name}" for table in self._tables
        ]
        for setting in ("true", "false")[self._hive.version == 3 :]:
            self._hive.set("hive.compute.query.using.stats", setting)
            if setting == "true":
                found = [self._hive.sql(query)[0] for query in asked]
            else:
                inner = [query.replace("select", f"select {place},", 1) for place, query in enumerate(asked)]
                # Tez has too few counters for ten of them at once.
                parts = [self._hive.sql(" union all ".join(some)) for some in client.batches(inner, 5)]
                found = [row[1:] for part in parts for row in sorted(part)]
            for table, one, other in zip(self._tables, found, expected, strict=True):
                assert one == other, (table.name, "statistics", setting, one, other)


def named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={quoted(str(value))}" for name, value in values.items())


def same(who: str, table: Table, found: Sequence[Any], expected: Sequence[Any]) -> None:
    if found != expected:
        more = [row for row in found if row not in expected][:4]
        less = [row for row in expected if row not in found][:4]
        raise AssertionError(f"{who} of {table.name}: {len(found)} rows, not {len(expected)}; more {more}, less {less}")
