"""Send this package to cluster executors as a zip file, and wait for the executors."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from os import getuid
from pathlib import Path
from typing import Any

import acidctl
from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver.session import Session, time_limit
from acidctl.spark.driver.session_plan import is_local

NAP_SECONDS = 0.2
MOST_NAPS = 64


def zip_package(package: Path, target: Path) -> None:
    """Write `package` (a folder) into a zip file that Python imports from; the same content gives the same bytes."""
    files = sorted(p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    with zipfile.ZipFile(target, "w") as archive:
        for file in files:
            # Of the year 1980, and of no mode: nothing but names and content goes in.
            info = zipfile.ZipInfo(file.relative_to(package.parent).as_posix())
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)


def prepare_executors(session: Session) -> None:
    """Ship the package to a cluster's executors, and wait for them; does nothing for a local master.

    Raises:
        EnvironmentProblem: no executor comes within the session's ``start_timeout``, or its Python is another version
            or cannot be started.
    """
    if session.is_local or session.shipped:
        return
    try:
        ship_package(session.context.addPyFile)
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        raise session.explain(error) from None
    _await_executors(session)
    session.shipped = True


def ship_package(add: Callable[[str], None]) -> None:
    """Hand the zip of this package to `add`, a means of PySpark to send modules to executors.

    Raises EnvironmentProblem if acidctl runs from something that is not a folder, so it cannot be shipped.
    """
    path_before = list(sys.path)
    try:
        add(str(package_zip()))
    finally:
        sys.path[:] = path_before  # PySpark puts the zip first here too, before the package that runs


def ship_to(spark: Any) -> None:
    """Send this package to the executors of a user's session, unless they are on this machine or have it.

    Raises EnvironmentProblem if acidctl runs from something that is not a folder, so it cannot be shipped.
    """
    if is_connect(spark):  # it has no SparkContext
        ship_package(lambda path: spark.addArtifacts(path, pyfile=True))
        return
    context = spark.sparkContext  # its list of packages grows by each that is sent, and goes to every task
    if not is_local(context.master or "") and package_zip().name not in context._python_includes:
        ship_package(context.addPyFile)


@contextlib.contextmanager
def own_python(spark: Any) -> Iterator[None]:
    """Have a local master run functions made meanwhile by the present Python, unless PYSPARK_PYTHON names another.

    Spark would take ``python3``, which is another Python unless a virtual environment is active.
    """
    context = None if is_connect(spark) else spark.sparkContext
    if context is None or not is_local(context.master or "") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    usual, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = usual


def is_connect(spark: Any) -> bool:
    """Return whether a session is one of Spark Connect, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def package_zip() -> Path:
    """Return the zip of this package, kept until the end of this process: executors fetch it whenever they start."""
    made = _zipped(process_dir())
    if not made.is_file():  # a cleaner of temporary files was here
        _zipped.cache_clear()
        made = _zipped(process_dir())
    return made


@functools.cache
def _zipped(folder: Path) -> Path:
    package = Path(acidctl.__file__).parent
    if not package.is_dir():
        why = f"it runs from {package}, which is not a folder"
        hint = "Install acidctl in the usual way, or install it on the executors too"
        raise EnvironmentProblem("acidctl cannot be sent to the executors", why, hint)
    target = folder / "acidctl.zip"
    zip_package(package, target)
    # Spark tells files apart by their names, and another process may have shipped another acidctl to this session.
    digest = hashlib.sha256(target.read_bytes()).hexdigest()[:12]
    return target.rename(target.with_name(f"acidctl-{digest}.zip"))


_made: list[Path] = []  # the folders of this process; only the last one is in use


def process_dir() -> Path:
    """Return a folder (mode 0700) that ends with this process, a new one if a cleaner of temporary files removed it."""
    with contextlib.suppress(OSError, IndexError):
        info = _made[-1].lstat()
        if stat.S_ISDIR(info.st_mode) and info.st_uid == getuid():  # others may make one of its name once it is gone
            return _made[-1]
    _made.append(Path(tempfile.mkdtemp(prefix="acidctl-")))
    atexit.register(shutil.rmtree, _made[-1], ignore_errors=True)
    return _made[-1]


def _await_executors(session: Session) -> None:
    """Run a job of short naps: Spark knows how many tasks run at once only when its executors have come."""
    context = session.context
    count = max(2, min(MOST_NAPS, 2 * context.defaultParallelism))
    group = "acidctl-start"

    def give_up() -> None:
        with contextlib.suppress(Exception):  # a Java that is gone fails the job too, and says why there
            context.cancelJobGroup(group)

    with time_limit(session.options.start_timeout, give_up) as is_late:
        try:
            context.setJobGroup(group, "acidctl: waiting for the executors", interruptOnCancel=True)
            context.parallelize([NAP_SECONDS] * count, count).map(time.sleep).collect()
        except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
            raise session.no_executors() if is_late() else session.explain(error) from None
