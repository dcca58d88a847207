"""What a Spark session will be: master, Java, environment and properties, decided before a process runs."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acidctl.errors import EnvironmentProblem, UsageProblem
from acidctl.imports import import_path
from acidctl.orc.limits import PREFIX
from acidctl.spark.driver.java import Java, choose_java
from acidctl.spark.driver.properties import parsed, trimmed

DEFAULT_MASTER = "local[*]"


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """What the user asked of Spark.

    Attributes:
        master: the master URL; None takes Spark's own setting, else ``local[*]``.
        conf: pairs of ``spark.*`` properties, which win over acidctl's own.
        app_name: the name that the cluster shows.
        queue: the YARN queue.
        verbose: let Java log at level INFO and pass everything it says on to stderr.
        start_timeout: seconds to wait for Java, for the master and for the first executor.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    app_name: str = "acidctl"
    queue: str | None = None
    verbose: bool = False
    start_timeout: float = 180.0


def is_local(master: str) -> bool:
    """Whether a master URL means this process' machine alone (``local``, ``local[4]``; not ``local-cluster``)."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def parse_conf(items: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Read ``--conf`` values of the form ``spark.key=value``.

    Raises:
        UsageProblem: no ``=``, or a property that does not start with ``spark.`` (Spark would ignore it).
    """
    pairs = []
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key.strip().startswith("spark."):
            raise UsageProblem(
                f"--conf {item!r} is not a Spark property",
                "",
                "Write it as spark.name=value, for example --conf spark.executor.memory=2g",
            )
        pairs.append((key.strip(), value))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """How Spark will be started: everything decided before a process runs.

    Attributes:
        own_jars: its jars are those of the installed pyspark, not of another SPARK_HOME.
        conf: properties that acidctl or the user sets.
        inherited: those of ``spark-defaults.conf``, or of the file that PYSPARK_SUBMIT_ARGS names in its place: weaker.
        submit_arguments: the rest of PYSPARK_SUBMIT_ARGS, which every process of the machine may see.
    """

    master: str
    java: Java
    spark_home: str
    own_jars: bool
    environ: dict[str, str]
    conf: dict[str, str]
    inherited: dict[str, str]
    submit_arguments: tuple[str, ...]


def plan_session(options: SparkOptions, environ: Mapping[str, str], package: Path, pyspark_version: str) -> SessionPlan:
    """Decide master, Java, SPARK_HOME, environment and properties.

    Args:
        options: the user's wishes.
        environ: the environment.
        package: the folder of the installed ``pyspark``.
        pyspark_version: its version.

    Raises:
        EnvironmentProblem: no Java, or a SPARK_HOME that is broken or of another version.
    """
    spark_home = environ.get("SPARK_HOME") or str(package)
    own_jars = os.path.realpath(spark_home) == os.path.realpath(package)
    if not own_jars:
        _check_spark_home(spark_home, pyspark_version)
    user = dict(options.conf)
    submit = _SubmitArguments.of(tuple(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))))
    # What `spark-submit` would read itself: a master there is the user's choice.
    defaults = submit.inherited(Path(environ.get("SPARK_CONF_DIR") or Path(spark_home, "conf")))
    master = options.master or user.get("spark.master") or _master_in(submit.rest)
    master = master or submit.conf.get("spark.master") or defaults.get("spark.master") or DEFAULT_MASTER
    java = choose_java(environ)

    local = is_local(master)
    loopback = local or re.match(r"spark://(localhost|127\.[0-9.]+|\[::1\])(:|$)", master) is not None
    changes = {
        "JAVA_HOME": java.home,
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

    same_python = changes["PYSPARK_PYTHON"] == sys.executable
    conf = _defaults(master, options, loopback=loopback, fast_workers=local and own_jars and same_python)
    if not local:
        conf |= {
            f"spark.executorEnv.{key}": value for key, value in environ.items() if key.startswith(PREFIX) and value
        }
    # An administrator's file comes before our taste, the command line before both.
    asked = {"spark.app.name", "spark.master"} | ({"spark.yarn.queue"} if options.queue else set())
    kept = conf.keys() | {"spark.driver.extraJavaOptions"}
    conf |= {key: value for key, value in defaults.items() if key in kept - asked}
    conf |= submit.conf | user | {"spark.master": master}
    return SessionPlan(master, java, spark_home, own_jars, environment, conf, defaults, submit.rest)


@dataclass(frozen=True, slots=True)
class _SubmitArguments:
    """PYSPARK_SUBMIT_ARGS, taken apart: properties go to Java by a file.

    Attributes:
        rest: what is left for the command line.
        files: names of files of properties; the last counts.
        with_defaults: ``spark-defaults.conf`` counts beside such a file.
    """

    rest: tuple[str, ...]
    conf: dict[str, str]
    files: tuple[str, ...]
    with_defaults: bool

    @classmethod
    def of(cls, arguments: tuple[str, ...]) -> _SubmitArguments:
        """Up to the application, as spark-submit does."""
        rest: list[str] = []
        conf: dict[str, str] = {}
        files: list[str] = []
        with_defaults = False
        left = iter(arguments)
        for argument in left:
            flag, equals, value = argument.partition("=")
            if flag not in ("--conf", "-c", "--properties-file", "--driver-java-options", "--load-spark-defaults"):
                rest.append(argument)
            elif flag == "--load-spark-defaults":
                with_defaults = True
            else:
                value = value if equals and flag.startswith("--") else next(left, "")
                if flag == "--properties-file":
                    files.append(value)
                elif flag == "--driver-java-options":
                    conf["spark.driver.extraJavaOptions"] = value
                else:
                    key, _, setting = value.partition("=")
                    conf[key] = setting
        return cls(tuple(rest), conf, tuple(files), with_defaults)

    def inherited(self, folder: Path) -> dict[str, str]:
        """The properties of the files that count.

        Args:
            folder: of ``spark-defaults.conf``.

        Raises:
            EnvironmentProblem: one cannot be read.
        """
        found: dict[str, str] = {}
        if not self.files or self.with_defaults:
            found |= _properties_of(folder / "spark-defaults.conf", must_be_there=False)
        for name in self.files[-1:]:
            found |= _properties_of(Path(name), must_be_there=True)
        return found


def _defaults(master: str, options: SparkOptions, *, loopback: bool, fast_workers: bool) -> dict[str, str]:
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
    if fast_workers:
        conf["spark.python.daemon.module"] = "acidctl.spark.daemon"
    if not is_local(master):
        conf["spark.executor.extraJavaOptions"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    if master.startswith(("yarn", "k8s")):
        # The work is done by Python, outside the heap: about 1.2 GB a task with stripes of 64 MB.
        cores = dict(options.conf).get("spark.executor.cores", "1")
        conf["spark.executor.memoryOverhead"] = f"{1536 * (int(cores) if cores.isdigit() else 1)}m"
    if options.queue:
        conf["spark.yarn.queue"] = options.queue
    return conf


def _properties_of(path: Path, *, must_be_there: bool) -> dict[str, str]:
    """Spark's own properties in a file, with nothing around them, as Spark takes them."""
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


def _master_in(arguments: tuple[str, ...]) -> str | None:
    for flag, value in itertools.pairwise(arguments):
        if flag == "--master":
            return value
    return next((a.removeprefix("--master=") for a in arguments if a.startswith("--master=")), None)


def _check_spark_home(spark_home: str, pyspark_version: str) -> None:
    if not Path(spark_home, "bin", "spark-submit").is_file():
        raise EnvironmentProblem(
            f"SPARK_HOME={spark_home} is no Spark: it has no bin/spark-submit",
            "",
            "Correct SPARK_HOME, or unset it to use the Spark that comes with PySpark",
        )
    for jar in sorted(Path(spark_home, "jars").glob("spark-core_*.jar")):
        found = re.search(r"-(\d+)\.(\d+)[^-]*\.jar$", jar.name)
        if found and f"{found[1]}.{found[2]}" != ".".join(pyspark_version.split(".")[:2]):
            raise EnvironmentProblem(
                f"SPARK_HOME={spark_home} holds Spark {found[1]}.{found[2]}, but PySpark is {pyspark_version}",
                "the two speak different protocols",
                f"Install the one that fits: pip install 'pyspark=={found[1]}.{found[2]}.*', or unset SPARK_HOME",
            )
