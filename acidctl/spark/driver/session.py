"""Start a Spark session as fast and as quietly as Spark allows, and end it without leaving a process behind.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, EnvironmentProblem, UsageProblem
from acidctl.spark.driver import spark_failures
from acidctl.spark.driver.gateway import Driver, DriverEnded, DriverLog, start_driver
from acidctl.spark.driver.session_plan import (
    Java,
    SessionPlan,
    SparkOptions,
    is_local,
    moved_options,
    plan_session,
    split_options,
    trimmed,
    write_properties,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable", "-Xlog:all=error:stderr")
STOP_SECONDS = 20.0
# From a connection that breaks to an exit status: moments, more on a busy machine.
EXIT_SECONDS = 5.0
YARNS_EXECUTORS = 2  # where no number is given
MANY_EXECUTORS = 64  # that Spark is taken to ask for where it may ask for as many as it likes


@dataclass(slots=True)
class Session:
    """A running Spark.

    Attributes:
        java: the Java that was started, or None when Spark ran already.
        driver: the Java process, or None when Spark ran already (``spark-submit``, a notebook).
        log: the output of Java.
        shipped: whether the package was sent, and the executors have come.
    """

    context: SparkContext
    master: str
    java: Java | None
    driver: Driver | None
    log: DriverLog
    options: SparkOptions
    shipped: bool = False

    @property
    def is_local(self) -> bool:
        """Return whether the tasks run on this machine, with this Python."""
        return is_local(self.master)

    @property
    def has_ended(self) -> bool:
        """Return whether the Java process that was started is gone."""
        return self.driver is not None and self.driver.status is not None

    def executors(self) -> int:
        """Return how many executors the cluster gives at present (0 for a local master, which needs none)."""
        status = self.context._jsc.sc().getExecutorMemoryStatus()
        return int(status.size()) - 1  # the driver is among them

    def cores(self) -> int:
        """Return how many tasks run at once, on the executors that there are and those that Spark may ask for.

        Raises EnvironmentProblem if Spark is gone.
        """
        try:
            now = int(self.context.defaultParallelism)
            return max(1, now if self.is_local else max(now, _most_cores(self.context.getConf(), self.master)))
        except Exception as error:  # noqa: BLE001 - Java may be gone
            raise self.explain(error) from None

    def no_executors(self) -> EnvironmentProblem:
        """Return the error for a cluster that ran nothing for us in as long as a start may take."""
        return spark_failures.no_executors(self.master, self.log.text(), self.options.start_timeout)

    def explain(self, error: BaseException) -> AcidctlError:
        """Return the error that a user understands for one that Spark, Py4J or Java raised."""
        status = None
        if self.driver is not None:
            # A process that dies closes its connections before it has an exit status to be asked for.
            status = self.driver.wait(EXIT_SECONDS if spark_failures.tells_of_an_end(error) else 0)
            if status is not None:
                self.driver.drain()
        return spark_failures.explained(error, self.log.text(), self.master, status)


def _most_cores(conf: Any, master: str) -> int:
    """Return the cores of all executors once they run."""
    each = max(1, int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1")))
    if conf.get("spark.dynamicAllocation.enabled", "false") != "true":
        usual = YARNS_EXECUTORS if master == "yarn" else 0
        return int(conf.get("spark.executor.instances", str(usual))) * each
    most = conf.get("spark.dynamicAllocation.maxExecutors", "")
    return (int(most) if most.isdigit() and int(most) < MANY_EXECUTORS else MANY_EXECUTORS) * each


@contextlib.contextmanager
def start_session(options: SparkOptions) -> Iterator[Session]:
    """Start Spark and stop it at the end, whatever happens in between.

    Inside ``spark-submit``, or where a SparkContext is active already, that one is used: its master stays (asking
    for another one is refused), and a context that was there before is left running.

    Args:
        options: the user's wishes.

    Raises:
        EnvironmentProblem: no Java, no PySpark, versions that do not fit, or a master that cannot be reached.
        UsageProblem: a master that Spark does not know, or another master than that of the Spark that runs.
    """
    try:
        import pyspark  # noqa: PLC0415 - half a second, after all checks
        from pyspark import SparkContext  # noqa: PLC0415 - the same; pyspark-client does not have it
    except ImportError as error:
        hint = "Install it with: pip install pyspark (or use --engine local)"
        raise EnvironmentProblem("PySpark cannot be imported", str(error), hint) from error
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield from _session_of_others(pyspark, options)
    else:
        yield from _own_session(pyspark, options)


def _session_of_others(pyspark: Any, options: SparkOptions) -> Iterator[Session]:
    """Yield a Spark that runs already: its context, or one for us in the Java of ``spark-submit``."""
    active = pyspark.SparkContext._active_spark_context
    conf = pyspark.SparkConf()
    running: str = active.master if active is not None else conf.get("spark.master", "") or ""
    asked = options.master or dict(options.conf).get("spark.master")
    if asked is not None and asked != running:  # tasks must not run where nobody asked
        what = f"Spark's master {asked} cannot be used, Spark runs on {running} in this process already"
        hint = "Name no master to use the one that runs, or stop it first"
        raise UsageProblem(what, "a process has one Spark at a time", hint)
    if active is not None:
        yield Session(active, running, None, None, DriverLog(), options)
        return
    conf.setAll((("spark.app.name", options.app_name), *options.conf))
    try:
        context = _new_context(pyspark, conf)
    except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
        raise spark_failures.explained(error, "", running, None) from None
    try:
        yield Session(context, context.master or running, None, None, DriverLog(), options)
    finally:
        context.stop()


def _new_context(pyspark: Any, conf: Any) -> Any:
    """Return a SparkContext; the handler for interrupts, which PySpark replaces, is put back.

    PySpark's handler calls into Java, perhaps in the midst of another call, and would outlive the session.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        return pyspark.SparkContext(conf=conf)
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def time_limit(seconds: float, give_up: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Call `give_up` after `seconds`, which makes calls into Java fail; they have no time limit of their own.

    Yields:
        A function that returns whether they took too long.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        give_up()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late.is_set
    finally:
        timer.cancel()


@contextlib.contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Keep Py4J, which logs to the root logger when Java goes away, from setting up logging to stderr.

    The filter stays: a thread that still waits for Java may notice its end after the session's.
    """
    root = logging.getLogger()
    root.addFilter(_is_not_py4j)
    handler = logging.NullHandler()
    if not root.handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _own_session(pyspark: Any, options: SparkOptions) -> Iterator[Session]:
    plan = plan_session(options, os.environ, Path(pyspark.__file__).parent, pyspark.__version__)
    spark_failures.check_master(plan.master)
    log = DriverLog()
    properties = importlib.resources.files("acidctl.spark") / "log4j2.properties"
    with (
        importlib.resources.as_file(properties) as log4j,
        # Java puts all its temporary files here, so that they go even when it had to be killed.
        tempfile.TemporaryDirectory(prefix="acidctl-spark-", ignore_cleanup_errors=True) as scratch,
        _quiet_py4j(),
    ):
        flags: tuple[str, ...] = (
            f"-Djava.io.tmpdir={scratch}",
            f"-Dlog4j2.configurationFile={log4j.absolute().as_uri()}",
        )
        if kerberos := plan.environ.get("KRB5_CONFIG"):  # MIT's libraries read it, Java does not
            flags += (f"-Djava.security.krb5.conf={kerberos}",)
        plan.environ["JAVA_HOME"] = plan.java.home_for_spark(Path(scratch))
        driver, connection = _launch(plan, options, log, Path(scratch), flags)
        no_context: Any = None
        session = Session(no_context, plan.master, plan.java, driver, log, options)
        grace = 0.0
        try:
            with _connected(plan, connection):
                session.context = _context(pyspark, plan, session)
            grace = 10.0
            try:
                yield session
            finally:
                if not session.has_ended:
                    _stop(session.context)
        finally:
            driver.end(grace)
            context = pyspark.SparkContext  # the next session of this process starts another Java
            if context._gateway is not None:
                with contextlib.suppress(Exception):
                    context._gateway.shutdown()
            context._gateway = None
            context._jvm = None
            context._active_spark_context = None


def _launch(
    plan: SessionPlan, options: SparkOptions, log: DriverLog, scratch: Path, flags: Sequence[str]
) -> tuple[Driver, dict[str, str]]:
    ours = " ".join(f'"{flag}"' if re.search(r"\s", flag) else flag for flag in (*JAVA_FLAGS, *flags))
    environ = dict(plan.environ)
    # Command lines are for everybody to see: settings, and options that are not ours, go to Java in private files.
    with tempfile.TemporaryDirectory(prefix="start-", dir=scratch) as private:
        properties = Path(private, "conf")
        if theirs := plan.conf.get("spark.driver.extraJavaOptions"):
            ours += " " + moved_options(split_options(theirs), Path(private, "java"))
        if more := environ.get("SPARK_SUBMIT_OPTS"):
            environ["SPARK_SUBMIT_OPTS"] = moved_options(split_options(more), Path(private, "submit"))
        write_properties(plan.conf | {"spark.driver.extraJavaOptions": ours}, properties)
        arguments = ["--properties-file", str(properties), *plan.submit_arguments]
        try:
            return start_driver(
                plan.spark_home, arguments, environ, timeout=options.start_timeout, folder=scratch, log=log
            )
        except DriverEnded as error:
            raise spark_failures.explained(error, log.text(), plan.master, error.status) from None


@contextlib.contextmanager
def _connected(plan: SessionPlan, connection: dict[str, str]) -> Iterator[None]:
    """Let PySpark find the process that runs, by the variables `spark-submit` would set; put back at the end."""
    changes = connection | {name: plan.environ[name] for name in ("PYSPARK_PYTHON", "SPARK_HOME", "JAVA_HOME")}
    before = {name: os.environ[name] for name in changes if name in os.environ}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update(before)


def _context(pyspark: Any, plan: SessionPlan, session: Session) -> Any:
    """Connect to the master; Java is ended when it takes too long."""
    seconds, driver = session.options.start_timeout, session.driver
    assert driver is not None

    def hear(line: str) -> None:
        if spark_failures.NO_LOGIN in line:  # in a thread of its own: this one reads what Java says
            threading.Thread(target=driver.kill, name="acidctl-spark-end", daemon=True).start()

    session.log.listener = hear
    with time_limit(seconds, driver.kill) as is_late:
        try:
            conf = pyspark.SparkConf()
            # A file cannot tell of blanks at the ends of a value.
            conf.setAll([(key, value) for key, value in plan.conf.items() if value != trimmed(value)])
            context = _new_context(pyspark, conf)
        except Exception as error:  # noqa: BLE001 - Java's exceptions have no common class
            if is_late():
                raise spark_failures.unreachable(plan.master, f"no answer within {seconds:g} seconds") from None
            raise session.explain(error) from None
        finally:
            session.log.listener = None
    # When Java ends, or dies, it leaves this server's connection open: no reason to print a traceback.
    context._accumulatorServer.handle_error = lambda *_: None
    return context


def _stop(context: Any) -> None:
    """Stop Spark within a bounded time and without PySpark's second of waiting for its accumulator server."""

    def run(action: Callable[[], object]) -> None:
        # Java may be gone already; there is nothing left to stop then.
        with contextlib.suppress(Exception):
            action()

    server, context._accumulatorServer = context._accumulatorServer, None
    for action in (server.shutdown, context.stop):
        thread = threading.Thread(target=run, args=(action,), name="acidctl-spark-stop", daemon=True)
        thread.start()
    thread.join(timeout=STOP_SECONDS)
