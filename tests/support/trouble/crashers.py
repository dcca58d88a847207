"""Tasks that end their process, hang, or want too much: importable by the processes that run them."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acidctl.base.errors import NotFoundError
from acidctl.base.worker_process import Beat
from acidctl.orc.byte_source import native_read
from acidctl.validation.checks.footers import MarkerTask, TailTask
from acidctl.validation.checks.rows import RowTask


@dataclass(frozen=True)
class Toy:
    """Does what its name says."""

    what: str
    weight: int = 0

    def run(self, beat: Beat) -> Any:
        if self.what == "abort":
            os.abort()
        if self.what == "exit":
            os._exit(3)
        if self.what == "hang":
            time.sleep(3600)
        if self.what == "slow":
            for _ in range(12):
                time.sleep(0.5)
                beat()
        if self.what == "telling":
            for _ in range(12):
                time.sleep(0.05)
                beat(1)
        if self.what == "unfit":
            return lambda: None
        if self.what == "input":
            return subprocess.run(["cat"], capture_output=True, check=True, timeout=60).stdout
        if self.what == "greedy":
            return len(np.ones(1 << 40, np.int8))
        if self.what.startswith("grow"):
            with native_read("f"):
                return len([pa.allocate_buffer(size << 20) for size in range(40, 400, 40)])
        if self.what == "raise":
            raise ValueError("of a kind that nobody expected")
        if self.what == "refuse":
            raise NotFoundError("gone", "vanished")
        return self.what


class HangingMarkers(MarkerTask):
    """Small files that nothing comes back from."""

    def run(self, beat: Beat) -> Any:
        time.sleep(3600)


class CrashingTails(TailTask):
    """Tails: one bucket ends its reader."""

    def run(self, beat: Beat) -> Any:
        if self.file.path.endswith("bucket_00001"):
            os.abort()
        return super().run(beat)


class CrashingRows(RowTask):
    """Rows: stripe 1 of one bucket ends its reader, unless only the ids are read."""

    def run(self, beat: Beat) -> Any:
        if self.file.path.endswith("bucket_00001") and not self.ids_only and self.first <= 1 < self.end:
            os.abort()
        return super().run(beat)


class DyingRows(RowTask):
    """Rows: whoever touches stripe 1 of one bucket dies."""

    def run(self, beat: Beat) -> Any:
        if self.file.path.endswith("bucket_00001") and self.first <= 1 < self.end:
            os.abort()
        return super().run(beat)
