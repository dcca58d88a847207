"""Random histories of SQL, streams, compactions and cleanings of a real Hive and of acidctl, the same for a number."""

from __future__ import annotations

import random

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.api import Location
from support.compacting import run_compaction
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, has_copied_deletes
from support.engines.hive_past import Past
from support.engines.own_faults import runs
from support.engines.real_hive import HiveTable, Rows
from support.engines.time_zones import DAYS, MOMENTS, ZONES, process_zone
from support.servers.hive_server import HiveServer

_MORE = {
    "n": ("decimal(20,3)", ["1.5", "-0.001", "99999999999999999.999", "null"]),
    "at": ("timestamp", ["'1969-12-31 23:59:59'", "'2021-03-14 02:30:00.000000001'", "'9999-12-31 00:00:00'", "null"]),
    "day_of": ("date", ["'1600-02-29'", "'1969-12-31'", "'9999-12-31'", "null"]),
    "score": ("double", ["0.5", "-1e300", "null"]),
    "big": ("bigint", ["9223372036854775807", "-1", "null"]),
    "flag": ("boolean", ["true", "false", "null"]),
    "c": ("char(3)", ["'a'", "'abcd'", "''", "null"]),
}
_NAMES = ["'a'", "'b c'", "''", "null", "'ü€'", "'xyz'"]
_DAYS = ["'d 1'", "'d/2'", "'3'"]
_SETTINGS = {
    3: ["hive.vectorized.execution.enabled", "hive.optimize.sort.dynamic.partition"],
    4: [
        *("hive.vectorized.execution.enabled", "hive.acid.direct.insert.enabled", "hive.split.update"),
        *("hive.merge.split.update", "hive.acid.truncate.usebase"),
    ],
}
_FAILED = "  -- failed"


class RandomHistory(HiveTable):
    """A table, and what happens to it by chance.

    Args:
        seed: of chance: the form of the table, the statements and their values.
    """

    def __init__(self, hive: HiveServer, seed: int) -> None:
        self._chance = random.Random(seed)
        self._look = random.Random(seed)  # of its own, so that what is looked at changes nothing that happens
        self._zones = random.Random(f"zones {seed}")  # so, too: by it sessions wander, and times are at their clocks
        self._seed = seed
        self._next = 0
        chosen = self._chance.sample(sorted(_MORE), self._chance.choice([0, 1, 3]))
        self._more = {name: _MORE[name] for name in chosen}
        self._days = self._chance.random() < 0.4
        buckets = self._chance.choice([0, 0, 2, 3])
        self._streams = not (chosen or self._days or buckets)
        extra = "partitioned by (day string) " * self._days
        extra += f"clustered by (id) into {buckets} buckets" if buckets else ""
        columns = {"id": "int", "name": "string", **{name: kind for name, (kind, _) in self._more.items()}}
        self.pasts: dict[str, Past] = {}
        super().__init__(hive, f"history_{seed}", columns, extra, by_lists=True)

    def live(self, steps: int, look_back: bool = False) -> None:
        """So many random steps, each judged, and the past at last; what fails names the seed and the statements.

        Args:
            look_back: judge the past after each step.
        """
        try:
            for number in range(steps):
                (self._chance.choice(self._kinds()) if number else self._insert_many)()
                self.hive.set("hive.local.time.zone", self._zones.choice(ZONES))
                with process_zone(self._zones.choice(ZONES)):
                    self.judge()
                    if look_back and number < steps - 1:
                        self._judge_pasts()
            self._judge_pasts()
        except Exception as error:
            error.add_note(f"Hive {self.hive.version}, seed {self._seed}: {self.statements}")
            raise
        finally:
            self.hive.sql(
                *(f"set {name}={_AT_FIRST.get(name, 'true')}" for name in _SETTINGS[min(self.hive.version, 4)])
            )
            self.hive.set("hive.local.time.zone", "LOCAL")

    def rows_by_location(self) -> dict[str, Rows]:
        """As Hive reads them; remembered, for what `history` and `diff` say later."""
        found = super().rows_by_location()
        statement = self.statements[-1].removesuffix(_FAILED)
        for where, path in self.locations().items():
            past = self.pasts.setdefault(where, Past(self, path, where))
            if statement.startswith("truncate") and not (path / f"base_{past.newest():07d}").exists():
                past.forget(found[where])
            else:
                past.look(found[where], overwritten=statement.startswith(("truncate", "insert overwrite")))
        return found

    def run(self, *statements: str) -> None:
        """Run some; where Hive 3 stumbles over itself, which aborts the transaction, go on."""
        for statement in statements:
            self.statements.append(statement)
            if not runs(self.hive, statement):
                self.statements[-1] += _FAILED

    def _judge_pasts(self) -> None:
        for past in self.pasts.values():
            past.judge(lambda found: self._look.sample(found, min(len(found), 5)))

    def _kinds(self) -> list:
        sql = [self._insert, self._insert_many, self._update, self._delete, self._merge, self._copy, self._union]
        sql += [self._two_inserts, self._update, self._delete, self._merge]
        own = [self._compact_minor, self._compact_major, self._clean, self._compact_by_hive]
        rare = [self._aborted, self._clean_by_hive, self._chance.choice([self._overwrite, self._truncate, self._set])]
        return sql * 2 + own * 2 + rare * 2 + [self._stream] * (6 * self._streams)

    def _row(self, number: str) -> list[str]:
        values = [self._wandering(name, self._chance.choice(values)) for name, (_, values) in self._more.items()]
        return [number, self._chance.choice(_NAMES), *values, *([self._chance.choice(_DAYS)] * self._days)]

    def _wandering(self, name: str, value: str) -> str:
        """It, or a time at which clocks of some zone were changed."""
        known = {"at": MOMENTS, "day_of": DAYS}.get(name)
        return f"'{self._zones.choice(known)}'" if known and self._zones.random() < 0.5 else value

    def _values(self, count: int) -> str:
        rows = [f"({', '.join(self._row(str(self._next + i)))})" for i in range(count)]
        self._next += count
        return ", ".join(rows)

    @property
    def _into(self) -> str:
        return f"{self.name} partition (day)" if self._days else self.name

    @property
    def _others(self) -> str:
        return "".join(f", {name}" for name in [*list(self.columns)[1:], *(["day"] * self._days)])

    def _condition(self) -> str:
        part = self._chance.randrange(2, 7)
        condition = f"id % {part} = {self._chance.randrange(part)}"
        return condition + f" and day = {self._chance.choice(_DAYS)}" * (self._days and self._chance.random() < 0.4)

    def _insert(self) -> None:
        self.run(f"insert into {self._into} values {self._values(self._chance.randrange(1, 4))}")

    def _insert_many(self) -> None:
        self.run(f"insert into {self._into} values {self._values(self._chance.choice([20, 60]))}")

    def _update(self) -> None:
        changes = [f"name = {self._chance.choice(_NAMES)}"]
        changes += [f"{name} = {self._chance.choice(values)}" for name, (_, values) in self._more.items()]
        some = self._chance.sample(changes, self._chance.randrange(1, len(changes) + 1))
        self.run(f"update {self.name} set {', '.join(some)} where {self._condition()}")

    def _delete(self) -> None:
        self.run(f"delete from {self.name} where {self._condition()}")

    def _merge(self) -> None:
        move = self._chance.randrange(4)
        chosen = ", ".join(f"max({one.strip()}) as {one.strip()}" for one in self._others.split(",")[1:])
        taken = ", ".join(f"s.{one.strip()}" for one in self._others.split(",")[1:])
        clauses = [
            "when matched and s.id % 3 = 0 then delete",
            "when matched then update set name = s.name",
            f"when not matched then insert values (s.id, {taken})",
        ]
        if self._chance.random() < 0.4:
            clauses.pop(self._chance.randrange(3))
        on = "t.id = s.id" + " and t.day = s.day" * self._days
        self.run(
            f"merge into {self.name} as t using (select id + {move} as id, {chosen} from {self.name} where"
            f" {self._condition()} group by id + {move}) as s on {on} {' '.join(clauses)}"
        )

    def _copy(self) -> None:
        self.run(f"insert into {self._into} select id + 1{self._others} from {self.name} where {self._condition()}")

    def _union(self) -> None:
        parts = [f"select id + {i}{self._others} from {self.name} where {self._condition()}" for i in range(2)]
        self.run(f"insert into {self._into} {' union all '.join(parts)}")

    def _two_inserts(self) -> None:
        if not self._days:  # there may be one for each partition only
            return self._union()
        columns = self._others.removesuffix(", day")
        parts = [
            f"insert into {self.name} partition (day={day}) select id{columns} where {self._condition()}"
            for day in self._chance.sample(_DAYS, 2)
        ]
        return self.run(f"from {self.name} {' '.join(parts)}")

    def _overwrite(self) -> None:
        self.run(f"insert overwrite table {self._into} select id + 7{self._others} from {self.name} where id % 3 <> 1")

    def _truncate(self) -> None:
        self.run(f"truncate table {self.name}")
        self.judge()
        self._insert_many()

    def _set(self) -> None:
        name = self._chance.choice(_SETTINGS[min(self.hive.version, 4)])
        if self._days and ("split.update" in name or "sort.dynamic" in name):
            return  # Hive's own faults, which have tests of their own
        self.run(f"set {name}={self._chance.choice(['true', 'false'])}")

    def _stream(self) -> None:
        many = self._chance.randrange(1, 5)
        self.run(f"stream open {self.name} {many}")
        for _ in range(self._chance.randrange(1, many + 1)):
            self.run("stream begin")
            for _ in range(self._chance.randrange(4)):
                self.run(f"stream write {self._next},s{self._next}")
                self._next += 1
            self.run(self._chance.choice(["stream commit", "stream commit", "stream abort"]))
            self.judge()
        self.run("stream close")

    def _compact_minor(self) -> None:
        self._compact(CompactionKind.MINOR)

    def _compact_major(self) -> None:
        self._compact(CompactionKind.MAJOR)

    def _compact(self, kind: CompactionKind) -> None:
        for path in self.locations().values():
            if self._chance.random() < 0.8:
                self.statements.append(f"-- acidctl compact --{kind.value} {path.name}")
                run_compaction(path, kind, self.write_ids)

    def _clean(self) -> None:
        for path in self.locations().values():
            self.statements.append(f"-- acidctl clean {path.name}")
            location = Location(path, snapshot=f"{self.write_ids}\ntxns={self.hive.transactions()}")
            location.clean(0, unsafe_retention=True)
        self._were_cleaned()

    def _were_cleaned(self) -> None:
        for past in self.pasts.values():
            past.cleaned = True

    def _aborted(self) -> None:
        with self.hive.aborting():
            self._chance.choice([self._insert, self._update, self._delete, self._merge])()
        self.statements[-1] += "  -- aborted"

    def _compact_by_hive(self) -> None:
        kinds = ["minor", "major"]
        if self.hive.version > 3:
            for name in ("hive.compactor.crud.query.based", "hive.compaction.merge.enabled"):
                self.run(f"set {name}={self._chance.choice(['true', 'false'])}")
            kinds += ["rebalance"] * ("clustered" not in self.extra)
        kind, where = self._chance.choice(kinds), self._chance.choice(sorted(self.locations()))
        if kind == "rebalance":
            self.run("set hive.compactor.crud.query.based=true")
        self.statements.append(f"-- Hive compacts {kind} where {where}")
        state = compact_by_hive(self.hive, self.name, kind, where.replace("true", ""))
        assert state in {READY, "succeeded", "refused"}, (state, self.statements)
        if kind == "rebalance" and state != "refused":
            self.pasts[where].renumber(past for other, past in self.pasts.items() if other != where)
        if kind == "minor" and has_copied_deletes(self.locations()[where]):
            self._heal(where)
        # Some of Hive 4's compactions write no marker, and rule V13 says so.
        Location(self.locations()[where]).repair("version-file", force=True, offline=True)

    def _heal(self, where: str) -> None:
        """After Hive 3's own minor compaction, whose result it cannot read row by row: a test of its own holds that."""
        self.pasts[where].judge(lambda found: found[-5:])
        path = self.locations()[where]
        self.statements.append(f"-- acidctl compact --major {path.name}, which Hive can read again")
        run_compaction(path, CompactionKind.MAJOR, self.write_ids)

    def _clean_by_hive(self) -> None:
        if READY in compactions(self.hive, self.name):
            self.statements.append("-- Hive cleans")
            clean_by_hive(self.hive, self.name)
            self._were_cleaned()


_AT_FIRST = {"hive.optimize.sort.dynamic.partition": "false", "hive.compaction.merge.enabled": "false"}
"""What the settings are before a history, where it is not true."""
