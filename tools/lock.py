"""``python tools/lock.py``: write the locks in requirements/ from the bounds in pyproject.toml.

Each lock has one version of every package, with the hashes of its files, for every Python that acidctl supports.
uv chooses the newest versions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {"ci.txt": ("test",), "container.txt": ("hdfs", "iceberg", "metastore", "s3")}
"""The extras of each lock."""
HEADER = "# Written by `python tools/lock.py`; install it with `pip install --require-hashes -r`.\n"


def main() -> int:
    """Write every lock, and return 0."""
    for name, extras in LOCKS.items():
        path = ROOT / "requirements" / name
        path.parent.mkdir(exist_ok=True)
        line = [sys.executable, "-m", "uv", "pip", "compile", "-q", "pyproject.toml", "--universal", "--upgrade"]
        line += ["--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"]
        line += [word for extra in extras for word in ("--extra", extra)]
        subprocess.run([*line, "-o", path], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        path.write_text(HEADER + path.read_text("utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
