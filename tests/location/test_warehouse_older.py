"""Files that are newer than their metastore are named and not changed; whatever only looks like that stays silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.acid.names import MINL
from acidctl.acid.reasons import Code
from acidctl.acid.state import State
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import ExitStatus, RefusedError
from acidctl.cleaning.apply import RefusedCleaning
from acidctl.cleaning.apply import plan_location as plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.compaction.request import CompactionRequest, Mode, PlanRefused
from acidctl.compaction.request import plan_location as plan_compaction
from acidctl.location import metastore_state as module
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec, open_warehouse
from acidctl.location.table_location import TableLocation
from acidctl.metastore.interface import TxnState
from acidctl.rows.read.past_snapshot import seen_at

Acidctl = Callable[..., Result]
NAME = "hive:d.t"


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT", 0.01)


@pytest.fixture(params=[3, 4])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(request.param) as fake:
        fake.table("d", "t", str(tmp_path / "t"))
        (tmp_path / "t").mkdir()
        yield fake


def give(hive: FakeHive, count: int, table: str = "d.t") -> list[int]:
    """So many write ids, of transactions that are open."""
    txns = list(hive.begin_many(count))
    hive.write_ids.setdefault(table, []).extend(txns)
    return txns


def commit(hive: FakeHive, count: int) -> None:
    for txn in give(hive, count):
        hive.end(txn)


def write(tmp_path: Path, *names: str) -> None:
    for name in names:
        write_acid(tmp_path / "t" / name / "bucket_00000", insert(1, 0, (1, "x")))


def delta(*ids: int) -> list[str]:
    return [f"delta_{one:07}_{one:07}_0000" for one in ids]


def resolver_of(hive: FakeHive, address: str = "", snapshot: ValidWriteIds | None = None) -> SnapshotResolver:
    return SnapshotResolver(SnapshotSpec.of(snapshot), open_warehouse(address or hive.address))


def places(hive: FakeHive, resolver: SnapshotResolver | None = None) -> list[TableLocation]:
    return list(find([NAME], {}, resolver or resolver_of(hive)))


def codes(hive: FakeHive, resolver: SnapshotResolver | None = None) -> set[Code]:
    resolver = resolver or resolver_of(hive)
    return {why.code for found in places(hive, resolver) for why in found.snapshot(readers=True).ahead}


# --- what is named -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "named", "code"),
    [
        (2, delta(1, 2, 3, 4), Code.ABOVE_GIVEN),
        (0, delta(1, 2), Code.ABOVE_GIVEN),
        (2, ["base_0000004"], Code.ABOVE_GIVEN),
        (2, ["delete_delta_0000002_0000003"], Code.ABOVE_GIVEN),
        (3, ["base_0000003_v0000018"], Code.ABOVE_GIVEN),
    ],
)
def test_an_older_metastore_is_named_and_nothing_is_changed(
    hive: FakeHive, tmp_path: Path, given: int, named: list[str], code: Code
) -> None:
    commit(hive, given)
    write(tmp_path, *named)
    resolver = resolver_of(hive)
    (found,) = places(hive, resolver)
    snapshot = found.snapshot(readers=True)
    (why,) = snapshot.ahead
    highest = max(name for name in named)
    assert (why.code, highest in why.by) == (code, True)
    ignored = {v.reason.code for v in snapshot.state.in_state(State.IGNORED) if v.name in why.by}
    assert ignored <= {code}
    with pytest.raises(RefusedError):
        found.snapshot(compactor=True)
    for mode in Mode:
        assert isinstance(plan_compaction(found.reload(), CompactionRequest(mode, force=True)), PlanRefused)
    assert isinstance(plan_cleaning(found.reload(), Policy(0)), RefusedCleaning)


def test_every_command_says_so(hive: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    commit(hive, 2)
    write(tmp_path, *delta(1, 2, 3))
    at = ("--metastore", hive.address)
    for command in ("ls", "why", "cat", "validate", "status"):
        done = acidctl(command, *at, NAME)
        told = done.out + done.err
        assert "write id 3" in told, command
        assert "delta 3" in told or delta(3)[0] in told, command
        expected = {"validate": ExitStatus.FINDINGS, "status": ExitStatus.FINDINGS}.get(command, 0)
        assert done.status == expected, command
    (record,) = acidctl("ls", *at, "-o", "jsonl", NAME).lines()
    assert [one["code"] for one in record["disagreements"]] == ["above-given"]
    assert [one["rule"] for one in acidctl("validate", *at, "-o", "jsonl", NAME).lines() if one.get("rule") == "V44"]
    state = ("--state", str(tmp_path / "state"))
    changing = (("compact", "--major"), ("clean", "--yes"), ("nightly", "--yes", *state))
    for words in changing:
        assert acidctl(*words, *at, NAME).status == ExitStatus.REFUSED, words
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == delta(1, 2, 3)


@pytest.mark.parametrize("command", ["status", "cat", "why", "ls", "compact", "clean"])
def test_a_compacted_base_above_what_was_given_is_no_lack_of_history_alone(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl, command: str
) -> None:
    commit(hive, 2)
    write(tmp_path, *delta(1, 2, 3, 4), "base_0000004")
    marked = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
    (tmp_path / "t" / "base_0000004" / "_metadata_acid").write_bytes(marked)
    words = ("compact", "--major") if command == "compact" else (command,)
    done = acidctl(*words, "--metastore", hive.address, NAME)
    assert "write id 4 is on disk" in done.out + done.err
    assert "newer snapshot" not in done.out + done.err
    assert command in ("ls", "status") or "stop all writers" in done.out + done.err
    codes = {"status": ExitStatus.FINDINGS, "cat": 10, "compact": 7, "clean": 7}
    assert done.status == codes.get(command, 0)


def test_why_asks_for_no_newer_snapshot_where_ids_were_never_given(
    hive: FakeHive, tmp_path: Path, acidctl: Acidctl
) -> None:
    commit(hive, 2)
    write(tmp_path, *delta(1, 2, 3, 4))
    done = acidctl("why", "--metastore", hive.address, NAME, delta(4)[0])
    assert "newer snapshot" not in done.out
    assert "stop all writers" in done.out


def test_a_given_list_is_compared_with_what_was_given_and_not_with_its_end(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 5)
    write(tmp_path, *delta(1, 2, 3, 4, 5))
    old = ValidWriteIds(3, table="d.t")
    assert codes(hive, resolver_of(hive, snapshot=old)) == set()
    resolver = resolver_of(hive)
    assert seen_at(places(hive, resolver)[0], at=2).ahead == ()
    hive.write_ids["d.t"] = hive.write_ids["d.t"][:2]  # restored from a backup; the list is of before
    newer = ValidWriteIds(5, table="d.t")
    assert codes(hive, resolver_of(hive, snapshot=newer)) == {Code.ABOVE_GIVEN}
    resolver = resolver_of(hive)
    assert [why.code for why in seen_at(places(hive, resolver)[0], at=2).ahead] == [Code.ABOVE_GIVEN]


def test_a_replica_is_named_as_one(hive: FakeHive, tmp_path: Path) -> None:
    hive.table("d", "t", str(tmp_path / "t"), parameters={"repl.last.id": "7"})
    commit(hive, 2)
    write(tmp_path, *delta(3))
    resolver = resolver_of(hive)
    (why,) = places(hive, resolver)[0].snapshot().ahead
    assert why.value("is_replica") is True


def test_where_it_cannot_be_asked_that_is_a_note_and_refuses_nothing(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 1)
    write(tmp_path, *delta(1, 2))
    resolver = resolver_of(hive).opened()
    (found,) = places(hive, resolver)
    found.resolve()  # taken before the server fails
    for method in ("get_max_allocated_table_write_id", "get_valid_write_ids"):
        hive.fault(method, "failed", 9)
    snapshot = found.snapshot(refresh=False)
    assert snapshot.ahead == ()
    assert Code.GIVEN_UNKNOWN in {note.code for note in snapshot.state.notes}


# --- what only looks like it --------------------------------------------------------------------------------------


def _writer_at_work(hive: FakeHive, tmp_path: Path) -> None:
    give(hive, 1)
    write(tmp_path, *delta(1))


def _writer_that_died(hive: FakeHive, tmp_path: Path) -> None:
    (txn,) = give(hive, 1)
    hive.txns[txn].state = TxnState.ABORTED
    write(tmp_path, *delta(1))


def _gaps(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 9)
    write(tmp_path, *delta(2, 7))


def _watermark_below_given(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 4)
    hive.given["d.t"] = 7
    write(tmp_path, *delta(5, 6, 7))


def _jump(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 1)
    hive.begin_many(100)
    hive.txns.clear()
    commit(hive, 1)
    write(tmp_path, *delta(1, 2), "base_0000002_v0000050")


def _failed_compaction(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 2)
    txn = hive.begin()
    hive.txns[txn].state = TxnState.ABORTED
    write(tmp_path, *delta(1, 2), f"base_0000002_v{txn:07}")


def _compaction_at_work(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 2)
    write(tmp_path, *delta(1, 2), f"delta_0000001_0000002_v{hive.begin():07}")


def _originals(hive: FakeHive, tmp_path: Path) -> None:
    write(tmp_path, f"base_{MINL}")
    (tmp_path / "t" / "000000_0").write_bytes(b"ORC")


def _converted(hive: FakeHive, tmp_path: Path) -> None:
    hive.given["d.t"] = 10_000_001
    commit(hive, 1)
    write(tmp_path, *delta(10_000_001))


def _writer_that_died_unnoticed(hive: FakeHive, tmp_path: Path) -> None:
    give(hive, 1)
    (tmp_path / "t" / delta(1)[0]).mkdir()
    (tmp_path / "t" / delta(1)[0] / "bucket_00000").write_bytes(b"")


def _replica(hive: FakeHive, tmp_path: Path) -> None:
    hive.table("d", "t", str(tmp_path / "t"), parameters={"repl.last.id": "7"})
    hive.given["d.t"] = 7  # repl_tbl_writeid_state sets it, and gives no id a transaction
    write(tmp_path, *delta(5, 6, 7))


def _renamed_before(hive: FakeHive, tmp_path: Path) -> None:
    hive.table("d", "old", str(tmp_path / "t"))
    for txn in give(hive, 3, "d.old"):
        hive.end(txn)
    del hive.tables["d", "old"]
    hive.write_ids["d.t"] = hive.write_ids.pop("d.old")
    write(tmp_path, *delta(1, 2, 3))


def _originals_compacted_by_hive_4(hive: FakeHive, tmp_path: Path) -> None:
    txn = hive.begin()
    hive.end(txn)
    write(tmp_path, f"base_{MINL}_v{txn:07}")


def _stream(hive: FakeHive, tmp_path: Path) -> None:
    first, *_ = give(hive, 10)  # all ids of a streaming writer are given at once, and are in the name of its delta
    hive.end(first)
    write(tmp_path, "delta_0000001_0000010")


def _nothing_there(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 3)


@pytest.mark.parametrize(
    "alike",
    [
        _writer_at_work, _writer_that_died, _gaps, _watermark_below_given, _jump, _failed_compaction,
        _compaction_at_work, _originals, _converted, _nothing_there, _writer_that_died_unnoticed, _replica,
        _renamed_before, _originals_compacted_by_hive_4, _stream,
    ],
)  # fmt: skip
def test_look_alikes_are_silent(
    hive: FakeHive, tmp_path: Path, alike: Callable[[FakeHive, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda _: pytest.fail("it asked a second time"))
    alike(hive, tmp_path)
    assert codes(hive) == set()


def test_what_comes_after_the_lists_is_silent(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 1)
    resolver = resolver_of(hive).opened()
    commit(hive, 2)
    write(tmp_path, *delta(1, 2, 3), f"base_0000001_v{hive.begin():07}")
    (found,) = places(hive, resolver)
    assert found.snapshot(refresh=False).ahead == ()


def test_dynamic_partitions_at_work_are_silent_and_cost_one_question(hive: FakeHive, tmp_path: Path) -> None:
    hive.table("d", "t", str(tmp_path / "t"), ["p"])
    commit(hive, 1)
    for number in range(5):
        hive.partition("d", "t", f"p={number}")
        write(tmp_path, *(f"p={number}/{name}" for name in delta(1)))
    resolver = resolver_of(hive).opened()
    resolver.warehouse.transactions.load(["d.t"])  # type: ignore[union-attr]
    give(hive, 1)
    for number in range(5):
        write(tmp_path, *(f"p={number}/{name}" for name in delta(2)))
    found = places(hive, resolver)
    before = len(hive.calls)
    assert [one.snapshot(refresh=False).ahead for one in found] == [()] * 5
    asked = hive.calls[before:]
    way = "get_max_allocated_table_write_id" if hive.version == 4 else "get_valid_write_ids"
    assert asked.count(way) == 1


def test_a_table_renamed_meanwhile_is_silent(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 1)
    resolver = resolver_of(hive).opened()
    (found,) = places(hive, resolver)
    commit(hive, 1)
    write(tmp_path, *delta(1, 2))
    found.resolve()
    hive.tables["d", "new"] = hive.tables.pop(("d", "t"))
    hive.write_ids["d.new"] = hive.write_ids.pop("d.t")
    assert found.snapshot(refresh=False).ahead == ()


def test_a_stale_listing_of_a_table_made_again_is_silent(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 1)
    write(tmp_path, *delta(1))
    resolver = resolver_of(hive).opened()
    (found,) = places(hive, resolver)
    write(tmp_path, *delta(2))
    assert found.look.listing.entries
    for name in delta(1, 2):
        (tmp_path / "t" / name / "bucket_00000").unlink()
        (tmp_path / "t" / name).rmdir()
    assert found.snapshot(refresh=False).ahead == ()


def test_of_two_servers_one_that_is_behind_is_not_believed(hive: FakeHive, tmp_path: Path) -> None:
    commit(hive, 3)
    write(tmp_path, *delta(1, 2, 3))
    with FakeHive(hive.version) as behind:
        behind.table("d", "t", str(tmp_path / "t"))
        commit(behind, 1)
        resolver = resolver_of(hive, f"{behind.address},{hive.address}")
        for _ in range(4):
            assert codes(behind, resolver.refreshed()) == set()


def test_a_path_of_which_no_metastore_knows_is_not_asked_about(hive: FakeHive, tmp_path: Path) -> None:
    write_acid(tmp_path / "other" / delta(9)[0] / "bucket_00000", insert(9, 0, (1, "x")))
    resolver = resolver_of(hive)
    (found,) = find([str(tmp_path / "other")], {}, resolver)
    assert found.snapshot().ahead == ()


@pytest.mark.parametrize("state", ["initiated", "ready for cleaning"])
def test_worker_and_cleaner_leave_it_alone(acidctl: Acidctl, tmp_path: Path, state: str) -> None:
    with FakeHive(4) as hive:
        hive.table("d", "t", str(tmp_path / "t"))
        commit(hive, 2)
        write(tmp_path, *delta(1, 2, 3, 4), "base_0000002_v0000001")
        entry = hive.entry("d", "t", state, highest_write_id=2, type=2, txn=1)
        before = sorted(path.name for path in (tmp_path / "t").iterdir())
        words = ("hive", "worker", "--engine", "local") if state == "initiated" else ("hive", "cleaner")
        done = acidctl(*words, "--once", "--metastore", hive.address)
        assert state != "initiated" or done.status == ExitStatus.REFUSED
        assert sorted(path.name for path in (tmp_path / "t").iterdir()) == before
        (left,) = [one for one in hive.queue if one.id == entry]
        assert left.state == ("refused" if state == "initiated" else state)
