"""``python tools/check.py [NAME...]``: every check that is not a test, or those that are named.

The tests and ``.pre-commit-config.yaml`` run the checks of this list, one by one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command(sys.argv[1:])"

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff-check": ("-m", "ruff", "check", "."),
    "ruff-format": ("-m", "ruff", "format", "--check", "."),
    "mypy": ("-m", "mypy"),
    "import-linter": ("-c", _LINT_IMPORTS),
    "docs": ("tools/make_docs.py", "--check"),
}
"""What Python is called with."""


def run(name: str) -> subprocess.CompletedProcess[str]:
    """One check, in a process of its own; its output in `stdout`."""
    return subprocess.run(
        [sys.executable, *CHECKS[name]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main(names: list[str]) -> int:
    """Run checks and say what each found; the exit status is 1 where one failed, 2 where none has a name."""
    if unknown := [name for name in names if name not in CHECKS]:
        print(f"no check {', '.join(unknown)}: there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    failed = False
    for name in names or CHECKS:
        done = run(name)
        print(f"{name}: {'failed' if done.returncode else 'passed'}", flush=True)
        if done.returncode:
            failed = True
            print(done.stdout, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
