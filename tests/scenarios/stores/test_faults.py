"""Every command over a store that goes wrong: nothing is lost, nothing is half there, and the message says where."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest
from support.command_line import Result
from support.tables import CLEAN_NOW, json_rows, snapshot_of, without_log
from support.trouble.crash import a_dead_owner  # noqa: F401
from support.trouble.faults import HINT, Faults, Rule, rules_for

from acidctl.cleaning.trash import TRASH, trash_runs
from acidctl.location.change.publication import half_published
from acidctl.rows.scan.scan import Scan
from acidctl.storage.port import join
from acidctl.storage.registry import open_location

Command = Callable[..., Result]

COMPACT = ("compact", "--assume-committed=0s", "--engine", "local", "--major")
MINOR = ("compact", "--assume-committed=0s", "--engine", "local", "--minor", "--offline")
OBJECTS = ("--set", "storage.objects=true")
"""Without renames: what is there appears by copies."""


@pytest.fixture
def table(acidctl: Command) -> str:
    """The walk-through table."""
    url = f"memory://faults-{uuid.uuid4().hex}/orders"
    assert acidctl("demo", url).status == 0
    return url


def copy_of(table: str) -> str:
    """The same table again, with all it holds."""
    again = f"memory://faults-{uuid.uuid4().hex}/orders"
    (fs, source), (_, target) = open_location(table), open_location(again)
    fs.make_dirs(target)
    for entry in fs.list_tree(source).entries:
        if entry.is_dir:
            fs.make_dirs(join(target, entry.path))
        else:
            fs.write_bytes(join(target, entry.path), fs.read_bytes(join(source, entry.path)))
    return again


def rows_of(table: str) -> list[str]:
    return sorted(json.dumps(row) for row in json_rows(Scan(snapshot_of(table), row_id=True)))


def names_of(table: str) -> set[str]:
    """What is there, but for a lock that could not be removed: it is taken over by whoever needs it."""
    fs, path = open_location(table)
    names = without_log(entry.path for entry in fs.list_dir(path).entries)
    return {name for name in names if not name.startswith(".acidctl-lock")}


def run(acidctl: Command, faults: Faults, *arguments: str) -> Result:
    """One command over a faulty store."""
    with pytest.MonkeyPatch.context() as patch:
        faults.install(patch)
        return acidctl(*arguments)


def every_fault(acidctl: Command, table: str, *arguments: str) -> list[Rule]:
    """What may go wrong in a command that goes well."""
    faults = Faults()
    result = run(acidctl, faults, *arguments, copy_of(table))
    assert result.status == 0, result.err
    return rules_for(faults.calls)


def check(result: Result, rule: Rule, table: str) -> None:
    """A failure names the path and says what to do."""
    assert "Traceback" not in result.err, (rule, result.err)
    if result.status:
        told = result.err + result.out
        assert table.removeprefix("memory://") in told, (rule, told)
        assert HINT in told or "  do: " in told, (rule, told)


@pytest.mark.parametrize("arguments", [("ls",), ("cat", "-o", "jsonl")], ids=["ls", "cat"])
def test_reading_from_a_faulty_store_is_whole_or_an_error(
    acidctl: Command, table: str, arguments: tuple[str, ...]
) -> None:
    """All of the output, or an error; a listing that is short without a word is the one thing nobody can notice."""
    right = acidctl(*arguments, table).out
    struck = 0
    for rule in every_fault(acidctl, table, *arguments):
        if rule.kind in ("cut", "stale"):
            continue
        result = run(acidctl, Faults([rule]), *arguments, table)
        check(result, rule, table)
        assert result.status or result.out == right, rule
        struck += result.status != 0
    assert struck > 3


def test_a_slow_store_is_only_slow(acidctl: Command, table: str) -> None:
    faults = Faults([Rule("slow", ("list_tree", "list_dir", "open_input", "read_bytes"), times=None)])
    assert run(acidctl, faults, "cat", "-o", "jsonl", table).out == acidctl("cat", "-o", "jsonl", table).out
    assert faults.slept > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [COMPACT, MINOR, COMPACT + OBJECTS, MINOR + OBJECTS],
    ids=["major", "minor", "major by copies", "minor by copies"],
)
def test_compaction_on_a_faulty_store_loses_nothing(acidctl: Command, table: str, arguments: tuple[str, ...]) -> None:
    rows, before = rows_of(table), names_of(table)
    failed = 0
    for rule in every_fault(acidctl, table, *arguments):
        rule.met = 0
        copy = copy_of(table)
        result = run(acidctl, Faults([rule]), *arguments, copy)
        check(result, rule, copy)
        assert before <= names_of(copy), rule
        if half_published(snapshot_of(copy)):  # no reader was there: --offline
            assert "acidctl compact" in result.err + result.out, (rule, result.err)
        else:
            assert rows_of(copy) == rows, rule
        failed += result.status != 0
        again = acidctl(*arguments, copy)
        assert again.status == 0, (rule, again.err)
        assert rows_of(copy) == rows, rule
        nested = [path for path in names_of(copy) if path.startswith("_tmp")]
        assert not nested or rule.kind in ("lost", "denied", "trouble"), (rule, nested)
    assert failed > 10


@pytest.mark.slow
def test_cleaning_on_a_faulty_store_loses_nothing(acidctl: Command, table: str) -> None:
    rows, before = rows_of(table), names_of(table)
    assert acidctl(*COMPACT, table).status == 0
    for rule in every_fault(acidctl, table, *CLEAN_NOW):
        rule.met = 0
        copy = copy_of(table)
        result = run(acidctl, Faults([rule]), *CLEAN_NOW, copy)
        check(result, rule, copy)
        assert rows_of(copy) == rows, rule
        assert acidctl(*CLEAN_NOW, copy).status == 0, rule
        assert rows_of(copy) == rows, rule
        assert names_of(copy) - {TRASH} == {"base_0000003"}, rule
        fs, path = open_location(copy)
        for old in reversed(trash_runs(fs, path)):
            if old.can_be_undone:
                assert acidctl("restore", copy, "--run", old.id).status == 0, rule
        assert names_of(copy) >= before, rule
        assert rows_of(copy) == rows, rule


@pytest.mark.slow
def test_a_restore_that_meets_faults(acidctl: Command, table: str) -> None:
    rows, before = rows_of(table), names_of(table)
    assert acidctl(*COMPACT, table).status == 0
    assert acidctl(*CLEAN_NOW, table).status == 0
    for rule in every_fault(acidctl, table, "restore"):
        rule.met = 0
        copy = copy_of(table)
        result = run(acidctl, Faults([rule]), "restore", copy)
        check(result, rule, copy)
        assert rows_of(copy) == rows, rule
        acidctl("restore", copy)  # nothing is left to do when only the answer was an error
        assert names_of(copy) >= before, (rule, result.err)
        assert rows_of(copy) == rows, rule
