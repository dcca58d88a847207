"""The page of evidence: made from kept results, which a command takes from real output."""

from __future__ import annotations

import json
from pathlib import Path

import evidence
import pytest

JUNIT = """<testsuites><testsuite tests="4" time="125.0" timestamp="2026-11-28T10:00:00+00:00">
<testcase classname="tests.oracle.test_killed_compactions" name="test_a"/>
<testcase classname="tests.orc.test_tail" name="test_b"/>
<testcase classname="tests.orc.test_tail" name="test_c@tests/orc/test_tail.py"><failure message="no"/></testcase>
<testcase classname="tests.scenarios.histories.test_d" name="test_d"><skipped/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(evidence, "KEPT", tmp_path / "evidence.json")
    monkeypatch.setattr(evidence, "_commit_before", lambda _: "abcd1234")
    return tmp_path / "evidence.json"


def test_a_run_of_tests_is_kept_and_shown_with_what_failed(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "run.xml").write_text(JUNIT)
    assert evidence.main(["junit", str(tmp_path / "run.xml"), "pytest -m 'a|b'"]) == 0
    (run,) = json.loads(kept.read_text())["junit"]
    assert (run["date"], run["passed"], run["failed"], run["skipped"], run["minutes"]) == (
        "2026-11-28", 2, ["test_c"], 1, 2,
    )  # fmt: skip
    assert run["subjects"] == dict(zip(evidence.SUBJECTS, (1, 0, 1), strict=True)), "only what passed"
    page = evidence.evidence_page()
    assert "| 2026-11-28<br>`pytest -m 'a\\|b'` | abcd1234 | 2 | 1 | 1 | 2 | 1 | 0 | 1 |" in page
    assert "Failed on 2026-11-28: `test_c`." in page


def test_a_later_run_of_a_command_takes_the_place_of_the_earlier(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("1.07 times\n")
    (tmp_path / "later.txt").write_text("1.08 times\n")
    for name, command in (("out.txt", "bench a"), ("out.txt", "bench b"), ("later.txt", "bench a")):
        assert evidence.main(["bench", str(tmp_path / name), command]) == 0
    assert [(run["command"], run["output"]) for run in json.loads(kept.read_text())["bench"]] == [
        ("bench b", "1.07 times"), ("bench a", "1.08 times"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "<testsuites/>", JUNIT[:200]])
def test_a_file_that_is_not_a_whole_result_is_refused(
    kept: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.xml").write_text(text)
    assert evidence.main(["junit", str(tmp_path / "run.xml"), "pytest"]) == 1
    assert "is not a result of pytest" in capsys.readouterr().err
    assert not kept.exists()


def test_every_version_is_found_where_it_is_pinned() -> None:
    versions = dict(evidence._versions())
    assert versions["Hive"] == "3.1.3, 4.0.1, 4.2.1"
    assert all(versions.values())
