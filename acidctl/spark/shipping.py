"""Send this package to cluster executors as a zip file, and check their Python before any work starts."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import getuid
from pathlib import Path
from typing import Any

import acidctl
from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver.session import Session, time_limit
from acidctl.spark.worker import PACKAGES, ExecutorFacts, executor_facts, missing_packages

CHECK_SECONDS = 0.2
MOST_CHECKS = 64


def zip_package(package: Path, target: Path) -> None:
    """Write `package` (a folder) into a zip file that Python imports from; the same content gives the same bytes."""
    files = sorted(p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    with zipfile.ZipFile(target, "w") as archive:
        for file in files:
            # Of the year 1980, and of no mode: nothing but names and content goes in.
            info = zipfile.ZipInfo(file.relative_to(package.parent).as_posix())
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)


def prepare_executors(session: Session) -> None:
    """Ship the package to a cluster's executors and check their Python; does nothing for a local master.

    Waits for the first executor as long as the session's ``start_timeout``; each kind of Python worker is checked once.
    If nothing is missing, the session counts as prepared.

    Raises:
        EnvironmentProblem: no executor comes, its Python is another version or cannot be started, or a package is
            missing there or too old.
    """
    if session.is_local or session.shipped:
        return
    try:
        ship_package(session.context.addPyFile)
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        raise session.explain(error) from None
    facts = {(fact.host, fact.executable, fact.versions, fact.problems): fact for fact in _ask(session)}
    check_facts(facts[key] for key in sorted(facts))
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


def check_facts(facts: Iterable[ExecutorFacts]) -> None:
    """Raise EnvironmentProblem for the first executor that cannot do the work."""
    for fact in facts:
        for problem in problems_of(fact):
            raise problem


def problems_of(fact: ExecutorFacts) -> Iterator[EnvironmentProblem]:
    """Return what an executor lacks: a Python of this version, packages that every task needs, or newer ones."""
    if fact.python.split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        what = f"The executor on {fact.host} runs Python {fact.python}, this is Python {sys.version.split()[0]}"
        yield EnvironmentProblem(what, "", "Name a Python of this version on the executors with PYSPARK_PYTHON")
    if fact.problems:
        names = [distribution for distribution, _ in fact.problems]
        yield missing_packages(names, fact.host, fact.executable, fact.problems[0][1])
    least, needed = _least_versions(), {distribution for _, distribution in PACKAGES}
    for distribution, version in fact.versions:
        if distribution in needed and _numbers(version) < _numbers(least.get(distribution, "")):
            why = f"it is version {version}, and acidctl needs {least[distribution]}"
            yield EnvironmentProblem(
                f"{distribution} is too old in the Python ({fact.executable}) of the executor on {fact.host}",
                why,
                f"Install a newer one there: {fact.executable} -m pip install '{distribution}>={least[distribution]}'",
            )


@functools.cache
def _least_versions() -> Mapping[str, str]:
    """Return the lower bounds of the packages that acidctl needs; empty if it was not installed as a package."""
    from importlib import metadata  # noqa: PLC0415 - only for clusters

    with contextlib.suppress(metadata.PackageNotFoundError):
        wanted = metadata.requires("acidctl") or ()
        found = (re.match(r"([\w-]+).*?>=([\d.]+)", one) for one in wanted)
        return {match[1]: match[2] for match in found if match}
    return {}


def _numbers(version: str) -> list[int]:
    """Return the parts of a version without zeros at its end: 2 and 2.0 are the same."""
    return [int(part) for part in re.findall(r"\d+", re.sub(r"(\.0)+$", "", version.partition("+")[0]))]


def _ask(session: Session) -> list[ExecutorFacts]:
    context = session.context
    count = max(2, min(MOST_CHECKS, 2 * context.defaultParallelism))
    group = "acidctl-check"

    def give_up() -> None:
        with contextlib.suppress(Exception):  # a Java that is gone fails the job too, and says why there
            context.cancelJobGroup(group)

    with time_limit(session.options.start_timeout, give_up) as is_late:
        try:
            context.setJobGroup(group, "acidctl: looking at the executors", interruptOnCancel=True)
            facts: list[Any] = context.parallelize([CHECK_SECONDS] * count, count).map(executor_facts).collect()
        except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
            raise session.no_executors() if is_late() else session.explain(error) from None
    return facts
