"""The Java process of a Spark driver, played by a script."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from acidctl.spark.driver import gateway


def test_an_interrupt_in_the_middle_of_the_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the start of a process and its name in a variable nobody else could end it."""
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    started = []

    class Interrupted(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(gateway.subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # an earlier test may have left another
    try:
        with pytest.raises(KeyboardInterrupt):
            gateway.start_driver(
                str(tmp_path), [], dict(os.environ), timeout=60, folder=tmp_path, log=gateway.DriverLog()
            )
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    (process,) = started
    assert process.poll() == -signal.SIGKILL
