"""A PostgreSQL of the machine, as the database of a metastore: Derby deadlocks when transactions compete.

It listens on the loopback only, and trusts everybody there.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, free_ports
from support.servers.jars import fetch
from support.servers.jvm import Process

_PATH = os.pathsep.join([os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])


class PostgresServer:
    """Started by the constructor, ended by :meth:`stop`; its files go with it.

    Raises:
        ServerUnavailable: PostgreSQL is not installed, or does not start.
    """

    def __init__(self) -> None:
        programs = [shutil.which(name, path=_PATH) for name in ("initdb", "postgres")]
        if None in programs:
            raise ServerUnavailable("no PostgreSQL is installed (Debian: apt-get install postgresql)")
        init, server = map(str, programs)
        user = _user() if os.geteuid() == 0 else None  # it refuses to run as root
        self._directory = Path(tempfile.mkdtemp(dir="/tmp"))  # where another user has access
        if user:
            shutil.chown(self._directory, user)
        data = self._directory / "data"
        made = subprocess.run(
            [init, "-D", data, "-U", "hive", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
            user=user, cwd=self._directory, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            shutil.rmtree(self._directory)
            raise ServerUnavailable(f"initdb failed: {made.stderr[-300:]}")
        self._port = free_ports(1)[0]
        # Its log is another user's to write, so that only its own pipe would be left: it logs to a file itself.
        options = {"port": self._port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        words = [f"--{name}={value}" for name, value in options.items()]
        as_user = (
            ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"] if user else []
        )
        self._process = Process([*as_user, server, "-D", str(data), *words], self._directory / "log")
        try:
            self._process.wait_for(self._is_up)
        except BaseException:
            self.stop()
            raise

    def _is_up(self) -> bool:
        return "ready to accept connections" in (self._directory / "log").read_text(errors="replace")

    @property
    def properties(self) -> dict[str, str]:
        """The properties by which a metastore finds it."""
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{self._port}/postgres",
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": "hive",
            "javax.jdo.option.ConnectionPassword": "hive",
        }

    @cached_property
    def driver(self) -> Path:
        """The jar of its JDBC driver, which Hive's archive of the metastore has."""
        (jar,) = fetch("metastore4").glob("apache-hive-metastore-*/lib/postgresql-*.jar")
        return jar

    def stop(self) -> None:
        """End it, and remove its files."""
        self._process.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _user() -> str:
    """Return a user who is not root: PostgreSQL's own, or nobody."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
