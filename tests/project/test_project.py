"""The habits of the project: linters, types, arrows, and a README that says what CI does."""

from __future__ import annotations

import re
import subprocess

import check
import pytest
from support.paths import REPO


def test_a_failed_check_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "CHECKS", {"good": ("-c", "print('fine')"), "bad": ("-c", "raise SystemExit('dirty')")})
    assert check.main(["good"]) == 0
    assert capsys.readouterr().out == "good: passed\n"
    assert check.main([]) == 1
    assert capsys.readouterr().out == "good: passed\nbad: failed\ndirty\n\n"
    assert check.main(["better"]) == 2
    assert "there are good, bad" in capsys.readouterr().err


def test_every_check_runs_before_a_commit() -> None:
    hooks = (REPO / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"- id: (\S+)", hooks) == list(check.CHECKS)
    assert re.findall(r"entry: python tools/check.py (\S+)", hooks) == list(check.CHECKS)
    assert hooks.count("language: system\n") == len(check.CHECKS)


def test_ci_runs_the_checks_and_the_two_test_commands() -> None:
    def test_command(name: str) -> str:
        blocks = re.findall(r"```sh\n(.*?)\n```", (REPO / name).read_text(), re.DOTALL)
        (command,) = [block for block in blocks if "-m pytest -n" in block]
        return command

    lines = (REPO / ".ci" / "run").read_text().splitlines()
    wanted = [test_command("README.md"), ".venv-test/bin/python tools/check.py", test_command("CONTRIBUTING.md")]
    assert [line for line in lines if line in wanted] == wanted


@pytest.mark.parametrize("pattern", [r"(?<![\w.])/(?:work|root|home)/", r"\b(?:pypi|npmjs|debian)\.(?:org|com)\b"])
def test_no_paths_or_hosts_of_one_machine(pattern: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    found = []
    for name in listed.splitlines():
        path = REPO / name
        if path.suffix in (".py", ".md", ".toml", ".1", ".cfg", "") and path.is_file():
            text = path.read_text(errors="replace")
            found += [
                f"{name}: {match[0]}" for match in re.finditer(pattern, text) if name != "tests/project/test_project.py"
            ]
    assert not found
