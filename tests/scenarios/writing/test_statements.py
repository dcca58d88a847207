"""`acidctl insert`, `update`, `delete` and `merge`: rows change, or nothing does."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.csv import read_csv
from support.command_line import Result
from support.writing import WrittenTable, written_table

from acidctl.base.errors import UsageProblem
from acidctl.cli.main import with_program_options_first
from acidctl.location import metastore_state

Acidctl = Callable[..., Result]

COLUMNS = {"a": "int", "b": "string"}
OLD = [(1, "x"), (2, "y")]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", COLUMNS) as made:
        rows = tmp_path / "old.csv"
        rows.write_text("a,b\n1,x\n2,y\n")
        made.door.table("db.t").insert(read_csv(rows))
        yield made


@pytest.fixture
def run(table: WrittenTable, acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acidctl:
    monkeypatch.chdir(tmp_path)

    def call(verb: str, *words: str) -> Result:
        return acidctl(verb, "hive:db.t", *words, f"--metastore={table.hive.address}")

    return call


LINES = {
    "insert": (["new.csv"], [*OLD, (3, "z")]),
    "update": (["--set", "b = 'CC'", "--where", "a = 2"], [(1, "x"), (2, "CC")]),
    "delete": (["--where", "a = 1"], [(2, "y")]),
    "delete by keys": (["--keys", "keys.csv", "--key", "A"], [(2, "y")]),
    "merge": (["log.jsonl", "--key", "a", "--operation-column", "op", "--order-by", "n"], [(2, "two"), (4, "d")]),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("B,A\nz,3\n")
    (tmp_path / "keys.csv").write_text("a,why\n1,asked\n77,asked\n")
    log = [
        {"a": 2, "b": "zwei", "op": "u", "n": 1}, {"a": 1, "op": "delete", "n": 2},
        {"a": 4, "b": "d", "op": "I", "n": 3}, {"a": 2, "b": "two", "op": "update", "n": 4},
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))


@pytest.mark.parametrize("verb", LINES)
def test_a_statement_changes_rows_once_it_is_confirmed(run: Acidctl, table: WrittenTable, verb: str) -> None:
    words, expected = LINES[verb]
    verb = verb.split(maxsplit=1)[0]
    before = table.names
    planned = run(verb, *words, "--dry-run", "-o", "json")
    refused = run(verb, *words)
    assert (planned.status, refused.status) == (0, 7)
    assert (table.rows(), table.names, table.is_quiet) == (OLD, before, True)
    done = run(verb, *words, "--yes", "-o", "json")
    assert done.status == 0
    assert table.rows() == expected
    assert table.is_quiet
    (plan,), (record,) = planned.json(), done.json()
    counts = "inserted", "updated", "deleted", "files", "lock", "verb"
    assert [plan[key] for key in counts] == [record[key] for key in counts]
    assert (plan["result"], record["result"], plan["transaction"]) == ("planned", "written", None)
    assert record["lock"] == ("SHARED_READ" if verb == "insert" else "EXCL_WRITE")


def test_a_statement_without_rows_leaves_no_trace(run: Acidctl, table: WrittenTable) -> None:
    before = table.names
    for words in (["delete", "--where", "a = 7"], ["update", "--set", "b = NULL", "--where", "a = 7"]):
        done = run(*words, "--yes")
        assert done.status == 0
        assert (table.names, table.rows(), table.is_quiet) == (before, OLD, True)


def test_rows_of_standard_input_need_a_yes(run: Acidctl, table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, status, expected in (([], 2, OLD), (["--yes"], 0, [*OLD, (3, "c")])):
        typed = io.TextIOWrapper(io.BytesIO(b'{"a": 3, "b": "c"}\n'))
        monkeypatch.setattr(typed, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", typed)
        done = run("insert", "-", *words)
        assert (done.status, "until Ctrl-D" in done.err) == (status, not status)
        assert table.rows() == expected


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["insert", "missing.csv"], 3), (["insert", "bad.csv"], 4), (["insert", "other.csv"], 2),
        (["insert", "noform"], 2), (["insert", "broken.parquet"], 4),
        (["update", "--set", "q = 1", "--where", "true"], 2), (["update", "--set", "b = 1 +", "--where", "true"], 2),
        (["update", "--set", "a = 'x'", "--where", "true"], 4), (["delete", "--where", "q = 1"], 2),
        (["merge", "new.csv", "--key", "q"], 2), (["merge", "twice.csv", "--key", "a"], 4),
    ],
)  # fmt: skip
def test_bad_input_changes_nothing(
    run: Acidctl, table: WrittenTable, words: list[str], status: int, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n5,x\n3000000000,y\n")
    (tmp_path / "other.csv").write_text("a,c\n5,x\n")
    (tmp_path / "twice.csv").write_text("a,b\n5,x\n5,y\n")
    (tmp_path / "noform").write_text("a b\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + b"\0" * 30)
    before = table.names
    is_seen_early = words[0] != "merge" and status in (2, 3)
    given = len(table.hive.write_ids["db.t"])
    done = run(*words, "--yes")
    assert done.status == status, done.err
    assert "do:" in done.err or "why:" in done.err
    assert (table.rows(), table.names) == (OLD, before)
    assert not is_seen_early or len(table.hive.write_ids["db.t"]) == given, "no transaction was opened"


def test_a_table_is_named_by_the_metastore(acidctl: Acidctl, table: WrittenTable) -> None:
    for name, status in ((str(table.path), 2), ("db.t", 2), ("hive:db.*", 2), ("hive:db.nothing", 3)):
        done = acidctl("delete", name, "--where", "true", "--yes", f"--metastore={table.hive.address}")
        assert done.status == status, done.err
    assert "hive:db.t" in acidctl("delete", "db.t", "--where", "true").err
    assert table.rows() == OLD


@pytest.mark.parametrize("words", [[], ["--key", "a", "--where", "true"], ["--keys", "keys.csv", "--where", "true"]])
def test_a_delete_names_its_rows_in_one_way(run: Acidctl, table: WrittenTable, words: list[str]) -> None:
    done = run("delete", *words, "--yes")
    assert (done.status, "--where" in done.err or "--keys" in done.err) == (2, True)
    assert table.rows() == OLD


def test_a_delete_without_a_choice_of_rows_is_refused(table: WrittenTable) -> None:
    with pytest.raises(UsageProblem, match="no rows are selected"):
        table.door.table("db.t").delete()
    assert table.rows() == OLD


def test_set_of_an_update_is_no_setting_of_the_program() -> None:
    line = ["update", "hive:db.t", "--set", "storage = 1", "--set=metastore.timeout=5", "--where", "a = 1"]
    assert with_program_options_first(line) == [
        "--set=metastore.timeout=5", "update", "hive:db.t", "--set", "storage = 1", "--where", "a = 1",
    ]  # fmt: skip
    assert with_program_options_first(["update", "t", "--set=b = 1"]) == ["update", "t", "--set=b = 1"]
    assert with_program_options_first(["ls", "--set", "b = 1"]) == ["--set", "b = 1", "ls"]


def test_a_partition_key_has_one_value(tmp_path: Path, acidctl: Acidctl) -> None:
    with written_table(tmp_path / "keyed", COLUMNS, {"day": "string", "q": "int"}) as made:
        door = made.door.table("db.t")
        for number, day in enumerate("xy"):
            door.insert(read_csv(io.BytesIO(b"a,b\n%d,c\n" % number)), partition={"day": day, "q": 7})
        before = made.rows()
        words = ("--partition", "day=x", "--partition", "DAY=y", "--yes", f"--metastore={made.hive.address}")
        assert acidctl("truncate", "hive:db.t", *words).status == 2
        assert acidctl("insert", "hive:db.t", str(tmp_path / "new.csv"), *words).status == 2
        assert made.rows() == before == [(0, "c", "x", 7), (1, "c", "y", 7)]
        assert door.truncate(partition={"q": 7}).written.partitions == ("day=x/q=7", "day=y/q=7")


@pytest.mark.parametrize("verb", ["insert", "merge", "delete by keys"])
def test_json_lines_without_a_line_change_nothing(run: Acidctl, table: WrittenTable, verb: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    words = {"insert": ["log.jsonl"], "delete by keys": ["--keys", "log.jsonl"]}.get(verb, LINES[verb][0])
    done = run(verb.split(maxsplit=1)[0], *words, "--yes")
    assert (done.status, table.rows(), table.is_quiet) == (0, OLD, True), done.err


@pytest.mark.parametrize("verb", ["insert", "update", "delete", "merge", "truncate"])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_files_newer_than_the_metastore_are_never_written_beside(
    acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, is_partitioned: bool
) -> None:
    monkeypatch.setattr(metastore_state, "_WAIT", 0.01)
    monkeypatch.chdir(tmp_path)
    keys = {"p": "int"} if is_partitioned else {}
    rows = [{"a": number, "b": "y"} | dict.fromkeys(keys, 1) for number in (1, 2, 3)]
    Path("new.jsonl").write_text(json.dumps(rows[0]))
    words = {
        "insert": ["new.jsonl"], "merge": ["new.jsonl", "--key", "a"], "delete": ["--where", "a = 2"],
        "update": ["--set", "b = 'CC'", "--where", "a = 2"], "truncate": [],
    }  # fmt: skip
    with written_table(tmp_path / "t", COLUMNS, keys) as table:
        for row in rows:
            table.door.table("db.t").insert(pa.Table.from_pylist([row]))
        left = 1 if verb == "update" else 2
        table.hive.write_ids["db.t"] = table.hive.write_ids["db.t"][:left]  # restored from a backup
        files = {path: path.read_bytes() for path in table.path.rglob("*") if path.is_file()}
        for more in ("--dry-run", "--yes"):
            done = acidctl(verb, "hive:db.t", *words[verb], more, f"--metastore={table.hive.address}")
            assert (done.status, "write id 3" in done.err) == (7, True), done.err
        assert {path: path.read_bytes() for path in table.path.rglob("*") if path.is_file()} == files
        assert is_partitioned or len(table.hive.write_ids["db.t"]) == left, "no write id was taken"
