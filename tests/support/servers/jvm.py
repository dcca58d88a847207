"""A Java program as a server of tests, with the packages open that Hadoop and Hive reach into."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from support.servers.hdfs_server import ServerUnavailable, find_java

_OPEN = """
java.net java.util java.util.concurrent java.util.concurrent.locks java.util.concurrent.atomic java.util.regex
java.lang java.lang.invoke java.lang.reflect java.io java.math java.nio java.text java.time java.security
sun.nio.ch sun.nio.cs sun.net.dns sun.net.util
"""


def command(
    class_path: Sequence[Path | str],
    main: str,
    *arguments: str,
    heap: str,
    home: Path,
    java: str = "",
    options: Sequence[str] = (),
) -> list[str]:
    """The command line of a Java program whose scratch files and Derby's log lie in `home`; `options` are the JVM's."""
    opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPEN.split()]
    return [
        *(
            java or find_java(),
            f"-Xmx{heap}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:ReservedCodeCacheSize=256m",  # else 48 MB, which Hive fills and Java sweeps without end
            "-Djava.net.preferIPv4Stack=true",
        ),
        *(f"-Dderby.stream.error.file={home}/derby.log", f"-Djava.io.tmpdir={home}", f"-Duser.dir={home}"),
        *opens,
        "--add-opens=java.sql/java.sql=ALL-UNNAMED",
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        *options,
        *("-cp", os.pathsep.join(str(path) for path in class_path), main, *arguments),
    ]


def write_site(path: Path, properties: Mapping[str, str]) -> None:
    """One of Hadoop's or Hive's configuration files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(
        f"<property><name>{key}</name><value>{escape(value)}</value></property>\n" for key, value in properties.items()
    )
    path.write_text(f"<configuration>\n{body}</configuration>\n")


def run(arguments: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float = 180) -> str:
    """Run a tool to its end.

    Raises:
        ServerUnavailable: it failed.
    """
    ended = subprocess.run(
        arguments,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if ended.returncode:
        raise ServerUnavailable(f"{arguments[-1]} failed: {(ended.stdout + ended.stderr)[-500:]}")
    return ended.stdout


class Process:
    """A process in a session of its own, with its errors in a log.

    Attributes:
        popen: its pipes, where they were asked for.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        pipes: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        pipe = subprocess.PIPE if pipes else subprocess.DEVNULL
        with log.open("wb") as errors:
            self.popen = subprocess.Popen(
                arguments,
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
                start_new_session=True,
                text=True,
            )

    def wait_for(self, is_up: Callable[[], bool], timeout: float = 90) -> None:
        """Wait until it answers.

        Raises:
            ServerUnavailable: it ended, or does not answer in time.
        """
        end = time.monotonic() + timeout
        while not is_up():
            if self.popen.poll() is not None or time.monotonic() > end:
                raise ServerUnavailable(f"it does not come up: {self.said()}")
            time.sleep(0.1)

    def said(self) -> str:
        """The last of its log, for messages."""
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if not line.startswith("\t")]
        return " | ".join(lines[-3:])

    def stop(self) -> None:
        """End it and what it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.popen.poll() is None:
                os.killpg(self.popen.pid, number)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                continue
