"""Java's own HiveMetaStoreClient, of Hive 3.1.3, 4.0.1 or 4.1.0: the judge of whom a metastore of tests lets in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable
from support.servers.jvm import Process, command
from support.servers.metastore_schema import class_path

_ONE_TRY = {
    "metastore.connect.retries": "1",
    "metastore.failure.retries": "1",
    "metastore.thrift.client.max.message.size": "1048576b",  # an answer that is no thrift is no message of gigabytes
}


class MetastoreClients:
    """One JVM for any number of clients; ended by :meth:`stop`.

    Args:
        version: 3, 4, or 41 for 4.1.0.
        directory: for its log.
        options: of the JVM: a way's ``jvm()``.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had.
    """

    def __init__(self, version: int, directory: Path, options: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        arguments = command(class_path(version), "Clients", heap="256m", home=directory, options=options)
        self._process = Process(arguments, directory / "clients.log", pipes=True)
        try:
            self._answer()
        except BaseException:
            self.stop()
            raise

    def connect(self, properties: Mapping[str, str], **login: str) -> dict[str, object]:
        """What one that connects gets: `user`, `databases`, `transaction`, `token`; or its `error`.

        Args:
            properties: the server's `client`, or others.
            login: `principal` and `keytab`, or a `token`; `renewer` to be given a token.
        """
        assert self._process.popen.stdin
        self._process.popen.stdin.write(json.dumps({"properties": _ONE_TRY | dict(properties), **login}) + "\n")
        self._process.popen.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, object]:
        assert self._process.popen.stdout
        line = self._process.popen.stdout.readline()
        if not line:
            raise ServerUnavailable(f"Java's client ended: {self._process.said()}")
        answer: dict[str, object] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End it."""
        self._process.stop()
