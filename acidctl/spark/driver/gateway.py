"""Start the Java process of a Spark driver by ``spark-submit``, watch it, and end it without leaving anything behind.

PySpark could start it, but then its messages go straight to the user's terminal, and an interrupt during the start
leaves it behind.  So acidctl starts it and hands PySpark the port, exactly as ``spark-submit app.py`` does.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from acidctl.base.errors import EnvironmentProblem
from acidctl.base.memory_growth import GROWTH

KEPT_LINES = 400
POLL_SECONDS = 0.01

# Lines that every start prints and that say nothing about this run.
NOISE = re.compile(
    r"WARNING: Using incubator modules"
    r"|WARNING: (A|Use) .*(restricted method|terminally deprecated|native access|jdk\.internal)"
    r"|WARNING: (sun\.misc\.Unsafe|java\.lang\.System::load|Please consider reporting|Restricted methods)"
    r"|Picked up (JAVA_TOOL_OPTIONS|_JAVA_OPTIONS)|NOTE: Picked up JDK_JAVA_OPTIONS"
    r"|Using Spark's (default|repl) log4j profile|Setting default log level|To adjust logging level"
    r"|SLF4J|NativeCodeLoader|\[warning\]\[cds|^\s*$"
)


class DriverLog:
    """The last lines of output of the driver's Java process, without the noise; may be shared by threads."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.listener: Callable[[str], None] | None = None

    def add(self, line: str) -> None:
        """Keep one line, and give it to the listener."""
        if NOISE.search(line):
            return
        self._lines.append(line)
        listener = self.listener
        # Whatever goes wrong there, the pipe must be read on, or Java would stand still.
        with contextlib.suppress(Exception):
            if listener is not None:
                listener(line)

    def text(self) -> str:
        """Return the lines kept, oldest first."""
        return "\n".join(list(self._lines))


class Driver:
    """A running Java process with a Py4J gateway; :meth:`end` must be called."""

    def __init__(self, process: subprocess.Popen[bytes], log: DriverLog) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.log = log
        self._stdin, self._stdout = process.stdin, process.stdout
        self._pump = threading.Thread(target=self._read, name="acidctl-spark-log", daemon=True)
        self._pump.start()

    def _read(self) -> None:
        # A closed pipe raises ValueError when the process was ended while a read was under way.
        with contextlib.suppress(OSError, ValueError):
            for line in self._stdout:
                self.log.add(line.decode("utf-8", "replace").rstrip())

    @property
    def status(self) -> int | None:
        """Return the exit status, None while the process runs."""
        return self.process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit status; None if the process still runs after `seconds`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds)
        return self.status

    def drain(self) -> None:
        """Wait shortly for the last lines of a process that has ended."""
        self._pump.join(timeout=2)

    def end(self, grace: float = 10.0) -> None:
        """Close its stdin, so that the process exits by itself, and kill it after `grace` seconds.

        Its Python workers notice that their pipe closes, and end as well.
        """
        try:
            with contextlib.suppress(OSError):
                self._stdin.close()
            self.wait(grace)
        finally:
            if self.status is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    # Its own session: the group holds the launching shell and Java, nothing else.
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.drain()
            if not self._pump.is_alive():
                self._stdout.close()

    def kill(self) -> None:
        """End the process at once."""
        self.end(grace=0)


class DriverEnded(Exception):
    """The Java process ended before it could be used."""

    def __init__(self, status: int, log: str) -> None:
        super().__init__(f"the Java process of Spark ended with status {status}: {last_words(log)}")
        self.status = status


def start_driver(
    spark_home: str,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    timeout: float,
    folder: Path,
    log: DriverLog,
) -> tuple[Driver, dict[str, str]]:
    """Start ``spark-submit`` with `arguments` and wait until it listens.

    Args:
        environ: the whole environment of the process.
        timeout: seconds to wait for it to listen.
        folder: a private folder for the file that says where it listens.
        log: takes what the process says.

    Returns:
        the process, and the environment variables by which PySpark finds it.

    Raises:
        EnvironmentProblem: it cannot be started, or does not listen in time.
        DriverEnded: it ended instead.
    """
    info = folder / "connection"
    driver: Driver | None = None
    try:
        launched = {**environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info)}
        with _signals_held():
            driver = Driver(_launch(spark_home, arguments, launched), log)
        return driver, _wait(driver, info, timeout)
    except BaseException:
        if driver:
            driver.kill()
        raise


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Deliver interrupts only at the end of the block, where the process that was started in it can be ended."""
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for missed in came:
            signal.raise_signal(missed)


def _launch(spark_home: str, arguments: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        with GROWTH.lifted():
            return subprocess.Popen(
                [str(Path(spark_home, "bin", "spark-submit")), *arguments],
                stdin=subprocess.PIPE,  # Java ends when this pipe breaks, however this process ends
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,  # an interrupt typed at the terminal is ours to pass on
            )
    except OSError as error:
        what = f"Spark cannot be started: {spark_home}/bin/spark-submit: {error.strerror or error}"
        hint = "It is a bash script: check SPARK_HOME, and that bash is on the PATH"
        raise EnvironmentProblem(what, "", hint) from error


def _wait(driver: Driver, info: Path, timeout: float) -> dict[str, str]:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        # Java writes the file elsewhere and renames it, so that it is whole as soon as it is there.
        if info.exists():
            raw = info.read_bytes()
            port, length = struct.unpack(">ii", raw[:8])
            return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": raw[8 : 8 + length].decode()}
        if driver.status is not None and not info.exists():
            driver.drain()
            raise DriverEnded(driver.status, driver.log.text())
        time.sleep(POLL_SECONDS)
    hint = "Try again on a less busy machine, or use --engine local"
    raise EnvironmentProblem(f"Spark did not start within {timeout:g} seconds", last_words(driver.log.text()), hint)


def last_words(log: str) -> str:
    """Return the line of a log that most likely says what went wrong, or an empty string."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    telling = re.compile(r"\b(error|exception|cannot|failed|not found)\b|Error:|Exception", re.IGNORECASE)
    chosen = [line for line in lines if telling.search(line)] or lines or [""]
    return chosen[-1][:300]
