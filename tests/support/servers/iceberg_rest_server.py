"""Iceberg's own REST catalog, of its test fixtures, on loopback, with its tables in a directory."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from support.servers.hdfs_server import free_ports
from support.servers.jars import fetch
from support.servers.jvm import Process, command


class IcebergRestServer:
    """Started by the constructor, ended by :meth:`stop`.

    Attributes:
        address: ``http://127.0.0.1:PORT``.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had, or it does not come up.
    """

    def __init__(self, directory: Path) -> None:
        folder, (port,) = fetch("rest1101"), free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "CATALOG_REST_PORT": str(port),
            "CATALOG_WAREHOUSE": (directory / "warehouse").as_uri(),
            "CATALOG_URI": f"jdbc:sqlite:{directory}/catalog.db",
        }
        program = command(
            [folder / "lib" / "*"], "org.apache.iceberg.rest.RESTCatalogServer", heap="256m", home=directory
        )
        self._process = Process(program, directory / "rest.log", environment=settings)
        try:
            self._process.wait_for(self._is_up)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it."""
        self._process.stop()

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/v1/config", timeout=5):
                return True
        except (OSError, urllib.error.URLError):
            return False
