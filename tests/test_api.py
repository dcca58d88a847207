"""The verbs of a location: what the command line can do, Python can do, with the same results and refusals."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.files.acid_files import ids, insert, write_acid, write_delta
from support.tables import age, json_rows, snapshot_of, without_log
from support.trouble.locks import locked

import acidctl
from acidctl.base.errors import (
    AcidctlError,
    BadDataError,
    ConflictError,
    NotFoundError,
    NotLookedAtError,
    RefusedError,
    UsageProblem,
)
from acidctl.cleaning.apply import RefusedCleaning, delete
from acidctl.cleaning.outcomes import PlannedCleaning
from acidctl.cli.main import main
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.proof.checksum import Verify
from acidctl.compaction.request import NoWork, Planned, PlanRefused
from acidctl.location.change.lock import Locking
from acidctl.outcome import Result
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth
from acidctl.verbs.compact_options import WriteOptions
from acidctl.verbs.reading.validate import ValidateOptions
from acidctl.wording import text_of


class Shell:
    """The command line, in this process."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured = captured

    def out(self, *line: str | Path) -> str:
        """What a command prints."""
        self._captured.readouterr()
        with pytest.raises(SystemExit):
            main([str(one) for one in line])
        return self._captured.readouterr().out.decode()

    def json(self, *line: str | Path) -> Any:
        return json.loads(self.out(*line, "-o", "json"))


@pytest.fixture
def shell(capfdbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(capfdbinary)


@pytest.fixture
def crud(shell: Shell, tmp_path: Path) -> Path:
    """The walk-through table: three rows, one updated, that one deleted."""
    table = tmp_path / "w.db" / "crud"
    table.parent.mkdir()
    shell.out("demo", table)
    return table


def changed_by(table: Path) -> set[str]:
    return without_log(str(path.relative_to(table)) for path in table.rglob("*"))


# -- finding ------------------------------------------------------------------------------------------------------


def test_a_location_is_found_by_any_kind_of_path(crud: Path) -> None:
    for url in (crud, str(crud), os.fsencode(crud), f"file://{crud}"):
        one = acidctl.Location(url)  # type: ignore[arg-type]
        assert (one.path, one.table, one.partition) == (str(crud), "w.crud", {})
    assert repr(acidctl.Location(crud)) == f"<acidctl location {crud}>"


def test_several_locations_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "w.db" / "orders").mkdir(parents=True)
    for day in (1, 2):
        shell.out("demo", tmp_path / "w.db" / "orders" / f"day={day}")
    with pytest.raises(UsageProblem, match="holds 2 locations"):
        acidctl.Location(tmp_path / "w.db")
    found = list(acidctl.find(tmp_path / "w.db"))
    assert [(one.table, one.partition) for one in found] == [("w.orders", {"day": "1"}), ("w.orders", {"day": "2"})]
    with pytest.raises(NotFoundError):
        acidctl.Location(tmp_path / "nothing")
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    with pytest.raises(AcidctlError):
        acidctl.Location(tmp_path / "lake")


# -- looking ------------------------------------------------------------------------------------------------------


def test_the_state_is_that_of_ls(shell: Shell, crud: Path) -> None:
    shell.out("compact", "--major", "--engine", "local", "--assume-committed=0s", crud)
    state = acidctl.Location(crud).state()
    listed = shell.json("ls", crud)[0]["entries"]
    table = state
    for name in ("name", "kind", "minWriteId", "maxWriteId", "state", "reasonCode", "reason", "supersededBy", "files"):
        assert table[name].to_pylist() == [entry[name] for entry in listed]
    assert table["bytes"].to_pylist() == [entry["bytes"] for entry in listed]
    assert [f"{time:%Y-%m-%dT%H:%M:%S}Z" for time in table["modified"].to_pylist()] == [e["modified"] for e in listed]
    assert pl.DataFrame(state).filter(pl.col("state") == "obsolete").height == 4


def test_proofs_are_those_of_why(shell: Shell, crud: Path) -> None:
    shell.out("compact", "--major", "--engine", "local", "--assume-committed=0s", crud)
    (record,) = shell.json("why", crud)
    proofs = acidctl.Location(crud).why()
    assert [(one.verdict.name, one.verdict.reason.code) for one in proofs] == [
        (proof["name"], proof["reasonCode"]) for proof in record["proofs"]
    ]
    assert [text_of(one.verdict.reason) for one in proofs] == [proof["reason"] for proof in record["proofs"]]


def test_the_state_of_an_empty_location_and_of_odd_names(tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "base_1").mkdir(parents=True)
    (table / os.fsdecode(b"caf\xe9_1")).write_bytes(b"x")
    names = acidctl.Location(table).state()["name"].to_pylist()
    assert names == ["base_1", "caf\ufffd_1"]


def test_lists_decide_what_is_seen(crud: Path) -> None:
    at_one = acidctl.Location(crud, snapshot="w.crud:1:9223372036854775807::")
    assert at_one.rows().scan().count() == 3
    assert acidctl.Location(crud).rows().scan().count() == 2
    other = acidctl.Location(crud, snapshot="w.other:1:9223372036854775807::")
    with pytest.raises(RefusedError, match="no write-id list is for the table"):
        other.state()


def test_history_blame_and_diff_are_those_of_the_commands(shell: Shell, crud: Path) -> None:
    one = acidctl.Location(crud)
    history = one.history()
    lines = shell.json("history", crud)[0]["writeIds"]
    assert [(line.write_id, line.inserted, line.updated, line.deleted) for line in history.write_ids] == [
        (line["writeId"], line["inserted"], line["updated"], line["deleted"]) for line in lines
    ]
    life = one.blame("1:536870912:0")
    row = shell.json("blame", crud, "1:536870912:0")
    assert life.status.value == row["status"]
    with pytest.raises(UsageProblem):
        one.blame("no id")
    difference = one.diff(1)
    gone, new = difference.count()
    assert json.loads(shell.out("diff", crud, "--from", "1", "--count")) == {
        "schema_version": 1, "disappeared": gone, "appeared": new, "snapshotSource": difference.source.record,
    }  # fmt: skip


def test_advice_and_checks_are_those_of_the_commands(shell: Shell, crud: Path) -> None:
    one = acidctl.Location(crud)
    assert one.advise().cost == shell.json("ls", crud)[0]["cost"]
    report = one.validate("deep")
    assert not report.findings
    (crud / "delta_0000009_0000004").mkdir()
    found = one.validate()
    (record,) = shell.json("validate", crud)
    assert [finding.rule for finding in found.findings] == [each["rule"] for each in record["findings"]]
    with pytest.raises(UsageProblem, match="there is no depth 'deeep'") as caught:
        one.validate("deeep")
    assert caught.value.hint == "did you mean deep?"


# -- compaction ---------------------------------------------------------------------------------------------------


def test_a_compaction_gives_what_the_command_tells(shell: Shell, crud: Path) -> None:
    before = json_rows(Scan(snapshot_of(crud), row_id=True))
    one = acidctl.Location(crud, assume_committed=0)
    contents = changed_by(crud)
    planned = one.compact("major", dry_run=True)
    assert isinstance(planned, Planned)
    assert planned.record() == {
        key: value
        for key, value in shell.json("compact", "--major", "-n", "--engine", "local", "--assume-committed=0s", crud)[
            0
        ].items()
        if key != "schema_version"
    }
    assert changed_by(crud) == contents
    done = one.compact("major")
    assert done.result is Result.COMPACTED
    assert done.published == ("base_0000003",)
    assert (done.rows, done.rows_dropped, done.is_changed) == (2, 2, True)
    assert json_rows(Scan(snapshot_of(crud), row_id=True)) == before
    again = one.compact("major")
    assert isinstance(again, NoWork)
    assert (again.result, again.reason) == (Result.NOTHING_TO_DO, "only a base is current")
    assert not list(crud.glob("_tmp_*")) + list(crud.glob(".acidctl-lock*"))


def test_a_request_has_all_that_the_command_has(shell: Shell, crud: Path) -> None:
    writing = WriteOptions(properties=(("orc.compress", "ZSTD"),), verify="full")
    options = acidctl.CompactOptions(minor=True, offline=True, writing=writing)
    done = acidctl.Location(crud, assume_committed=0).compact(options, LocalEngine(2), table_type="full-acid")
    assert done.published == ("delta_0000001_0000003", "delete_delta_0000001_0000003")
    assert done.plan.verify is Verify.FULL
    meta = shell.json("meta", *crud.glob("delta_0000001_0000003/bucket_*"))
    assert meta[0]["compression"].lower() == "zstd"


def test_what_cannot_be_is_refused_before_anything_changes(crud: Path, tmp_path: Path) -> None:
    contents = changed_by(crud)
    untold = acidctl.Location(crud)
    for dry_run in (False, True):
        with pytest.raises(RefusedError, match="must be told which write ids are committed"):
            untold.compact("major", dry_run=dry_run)
    one = acidctl.Location(crud, assume_committed=0)
    with pytest.raises(UsageProblem, match="no type of compaction 'majour'"):
        one.compact("majour")
    with pytest.raises(UsageProblem, match="no type of table 'acid'"):
        one.compact("major", table_type="acid")
    with pytest.raises(RefusedError, match="would write both"):
        one.compact("minor")
    late = acidctl.Location(crud, snapshot="w.crud:9:9223372036854775807::", assume_committed=0)
    with locked(*_opened(crud)), pytest.raises(ConflictError):
        late.compact("major")
    assert changed_by(crud) == contents
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "000000_0").write_bytes(b"1,2\n")
    with pytest.raises(RefusedError, match="not known to be"):
        acidctl.Location(plain, assume_committed=0).compact("major")
    assert changed_by(plain) == {"000000_0"}


def test_what_cannot_be_read_is_an_answer(crud: Path) -> None:
    (crud / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"ORC, or not")
    one = acidctl.Location(crud, assume_committed=0)
    answer = one.compact("major", dry_run=True)
    assert isinstance(answer, PlanRefused)
    assert isinstance(answer.error, BadDataError)
    assert (answer.result, answer.record()["error"]) == (Result.FAILED, "bad-data")
    with pytest.raises(BadDataError):
        one.compact("major")
    assert not list(crud.glob("_tmp_*"))


def test_young_directories_wait_where_age_decides(crud: Path) -> None:
    one = acidctl.Location(crud, assume_committed=3600)
    assert isinstance(one.compact("major", dry_run=True), NoWork)
    age(crud, 2)
    assert isinstance(one.compact("major", dry_run=True), Planned)


def _opened(table: Path) -> Any:
    from acidctl.storage.registry import open_location

    return open_location(str(table))


# -- cleaning ------------------------------------------------------------------------------------------------------


def test_a_cleaning_gives_what_the_command_tells_and_is_undone(shell: Shell, crud: Path) -> None:
    one = acidctl.Location(crud, assume_committed=0)
    one.compact("major")
    contents = changed_by(crud)
    planned = one.clean(0, dry_run=True)
    (record,) = shell.json("clean", "-n", "--older-than", "0", "--assume-committed=0s", crud)
    assert isinstance(planned, PlannedCleaning)
    assert {"schema_version": 1, **planned.record()} == record
    assert changed_by(crud) == contents
    with pytest.raises(RefusedError, match="retention below 1h"):
        one.clean(0)
    done = one.clean(0, unsafe_retention=True)
    assert (done.result, len(done.removed), done.left, done.run is not None) == (Result.CLEANED, 4, (), True)
    assert json_rows(Scan(snapshot_of(crud))) == [{"id": 1, "value": "A"}, {"id": 2, "value": "B"}]
    (run,) = one.trash()
    back = one.restore(run.id[:8])
    assert (back.result, len(back.names), back.changes) == (Result.RESTORED, 4, ())
    assert changed_by(crud) == contents
    with pytest.raises(NotFoundError, match="nothing to restore"):
        one.restore()
    one.clean(0, unsafe_retention=True)
    (gone,) = one.purge()
    assert (gone.result, gone.bytes_by_use()["purged"] > 0, one.trash()) == (Result.PURGED, True, [])
    assert one.purge() == []
    nothing = one.clean()
    assert (nothing.result, nothing.is_changed) == (Result.NOTHING_TO_DO, False)


def test_a_cleaning_waits_for_its_age_and_for_a_table(crud: Path, tmp_path: Path) -> None:
    one = acidctl.Location(crud, assume_committed=0)
    one.compact("major")
    planned = one.clean(dry_run=True)
    assert isinstance(planned, PlannedCleaning)
    assert (planned.result, len(planned.plan.waiting)) == (Result.NOTHING_TO_DO, 4)
    age(crud, 25)
    assert one.clean(no_trash=True).run is None
    assert without_log(path.name for path in crud.iterdir()) == {"base_0000003"}
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "000000_0").write_bytes(b"1,2\n")
    with pytest.raises(RefusedError, match="not known to be"):
        acidctl.Location(tmp_path / "plain").clean()


def test_an_interrupted_compaction_refuses_a_cleaning(crud: Path) -> None:
    staging = crud / "_tmp_1"
    staging.mkdir()
    (staging / "_publish.json").write_text('{"names": ["delete_delta_0000001_0000003", "delta_0000001_0000003"]}')
    (staging / "delta_0000001_0000003").mkdir()
    (crud / "delete_delta_0000001_0000003").mkdir()
    one = acidctl.Location(crud, assume_committed=0)
    answer = one.clean(0, dry_run=True)
    assert isinstance(answer, RefusedCleaning)
    assert answer.record()["error"] == "refused"
    with pytest.raises(RefusedError):
        one.clean(0, unsafe_retention=True)


def test_a_plan_finishes_nothing_and_clears_nothing_away(crud: Path) -> None:
    staging = crud / "_tmp_1"
    for name in ("_tmp_1/delta_0000001_0000003", "delete_delta_0000001_0000003"):
        (crud / name).mkdir(parents=True)
    (staging / "_publish.json").write_text('{"names": ["delete_delta_0000001_0000003", "delta_0000001_0000003"]}')
    contents = changed_by(crud)
    answer = acidctl.Location(crud, assume_committed=0).compact("major", dry_run=True)
    assert isinstance(answer, PlanRefused)
    assert isinstance(answer.error, RefusedError)
    assert changed_by(crud) == contents


def test_a_purge_that_is_stopped_leaves_the_rest(crud: Path) -> None:
    one = acidctl.Location(crud, assume_committed=0)
    one.compact("major")
    one.clean(0, unsafe_retention=True)
    (run,) = one.trash()
    fs, _ = _opened(crud)
    assert delete(fs, [run], Locking(), lambda: True) == []
    assert [each.id for each in one.trash()] == [run.id]
    assert [each.run.id for each in delete(fs, [run], Locking())] == [run.id]


# -- repairs -------------------------------------------------------------------------------------------------------


def test_a_repair_is_planned_done_and_undone(shell: Shell, crud: Path) -> None:
    marker = crud / "delta_0000001_0000001_0000" / "_orc_acid_version"
    marker.unlink()
    age(crud, 2)
    one = acidctl.Location(crud)
    plan = one.repair("version-file", dry_run=True)
    (record,) = shell.json("repair", "--only", "version-file", "-n", crud)
    assert [fix.path for fix in plan.fixes] == [fix["path"] for fix in record["fixes"]]
    run = one.repair("version-file")
    assert run
    assert marker.read_bytes() == b"2"
    assert one.repair("version-file") is None
    assert [kept.id for kept in one.trash()] == [run.id]
    assert one.restore(run.id).run.id == run.id
    assert not marker.exists()
    with pytest.raises(NotFoundError):
        one.restore(run.id)
    with pytest.raises(UsageProblem, match="key-indx"):
        one.repair("key-indx")


def test_a_repair_stays_in_its_location(crud: Path) -> None:
    other = crud.with_name("other")
    shutil.copytree(crud, other)
    (other / "delta_0000001_0000001_0000" / "_orc_acid_version").unlink()
    age(other, 2)
    assert acidctl.Location(other).repair(dry_run=True).fixes
    assert not acidctl.Location(crud).repair(dry_run=True).fixes


@pytest.mark.parametrize("day", [86400, 86400.0, "24h", "1d", timedelta(days=1)])
def test_a_duration_is_given_as_one_likes(tmp_path: Path, day: Any) -> None:
    table = acidctl.Location(write_delta(tmp_path / "t", 1, ids(1)).parents[1], assume_committed=day)
    plan = table.clean(day, dry_run=True)
    assert isinstance(plan, PlannedCleaning)
    assert plan.plan.policy.older_than == 86400


@pytest.mark.parametrize("wrong", [-1, "a day", "24", None, True, float("nan"), [1]])
def test_what_is_no_duration_is_refused(tmp_path: Path, wrong: Any) -> None:
    table = acidctl.Location(write_delta(tmp_path / "t", 1, ids(1)).parents[1], assume_committed=0)
    with pytest.raises(UsageProblem, match="older_than"):
        table.clean(wrong, dry_run=True)


def test_results_are_one_line_however_large(tmp_path: Path) -> None:
    for write_id in range(1, 71):
        write_delta(tmp_path / "t", write_id, ids(write_id))
    table = acidctl.Location(tmp_path / "t", assume_committed=0)
    plan = table.compact("major", dry_run=True)
    assert isinstance(plan, Planned)
    found: list[object] = [
        plan, *plan.plan.tasks, table.clean(0, dry_run=True), table.history(), *table.why(), table.erasure("a = 3"),
        *table.erasure("a = 3").reports, table.diff(1), table.blame("1:536870912:1"), table.validate(), table.advise(),
    ]  # fmt: skip
    table.compact("major")
    found += [table.clean(0, unsafe_retention=True), *table.trash(), *table.log()]
    for one in found:
        assert len(repr(one)) < 1000, type(one)
        assert "\n" not in repr(one)
        assert " object at 0x" not in repr(one)


@pytest.mark.parametrize(
    "call",
    [
        lambda _: acidctl.Location(3),
        lambda _: list(acidctl.find(["/t"])),
        lambda t: acidctl.Location(t, snapshot=3),
        lambda t: acidctl.Location(t, snapshot=["5:5::"]),
        lambda t: acidctl.Location(t, metastore=3),
        lambda t: acidctl.Location(t, storage_options="key=value"),
        lambda t: acidctl.Location(t).erasure(3),
        lambda _: acidctl.open_table(None),
        lambda t: acidctl.open_table(t).scan(columns=3),
        lambda t: acidctl.open_table(t).scan(where=3),
        lambda t: acidctl.open_table(t).scan(at="one"),
        lambda _: list(acidctl.find(3, assume_committed=0)),
        lambda t: list(acidctl.find(t, exclude=3)),
        lambda t: acidctl.open_table(t).scan(columns=[1]),
        lambda t: acidctl.open_table(t).scan(columns=b"a"),
        lambda t: acidctl.open_table(t).scan(partition=1),
        lambda t: acidctl.open_table(t).scan(partition="day=1"),
        lambda t: acidctl.open_table(t).scan(row_id="false"),
        lambda t: acidctl.open_table(t).scan(deleted={}),
        lambda t: acidctl.open_table(t).scan(on_loss="zz"),
        lambda t: acidctl.open_table(t).head(1.5),
        lambda t: acidctl.open_table(t).head(-5),
        lambda t: acidctl.open_table(t).scan().head("zz"),
        lambda t: acidctl.Location(t).diff(1, 2, 3),
        lambda t: acidctl.Location(t).diff(1, 2, [1]),
        lambda t: acidctl.Location(t).diff("one"),
        lambda t: acidctl.Location(t).validate(rules=1),
        lambda t: acidctl.Location(t).validate(rules=[1]),
        lambda t: acidctl.Location(t).validate(tasks="local"),
        lambda t: acidctl.Location(t).erasure(1),
        lambda t: acidctl.Location(t, assume_committed=0).compact("major", "local"),
        lambda t: acidctl.Location(t, assume_committed=0).compact("major", 0),
        lambda t: acidctl.Location(t, assume_committed=0).compact("major", object()),
    ],
)
def test_a_wrong_type_is_refused_by_name(tmp_path: Path, call: Any) -> None:
    write_delta(tmp_path / "t", 1, ids(1))
    with pytest.raises(UsageProblem) as caught:
        call(tmp_path / "t")
    assert caught.value.what
    assert caught.value.hint


def test_no_text_waives_a_safeguard(crud: Path) -> None:
    """The texts "false" and "no" are true for Python."""
    one = acidctl.Location(crud, assume_committed=0)
    one.compact("major")
    before = sorted(crud.rglob("*"))
    for name in ("unsafe_retention", "no_trash", "leftovers"):
        with pytest.raises(UsageProblem, match=name):
            one.clean(0, **{"unsafe_retention": True, name: "false"})
    assert sorted(crud.rglob("*")) == before


def test_plans_are_tables_in_notebooks(tmp_path: Path) -> None:
    for write_id in range(1, 71):
        write_delta(tmp_path / "<b>t", write_id, ids(write_id))
    table = acidctl.Location(tmp_path / "<b>t", assume_committed=0)
    page = table.compact("major", dry_run=True)._repr_html_()  # type: ignore[union-attr]
    assert page.count("<tr>") == 52
    assert "and 21 more" in page
    assert "<b>" not in page
    table.compact("major")
    removed = table.clean(0, dry_run=True)._repr_html_()  # type: ignore[union-attr]
    assert removed.count("<tr>") == 52
    assert "delta_0000001_0000001_0000" in removed


def test_what_a_verb_reports_besides_outcomes_is_raised(tmp_path: Path) -> None:
    with pytest.raises(NotLookedAtError):  # a disk may not be mounted there
        acidctl.Location(tmp_path, assume_committed=0).clean()


def test_a_check_is_of_the_location_itself(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")))
    one = acidctl.Location(tmp_path / "t")
    write_acid(tmp_path / "t" / "p=1" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (2, "b")))
    assert one.validate().location == one.path


def test_a_check_takes_its_options_by_name(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000_0", insert(1, 0, (1, "a")))
    one = acidctl.Location(tmp_path)
    report = one.validate("footers", readers=["hive3"], ignored=["R12", "V13"])
    assert [finding.rule for finding in report.findings] == ["R2"]
    options = ValidateOptions(readers=("hive3",))
    assert [finding.rule for finding in one.validate(options, rules=["R2"]).findings] == ["R2"]
    assert one.validate(options, deep=True).depth == one.validate(Depth.DEEP).depth == "deep"
    with pytest.raises(UsageProblem, match="readers"):
        one.validate(readers=["hive5"])
    with pytest.raises(TypeError):
        one.validate("deep", no_such_option=True)


def test_a_check_looks_again_where_a_compaction_ended_meanwhile(tmp_path: Path, compacted_meanwhile: Any) -> None:
    bucket = write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")))
    compacted_meanwhile(lambda: shutil.copytree(bucket.parent, tmp_path / "base_0000009"))
    report = acidctl.Location(tmp_path).validate("footers")
    assert {finding.path.partition("/")[0] for finding in report.findings} >= {"base_0000009"}


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        ("clean", "plan"), ("clean", "apply"), ("restore", "list"), ("restore", "dry_run"), ("purge", "dry_run"),
    ],
)  # fmt: skip
def test_what_only_a_command_can_be_told_is_refused_by_name(crud: Path, verb: str, option: str) -> None:
    one = acidctl.Location(crud, assume_committed=0)
    before = sorted(crud.rglob("*"))
    with pytest.raises(UsageProblem, match=option) as refusal:
        getattr(one, verb)(**{option: True})
    assert refusal.value.why
    assert refusal.value.hint
    assert sorted(crud.rglob("*")) == before
