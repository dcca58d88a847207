"""How the program ends, whatever it was doing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import PYTHONPATH


@pytest.mark.parametrize("code", ["raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGTERM); signal.pause()"])
def test_a_signal_while_a_class_is_made_has_the_status_of_any_other(tmp_path: Path, code: str) -> None:
    (tmp_path / "ended.py").write_text(f"""
import os, signal
from acidctl.cli import main
def run(*_):
    try:
        exec({code!r})
    except KeyboardInterrupt:
        return 130
main._run = run
main.main()
""")
    path = os.pathsep.join((str(tmp_path), PYTHONPATH))
    done = subprocess.run(
        [sys.executable, "-m", "ended", "ls"], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "")
