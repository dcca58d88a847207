"""Random histories: statements of Hive and of acidctl in turn, compactions of both, roll-backs, other clients."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.verbs.compact_options import CompactOptions
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.transaction import WriteTransaction
from acidctl.writing.truncate import Truncate
from acidctl.writing.write import Write
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, has_copied_deletes
from support.engines.own_faults import runs
from support.histories.judge import Judge, locations, partition_of
from support.histories.kinds import arrow_array, base, condition_literal, literal
from support.histories.model import Model, Row, assignments, changed, condition, made, merged, new_rows
from support.servers.hive_server import HiveServer

Step = Callable[[Model], None]

TABLES = 3
"""Tables of one history, which one query of Hive judges together."""


class WritingHistory:
    """Some tables, and what happens to them by chance; the same for the same seed.

    Attributes:
        statements: what happened so far.
    """

    def __init__(self, hive: HiveServer, seed: int) -> None:
        self._hive, self._seed = hive, seed
        self._chance = random.Random(f"writing {seed}")
        self.statements: list[str] = []
        settings = find_settings({"uris": hive.metastore})
        assert settings
        self._metastore = Metastore(settings)
        version = self._chance.choice([1, 2])
        self._models = [made(f"w{seed}_{place}", self._chance, version) for place in range(TABLES)]
        self._judge = Judge(hive, self._models, self.statements)
        self._open: int | None = None

    def live(self, rounds: int) -> None:
        """Carry out this number of rounds of one statement a table, each judged; what fails names all that happened."""
        try:
            for setting in ("hive.stats.autogather", "hive.stats.column.autogather"):
                self._hive.set(setting, "true")
            for model in self._models:
                self._create(model)
            for number in range(rounds):
                for model in self._models:
                    steps = self._inserts() if number == 0 else self._steps()
                    self._chance.choice(steps)(model)
                self._judge.rows()
                self._judge.statistics(self._models[number % TABLES], self._chance)
            for model in self._models:
                self._judge.statistics(model, self._chance)
                self._judge.validate(model)
        except Exception as error:
            error.add_note(f"Hive {self._hive.version}, history {self._seed}: " + "\n".join(self.statements))
            raise
        finally:
            self._end_other()
            self._metastore.close()
            for model in self._models:
                self._hive.sql(f"drop table if exists {model.name}")
            self._hive.reset()

    def _create(self, model: Model) -> None:
        self._run(model.declared(self._chance))
        if not model.is_converted:
            return
        for _ in range(self._chance.choice([1, 2])):
            rows = new_rows(model, self._chance, 8, literal=True)
            if self._run(self._insert_of_hive(model, rows)):
                model.rows += rows
        managed = "'EXTERNAL'='FALSE', " if self._hive.version > 3 else ""
        self._run(f"alter table {model.name} set tblproperties({managed}'transactional'='true')")

    def _inserts(self) -> list[Step]:
        return [self._insert, self._insert_by_hive]

    def _steps(self) -> list[Step]:
        ours = [self._insert, self._update, self._delete, self._merge, self._rolled_back]
        hives = [self._insert_by_hive, self._update_by_hive, self._delete_by_hive, self._merge_by_hive, self._aborted]
        rare = [self._compact, self._compact_by_hive, self._clean_by_hive, self._analyze, self._other_client]
        rare += [self._overwrite_by_hive, self._add_column, self._truncate_by_hive, self._partition_by_hive]
        return ours * 5 + hives * 3 + rare * 2 + [self._overwrite] * 3 + [self._truncate]

    def _run(self, statement: str) -> bool:
        """Let Hive run it; False where Hive stumbles over itself, which aborts the transaction."""
        self.statements.append(statement)
        done = runs(self._hive, statement)
        if not done:
            self.statements[-1] += "  -- failed"
        return done

    # --- acidctl ------------------------------------------------------------------------------------------------------

    def _carry_out(self, what: str, make: Callable[[], Write]) -> None:
        self.statements.append(f"-- acidctl {what}")
        written = make().run()
        self.statements[-1] += f"  -- write id {written.write_id}"

    def _table_of(self, model: Model):
        return get_table(self._metastore, "default", model.name)

    def _source(self, model: Model, rows: Sequence[Row], names: Sequence[str]) -> pa.Table:
        wide = self._chance.random() < 0.4
        arrays = [arrow_array(model.types[name], [row[name] for row in rows], wide=wide) for name in names]
        spelled = [name.upper() if self._chance.random() < 0.2 else name for name in names]
        return pa.table(arrays, names=spelled)

    def _insert(self, model: Model) -> None:
        rows = new_rows(model, self._chance, self._chance.choice([1, 5, 30]))
        names, fixed = list(model.types), {}
        if model.keys and self._chance.random() < 0.3:
            first = rows[0]
            fixed = {name: first[name] for name in model.keys}
            if any(value is None for value in fixed.values()):
                fixed = {}
            rows = [{**row, **fixed} for row in rows]
            names = [name for name in names if name not in fixed]
        if self._chance.random() < 0.3:
            free = [name for name in model.columns if name != "id"]
            for name in self._chance.sample(free, 1):
                names.remove(name)
                rows = [{**row, name: None} for row in rows]
        self._chance.shuffle(names)
        source = self._source(model, rows, names).to_reader(max_chunksize=self._chance.choice([3, 1000]))
        texts = {name: str(value).lower() if value in (True, False) else str(value) for name, value in fixed.items()}
        shown = f"insert {len(rows)} rows into {model.name}, columns {names}, partition {texts}: {rows}"
        self._carry_out(shown, lambda: Insert(self._metastore, self._table_of(model), source, texts))
        model.rows += rows

    def _update(self, model: Model) -> None:
        where, met = condition(model, self._chance)
        new = assignments(model, self._chance)
        if not new:
            return
        text = ", ".join(f"{name} = {sql}" for name, (sql, _) in new.items())
        self._carry_out(
            f"update {model.name} set {text} where {where}",
            lambda: Change(self._metastore, self._table_of(model), where, text),
        )
        model.rows = [changed(row, new) if met(row) else row for row in model.rows]

    def _delete(self, model: Model) -> None:
        where, met = condition(model, self._chance)
        self._carry_out(
            f"delete from {model.name} where {where}", lambda: Change(self._metastore, self._table_of(model), where)
        )
        model.rows = [row for row in model.rows if not met(row)]

    def _merge(self, model: Model) -> None:
        key = self._chance.choice([["id"], ["id"], ["name", "id"], ["id", *model.keys]])
        if any(base(kind) == "double" for kind in model.types.values()):
            key = ["id"]
        rows, deletes = self._merge_source(model, key)
        given = list(model.types)
        if self._chance.random() < 0.4:
            free = [name for name in model.columns if name not in (*key, *model.clustered)]
            for name in self._chance.sample(free, min(len(free), 2)):
                given.remove(name)
        source = self._source(model, rows, given)
        with_operation = any(deletes) or self._chance.random() < 0.3
        if with_operation:
            words = pa.array([self._chance.choice(["d", "DELETE"] if gone else ["I", "update"]) for gone in deletes])
            source = source.append_column("op", words)
        operation = "op" if with_operation else ""
        expected = merged(model, rows, key, deletes, given)
        shown = f"merge into {model.name}, key {key}, columns {source.column_names}, deletes {deletes}: {rows}"
        try:
            self._carry_out(
                shown, lambda: Merge(self._metastore, self._table_of(model), source, key, operation=operation)
            )
        except BadDataError:
            assert expected is None, shown
            self.statements[-1] += "  -- refused: a key is in the table twice"
            return
        assert expected is not None, shown
        model.rows = expected

    def _merge_source(self, model: Model, key: Sequence[str]) -> tuple[list[Row], list[bool]]:
        """Rows with keys that are distinct, most of them of rows that the table has."""
        fresh = new_rows(model, self._chance, self._chance.choice([1, 6]))
        known = self._chance.sample(model.rows, min(len(model.rows), self._chance.choice([0, 3, 8])))
        pairs = zip(new_rows(model, self._chance, len(known)), known, strict=True)
        rows = [{**new, **{name: old[name] for name in key}} for new, old in pairs]
        by_key = {tuple(map(str, (row[name] for name in key))): row for row in [*rows, *fresh]}
        chosen = list(by_key.values())
        return chosen, [self._chance.random() < 0.3 for _ in chosen]

    def _overwrite(self, model: Model) -> None:
        """Replace the table, or the partitions that get rows."""
        self._end_other()  # an open write id would be waited for
        rows = new_rows(model, self._chance, self._chance.choice([1, 6]))
        source = self._source(model, rows, list(model.types)).to_reader()
        self._carry_out(
            f"insert overwrite {len(rows)} rows into {model.name}: {rows}",
            lambda: Insert(self._metastore, self._table_of(model), source, overwrite=True),
        )
        replaced = {tuple(row[name] for name in model.keys) for row in rows}
        model.rows = [row for row in model.rows if tuple(row[name] for name in model.keys) not in replaced] + rows

    def _truncate(self, model: Model) -> None:
        self._end_other()
        self._carry_out(f"truncate {model.name}", lambda: Truncate(self._metastore, self._table_of(model)))
        model.rows = []

    def _rolled_back(self, model: Model) -> None:
        """A statement that fails when all its files are in place; then Hive writes at once."""
        where, _ = condition(model, self._chance)
        kind = self._chance.choice(["delete", "update", "insert"])
        self.statements.append(f"-- acidctl {kind} in {model.name} where {where}, rolled back")
        table = self._table_of(model)
        failure = RefusedError("a test", "it rolls back", "")
        if kind == "insert":
            rows = new_rows(model, self._chance, 4)
            statement: Write = Insert(self._metastore, table, self._source(model, rows, list(model.types)).to_reader())
        else:
            new = "name = 'rolled back'" if kind == "update" and "name" not in model.clustered else None
            statement = Change(self._metastore, table, where, new)
        with patch.object(WriteTransaction, self._chance.choice(["check", "give_up_statistics"]), side_effect=failure):
            try:
                statement.run()
            except RefusedError as error:
                assert error is failure
        self._insert_by_hive(model)

    def _compact(self, model: Model) -> None:
        for location in locations(self._hive, model):
            if any(state in ("initiated", READY) for state in compactions(self._hive, model.name)):
                return
            kind = self._chance.choice(list(CompactionKind))
            self.statements.append(f"-- acidctl compact --{kind.value} {location.path}")
            offline = self._hive.version == 3
            chosen = {kind.value: True, "force": True, "offline": offline}
            location.compact(CompactOptions(**chosen))

    # --- Hive ---------------------------------------------------------------------------------------------------------

    def _insert_of_hive(self, model: Model, rows: Sequence[Row]) -> str:
        into = f" partition ({', '.join(model.keys)})" if model.keys else ""
        return f"insert into {model.name}{into} select inline(array({self._structs(model, rows)}))"

    def _structs(self, model: Model, rows: Sequence[Row]) -> str:
        lists = (", ".join(literal(kind, row[name]) for name, kind in model.types.items()) for row in rows)
        return ", ".join(f"struct({values})" for values in lists)

    def _insert_by_hive(self, model: Model) -> None:
        rows = new_rows(model, self._chance, self._chance.choice([1, 4, 12]), literal=True)
        if self._run(self._insert_of_hive(model, rows)):
            model.rows += rows

    def _update_by_hive(self, model: Model) -> None:
        where, met = condition(model, self._chance, for_hive=True)
        new = assignments(model, self._chance)
        if new and self._run(f"update {model.name} set {self._set(model, new)} where {where}"):
            model.rows = [changed(row, new) if met(row) else row for row in model.rows]

    def _set(self, model: Model, new: Mapping[str, tuple[str, Any]]) -> str:
        kinds = model.columns
        pairs = ((name, sql if sql == name else f"cast({sql} as {kinds[name]})") for name, (sql, _) in new.items())
        return ", ".join(f"{name} = {sql}" for name, sql in pairs)

    def _delete_by_hive(self, model: Model) -> None:
        where, met = condition(model, self._chance, for_hive=True)
        if self._run(f"delete from {model.name} where {where}"):
            model.rows = [row for row in model.rows if not met(row)]

    def _merge_by_hive(self, model: Model) -> None:
        """Matched rows are deleted or renamed, others inserted."""
        if "name" in model.clustered:
            return
        fresh = new_rows(model, self._chance, 3, literal=True)
        known = self._chance.sample(model.rows, min(len(model.rows), 5))
        pairs = zip(new_rows(model, self._chance, len(known), literal=True), known, strict=True)
        source = {row["id"]: row for row in [*fresh, *({**new, "id": old["id"]} for new, old in pairs)]}
        rows = list(source.values())
        structs = self._structs(model, rows)
        names = ", ".join(f"s_{name}" for name in model.types)
        done = self._run(
            f"merge into {model.name} as t using (select inline(array({structs})) as ({names})) as s on t.id = s.s_id"
            " when matched and s.s_id % 3 = 0 then delete when matched then update set name = s.s_name"
            f" when not matched then insert values ({', '.join(f's.s_{name}' for name in model.types)})"
        )
        if done:
            before = {row["id"] for row in model.rows}
            kept = [row for row in model.rows if not (row["id"] in source and row["id"] % 3 == 0)]
            model.rows = [{**row, "name": source[row["id"]]["name"]} if row["id"] in source else row for row in kept]
            model.rows += [row for row in rows if row["id"] not in before]

    def _aborted(self, model: Model) -> None:
        before = list(model.rows)
        with self._hive.aborting():
            self._chance.choice([self._insert_by_hive, self._delete_by_hive])(model)
        self.statements[-1] += "  -- aborted"
        model.rows = before

    def _overwrite_by_hive(self, model: Model) -> None:
        if model.keys:
            return
        rows = new_rows(model, self._chance, 6, literal=True)
        statement = self._insert_of_hive(model, rows).replace("insert into", "insert overwrite table", 1)
        if self._run(statement):
            model.rows = rows

    def _truncate_by_hive(self, model: Model) -> None:
        if self._chance.random() < 0.5 and self._run(f"truncate table {model.name}"):
            model.rows = []

    def _analyze(self, model: Model) -> None:
        if model.keys and not locations(self._hive, model):
            return
        keys = f" partition ({', '.join(model.keys)})" if model.keys else ""
        self._run(f"analyze table {model.name}{keys} compute statistics")
        self._run(f"analyze table {model.name} compute statistics for columns id, name")

    def _add_column(self, model: Model) -> None:
        kind = self._chance.choice(["int", "string", "date", "decimal(10,2)"])
        name = f"later{len(model.columns)}"
        if self._run(f"alter table {model.name} add columns ({name} {kind})" + " cascade" * bool(model.keys)):
            model.columns[name] = kind
            model.rows = [{**row, name: None} for row in model.rows]

    def _partition_by_hive(self, model: Model) -> None:
        """Drop a partition, with all its rows."""
        found = locations(self._hive, model) if model.keys else []
        if not found:
            return
        values = partition_of(self._chance.choice(found), model)
        if any(value is None for value in values.values()):
            return
        part = named(values)
        if self._run(f"alter table {model.name} drop partition ({part})"):
            model.rows = [row for row in model.rows if any(row[name] != value for name, value in values.items())]

    def _other_client(self, model: Model) -> None:
        """Its transaction has a write id, and stays open for a while."""
        if self._open is not None:
            self._end_other()
            return
        self._open = self._hive.open_transaction()
        write_id = self._hive.allocate_write_id(self._open, model.name)
        self.statements.append(f"-- transaction {self._open} has write id {write_id} of {model.name}")

    def _end_other(self) -> None:
        if self._open is not None:
            commit = self._chance.random() < 0.5
            self.statements.append(f"-- transaction {self._open} is {'committed' if commit else 'aborted'}")
            self._hive.end_transaction(self._open, commit=commit)
            self._open = None

    def _compact_by_hive(self, model: Model) -> None:
        found = locations(self._hive, model)
        if not found or any(state in ("initiated", READY) for state in compactions(self._hive, model.name)):
            return
        location = self._chance.choice(found)
        values = partition_of(location, model)
        path = Path(location.path.removeprefix("file:"))
        if any(value is None for value in values.values()) or not str(path).isascii():
            return  # which Hive's own SQL cannot say, or its compactor cannot do
        kind = self._chance.choice(["minor", "major"])
        self.statements.append(f"-- Hive compacts {kind} {location.path}")
        state = compact_by_hive(self._hive, model.name, kind, named(values))
        assert state in {READY, "succeeded", "refused"}, (
            state,
            [row for row in self._hive.sql("show compactions") if "failed" in row],
        )
        if kind == "minor" and has_copied_deletes(path):  # Hive 3 cannot read its own result row by row
            self.statements.append(f"-- acidctl compact --major {location.path}, which Hive can read again")
            offline = self._hive.version == 3
            location.compact(CompactOptions(major=True, force=True, offline=offline))

    def _clean_by_hive(self, model: Model) -> None:
        if READY in compactions(self._hive, model.name):
            self.statements.append(f"-- Hive cleans {model.name}")
            clean_by_hive(self._hive, model.name)


def named(values: Mapping[str, Any]) -> str:
    """A partition as SQL names it."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    return ", ".join(f"{name}={condition_literal('string', text)}" for name, text in texts.items())
