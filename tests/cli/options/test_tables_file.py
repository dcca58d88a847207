"""``--tables FILE``: names and paths from a list, for whatever takes several."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.cli.command_table import walk

Run = Callable[..., Result]
TAKE_MANY = (
    "clean", "compact", "erasure", "log", "ls", "nightly", "purge", "repair", "report", "restore", "status",
    "validate", "hive cleaner", "hive compactions", "hive initiator", "hive locks", "hive request",
    "hive rescue", "hive tables", "hive txns",
)  # fmt: skip


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHive]:
    """Tables db.a, db.b and db.tmp_c, and a directory that it does not know."""
    with FakeHive(4) as one:
        for name in ("a", "b", "tmp_c", "unknown"):
            write_acid(tmp_path / name / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
            if name != "unknown":
                one.table("db", name, f"file:{tmp_path / name}")
                one.write_ids[f"db.{name}"] = [1]
        yield one


@pytest.fixture
def names(tmp_path: Path) -> Callable[[str], Path]:
    """``names(text)``: a list of them."""

    def made(text: str) -> Path:
        (tmp_path / "list.txt").write_text(text)
        return tmp_path / "list.txt"

    return made


def listed(done: Result) -> list[str]:
    return [one["location"].rpartition("/")[2] for one in done.json()]


def test_names_paths_comments_and_blank_lines(
    acidctl: Run, fake: FakeHive, names: Callable[[str], Path], tmp_path: Path
) -> None:
    path = names(f"# tonight\n\n  hive:db.b \r\n\t# not hive:db.tmp_c\n{tmp_path}/unknown\nhive:db.b\nhive:db.a")
    ls = ("ls", "-o", "json", "--metastore", fake.address)
    assert listed(acidctl(*ls, "--tables", path)) == ["b", "unknown", "a"]
    assert listed(acidctl(*ls, "--tables", path, "hive:db.a")) == ["a", "b", "unknown"], "those that were typed first"
    assert listed(acidctl(*ls, f"--tables={path}", "--exclude", "db.a")) == ["b", "unknown"]
    assert listed(acidctl(*ls, "--tables", names("hive:db.*"), "--exclude", "db.tmp_*")) == ["a", "b"]


def test_standard_input(acidctl: Run, fake: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hive:db.a\nhive:db.b\n")))
    plan = acidctl("clean", "-n", "-o", "json", "--metastore", fake.address, "--tables", "-")
    assert listed(plan) == ["a", "b"]


def test_names_of_files_need_not_be_utf_8(acidctl: Run, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/t\xff")
    write_acid(Path(odd) / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
    (tmp_path / "list.txt").write_bytes(os.fsencode(odd) + b"\n")
    assert len(acidctl("ls", "-o", "json", "--tables", tmp_path / "list.txt").json()) == 1


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("", 2, ["nothing is listed in", "it is empty"]),
        ("# hive:db.a\n\n", 2, ["nothing is listed in"]),
        ("hive:db.tmp_c\n", 2, ["all 1 are excluded"]),
        ("hive:db.a\n\nhive:a\n", 2, ["list.txt, line 3: not the name of a table: hive:a"]),
        ("hive:db.a\nhive:db.nothing\n", 3, ["list.txt, line 2: there is no table db.nothing"]),
        ("hive:db.nothing\n", 3, ["list.txt, line 1: there is no table db.nothing"]),
        ("hive:none.*\n", 3, ["list.txt, line 1: no transactional table is called none.*"]),
        ("/no/such/place\nhive:db.a", 3, ["list.txt, line 1: "]),
        ("hive:db.a\nklingon://x/y\n", 2, ["list.txt, line 2: "]),
        ("hive:db.a\0\n", 2, ["line 1", "NUL"]),
    ],
)
def test_what_cannot_be_is_told_with_its_line(
    acidctl: Run, fake: FakeHive, names: Callable[[str], Path], text: str, status: int, words: list[str]
) -> None:
    done = acidctl("ls", "--exclude", "db.tmp_*", "--metastore", fake.address, "--tables", names(text), "-o", "json")
    assert done.status == status, done.err
    assert all(word in done.err for word in words), done.err
    if text.startswith("hive:db.a\n"):
        assert listed(done) == ["a"], "the others are done"


def test_the_list_itself_must_be_there(acidctl: Run, tmp_path: Path) -> None:
    gone = acidctl("ls", "--tables", tmp_path / "gone")
    assert (gone.status, "cannot read" in gone.err, str(tmp_path / "gone") in gone.err) == (3, True, True)
    assert acidctl("ls", "--tables", tmp_path).status == 3
    assert acidctl("ls", "--tables", "").status == 2
    none = acidctl("clean", "-n")
    assert (none.status, "Missing argument 'LOCATION...'" in none.err) == (2, True)


def test_requests_views_and_what_goes_by_path_take_it(
    acidctl: Run, fake: FakeHive, names: Callable[[str], Path]
) -> None:
    path = names("db.a\nhive:db.b\n")
    asked = acidctl("hive", "request", "--major", "--tables", path, "--metastore", fake.address, "-o", "json").json()
    assert [one.table for one in fake.queue] == ["a", "b"]
    assert len(asked) == 2
    names("db.a\nhive:DB.b/day=1\ndb.tmp_c\n")
    line = ("hive", "request", "--major", "-n", "--tables", path, "--exclude", "hive:db.TMP_*", "--exclude", "db.b")
    assert acidctl(*line, "--metastore", fake.address, "-o", "json").one()["table"] == "a"
    names("db.a\nhive:db.b\n")
    assert acidctl("hive", "txns", "--blocking", "--tables", path, "--metastore", fake.address).status == 0
    wrong = acidctl("hive", "request", "--major", "--tables", names("db.a\ndb.x"), "--metastore", fake.address)
    assert (wrong.status, "line 2: there is no table db.x" in wrong.err) == (3, True)
    for line in (("restore", "--list"), ("purge", "-n"), ("repair", "-n", "--only", "key-index")):
        wrong = acidctl(*line, "--tables", names("hive:db.a\nhive:db.x"), "--metastore", fake.address)
        assert (wrong.status, "line 2: there is no table db.x" in wrong.err) == (3, True), line
        assert acidctl(*line, "--tables", names("hive:db.a"), "--metastore", fake.address).status in (0, 3), line


def test_every_command_that_takes_several_takes_a_list() -> None:
    found = {" ".join(path) for path, command in walk() if any(one.name == "tables_file" for one in command.params)}
    assert found == set(TAKE_MANY)


def test_tables_and_their_write_ids_are_asked_for_in_batches(
    acidctl: Run, fake: FakeHive, names: Callable[[str], Path], tmp_path: Path
) -> None:
    for number in range(400):
        (tmp_path / "w" / f"t{number}").mkdir(parents=True)
        fake.table("w", f"t{number}", f"file:{tmp_path}/w/t{number}")
    path = names("".join(f"hive:w.t{number}\n" for number in range(400)) + "hive:w.gone\nhive:gone.t\nhive:gone.u\n")
    done = acidctl("ls", "-o", "json", "--metastore", fake.address, "--tables", path)
    assert (done.status, len(done.json())) == (3, 400)
    assert [f"line {line}: there is no table" in done.err for line in (401, 402, 403)] == [True] * 3
    assert fake.calls.count("get_table_req") == 3
    assert fake.calls.count("get_table_objects_by_name_req") == 3
    assert fake.calls.count("get_valid_write_ids") == 5, "one of them is a probe"
    assert fake.calls.count("get_database") == 1


def test_a_list_of_many_is_worked_through_in_their_order(
    acidctl: Run, fake: FakeHive, names: Callable[[str], Path], tmp_path: Path
) -> None:
    for number in range(300):
        write_acid(tmp_path / f"t{number}" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
    found = acidctl("ls", "-o", "json", "--tables", names("".join(f"{tmp_path}/t{at}\n" for at in range(300))))
    assert listed(found) == [f"t{at}" for at in range(300)]
