"""What Hive's own Java classes, of 2.3.10 to 4.2.1, say of a metastore's lists and of its interface."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.servers import metastore_of_pyspark
from support.servers.hdfs_server import ServerUnavailable
from support.servers.java_of_version import java_for
from support.servers.jvm import Process, command, run
from support.servers.metastore_schema import class_path

_MAIN = str(Path(__file__).with_name("java") / "judge/Judge.java")
"""Java compiles it as it starts it, unless it has no compiler: it is the same for all versions."""


class MetastoreJudge:
    """One JVM for any number of questions; ended by :meth:`stop`.

    Args:
        version: 2, 3, 4, 41 for 4.1.0, or 42 for 4.2.1.
        directory: for its log.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had.
    """

    def __init__(self, version: int, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        path = metastore_of_pyspark.class_path() if version == 2 else class_path(version)
        self._version = version
        main, java = _MAIN, java_for(version)
        if java:
            run(["javac", "-nowarn", "-cp", os.pathsep.join(map(str, class_path(4))), "-d", str(directory), _MAIN])
            path, main = [directory, *path], "Judge"
        line = command(path, main, heap="256m", home=directory, java=java)
        self._process = Process(line, directory / "judge.log", pipes=True)
        try:
            self._answer()
        except BaseException:
            self.stop()
            raise

    def connect(self, properties: Mapping[str, str]) -> None:
        """Ask this metastore from now on: a server's `client`."""
        known = metastore_of_pyspark.properties(properties) if self._version == 2 else dict(properties)
        self._ask({"connect": known})

    def lists(self, tables: Sequence[str], ranges: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
        """What those who come now are told.

        Args:
            tables: ``db.table``; none for Hive 2, which has no lists of tables.
            ranges: of ids, of which each list is asked.

        Returns:
            ``txns``, the list of readers, ``least``, the lowest open transaction of any type, and ``lists``: of each
            table, and each of ``reader``, ``compactor`` and ``cleaner`` that the version has, the ``text``, and for
            ``ranges`` whether the range is valid, is aborted, its first id is valid, is aborted, is that of a base.
        """
        return self._ask({"tables": list(tables), "ranges": [list(one) for one in ranges]})

    def interface(self, methods: Sequence[str]) -> dict[str, Any]:
        """The ``methods`` that this version has, each its arguments and its results, with ``structs`` and ``enums``.

        Fields are by number, each with its name and its type: ``I64``, ``["LIST", "I64"]``, ``["STRUCT", "TxnInfo"]``.
        """
        return self._ask({"methods": list(methods)})

    def _ask(self, question: object) -> dict[str, Any]:
        assert self._process.popen.stdin
        self._process.popen.stdin.write(json.dumps(question) + "\n")
        self._process.popen.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.popen.stdout
        line = self._process.popen.stdout.readline()
        if not line:
            raise ServerUnavailable(f"Java's judge ended: {self._process.said()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End it."""
        self._process.stop()
