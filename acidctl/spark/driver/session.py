"""One Spark session, started as fast and as quietly as Spark allows, and ended without leaving a process behind.

Rows never cross Java: Spark only hands out tasks to Python workers.  So only a SparkContext is started (the SQL
session would cost seconds more), Java compiles with its quick compiler alone and collects garbage serially.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acidctl.errors import AcidctlError, EnvironmentProblem, UsageProblem
from acidctl.spark.driver import archive, failures
from acidctl.spark.driver.gateway import Connection, Driver, DriverEnded, DriverLog, start_driver
from acidctl.spark.driver.java import Java
from acidctl.spark.driver.properties import options_file, split_options, trimmed, write_private, written
from acidctl.spark.driver.session_plan import SessionPlan, SparkOptions, is_local, parse_conf, plan_session

__all__ = ["Session", "SparkOptions", "parse_conf", "start_session"]

if TYPE_CHECKING:
    from pyspark import SparkContext

JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
STOP_SECONDS = 20.0
# From a connection that breaks to an exit status: moments, more on a busy machine.
EXIT_SECONDS = 5.0


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

    def executors(self) -> int:
        """How many executors the cluster gives at present (0 for a local master, which needs none)."""
        status = self.context._jsc.sc().getExecutorMemoryStatus()
        return int(status.size()) - 1  # the driver is among them

    def explain(self, error: BaseException) -> AcidctlError:
        """The error that a user understands for one that Spark, Py4J or Java raised."""
        return _explain(error, self.driver, self.log, self.master)


def _explain(error: BaseException, driver: Driver | None, log: DriverLog, master: str) -> AcidctlError:
    status = driver.status if driver is not None else None
    if driver is not None and status is None and failures.tells_of_an_end(error):
        # A process that dies closes its connections before it has an exit status to be asked for.
        status = driver.wait(EXIT_SECONDS)
    if driver is not None and status is not None:
        driver.drain()
    return failures.explain(error, log.text(), master, status)


@contextlib.contextmanager
def start_session(
    options: SparkOptions, *, record_archive: Path | None = None, use_archive: bool = True
) -> Iterator[Session]:
    """Start Spark and stop it at the end, whatever happens in between.

    Inside ``spark-submit``, or where a SparkContext is active already, that one is used: its master stays (asking
    for another one is refused), and a context that was there before is left running.

    Args:
        options: the user's wishes.
        record_archive: write the class archive to this path at the end (slow; see :mod:`acidctl.spark.driver.archive`).
        use_archive: use the class archive when there is one.

    Raises:
        EnvironmentProblem: no Java, no PySpark, versions that do not fit, or a master that cannot be reached.
        UsageProblem: a master or queue that Spark does not know, or another master than that of the Spark that runs.
    """
    pyspark = _import_pyspark()
    active = pyspark.SparkContext._active_spark_context
    if active is not None:
        _check_same_master(options, active.master)
        yield Session(active, active.master, None, None, DriverLog(), options)
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        yield from _session_of_spark_submit(pyspark, options)
    else:
        yield from _own_session(pyspark, options, record_archive, use_archive)


def _check_same_master(options: SparkOptions, running: str) -> None:
    """Refuse a master that the user named when it is not the one in use: tasks must not run where nobody asked."""
    asked = options.master or dict(options.conf).get("spark.master")
    if asked is not None and asked != running:
        raise UsageProblem(
            f"Spark's master {asked} cannot be used, Spark runs on {running} in this process already",
            "a process has one Spark at a time",
            "Name no master to use the one that runs, or stop it first",
        )


def _import_pyspark() -> Any:
    try:
        import pyspark  # noqa: PLC0415 - half a second, after all checks
        from pyspark import SparkContext  # noqa: PLC0415 - the same
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
    """Keep Py4J, which logs to the root logger when Java goes away, from setting up logging to stderr by that.

    The filter stays: a thread that still waits for Java may notice its end after the session's.
    """
    root = logging.getLogger()
    root.addFilter(_is_not_py4j)
    handler = logging.NullHandler()
    if root.handlers:
        yield
        return
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _session_of_spark_submit(pyspark: Any, options: SparkOptions) -> Iterator[Session]:
    conf = pyspark.SparkConf()
    _check_same_master(options, conf.get("spark.master", "") or "")
    for key, value in options.conf:
        conf.set(key, value)
    conf.set("spark.app.name", options.app_name)
    try:
        with _kept_signal_handler():
            context = pyspark.SparkContext(conf=conf)
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        raise failures.explain(error, "", conf.get("spark.master", "") or "", None) from None
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
            driver.kill()
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


def _start(
    plan: SessionPlan, options: SparkOptions, log: DriverLog, scratch: Path, flags: tuple[str, ...]
) -> tuple[Driver, Connection]:
    conf = plan.inherited | plan.conf
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    more = ("-Dacidctl.spark.log=info",) if options.verbose else ()
    ours = " ".join(f'"{flag}"' if re.search(r"\s", flag) else flag for flag in (*JAVA_FLAGS, *flags, *more))
    environ = dict(plan.environ)
    # Command lines are for everybody to see: settings, and options that are not ours, go to Java in private files.
    properties, java_options, more_options = (scratch / name for name in ("properties", "options", "submit-options"))
    if theirs:
        write_private(java_options, options_file(split_options(theirs)))
        ours += f' "@{java_options}"'
    if environ.get("SPARK_SUBMIT_OPTS"):
        write_private(more_options, options_file(split_options(environ["SPARK_SUBMIT_OPTS"])))
        environ["SPARK_SUBMIT_OPTS"] = f'"@{more_options}"'
    write_private(properties, written(conf | {"spark.driver.extraJavaOptions": ours}))
    arguments = ["--properties-file", str(properties), *plan.submit_arguments]
    try:
        return start_driver(plan.spark_home, arguments, environ, timeout=options.start_timeout, folder=scratch, log=log)
    except DriverEnded as error:
        without = archive.without(flags)
        if without != flags:
            # Java ignores an archive that does not fit.  Should one stop it all the same, the archive goes, not the
            # user's job; but only when it was to blame.
            started = _start(plan, options, log, scratch, without)
            archive.discard(flags)
            return started
        raise failures.explain(error, error.log, plan.master, error.status) from None
    finally:
        for file in (properties, java_options, more_options):
            file.unlink(missing_ok=True)


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
            conf = pyspark.SparkConf()
            for key, value in plan.conf.items():
                if value != trimmed(value):  # a file cannot tell
                    conf.set(key, value)
            context: SparkContext = pyspark.SparkContext(conf=conf)
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        if late.is_set():
            raise failures.unreachable(plan.master, f"no answer within {options.start_timeout:g} seconds") from None
        raise _explain(error, driver, log, plan.master) from None
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
