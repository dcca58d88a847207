"""Hive's own compactor and cleaner, of 3.1.3 and 4.0.1, beside what acidctl says of a table's directories.

Hive's ``Worker`` and ``Cleaner`` run a round when a test says so.  Lists of write ids and transactions are Hive's.
"""

from __future__ import annotations

import random
import shutil

import pytest
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, names
from support.engines.hive_histories import History, Rows, ours
from support.engines.real_hive import HiveTable
from support.servers.hive_server import HiveServer
from support.validating import check

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.cleaning.outcomes import PlannedCleaning
from acidctl.compaction.run import Compacted
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.options import LockOptions

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

REMOVABLE = {"obsolete", "aborted"}


def states(location: Location) -> dict[str, str]:
    return {verdict.name: verdict.state.value for verdict in location.snapshot().state.verdicts}


def compact_in(history: History, kind: CompactionKind) -> None:
    assert compact_by_hive(history.hive, history.name, kind.value) == READY


def removed_by_hive(history: History) -> set[str]:
    """Let Hive's Cleaner run to its end; the names of the directories that it removed."""
    before = names(history.path)
    clean_by_hive(history.hive, history.name)
    return before - names(history.path)


@pytest.mark.parametrize("engine", ["query", "mr"])
@pytest.mark.parametrize("kind", list(CompactionKind))
def test_what_hives_cleaner_removes_was_removable_and_nothing_removable_is_left(
    real_hive: HiveServer, kind: CompactionKind, engine: str
) -> None:
    if engine == "query" and real_hive.version == 3:
        pytest.skip("Hive 3 compacts full-ACID tables by MapReduce only")
    real_hive.set("hive.compactor.crud.query.based", str(engine == "query").lower())
    history = History(real_hive, f"by_hive_{kind.value}_{engine}", 21)
    for number in range(5):
        history.aborted_step() if number in (2, 4) else history.step()
        history.judge()
    before = history.judge()
    compact_in(history, kind)
    assert history.judge() == before
    seen = states(history.location())
    removable = {name for name, state in seen.items() if state in REMOVABLE}
    plan = history.location().clean(older_than=0, dry_run=True)
    assert isinstance(plan, PlannedCleaning)
    assert {one.name for one in plan.plan.removals} == removable
    assert removed_by_hive(history) == removable
    assert set(states(history.location()).values()) == {"current"}
    assert history.judge() == before
    history.step()
    history.judge()


@pytest.mark.parametrize("seed", range(1))
def test_lists_of_hive_say_what_is_open_and_what_was_aborted(real_hive: HiveServer, seed: int) -> None:
    chance = random.Random(seed)
    history = History(real_hive, f"lists_{seed}", seed)
    other = History(real_hive, f"other_{seed}", seed)
    open_ids: dict[int, int] = {}
    aborted: set[int] = set()
    highest = 0
    for _ in range(24):
        done = chance.choice(["open", "end", "insert", "abort", "other"])
        if done == "open":
            transaction = real_hive.open_transaction()
            highest = open_ids[transaction] = real_hive.allocate_write_id(transaction, history.name)
        elif done == "end" and open_ids:
            transaction = chance.choice(sorted(open_ids))
            commit = chance.random() < 0.5
            real_hive.end_transaction(transaction, commit)
            ended = open_ids.pop(transaction)
            aborted |= set() if commit else {ended}
        elif done == "other":
            other.run(f"insert into {other.name} values (1, 'x', 0.5)")
        elif done in {"insert", "abort"}:
            highest += 1
            statement = f"insert into {history.name} values ({highest}, 'x', 0.5)"
            if done == "abort":
                with real_hive.aborting():
                    history.run(statement)
                aborted.add(highest)
            else:
                history.run(statement)
        known = ValidWriteIds.parse(history.lists()[0])
        invalid = set(open_ids.values()) | aborted
        for write_id in range(1, highest + 1):
            assert known.is_valid(write_id) is (write_id not in invalid), write_id
            # Hive 4's high watermark stays below the last ids as long as they are of aborted transactions only.
            is_above = write_id > known.high_watermark
            assert known.is_aborted(write_id) is (write_id in aborted and not is_above), write_id
    high = ValidWriteIds.parse(history.lists()[0]).high_watermark
    for name, state in states(history.location()).items():
        write_id = int(name.split("_")[1])
        assert state == ("ignored" if write_id > high else "aborted" if write_id in aborted else "current"), name
    assert ours(history.path, *history.lists()) == history.rows()
    for transaction in open_ids:
        real_hive.end_transaction(transaction, False)


def both(history: History) -> Rows:
    """Hive's rows, which are ours."""
    rows = history.rows()
    assert ours(history.path, *history.lists()) == rows
    return rows


@pytest.mark.parametrize("name", ["base_0000002", "delta_0000001_0000002", "delta_0000002_0000002_0000"])
def test_hive_4_reads_files_of_its_query_based_compaction_in_any_directory(real_hive: HiveServer, name: str) -> None:
    """Their columns are ``originaltransaction`` and so on, without a key index; ROW__IDs are read none the less."""
    if real_hive.version == 3:
        pytest.skip("Hive 3 compacts full-ACID tables by MapReduce only")
    real_hive.set("hive.compactor.crud.query.based", "true")
    history = History(real_hive, f"moved_{name}", 3)
    history.run(f"insert into {history.name} values (1, 'a', 0.5), (3, 'c', 0.5), (5, 'e', 2.5)")
    history.run(f"insert into {history.name} values (2, 'b', 1.5)")
    before = history.judge()
    real_hive.sql(f"alter table {history.name} compact 'major'")
    real_hive.round("Worker")
    (base,) = history.path.glob("base_*")
    assert history.judge() == before
    for delta in history.path.glob("delta_*"):
        shutil.rmtree(delta)
    base.rename(history.path / name)
    assert both(history) == before
    for fetch, vectorized in (("none", "true"), ("none", "false"), ("more", "true")):
        real_hive.set("hive.fetch.task.conversion", fetch)
        real_hive.set("hive.vectorized.execution.enabled", vectorized)
        assert history.rows() == before
        assert [row[1][0] for row in history.rows("id > 2 and score < 1")] == ["3"]
        assert real_hive.sql(f"select count(*), sum(id) from {history.name}") == [["4", "11"]]
    history.run(f"update {history.name} set name = 'u' where id = 3")
    history.run(f"delete from {history.name} where id = 5")
    assert [row[1][:2] for row in both(history)] == [("1", "a"), ("2", "b"), ("3", "u")]
    for engine in ("false", "true"):
        real_hive.set("hive.compactor.crud.query.based", engine)
        real_hive.sql(f"alter table {history.name} compact 'major'")
        real_hive.round("Worker")
        assert [row[1][:2] for row in both(history)] == [("1", "a"), ("2", "b"), ("3", "u")]
        history.run(f"insert into {history.name} values (7, 'g', 0.5)")
        history.run(f"delete from {history.name} where id = 7")


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_hive_4_sees_a_result_with_a_visibility_id_when_its_transaction_commits(
    real_hive: HiveServer, kind: CompactionKind
) -> None:
    if real_hive.version == 3:
        pytest.skip("Hive 3 knows no visibility ids")
    history = History(real_hive, f"visible_{kind.value}", 41)
    for _ in range(4):
        history.step()
    before = history.judge()
    transaction = real_hive.open_transaction()
    locks = LockOptions(lock=False)
    options = CompactOptions(**{kind.value: True}, visibility_txn=transaction, locks=locks)  # type: ignore[arg-type]
    assert isinstance(history.location().compact(options), Compacted)
    results = [name for name in names(history.path) if name.endswith(f"_v{transaction:07d}")]
    assert results
    seen = states(history.location())
    assert {seen[name] for name in results} == {"ignored"}
    assert history.judge() == before
    real_hive.end_transaction(transaction, True)
    seen = states(history.location())
    assert {seen[name] for name in results} == {"current"}
    assert history.judge() == before
    cleaned = history.location().clean(0, unsafe_retention=True, no_trash=True, locks=LockOptions(lock=False))
    assert {one.name for one in cleaned.removed} == {name for name, state in seen.items() if state in REMOVABLE}
    assert history.judge() == before
    history.run(f"update {history.name} set score = 0 where id % 2 = 0")
    history.run(f"delete from {history.name} where id % 5 = 0")
    after = history.judge()
    real_hive.sql(f"insert into {history.name} values (900, 'z', 1.5)")
    compact_in(history, CompactionKind.MAJOR)
    assert len(history.judge()) == len(after) + 1


def _brought_back(table: HiveTable, before: Rows) -> None:
    """Hive reads half of the rows; of the others nothing is cleaned, and once it reads all its cleaner lets them be."""
    assert len(table.rows()) == len(before) / 2
    path = table.path / "city=Zürich"
    (result,) = (name for name in names(path) if "_v" in name and not name.startswith("delete"))
    (report,) = check(path, write_ids=str(table.write_ids))
    assert [one.path for one in report.findings if one.rule == "V43"] == [result]
    location = Location(path, snapshot=f"{table.write_ids}\ntxns={table.hive.transactions()}")
    assert location.clean(0, unsafe_retention=True).removed == ()
    assert location.repair("empty-result", force=True, offline=True)
    assert table.judge() == before
    clean_by_hive(table.hive, table.name)
    assert table.judge() == before
    table.compacted(CompactionKind.MAJOR)


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_by_mapreduce_hive_finds_no_files_where_a_path_is_not_ascii(
    real_hive: HiveServer, kind: CompactionKind
) -> None:
    """It gives the path to its job with one byte a letter: Hive 3 fails, Hive 4 loses the rows. acidctl compacts."""
    real_hive.set("hive.compactor.crud.query.based", "false")
    tables = []
    for name in (f"by_hive_in_{kind.value}", f"by_us_in_{kind.value}"):
        table = HiveTable(real_hive, name, {"id": "int"}, "partitioned by (city string)", by_lists=True)
        for number in (1, 2):
            table.run(f"insert into {name} partition (city) values ({number}, 'Zürich'), ({number}, 'Bern')")
        tables.append(table)
    theirs, mine = tables
    before = [table.judge() for table in tables]
    ends = [compact_by_hive(real_hive, theirs.name, kind.value, f"city = '{city}'") for city in ("Bern", "Zürich")]
    assert ends == [READY, "failed" if real_hive.version == 3 else READY]
    if real_hive.version > 3:
        _brought_back(theirs, before[0])
    mine.compacted(kind)
    assert {"base_0000002", "delta_0000001_0000002"} & names(mine.path / "city=Zürich")
    mine.run(f"delete from {mine.name} where id = 1 and city = 'Zürich'")
    assert len(mine.judge()) == len(before[1]) - 1
