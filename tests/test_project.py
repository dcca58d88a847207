"""The habits of the project: linters, types, arrows, and a README that says what CI does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_check() -> None:
    run("ruff", "check", ".")


def test_ruff_format() -> None:
    run("ruff", "format", "--check", ".")


def test_mypy() -> None:
    run("mypy")


def test_import_linter() -> None:
    script = "import sys; from importlinter.cli import lint_imports_command; sys.argv[1:] = []; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_the_command_of_the_readme() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", (REPO / "README.md").read_text(), re.DOTALL)
    (test_command,) = [command for command in commands if "pytest" in command]
    assert test_command in (REPO / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("pattern", [r"(?<![\w.])/(?:work|root|home)/", r"\b(?:pypi|npmjs|debian)\.(?:org|com)\b"])
def test_no_paths_or_hosts_of_one_machine(pattern: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    found = []
    for name in listed.splitlines():
        path = REPO / name
        if path.suffix in (".py", ".md", ".toml", ".1", ".cfg", "") and path.is_file():
            text = path.read_text(errors="replace")
            found += [f"{name}: {match[0]}" for match in re.finditer(pattern, text) if name != "tests/test_project.py"]
    assert not found
