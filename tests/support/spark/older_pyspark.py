"""The oldest line of PySpark that acidctl knows, for which other table formats have releases; from PyPI, once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, cache_folder
from support.servers.jars import locked

VERSION = "4.0.5"
_SHA256 = "a0d44b0e7faf0458ad83b7aa664e7ed8b96beed8a55d66ce3b0dfac2309dfca6"


def older_pyspark() -> Path:
    """A folder for the front of PYTHONPATH; py4j is that of this Python.

    Raises:
        ServerUnavailable: it is not in the cache and cannot be fetched.
    """
    kept = cache_folder() / f"pyspark-{VERSION}-{_SHA256[:12]}"
    with locked(cache_folder() / "pyspark.lock"):
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
                wanted = Path(work) / "wanted.txt"
                wanted.write_text(f"pyspark=={VERSION} --hash=sha256:{_SHA256}\n")
                made = Path(work) / "made"
                line = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
                line += ["--no-cache-dir", "--target", str(made), "-r", str(wanted)]
                done = subprocess.run(line, capture_output=True, text=True, check=False)
                if done.returncode:
                    said = done.stderr.strip().splitlines() or ["pip says nothing"]
                    raise ServerUnavailable(f"PySpark {VERSION} cannot be fetched: {said[-1][:300]}")
                made.rename(kept)
    return kept
