"""A ZooKeeper 3.8 of its own process, on loopback, of the jars of Hive 4's metastore.

python -m support.servers.zookeeper_server DIRECTORY   # prints its address; ends with the input
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from support.servers.hdfs_server import free_ports
from support.servers.jvm import Process, command
from support.servers.metastore_schema import class_path

_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeperServer:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        directory: for its data and its log.

    Attributes:
        port: at which it listens.
        address: ``127.0.0.1:PORT``, a quorum of one.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had, or it does not come up.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0]
        self.address = f"127.0.0.1:{self.port}"
        conf = directory / "zoo.cfg"
        conf.write_text(
            f"dataDir={directory}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=1000\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
        )
        arguments = command(class_path(4), _MAIN, str(conf), heap="128m", home=directory)
        self._process = Process(arguments, directory / "zookeeper.log")
        try:
            self._process.wait_for(lambda: "Mode: standalone" in self.ask("srvr"))
        except BaseException:
            self.stop()
            raise

    def ask(self, word: str) -> str:
        """What it says to one of its words of four letters; nothing while it is not there."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(word.encode())
                return connection.makefile(encoding="utf-8").read()
        except OSError:
            return ""

    def stop(self) -> None:
        """End it."""
        self._process.stop()


if __name__ == "__main__":
    server = ZooKeeperServer(Path(sys.argv[1]).resolve())
    try:
        print(server.address, flush=True)
        sys.stdin.read()
    finally:
        server.stop()
