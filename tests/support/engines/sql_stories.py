"""Stories of two tables, told in SQL to a real Hive by chance; acidctl sees them by the metastore, as its users do.

Written apart from `random_history`, which asks by paths and lists: other statements (partitions are renamed, loaded,
truncated and dropped, columns are added, widened and replaced, one query writes two tables), other shapes (two levels
of partitions, nested columns, several files by several reducers), and moments at which clocks change, while the time
zones of Hive's session and of acidctl's process wander.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from acidctl import find
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.api import Location
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth, Severity
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.options import LockOptions
from acidctl.verbs.reading.validate import ReadingTasks
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, has_copied_deletes
from support.engines.hive_text import asked_for, normal, printed, type_of
from support.engines.own_faults import runs
from support.engines.real_hive import Rows, same
from support.engines.time_zones import DAYS, MOMENTS, ZONES, process_zone
from support.servers.hive_server import HiveError, HiveServer
from support.tables import json_rows

NUMBERS = ("0", "7", "-128", "127")
FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "number": (("tinyint", "smallint", "int", "bigint"), NUMBERS),
    "real": (("float", "double"), ("0.5", "-1.25", "1048576.125")),
    "money": (("decimal(5,2)", "decimal(12,2)", "decimal(30,10)"), ("1.5", "-0.01", "999.99")),
    "word": (("varchar(5)", "varchar(12)", "string"), ("a", "ab  ", "", "ü€", "x''y")),
    "fixed": (("char(4)",), ("a", "abcd", "")),
    "day": (("date",), DAYS),
    "moment": (("timestamp",), MOMENTS),
    "flag": (("boolean",), ("true", "false")),
    "raw": (("binary",), ("a", "xyz")),
    "list": (("array<int>",), ()),
    "record": (("struct<x:int,y:string>",), ()),
}
"""What may become of a column by widening it, the narrowest first; and texts of values."""

PARTITIONS: dict[str, tuple[str, ...]] = {
    "int": ("1", "2", "30"),
    "string": ("x", "y/1", "ü z=%"),
    "date": ("1899-12-31", "2021-03-28"),
}


@dataclass
class Told:
    """One table of a story.

    Attributes:
        columns: the family and the type of each, by name.
        keys: types of the columns of partitions, by name.
        buckets: 0 for none.
    """

    name: str
    columns: dict[str, tuple[str, str]]
    keys: dict[str, str] = field(default_factory=dict)
    buckets: int = 0

    @property
    def types(self) -> dict[str, OrcType]:
        return {name: type_of(kind) for name, (_, kind) in self.columns.items()}

    @property
    def into(self) -> str:
        """It, for an INSERT that finds out the partition of every row."""
        return f"{self.name} partition ({', '.join(self.keys)})" if self.keys else self.name

    def made(self) -> str:
        """Its CREATE TABLE."""
        declared = ", ".join(f"{name} {kind}" for name, (_, kind) in self.columns.items())
        extra = f" partitioned by ({', '.join(' '.join(one) for one in self.keys.items())})" if self.keys else ""
        extra += f" clustered by (id) into {self.buckets} buckets" if self.buckets else ""
        return f"create table {self.name} ({declared}){extra} stored as orc {ACID}"


ACID = "tblproperties('transactional'='true')"


class Story:
    """Two tables, ``story_N`` of any form and ``other_N`` without partitions, and what happens to them by chance.

    Args:
        seed: of chance.

    Attributes:
        statements: what was run so far.
        refused: what Hive does not do, with what it said.
    """

    def __init__(self, hive: HiveServer, seed: int) -> None:
        self._hive = hive
        self._seed = seed
        self._chance = random.Random(f"story {seed}")
        self._next = 0
        self._open: int | None = None
        self.statements: list[str] = []
        self.refused: list[tuple[str, str]] = []
        families = self._chance.sample(sorted(set(FAMILIES) - {"moment", "word"}), self._chance.randrange(3))
        columns = {"id": ("key", "int")}
        for family in ["word", "moment", *families]:
            columns[f"c_{family}"] = (family, FAMILIES[family][0][0])
        keys = self._chance.choice([[], [], ["int"], ["string"], ["date"], ["int", "string"]])
        buckets = self._chance.choice([0, 0, 2, 3])
        self._table = Told(f"story_{seed}", dict(columns), {f"p_{kind}": kind for kind in keys}, buckets)
        self._other = Told(f"other_{seed}", dict(columns))
        for one in (self._table, self._other):
            self._run(one.made())

    def live(self, steps: int) -> None:
        """So many random steps, each judged; then all is compacted, and Hive goes on with it."""
        try:
            for step in (self._insert_into_both, *self._chance.choices(self._kinds(), k=steps), self._go_on):
                step()
                self._judge()
        except Exception as error:
            error.add_note(f"Hive {self._hive.version}, story {self._seed}: {self.statements}")
            raise
        finally:
            self._end_other()
            self._hive.reset()

    # -- what is asked of both, and compared

    def _judge(self) -> None:
        operator, moment = self._chance.choice(["<", "=", ">="]), self._chance.choice(MOMENTS)
        for told in (self._table, self._other):
            with process_zone(self._chance.choice(ZONES)):
                self._compare(told)
                self._compare(told, f"c_moment {operator} timestamp '{moment}' and id <> 5")
                for location in self._locations(told):
                    self._validate(location)

    def _compare(self, told: Told, where: str = "true") -> None:
        """The rows that meet a condition, by location."""
        hives = self._rows_of_hive(told, where)
        for location in self._locations(told):
            part = tuple(location.partition.values())
            about = (told.name, part, where, os.environ["TZ"], self.statements)
            same(self._ours(told, location, where), hives.pop(part, []), about)
        assert not hives, (hives.keys(), self.statements)

    def _locations(self, told: Told) -> list[Location]:
        return list(find(f"hive:default.{told.name}", metastore=self._hive.metastore))

    def _rows_of_hive(self, told: Told, where: str) -> dict[tuple[str, ...], Rows]:
        """By the values of the partition."""
        kinds = list(told.types.values())
        asked = [asked_for(name, kind) for name, kind in told.types.items()]
        names = ", ".join(["ROW__ID", *asked, *told.keys])
        found: dict[tuple[str, ...], Rows] = defaultdict(list)
        for text, *values in self._hive.sql(f"select {names} from {told.name} where {where}"):
            key = json.loads(text)
            row = tuple(normal(kind, value) for kind, value in zip(kinds, values[: len(kinds)], strict=True))
            found[tuple(values[len(kinds) :])].append(((key["writeid"], key["bucketid"], key["rowid"]), row))
        return {part: sorted(rows) for part, rows in found.items()}

    def _ours(self, told: Told, location: Location, where: str) -> Rows:
        """By position: what files from before a change of the schema lack, is NULL."""
        kinds = list(told.types.values())
        rows: Rows = []
        for row in json_rows(Scan(location.snapshot(), row_id=True, where=None if where == "true" else where)):
            key = row.pop("ROW__ID")
            values: list[Any] = [*row.values(), *[None] * (len(kinds) - len(row))]
            found = tuple(printed(kind, value) for kind, value in zip(kinds, values, strict=True))
            rows.append(((key["writeid"], key["bucketid"], key["rowid"]), found))
        return sorted(rows)

    def _validate(self, location: Location) -> None:
        readers = ("hive3", "hive4")[self._hive.version > 3 :]
        report = location.validate(Depth.DEEP, readers=readers, ignored=("V19",), tasks=ReadingTasks(jobs=1))
        told = [one for one in report.findings if one.severity is not Severity.INFO and one.rule != "R15"]
        assert not told, (location.path, told, self.statements)

    # -- what happens

    def _run(self, statement: str) -> None:
        """Run it; where Hive stumbles over itself, which aborts the transaction, go on."""
        self.statements.append(statement)
        if not runs(self._hive, statement):
            self.statements[-1] += "  -- failed"

    def _may_be_refused(self, statement: str) -> bool:
        """Run it; where Hive does not do such things, all stays as it was."""
        try:
            self._run(statement)
        except HiveError as error:
            self.refused.append((statement, str(error)))
            self.statements[-1] += "  -- refused"
            return False
        return True

    def _kinds(self) -> list[Callable[[], None]]:
        common = [self._insert, self._insert_by_several, self._insert_into_both, self._update, self._update_some]
        common += [self._delete, self._delete_known, self._merge, self._aborted]
        rare = [self._overwrite, self._truncate, self._load, self._query, self._settings, self._zone, self._union]
        rare += [self._other_client, self._other_client]
        rare += [self._add_column, self._widen, self._replace_columns]
        if self._table.keys:
            rare += [self._rename_partition, self._drop_partition, self._add_partition, self._overwrite_one] * 2
        own = [self._compact, self._compact_by_name, self._clean, self._compact_by_hive, self._clean_by_hive]
        return common * 3 + rare * 2 + own * 3

    def _any(self) -> Told:
        return self._chance.choice([self._table, self._table, self._other])

    def _query_of(self, told: Told, ids: Sequence[int]) -> str:
        """A SELECT of new rows for a table, whose values depend on their ids."""
        shift = self._chance.randrange(20)
        kinds = [self._expression(family, kind, shift) for family, kind in told.columns.values()]
        parts = [_chosen(PARTITIONS[kind], kind, f"id + {shift}") for kind in told.keys.values()]
        numbers = ", ".join(map(str, ids))
        return f"select {', '.join([*kinds, *parts])} from (select explode(array({numbers})) as id) numbers"

    def _expression(self, family: str, kind: str, shift: int) -> str:
        if family == "key":
            return "id"
        if family == "list":
            return f"if(pmod(id + {shift}, 5) = 0, null, array(id, {shift}))"
        if family == "record":
            return f"named_struct('x', id + {shift}, 'y', if(pmod(id, 3) = 0, null, concat('s', id)))"
        values = FAMILIES[family][1]
        return _chosen(self._chance.sample(values, min(4, len(values))), kind, f"id + {shift}", nulls=True)

    def _ids(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)

    def _condition(self, told: Told, alias: str = "") -> str:
        part = self._chance.randrange(2, 6)
        condition = f"{alias}id % {part} = {self._chance.randrange(part)}"
        if told.keys and self._chance.random() < 0.4:
            name, kind = self._chance.choice(list(told.keys.items()))
            condition += f" and {alias}{name} = {_literal(kind, self._chance.choice(PARTITIONS[kind]))}"
        return condition

    def _columns_for(self, target: Told, source: Told, number: str, shift: int = 0) -> str:
        """What to select of one table to put into the other: columns by name, others NULL, partitions by chance."""
        asked = []
        for name, (_, kind) in target.columns.items():
            known = source.columns.get(name)
            if name == "id":
                asked.append(number)
            elif known and known[1] == kind:
                asked.append(name)
            else:
                asked.append(f"cast({name if known else 'null'} as {kind})")
        for name, kind in target.keys.items():
            is_kept = name in source.keys and self._chance.random() < 0.7
            asked.append(name if is_kept else _chosen(PARTITIONS[kind], kind, f"id + {shift}"))
        return ", ".join(asked)

    def _insert(self) -> None:
        told = self._any()
        self._run(f"insert into {told.into} {self._query_of(told, self._ids(self._chance.choice([1, 3, 20])))}")

    def _insert_by_several(self) -> None:
        """Reducers write a file each."""
        told = self._any()
        self._run(f"set mapreduce.job.reduces={self._chance.choice([2, 3])}")
        query = self._query_of(told, self._ids(12))
        names = [*told.columns, *told.keys]
        asked, _, numbers = query.removeprefix("select ").partition(" from (")
        named = ", ".join(f"{one} as {name}" for one, name in zip(_split(asked), names, strict=True))
        inner = f"select {named} from ({numbers}"
        self._run(f"insert into {told.into} select {', '.join(names)} from ({inner}) told distribute by id")
        self._run("set mapreduce.job.reduces=-1")

    def _insert_into_both(self) -> None:
        """One query, two tables."""
        ids = self._ids(24)
        numbers = ", ".join(map(str, ids))
        parts = []
        for told, rest in ((self._table, 0), (self._other, 1)):
            query = self._query_of(told, ids).partition(" from (")[0]
            condition = f" where id % 3 <> {rest}" if self._chance.random() < 0.8 else ""
            parts.append(f"insert into {told.into} {query}{condition}")
        self._chance.shuffle(parts)
        self._run(f"from (select explode(array({numbers})) as id) numbers {' '.join(parts)}")

    def _union(self) -> None:
        """Each leg may be a statement of its own in one transaction."""
        told, source = self._any(), self._any()
        legs = [
            f"select {self._columns_for(told, source, f'id + {10 * i}', i)} from {source.name}"
            f" where {self._condition(source)}"
            for i in range(2)
        ]
        self._run(f"insert into {told.into} {' union all '.join(legs)}")

    def _changes(self, told: Told) -> str:
        shift = self._chance.randrange(20)
        changeable = [name for name, (family, _) in told.columns.items() if family not in ("key", "list", "record")]
        some = self._chance.sample(changeable, self._chance.randrange(1, len(changeable) + 1))
        return ", ".join(f"{name} = {self._expression(*told.columns[name], shift)}" for name in some)

    def _update(self) -> None:
        told = self._any()
        self._run(f"update {told.name} set {self._changes(told)} where {self._condition(told)}")

    def _update_some(self) -> None:
        """By what is in the other table."""
        told, other = self._chance.choice([(self._table, self._other), (self._other, self._table)])
        known = f"select id from {other.name} where {self._condition(other)}"
        self._run(f"update {told.name} set {self._changes(told)} where id in ({known})")

    def _delete(self) -> None:
        told = self._any()
        self._run(f"delete from {told.name} where {self._condition(told)}")

    def _delete_known(self) -> None:
        other = self._other
        known = f"select id from {other.name} where {self._condition(other)}"
        self._run(f"delete from {self._table.name} where id in ({known})")

    def _merge(self) -> None:
        told, other = self._table, self._other
        move = self._chance.randrange(3)
        # One row for each id: a row of the target must not be met twice.
        columns = [name for name in told.columns if name != "id" and name in other.columns]
        simple = [name for name in columns if told.columns[name][0] not in ("list", "record")]
        asked = ", ".join(f"max({name}) as {name}" for name in simple)
        source = (
            f"select id + {move} as id, {asked} from {other.name} where {self._condition(other)} group by id + {move}"
        )
        inserted = ""
        if set(told.columns) == {"id", *simple}:
            values = [f"cast(s.{name} as {kind})" for name, (_, kind) in told.columns.items()]
            values += [_chosen(PARTITIONS[kind], kind, "s.id") for kind in told.keys.values()]
            inserted = f" when not matched then insert values ({', '.join(values)})"
        change = self._chance.choice(simple)
        clauses = [" when matched and s.id % 3 = 0 then delete"]
        kind = told.columns[change][1]
        clauses.append(f" when matched then update set {change} = cast(s.{change} as {kind})")
        chosen = [one for one in (*clauses, inserted) if one and self._chance.random() < 0.8] or clauses[:1]
        self._run(f"merge into {told.name} as t using ({source}) as s on t.id = s.id{''.join(chosen)}")

    def _aborted(self) -> None:
        kinds = [self._insert, self._insert_into_both, self._update, self._delete, self._merge, self._overwrite]
        chosen = self._chance.choice(kinds)
        with self._hive.aborting():
            chosen()
        self.statements[-1] += "  -- aborted"
        if chosen == self._overwrite and self._hive.version == 3:
            self._clean_all()  # a base that was aborted, and no other, keeps Hive 3 from reading; a test of its own

    def _overwrite(self) -> None:
        told, source = self._any(), self._any()
        asked = self._columns_for(told, source, f"id + {self._chance.randrange(4)}")
        self._run(
            f"insert overwrite table {told.into} select {asked} from {source.name} where {self._condition(source)}"
        )

    def _overwrite_one(self) -> None:
        """One partition."""
        part = self._part()
        if part is None:
            return
        asked = _split(self._columns_for(self._table, self._other, "id + 1"))[: len(self._table.columns)]
        how = self._chance.choice(["overwrite table", "into table"])
        self._run(
            f"insert {how} {self._table.name} partition ({part}) select {', '.join(asked)} from {self._other.name}"
            f" where id % 2 = {self._chance.randrange(2)} or id < 3"
        )

    def _part(self) -> str | None:
        """One of the partitions, as SQL names it."""
        found = self._locations(self._table)
        return self._named(self._chance.choice(found).partition) if found else None

    def _named(self, partition: dict[str, str]) -> str:
        return ", ".join(f"{key}={_literal(self._table.keys[key], value)}" for key, value in partition.items())

    def _truncate(self) -> None:
        told = self._any()
        part = self._part() if told.keys and self._chance.random() < 0.7 else None
        self._run(f"truncate table {told.name}" + (f" partition ({part})" if part else ""))

    def _load(self) -> None:
        """A file of another table, which was written without ids."""
        told = self._any()
        if told.buckets:
            return  # Hive wants names that tell the bucket
        folder = self._hive.warehouse.parent / f"files_of_{told.name}"
        stage = f"stage_{self._seed}_{len(self.statements)}"
        asked = self._columns_for(Told("", told.columns), self._other, "id + 5")
        names = _split(asked)
        named = ", ".join(f"{one} as {name}" for one, name in zip(names, told.columns, strict=True))
        self._run(
            f"create {'external ' * (self._hive.version > 3)}table {stage} stored as orc"
            f" location '{folder}/{stage}' as select {named} from {self._other.name}"
            f" where {self._condition(self._other)}"
        )
        files = [one for one in sorted((folder / stage).rglob("*")) if one.is_file() and one.name[0] not in "._"]
        files = [one for one in files if one.stat().st_size]
        part = self._part() if told.keys else None
        if not files or (told.keys and part is None):
            return
        copy = folder / f"{stage}.orc"
        copy.write_bytes(files[0].read_bytes())
        how = "overwrite " * (self._chance.random() < 0.3)
        into = f"{told.name} partition ({part})" if part else told.name
        self._may_be_refused(f"load data local inpath '{copy}' {how}into table {into}")

    def _query(self) -> None:
        """The other table is made anew, of a query."""
        source = self._any()
        columns = dict(source.columns)
        made = Told(f"other_{self._seed}_{len(self.statements)}", columns)
        query = f"select {', '.join(columns)} from {source.name} where {self._condition(source)}"
        self._run(f"create table {made.name} stored as orc {ACID} as {query}")
        self._run(f"drop table {self._other.name}")
        self._other = made

    def _settings(self) -> None:
        names = ["hive.vectorized.execution.enabled", "hive.fetch.task.conversion", "hive.optimize.index.filter"]
        if self._hive.version > 3:
            names += [
                "hive.acid.direct.insert.enabled",
                "hive.acid.truncate.usebase",
                "hive.acid.droppartition.usebase",
            ]
            names += ["hive.acid.rename.partition.make.copy"]
        name = self._chance.choice(names)
        values = ["more", "none"] if "conversion" in name else ["true", "false"]
        self._run(f"set {name}={self._chance.choice(values)}")

    def _zone(self) -> None:
        self._run(f"set hive.local.time.zone={self._chance.choice(ZONES)}")

    def _other_client(self) -> None:
        """Its transaction has a write id, and stays open for a while."""
        if self._open is not None:
            self._end_other()
            return
        told = self._any()
        self._open = self._hive.open_transaction()
        write_id = self._hive.allocate_write_id(self._open, told.name)
        self.statements.append(f"-- transaction {self._open} has write id {write_id} of {told.name}")

    def _end_other(self) -> None:
        if self._open is not None:
            commit = self._chance.random() < 0.5
            self.statements.append(f"-- transaction {self._open} is {'committed' if commit else 'aborted'}")
            self._hive.end_transaction(self._open, commit)
            self._open = None

    # -- the schema

    def _add_column(self) -> None:
        told = self._any()
        family = self._chance.choice(sorted(set(FAMILIES) - {"list", "record"}))
        name = f"c_{family}_{len(self.statements)}"
        kind = FAMILIES[family][0][0]
        self._run(f"alter table {told.name} add columns ({name} {kind})" + " cascade" * bool(told.keys))
        told.columns[name] = (family, kind)

    def _wider(self, told: Told) -> tuple[str, str] | None:
        """A column that can be widened, and what it becomes."""
        found = []
        for name, (family, kind) in told.columns.items():
            kinds = FAMILIES.get(family, ((),))[0]
            if kind in kinds[:-1]:
                found.append((name, kinds[kinds.index(kind) + 1]))
        return self._chance.choice(found) if found else None

    def _widen(self) -> None:
        told = self._any()
        if (wider := self._wider(told)) is None:
            return
        name, kind = wider
        change = f"alter table {told.name} change {name} {name} {kind}"
        self._run(change + " cascade" * bool(told.keys))
        told.columns[name] = (told.columns[name][0], kind)

    def _replace_columns(self) -> None:
        """All of them are named anew, one of them with another type, and one more is there."""
        told = self._any()
        columns = dict(told.columns)
        if wider := self._wider(told):
            columns[wider[0]] = (columns[wider[0]][0], wider[1])
        columns[f"c_number_{len(self.statements)}"] = ("number", "tinyint")
        declared = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
        change = f"alter table {told.name} replace columns ({declared})" + " cascade" * bool(told.keys)
        if self._may_be_refused(change):
            told.columns = columns

    # -- partitions

    def _free_part(self) -> str:
        """A partition that is not there."""
        taken = {tuple(one.partition.values()) for one in self._locations(self._table)}
        for number in range(100, 200):
            values = [
                f"20{number - 100:02d}-01-01" if kind == "date" else str(number) for kind in self._table.keys.values()
            ]
            if tuple(values) not in taken:
                break
        return self._named(dict(zip(self._table.keys, values, strict=True)))

    def _rename_partition(self) -> None:
        if (part := self._part()) is not None:
            self._may_be_refused(
                f"alter table {self._table.name} partition ({part}) rename to partition ({self._free_part()})"
            )

    def _drop_partition(self) -> None:
        if (part := self._part()) is not None:
            self._run(f"alter table {self._table.name} drop partition ({part})")

    def _add_partition(self) -> None:
        self._run(f"alter table {self._table.name} add partition ({self._free_part()})")

    # -- compactions and cleanings

    def _some_location(self) -> tuple[Told, Location] | None:
        told = self._any()
        found = self._locations(told)
        return (told, self._chance.choice(found)) if found else None

    def _compact(self) -> None:
        """By the path, with the lists of now; perhaps in several segments."""
        if (some := self._some_location()) is None:
            return
        told, location = some
        kind = self._chance.choice(list(CompactionKind))
        finest = self._chance.choice([1, 1 << 30])
        self.statements.append(f"-- acidctl compact --{kind.value} {location.path}")
        with patch("acidctl.compaction.plan_tasks.FINEST", finest), patch("acidctl.compaction.split.FINEST", finest):
            self._by_path(told, location).compact(_by_path(kind.value))

    def _by_path(self, told: Told, location: Location) -> Location:
        lists = {"snapshot": f"{self._hive.write_ids(told.name)}\ntxns={self._hive.transactions()}"}
        return Location(Path(location.path.removeprefix("file:")), metastore="none", **lists)

    def _compact_by_name(self) -> None:
        """As the metastore has it: with Hive 4 through its queue."""
        if (some := self._some_location()) is None:
            return
        told, location = some
        if any(state in ("initiated", READY) for state in compactions(self._hive, told.name)):
            return
        kind = self._chance.choice(list(CompactionKind))
        self.statements.append(f"-- acidctl compact --{kind.value} {location.hive_name}")
        offline = self._hive.version == 3
        location.compact(CompactOptions(**{kind.value: True}, force=True, offline=offline))  # type: ignore[arg-type]

    def _clean(self) -> None:
        if (some := self._some_location()) is None:
            return
        told, location = some
        self.statements.append(f"-- acidctl clean {location.path}")
        self._by_path(told, location).clean(0, unsafe_retention=True)

    def _clean_all(self) -> None:
        for told in (self._table, self._other):
            for location in self._locations(told):
                self.statements.append(f"-- acidctl clean {location.path}")
                self._by_path(told, location).clean(0, unsafe_retention=True)

    def _compact_by_hive(self) -> None:
        if (some := self._some_location()) is None:
            return
        told, location = some
        if any(state in ("initiated", READY) for state in compactions(self._hive, told.name)):
            return
        kind = self._chance.choice(list(CompactionKind))
        path = Path(location.path.removeprefix("file:"))
        if self._hive.version > 3:
            by_query = self._chance.choice(["true", "false"])
            if not str(path).isascii():
                by_query = "true"  # by MapReduce it loses the rows there, which a test of its own holds
            self._run(f"set hive.compactor.crud.query.based={by_query}")
        self.statements.append(f"-- Hive compacts {kind.value} {location.hive_name}")
        part = self._named(location.partition) if told.keys else ""
        state = compact_by_hive(self._hive, told.name, kind.value, part)
        ends = {READY, "succeeded", "refused"}
        if self._hive.version == 3 and not str(path).isascii():
            ends.add("failed")  # which a test of its own holds
        assert state in ends, (state, self.statements)
        if kind is CompactionKind.MINOR and has_copied_deletes(path):
            # Hive 3 cannot read its own result row by row, which a test of its own holds.
            self.statements.append(f"-- acidctl compact --major {location.path}, which Hive can read again")
            self._by_path(told, location).compact(_by_path("major"))

    def _clean_by_hive(self) -> None:
        for told in (self._table, self._other):
            if READY in compactions(self._hive, told.name):
                self.statements.append(f"-- Hive cleans {told.name}")
                clean_by_hive(self._hive, told.name)

    def _go_on(self) -> None:
        """All is compacted twice, and changed after each; jobs read it, in batches and row by row."""
        self._end_other()
        for kind in CompactionKind:
            for told in (self._table, self._other):
                for location in self._locations(told):
                    self.statements.append(f"-- acidctl compact --{kind.value} {location.path}")
                    self._by_path(told, location).compact(_by_path(kind.value))
            self._judge()
            for told in (self._table, self._other):
                self._run(f"update {told.name} set {self._changes(told)} where id % 4 = 1")
                self._run(f"delete from {told.name} where id % 7 = 3")
            self._judge()
        self._run("set hive.fetch.task.conversion=none")
        for vectorized in ("true", "false"):
            self._run(f"set hive.vectorized.execution.enabled={vectorized}")
            self._judge()


def _chosen(values: Sequence[str], kind: str, number: str, nulls: bool = False) -> str:
    """One of some values by a number."""
    texts = ", ".join([*(f"'{_in_sql(value)}'" for value in values), *(["cast(null as string)"] * nulls)])
    chosen = f"array({texts})[pmod({number}, {len(values) + nulls})]"
    if kind == "boolean":
        return f"({chosen} = 'true')"
    return chosen if kind == "string" else f"cast({chosen} as {kind})"


def _in_sql(value: str) -> str:
    return value.replace("''", "'").replace("'", "\\'")


def _literal(kind: str, value: str) -> str:
    return value if kind == "int" else f"'{_in_sql(value)}'"


def _split(expressions: str) -> list[str]:
    """Expressions between commas that are in no brackets and no quotes."""
    found, depth, quoted, start = [], 0, False, 0
    for place, one in enumerate(expressions):
        if one == "'" and expressions[place - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (one in "([<") - (one in ")]>")
            if one == "," and not depth:
                found.append(expressions[start:place].strip())
                start = place + 1
    return [*found, expressions[start:].strip()]


def _by_path(mode: str) -> CompactOptions:
    """Return the options of a compaction by path, beside a metastore that has no lock of it."""
    return CompactOptions(**{mode: True}, force=True, offline=True, locks=LockOptions(lock=False))  # type: ignore[arg-type]
