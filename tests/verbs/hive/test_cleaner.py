"""Entries of Hive's queue that are cleaned and marked, and those that are left to Hive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import Refused
from support.tables import CLEAN_NOW

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import AcidctlError, ConflictError, UsageProblem
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import ShowCompactRequest, ShowCompactResponse, TxnState, TxnType
from acidctl.metastore.settings import find_settings
from acidctl.outcome import Result as Done
from acidctl.verbs.hive import cleaner
from acidctl.verbs.hive.cleaner import CleanedEntry, Cleaner
from acidctl.verbs.hive.options import CleanerOptions
from acidctl.verbs.hive.service import Tables

Acidctl = Callable[..., Result]
READY = "ready for cleaning"


class Table:
    """``s.t``: three inserts, one of them aborted, and what was compacted from them, in Hive 4's own protocol."""

    def __init__(self, fake: FakeHive, location: Path, acidctl: Acidctl) -> None:
        self.fake, self.location, self._acidctl = fake, location, acidctl
        fake.table("s", "t", f"file:{location}")
        self.outcomes: list[CleanedEntry] = []
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        self.metastore = Metastore(settings)
        for number in (1, 2, 3, 4):
            self.write(aborted=number == 2)

    def write(self, *, aborted: bool = False) -> None:
        ids = self.fake.write_ids.setdefault("s.t", [])
        txn = self.fake.begin()
        ids.append(txn)
        number = len(ids)
        name = f"delta_{number:07d}_{number:07d}_0000"
        rows = (insert(number, row, (10 * number + row,)) for row in range(3))
        write_acid(self.location / name / "bucket_00000", *rows)
        self.fake.end(txn, commit=not aborted)

    def compact(self, kind: str = "major") -> None:
        done = self._acidctl("compact", "--engine", "local", f"--{kind}", "--metastore", self.fake.address, "hive:s.t")
        assert done.status == 0, done.err
        self.set_ready(committed=self.fake.now - 60)

    def set_ready(self, **changes: Any) -> None:
        for name in changes.keys() & {"committed", "cleaner_start"}:
            changes[name] = int(changes[name] * 1000)
        for one in self.fake.queue:
            if one.state == READY:
                self.fake.set_entry(one.id or 0, **changes)

    def clean(self, **asked: Any) -> list[CleanedEntry]:
        self.outcomes = []
        tables = Tables(asked.pop("names", ()), asked.pop("exclude", ()))
        asked = {"older_than": 0, "unsafe_retention": True, **asked}
        Cleaner(self.metastore, CleanerOptions(**asked), tables, self.outcomes.append, lambda _: None).once()
        return self.outcomes

    def rows(self) -> list[Any]:
        found = self._acidctl("cat", "-o", "jsonl", "--metastore", self.fake.address, "hive:s.t")
        assert found.status == 0, found.err
        return sorted(found.lines(), key=str)

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.location.iterdir() if path.name[0] not in "._"}

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.fake.queue]


@pytest.fixture
def table(tmp_path: Path, acidctl: Acidctl) -> Iterator[Table]:
    with FakeHive(4) as fake:
        yield Table(fake, tmp_path / "t", acidctl)


def codes(outcomes: list[CleanedEntry]) -> list[str]:
    return [reason.code.value for one in outcomes for reason in one.reasons]


@pytest.mark.parametrize("kind", [one.value for one in CompactionKind])
def test_what_was_compacted_is_cleaned_and_marked(table: Table, kind: str) -> None:
    before = table.rows()
    table.compact(kind)
    (done,) = table.clean()
    assert (done.result, done.marked, codes([done])) == ("cleaned", True, [])
    assert table.states == ["succeeded"]
    assert {name.partition("_v")[0] for name in table.names} == (
        {"base_0000004"} if kind == "major" else {"delta_0000001_0000004"}
    )
    assert table.rows() == before
    assert [txn.id for txn in table.fake.txns.values() if txn.state == TxnState.ABORTED] == []
    assert table.clean() == []


def test_nothing_is_done_where_nothing_is_to_be_changed(table: Table) -> None:
    table.compact()
    names = table.names
    (done,) = table.clean(dry_run=True)
    assert (done.result, done.marked) == ("planned", False)
    assert len(done.names) == 4
    assert (table.names, table.states) == (names, [READY])


def test_it_waits_for_who_may_read_what_was_replaced(table: Table) -> None:
    table.compact()
    reader = table.fake.begin()
    table.set_ready(next_txn=reader + 1)
    names = table.names
    assert codes(table.clean()) == ["transaction-below"]
    table.fake.end(reader)
    table.set_ready(committed=table.fake.now - 5)
    assert codes(table.clean()) == ["committed-lately"]
    assert (table.names, table.states) == (names, [READY])
    table.set_ready(committed=table.fake.now - 60)
    assert table.clean()[0].marked


def test_it_waits_for_who_began_last_before_the_commit(table: Table) -> None:
    """Hive notes the highest transaction that there is at the commit, and that may be a reader who sees none of it."""
    readers: list[int] = []
    table.fake.before["mark_compacted"] = lambda: readers.append(table.fake.begin(type=TxnType.READ_ONLY))
    table.compact()
    assert [one.next_txn for one in table.fake.queue] == readers
    assert codes(table.clean()) == ["transaction-below"]
    table.fake.end(readers[0])
    table.fake.begin(type=TxnType.READ_ONLY)
    assert table.clean()[0].marked


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"highest_write_id": 0}, "left-to-hive"),
        ({"next_txn": 0}, "commit-unknown"),
        ({"type": 4}, "left-to-hive"),
    ],
)
def test_what_is_in_doubt_is_left_to_hive(table: Table, changes: dict[str, int], code: str) -> None:
    table.compact()
    table.set_ready(**changes)
    names = table.names
    assert codes(table.clean()) == [code]
    assert (table.names, table.states) == (names, [READY])


def test_what_was_never_committed_is_given_back(table: Table) -> None:
    """Its process was killed after it had handed the entry on: with its transaction aborted nobody would end it."""
    txn = table.fake.begin(type=3)
    table.fake.entry("s", "t", READY, pool="mine", txn=txn, highest_write_id=4)
    names = table.names
    assert codes(table.clean()) == ["commit-unknown"]
    table.fake.end(txn, commit=False)
    assert codes(table.clean(dry_run=True)) == ["visibility-aborted"]
    assert table.states == [READY]
    (done,) = table.clean()
    assert (done.result, done.marked, codes([done])) == ("skipped", False, ["visibility-aborted"])
    assert [(one.state, one.pool) for one in table.fake.queue] == [("refused", "mine"), ("initiated", "mine")]
    assert table.names == names


class Rebalanced:
    """A table after a rebalance, of whose entry Hive 4.0 does not say when its transaction was committed."""

    def __init__(self, table: Table) -> None:
        self.table = table
        line = ("compact", "--engine", "local", "--rebalance", "--metastore", table.fake.address, "hive:s.t")
        assert table._acidctl(*line).status == 0
        (self.entry,) = table.fake.queue
        assert (self.entry.committed, self.entry.next_txn, table.states) == (None, None, [READY])
        self.found: list[CleanedEntry] = []
        self.cleaner = Cleaner(
            table.metastore,
            CleanerOptions(older_than=0, unsafe_retention=True),
            Tables(),
            self.found.append,
            lambda _: None,
        )

    def look(self) -> list[str]:
        self.found.clear()
        self.cleaner.once()
        return codes(self.found)


@pytest.fixture
def rebalanced(table: Table, monkeypatch: pytest.MonkeyPatch) -> Rebalanced:
    monkeypatch.setattr("acidctl.hive.ready_rules.OPEN_TXN_GAP", 0.0)
    return Rebalanced(table)


def test_a_rebalance_is_cleaned_in_one_look_where_nobody_is_there(rebalanced: Rebalanced) -> None:
    before = rebalanced.table.rows()
    assert rebalanced.look() == []
    assert (rebalanced.found[0].marked, rebalanced.table.states) == (True, ["succeeded"])
    assert [name.partition("_v")[0] for name in rebalanced.table.names] == ["base_0000004"]
    assert rebalanced.table.rows() == before


def test_what_would_be_done_after_a_rebalance_is_said_at_once(table: Table) -> None:
    rebalanced = Rebalanced(table)
    (planned,) = table.clean(dry_run=True)
    assert (planned.result, len(planned.names)) == ("planned", 4)
    reader = table.fake.begin()
    assert codes(table.clean(dry_run=True)) == ["transaction-below"]
    table.fake.end(reader)
    assert rebalanced.table.states == [READY]


def test_after_a_rebalance_everybody_is_waited_for_who_had_begun_when_it_was_first_seen(
    rebalanced: Rebalanced,
) -> None:
    names = rebalanced.table.names
    fake = rebalanced.table.fake
    reader = fake.begin(type=TxnType.READ_ONLY)
    assert rebalanced.look() == ["transaction-below"]
    late = fake.begin()
    assert rebalanced.look() == ["transaction-below"]
    assert (rebalanced.table.names, rebalanced.table.states) == (names, [READY])
    fake.end(reader)
    assert codes(rebalanced.table.clean()) == ["transaction-below"], "another cleaner, which has seen it now only"
    assert rebalanced.look() == []
    assert (rebalanced.found[0].marked, late in fake.txns) == (True, True)


def test_a_rebalance_that_is_not_committed_is_not_cleaned(rebalanced: Rebalanced) -> None:
    fake, names = rebalanced.table.fake, rebalanced.table.names
    txn = fake.begin(type=TxnType.REBALANCE_COMPACTION)
    fake.set_entry(rebalanced.entry.id or 0, txn=txn)
    assert rebalanced.look() == ["transaction-below"]
    assert rebalanced.found[0].reasons[0].ids == (txn,)
    fake.end(txn, commit=False)
    assert rebalanced.look() == ["visibility-aborted"]
    assert rebalanced.table.states == ["refused"]  # in the pool of a single compaction nobody looks any more
    assert rebalanced.table.names == names


def test_one_that_is_being_moved_into_the_history_is_told_twice_and_left_alone(table: Table) -> None:
    """The server reads the queue and the history one after the other."""
    table.compact()
    tell = table.fake.answers["show_compact"]

    def twice(request: ShowCompactRequest) -> ShowCompactResponse:
        answer = tell(request)
        moved = tuple(replace(one, state="succeeded") for one in answer.entries)
        return replace(answer, entries=(*answer.entries, *moved)) if request.id else answer

    table.fake.answers["show_compact"] = twice
    (done,) = table.clean()
    assert (done.error, done.marked, codes([done])) == (None, False, ["in-queue"])


def test_hives_own_cleaner_is_not_disturbed(table: Table) -> None:
    table.compact()
    table.set_ready(cleaner_start=table.fake.now - 60)
    assert codes(table.clean()) == ["left-to-hive"]
    assert table.states == [READY]


def test_owners_are_heard_and_what_is_gone_is_left_to_hive(table: Table) -> None:
    table.compact()
    table.fake.tables["s", "t"].parameters["no_cleanup"] = "true"
    assert codes(table.clean()) == ["no-cleanup"]
    for others in ({"table_type": "ICEBERG"}, {"transactional": "false"}, None):
        if others is None:
            del table.fake.tables["s", "t"]
        else:
            table.fake.table("s", "t", f"file:{table.location}", parameters={"transactional": "false", **others})
        (done,) = table.clean()
        assert (done.result, codes([done])) == ("skipped", ["refused"])
        assert table.states == [READY]


def test_only_what_an_entry_replaced_goes(table: Table) -> None:
    """What was written since stays, and an aborted delta above the highest write id, too."""
    table.compact()
    table.write()
    table.write(aborted=True)
    before = table.rows()
    (done,) = table.clean()
    assert done.marked
    assert {name.partition("_v")[0] for name in table.names} == {
        "base_0000004", "delta_0000005_0000005_0000", "delta_0000006_0000006_0000"
    }  # fmt: skip
    assert table.rows() == before
    assert [txn.state for txn in table.fake.txns.values()] == [TxnState.ABORTED]


def test_aborted_rows_in_a_delta_of_several_write_ids_stay_hidden(table: Table) -> None:
    """A stream that goes on above the compaction: the metastore must not forget which of its ids were aborted."""
    stream = table.location / "delta_0000005_0000007"
    ids = table.fake.write_ids["s.t"]
    txns = [table.fake.begin() for _ in range(3)]
    ids.extend(txns)
    write_acid(stream / "bucket_00000", *(insert(number, 0, (number,)) for number in (5, 6, 7)))
    for txn, aborted in zip(txns, (False, True, False), strict=True):
        table.fake.end(txn, commit=not aborted)
    table.compact()
    before = table.rows()
    table.set_ready(highest_write_id=6)
    found = table.clean()
    assert not found[0].marked
    assert table.rows() == before


def test_a_location_that_changes_meanwhile_waits_for_the_next_round(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.compact()

    def overtaken(*_: object, **__: object) -> None:
        raise ConflictError("the location changed", "somebody writes to it", "")

    with monkeypatch.context() as patched:
        patched.setattr(cleaner, "carry_out", overtaken)
        (outcome,) = table.clean()
    assert (outcome.result, outcome.error, codes([outcome])) == (Done.POSTPONED, None, ["refused"])
    (outcome,) = table.clean()
    assert outcome.marked


@pytest.mark.parametrize("kind", ["lost", "done", "failed"])
@pytest.mark.parametrize("method", ["mark_cleaned", "show_compact", "get_open_txns_info", "get_valid_write_ids"])
def test_a_call_that_goes_wrong_shows_no_aborted_row(table: Table, method: str, kind: str) -> None:
    before = table.rows()
    table.compact()
    table.fake.fault(method, kind, 1)
    with suppress(AcidctlError):
        table.clean()
    assert table.rows() == before
    table.clean()
    assert table.rows() == before
    assert table.states == ["succeeded"]
    assert {name.partition("_v")[0] for name in table.names} == {"base_0000004"}


@pytest.mark.parametrize(("why", "status"), [("", 6), ("Permission denied: user=me", 5), ("db.t table not found", 3)])
def test_what_was_removed_is_reported_where_the_server_refuses_to_mark_the_entry(
    table: Table, acidctl: Acidctl, why: str, status: int
) -> None:
    """As Hive 4 does on PostgreSQL for tables without partitions."""
    table.compact()
    real = table.fake.answers["mark_cleaned"]

    def refuses(_: object) -> None:
        table.fake.answers["mark_cleaned"] = real
        raise Refused("MetaException", why)

    table.fake.answers["mark_cleaned"] = refuses
    line = ("hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention", "-o", "jsonl")
    done = acidctl(*line, "--metastore", table.fake.address)
    (entry,) = done.lines()
    assert (done.status, entry["result"], entry["marked"]) == (status, "failed", False)
    assert len(entry["removed"]) == 4
    assert entry["run"]
    assert table.clean()[0].marked


def test_several_entries_of_a_location_are_taken_in_their_order(table: Table) -> None:
    table.compact()
    for _ in range(2):
        table.write()
    table.compact("minor")
    for _ in range(2):
        table.write()
    table.compact()
    before = table.rows()
    done = table.clean()
    assert [one.marked for one in done] == [True, True, True], [str(one.error) for one in done]
    assert set(table.states) == {"succeeded"}
    assert table.rows() == before


def test_one_of_which_a_later_one_and_a_cleaning_left_nothing_is_marked(table: Table) -> None:
    table.compact()
    table.write(aborted=True)
    table.write()
    table.compact()
    before = table.rows()
    cleaned = table._acidctl(*CLEAN_NOW, "--metastore", table.fake.address, "hive:s.t")
    assert cleaned.status == 0, cleaned.err
    assert (
        "2 entries of Hive's queue are ready for cleaning there: `acidctl hive cleaner --once --metastore"
        in cleaned.err
    )
    assert [name.partition("_v")[0] for name in table.names] == ["base_0000006"]
    assert [one.marked for one in table.clean()] == [True, True]
    assert set(table.states) == {"succeeded"}
    assert table.rows() == before


def test_young_ones_stay_as_long_as_the_retention_says(table: Table) -> None:
    table.compact()
    (done,) = table.clean(older_than=3600)
    assert (done.result, done.marked, codes([done])) == ("postponed", False, ["still-left"])
    assert table.states == [READY]


def test_names_and_patterns_choose(table: Table) -> None:
    table.compact()
    assert table.clean(names=["hive:s.u"]) == []
    assert table.clean(names=["hive:s.*"], exclude=["s.t"]) == []
    assert len(table.clean(names=["hive:s.t"], dry_run=True)) == 1


def test_hive_3_has_no_word_for_it(tmp_path: Path) -> None:
    with FakeHive(3) as fake:
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        with pytest.raises(UsageProblem, match="came with Hive 4"):
            Cleaner(Metastore(settings), CleanerOptions(), Tables(), lambda _: None, lambda _: None).once()


def test_deletes_go_with_what_they_hit(table: Table) -> None:
    ids = table.fake.write_ids["s.t"]
    txn = table.fake.begin()
    ids.append(txn)
    write_acid(table.location / "delete_delta_0000005_0000005_0000" / "bucket_00000", delete(1, 0, 5))
    table.fake.end(txn)
    table.compact()
    before = table.rows()
    assert table.clean()[0].marked
    assert {name.partition("_v")[0] for name in table.names} == {"base_0000005"}
    assert table.rows() == before


def test_the_command_shows_asks_and_cleans(table: Table) -> None:
    table.compact()
    before = table.rows()
    line = ("hive", "cleaner", "--metastore", table.fake.address, "--older-than", "0", "--unsafe-retention")
    shown = table._acidctl(*line, "--dry-run")
    assert (shown.status, table.states) == (0, [READY])
    assert "s.t: planned: 4 directories" in shown.out
    assert "1 entry ready for cleaning: 1 planned" in shown.err
    assert table._acidctl(*line).status == 2  # a service
    unasked = table._acidctl(*line, "--once")
    assert (unasked.status, "give --yes" in unasked.err, table.states) == (7, True, [READY])
    assert (
        table._acidctl(
            "hive", "cleaner", "--once", "--yes", "--older-than", "0", "--metastore", table.fake.address
        ).status
        == 7
    )
    (done,) = table._acidctl(*line, "--once", "--yes", "-o", "jsonl").lines()
    assert (done["result"], done["marked"], len(done["removed"])) == ("cleaned", True, 4)
    assert table.rows() == before
    undone = table._acidctl("restore", "--yes", "--run", done["run"], table.location)
    assert undone.status == 0, undone.err
    assert len(table.names) == 5
    assert table.rows() == before  # whatever came back is replaced, for readers of now too
