"""The class archive (AppCDS): Spark's classes as Java has parsed them, mapped at the next start instead of read.

With it Spark starts about a third faster.  Making it costs some ten seconds at the end of a run that is slow itself,
so no ordinary run makes it: :func:`acidctl.spark.probe.prepare` does, and every later run uses it.  Java itself refuses
an archive that does not fit its version or the jars (by their sizes and times) and starts without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from acidctl.spark.driver.cache import cache_dir
from acidctl.spark.driver.java import Java

SMALLEST = 1 << 20
UNUSED_SECONDS = 30 * 86400.0


def archive_path(java: Java, spark_home: str, environ: Mapping[str, str]) -> Path | None:
    """Where the archive for this Java and these jars belongs, or None where there can be none.

    Java archives no classes when a folder with files is on the class path, and Spark puts its configuration
    folders there.
    """
    names = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
    if any(environ.get(name) for name in names) or Path(spark_home, "conf").exists():
        return None
    try:
        folder = cache_dir(environ)
        jars = sorted((entry.name, entry.stat()) for entry in os.scandir(Path(spark_home, "jars")))
        binary = Path(java.executable).stat()
    except OSError:
        return None
    facts = [java.executable, java.version_text, str(binary.st_size), str(binary.st_mtime_ns), spark_home]
    facts += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in jars]
    return folder / f"spark-{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:16]}.jsa"


def usable_archive(java: Java, spark_home: str, environ: Mapping[str, str]) -> Path | None:
    """The archive when there is one that Java can take, else None.  Never raises."""
    path = archive_path(java, spark_home, environ)
    if path is None or any(character.isspace() for character in str(path)):
        return None
    try:
        stat = path.stat()
        if stat.st_uid != os.getuid() or stat.st_size < SMALLEST:
            return None
        os.utime(path)  # archives that nobody uses are removed by `install`
    except OSError:
        return None
    return path


def install(made: Path, path: Path) -> bool:
    """Put a freshly made archive in place, atomically; False when Java made none.

    What killed processes left behind goes, as do archives that were not used for a month.
    """
    try:
        if made.stat().st_size < SMALLEST:
            return False
        made.replace(path)
    except OSError:
        return False
    for pattern, seconds in (("spark-*.jsa", UNUSED_SECONDS), (".spark-*.making", 86400.0)):
        for other in path.parent.glob(pattern):
            with contextlib.suppress(OSError):
                if other != path and time.time() - other.stat().st_mtime > seconds:
                    other.unlink()
    return True
