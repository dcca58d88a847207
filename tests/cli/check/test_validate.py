"""`acidctl validate`: what people and programs get, and the exit statuses."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.files.acid_files import delete, insert, write_by_pyorc

from acidctl.base.errors import AccessError, BadDataError
from acidctl.orc.types import columns_of, hive_type
from acidctl.outcome import Result
from acidctl.validation.checks import RULES
from acidctl.validation.findings import Depth, Unchecked
from acidctl.validation.report import Report

FINDINGS, UNCHECKED = 14, 15


def test_clean_table_has_no_findings(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("validate", crud)
    assert (found.status, found.err) == (0, "")
    assert found.out == f"{crud}: nothing found\n1 location checked: nothing found\n"
    deep = acidctl("validate", "--deep", crud)
    assert deep.status == 0
    assert re.search(r"^1 location, 4 files, 6 rows checked(?: in [0-9.]+ s)?: nothing found$", deep.out, re.MULTILINE)


def test_findings_are_grouped_for_people(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    for place in range(9):
        (crud / f"delta_x{place}").mkdir()
    (crud / "_tmp_1").mkdir()
    found = acidctl("validate", crud)
    assert found.status == FINDINGS
    lines = found.out.splitlines()
    assert lines[0] == str(crud)
    assert lines[1] == f"  error   V1  {RULES['V1'].what}"
    assert sum("delta_x" in line for line in lines) == 5
    assert any("and 4 more (-v shows them)" in line for line in lines)
    assert found.out.count(RULES["V1"].hint) == 1
    assert lines[-1] == "1 location checked: 9 errors"
    assert sum("delta_x" in line for line in acidctl("validate", "-v", crud).out.splitlines()) == 9


def test_a_hint_once_for_all_locations(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (crud / "delta_x").mkdir()
    shutil.copytree(crud, tmp_path / "again")
    found = acidctl("validate", crud, tmp_path / "again")
    assert found.out.count(RULES["V1"].what) == 2
    assert found.out.count(RULES["V1"].hint) == 1


def test_remarks_are_for_those_who_ask(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    write_by_pyorc(crud / "base_0000003", [insert(1, 0)])
    found = acidctl("validate", crud)
    assert found.status == 0
    assert "V20" not in found.out
    assert "1 remark (-v shows them)" in found.out
    assert "V20" in acidctl("validate", "-v", crud).out


def test_json_holds_every_finding_with_its_evidence(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    write_by_pyorc(crud / "delete_delta_0000009_0000009_0000", [delete(1, 77, 9)])
    found = acidctl("validate", "--deep", "-o", "json", crud)
    assert found.status == FINDINGS
    report = found.one()
    assert report["schema_version"] == 1
    assert report["location"] == str(crud)
    assert report["depth"] == "deep"
    (dangling,) = [one for one in report["findings"] if one["rule"] == "V33"]
    assert dangling["severity"] == "error"
    assert dangling["path"] == "delete_delta_0000009_0000009_0000/bucket_00000"
    assert dangling["evidence"] == {"rows": 1, "first": [1, 536870912, 77]}
    assert dangling["hint"] == RULES["V33"].hint
    assert report["summary"]["errors"] == 1
    lines = acidctl("validate", "--deep", "-o", "jsonl", crud).lines()
    assert [line["rule"] for line in lines] == [one["rule"] for one in report["findings"]]


def test_fail_on_sets_which_severity_fails(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    (crud / "delta_0000009_0000009_0000").mkdir()
    assert acidctl("validate", crud).status == 0
    assert acidctl("validate", "--fail-on", "warning", crud).status == FINDINGS
    assert acidctl("validate", "--fail-on", "warning", "--ignore", "v15", crud).status == 0
    assert acidctl("validate", "--fail-on", "warning", "--rule", "V1", crud).status == 0


def test_encrypted_files_are_told_as_unchecked(acidctl, crud: Path, shared_data: Path) -> None:  # type: ignore[no-untyped-def]
    encrypted = shared_data / "orc-corpus" / "apache-orc" / "encrypted"
    found = acidctl("validate", "--footers", encrypted)
    assert found.status == UNCHECKED
    assert "not checked: sample1.orc" in found.out
    assert "2 could not be checked" in found.out
    assert acidctl("validate", crud, crud / "missing").status == UNCHECKED


def test_missing_path_or_unknown_rule_is_refused(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("validate", tmp_path / "missing")
    assert found.status == 3
    assert found.out == ""
    assert acidctl("validate").status == 2
    assert acidctl("validate", "--rule", "V99", tmp_path).status == 2


def test_readers_that_refuse_the_table_are_findings(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("validate", "--for", "spark", crud)
    assert found.status == FINDINGS
    assert "hive_acid" in found.out


def test_names_are_never_raw(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "evil\x1b[31m\u202ename"
    assert acidctl("demo", table).status == 0
    (table / "delta_\x1b]0;owned\x07").mkdir()
    (table / "base_\u202e\n").mkdir()
    found = acidctl("validate", "--deep", table)
    assert found.status == FINDINGS
    assert not {"\x1b", "\x07", "\u202e", "\t"} & set(found.out + found.err)


def test_garbage_in_one_table_leaves_the_others_checked(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make: Callable[..., object] = acidctl
    for name in ("a", "b"):
        make("demo", tmp_path / "w.db" / name)
    (tmp_path / "w.db/a/delta_0000002_0000002_0000/bucket_00000").write_bytes(b"garbage")
    found = acidctl("validate", "--deep", "-o", "json", tmp_path / "w.db")
    by_name = {Path(report["location"]).name: report for report in found.json()}
    assert by_name["b"]["findings"] == []
    assert {one["rule"] for one in by_name["a"]["findings"]} == {"V24", "V33"}
    assert found.status == FINDINGS


def test_workers_do_not_run_the_main_module_again(crud: Path) -> None:
    """As a program of its own, whose workers must not run its main module again."""
    for how in (["-m", "acidctl"], ["-c", "from acidctl.cli.main import main; main()"]):
        ran = subprocess.run(
            [sys.executable, *how, "validate", "--deep", str(crud)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "6 rows checked" in ran.stdout


@pytest.mark.parametrize(
    "text", ["", "a", "a int,", "struct<>", "a foo", "a map<int>", "a array<int,int>", "a int)", "a decimal(x)"]
)
def test_malformed_schemas_are_refused(text: str) -> None:
    with pytest.raises(BadDataError):
        columns_of(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("id int, name string", "struct<id:int,name:string>"),
        (" STRUCT <id : INT, name:string> ", "struct<id:int,name:string>"),
        ("`a b` integer,\n x: decimal( 10, 2 )", "struct<`a b`:int,x:decimal(10,2)>"),
        ("m map<string, array < struct<`q``r`:int> >>", "struct<m:map<string,array<struct<`q``r`:int>>>>"),
        ("at timestamp with local  time zone, struct int", "struct<at:timestamp with local time zone,struct:int>"),
    ],
)  # fmt: skip
def test_columns_are_read_as_create_table_and_types_have_them(text: str, read: str) -> None:
    assert hive_type(columns_of(text)) == read


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--master", "local[2]"], "--master and --conf are for --engine spark"),
        (["--deep", "--engine", "spark", "--jobs", "2"], "--jobs is for --engine local"),
        (["--engine", "spark", "--conf", "x"], "not KEY=VALUE"),
    ],
)
def test_options_of_the_other_engine(acidctl, crud: Path, options: list[str], text: str) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("validate", *options, crud)
    assert found.status == 2
    assert text in found.err


def test_spark_is_not_started_for_names_alone(acidctl, crud: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert acidctl("validate", "--engine", "spark", crud).status == 0


def test_a_rule_that_a_look_at_names_cannot_find_is_refused_with_the_option_that_can(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("validate", "--rule", "V26", crud)
    assert found.status == 2
    assert "V26 cannot be found from the listing" in found.err
    assert "--deep" in found.err


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_passwords_in_errors_are_hidden(acidctl, crud: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    error = AccessError("no access to https://ann:pw12@store.example/t?sig=abcdef token=ghijkl", "", "log in")
    report = Report(
        location="/t", result=Result.UNCHECKED, depth=Depth.LISTING, unchecked=(Unchecked("base_0000001", error),)
    )
    monkeypatch.setattr("acidctl.cli.check.validate.validate", lambda *_: iter([report]))
    said = acidctl("validate", "-o", form, crud).out
    assert "store.example" in said
    assert not [word for word in ("pw12", "ghijkl") if word in said]


@pytest.mark.parametrize(("jobs", "status"), [("0", 2), ("1", 0), ("1025", 2), ("100000", 2)])
def test_the_number_of_processes_is_bounded(acidctl, crud: Path, jobs: str, status: int) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("validate", "--footers", "--jobs", jobs, crud).status == status


def test_a_time_without_a_unit_is_in_seconds(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    for text in ("600", "0.5", "10m"):
        assert acidctl("validate", "--deep", "--timeout", text, crud).status == 0
    for text in ("0", "soon", "-5"):
        assert acidctl("validate", "--deep", "--timeout", text, crud).status == 2
