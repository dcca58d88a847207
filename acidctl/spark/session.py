"""One Spark session, started as fast and as quietly as Spark allows, and ended without leaving a process behind.

Rows never cross Java: Spark only hands out tasks to Python workers.  So only a SparkContext is started (the SQL
session would cost seconds more), Java compiles with its quick compiler alone and collects garbage serially.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import itertools
import logging
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acidctl.errors import AcidctlError, EnvironmentProblem, UsageProblem
from acidctl.spark import archive, failures
from acidctl.spark.gateway import Connection, Driver, DriverEnded, DriverLog, start_driver
from acidctl.spark.java import Java, choose_java

if TYPE_CHECKING:
    from pyspark import SparkContext

DEFAULT_MASTER = "local[*]"
JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
STOP_SECONDS = 20.0


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


@dataclass(slots=True)
class Session:
    """A running Spark.

    Attributes:
        context: PySpark's SparkContext.
        master: the master it runs on.
        java: the Java that was started, or None when Spark ran already.
        driver: the Java process, or None when Spark ran already (``spark-submit``, a notebook).
        log: what Java said.
        shipped: whether the package and the executors' Python were seen to (the engine's note to itself).
    """

    context: SparkContext
    master: str
    java: Java | None
    driver: Driver | None
    log: DriverLog
    options: SparkOptions
    shipped: bool = field(default=False)

    @property
    def is_local(self) -> bool:
        """Whether the tasks run on this machine, with this very Python."""
        return is_local(self.master)

    def explain(self, error: BaseException) -> AcidctlError:
        """The error that a user understands for one that Spark, Py4J or Java raised."""
        status = self.driver.status if self.driver is not None else None
        if self.driver is not None and status is not None:
            self.driver.drain()
        return failures.explain(error, self.log.text(), self.master, status)


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


@contextlib.contextmanager
def start_session(
    options: SparkOptions, *, record_archive: Path | None = None, use_archive: bool = True
) -> Iterator[Session]:
    """Start Spark and stop it at the end, whatever happens in between.

    Inside ``spark-submit``, or where a SparkContext is active already, that one is used: its master stays, and
    a context that was there before is left running.

    Args:
        options: the user's wishes.
        record_archive: write the class archive to this path when Java ends (slow; see :mod:`acidctl.spark.archive`).
        use_archive: use the class archive when there is one.

    Raises:
        EnvironmentProblem: no Java, no PySpark, versions that do not fit, or a master that cannot be reached.
        UsageProblem: a master or queue that Spark does not know.
    """
    pyspark = _import_pyspark()
    active = pyspark.SparkContext._active_spark_context
    if active is not None:
        yield Session(active, active.master, None, None, DriverLog(), options)
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        yield from _session_of_spark_submit(pyspark, options)
    else:
        yield from _own_session(pyspark, options, record_archive, use_archive)


def _import_pyspark() -> Any:
    try:
        import pyspark
        from pyspark import SparkContext
    except ImportError as error:
        raise EnvironmentProblem(
            "PySpark cannot be imported", str(error), "Install it with: pip install pyspark (or use --engine local)"
        ) from error
    assert SparkContext is not None  # pyspark-client has the package, but not this class
    return pyspark


@contextlib.contextmanager
def _kept_signal_handler() -> Iterator[None]:
    """Put back the handler for interrupts that PySpark replaces.

    Its own calls into Java from within the handler, perhaps in the midst of another call, and outlives the session.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Keep Py4J, which logs to the root logger when Java goes away, from setting up logging to stderr by that."""
    root = logging.getLogger()
    handler = logging.NullHandler()
    if root.handlers:
        yield
        return
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _session_of_spark_submit(pyspark: Any, options: SparkOptions) -> Iterator[Session]:
    conf = pyspark.SparkConf()
    for key, value in options.conf:
        conf.set(key, value)
    conf.set("spark.app.name", options.app_name)
    with _kept_signal_handler():
        context = pyspark.SparkContext(conf=conf)
    try:
        yield Session(context, context.master, None, None, DriverLog(), options)
    finally:
        context.stop()


def _own_session(
    pyspark: Any, options: SparkOptions, record_archive: Path | None, use_archive: bool
) -> Iterator[Session]:
    plan = plan_session(options, os.environ, Path(pyspark.__file__).parent, pyspark.__version__)
    failures.check_master(plan.master)
    if record_archive is not None:
        extra: tuple[str, ...] = (f"-XX:ArchiveClassesAtExit={record_archive}",)
    else:
        extra = archive.flags(plan.java, plan.spark_home, os.environ) if use_archive and plan.own_jars else ()
    log = DriverLog(echo=options.verbose)
    properties = importlib.resources.files("acidctl.spark") / "log4j2.properties"
    with (
        importlib.resources.as_file(properties) as log4j,
        # Java puts all its temporary files here, so that they go even when it had to be killed.
        tempfile.TemporaryDirectory(prefix="acidctl-spark-", ignore_cleanup_errors=True) as scratch,
        _quiet_py4j(),
    ):
        flags = (*extra, f"-Djava.io.tmpdir={scratch}", f"-Dlog4j2.configurationFile={log4j.absolute().as_uri()}")
        driver, connection = _start(plan, options, log, Path(scratch), flags)
        try:
            with _connected(plan, connection):
                context = _context(pyspark, plan, options, driver, log)
        except BaseException:
            driver.end(grace=3.0)  # rather than killed, so that Java removes its temporary folders
            _forget_gateway(pyspark)
            raise
        try:
            yield Session(context, plan.master, plan.java, driver, log, options)
        finally:
            try:
                if driver.status is None:
                    _stop(context)
            finally:
                driver.end(grace=120.0 if record_archive is not None else 10.0)
                _forget_gateway(pyspark)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """How Spark will be started: everything decided before a process runs."""

    master: str
    java: Java
    spark_home: str
    own_jars: bool  # the jars of the installed pyspark, not of another SPARK_HOME
    environ: dict[str, str]
    conf: dict[str, str]
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
    # What `spark-submit` would read itself: a master there is the user's choice.
    defaults = _spark_defaults(Path(environ.get("SPARK_CONF_DIR") or Path(spark_home, "conf")))
    submit = tuple(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")))
    master = options.master or user.get("spark.master") or _master_in(submit) or defaults.get("spark.master")
    master = master or DEFAULT_MASTER
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
        changes["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path if p and os.path.exists(p))  # noqa: PTH100, PTH110
        changes["PYTHONSAFEPATH"] = "1"
    environment = {**environ, **changes}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_SECRET"):
        environment.pop(name, None)

    same_python = changes["PYSPARK_PYTHON"] == sys.executable
    conf = _defaults(master, options, loopback=loopback, fast_workers=local and own_jars and same_python)
    # An administrator's file comes before our taste, the command line before both.
    asked = {"spark.app.name", "spark.master"} | ({"spark.yarn.queue"} if options.queue else set())
    kept = conf.keys() | {"spark.driver.extraJavaOptions"}
    conf |= {key: value for key, value in defaults.items() if key in kept - asked}
    return SessionPlan(master, java, spark_home, own_jars, environment, conf | user, submit)


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


def _spark_defaults(folder: Path) -> dict[str, str]:
    try:
        text = (folder / "spark-defaults.conf").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = re.findall(r"^[ \t]*(spark\.[^\s=:]+)[ \t]*[\s=:][ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    return dict(pairs)


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


def _start(
    plan: SessionPlan, options: SparkOptions, log: DriverLog, scratch: Path, flags: tuple[str, ...]
) -> tuple[Driver, Connection]:
    theirs = plan.conf.get("spark.driver.extraJavaOptions", "")
    more = ("-Dacidctl.spark.log=info",) if options.verbose else ()
    ours = " ".join(f'"{flag}"' if re.search(r"\s", flag) else flag for flag in (*JAVA_FLAGS, *flags, *more))
    conf = plan.conf | {"spark.driver.extraJavaOptions": f"{ours} {theirs}".strip()}
    arguments = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    arguments += plan.submit_arguments
    try:
        return start_driver(plan.spark_home, arguments, plan.environ, options.start_timeout, scratch, log)
    except DriverEnded as error:
        without = archive.discard(flags)
        if without != flags:
            # Java ignores an archive that does not fit.  Should it not, the archive goes, not the user's job.
            return _start(plan, options, log, scratch, without)
        raise failures.explain(error, error.log, plan.master, error.status) from None


@contextlib.contextmanager
def _connected(plan: SessionPlan, connection: Connection) -> Iterator[None]:
    """Let PySpark find the process that runs, by the variables `spark-submit` would set; put back at the end."""
    names = {"PYSPARK_GATEWAY_PORT": str(connection.port), "PYSPARK_GATEWAY_SECRET": connection.secret}
    names |= {name: plan.environ[name] for name in ("PYSPARK_PYTHON", "SPARK_HOME", "JAVA_HOME")}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _context(pyspark: Any, plan: SessionPlan, options: SparkOptions, driver: Driver, log: DriverLog) -> SparkContext:
    """Connect to the master.  The call has no time limit of its own, so Java is ended when it takes too long."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        driver.kill()

    timer = threading.Timer(options.start_timeout, give_up)
    timer.daemon = True
    timer.start()
    try:
        with _kept_signal_handler():
            context: SparkContext = pyspark.SparkContext()
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        if late.is_set():
            raise failures.unreachable(plan.master, f"no answer within {options.start_timeout:g} seconds") from None
        if driver.status is not None:
            driver.drain()
        raise failures.explain(error, log.text(), plan.master, driver.status) from None
    finally:
        timer.cancel()
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        # When Java ends, or dies, it leaves this server's connection open: no reason to print a traceback.
        server.handle_error = _ignore
    return context


def _stop(context: SparkContext) -> None:
    """Stop Spark within a bounded time and without PySpark's second of waiting for its accumulator server."""
    holder: Any = context
    server = getattr(holder, "_accumulatorServer", None)
    if server is not None:
        holder._accumulatorServer = None
        _in_background(server.shutdown)
    thread = _in_background(context.stop)
    thread.join(timeout=STOP_SECONDS)


def _ignore(*_: object) -> None:
    """Take anything and do nothing."""


def _in_background(action: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        # Java may be gone already; there is nothing left to stop then.
        with contextlib.suppress(Exception):
            action()

    thread = threading.Thread(target=run, name="acidctl-spark-stop", daemon=True)
    thread.start()
    return thread


def _forget_gateway(pyspark: Any) -> None:
    """Java is gone: let the next session of this process start anew."""
    context = pyspark.SparkContext
    if context._gateway is not None:
        with contextlib.suppress(Exception):
            context._gateway.shutdown()
    context._gateway = None
    context._jvm = None
    context._active_spark_context = None
