"""Prometheus, and `promtool`, of a Debian package that is unpacked into the cache, not installed."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from support.servers.hdfs_server import ServerUnavailable, download_debian, free_ports
from support.servers.kerberos_packages import once

_VERSION = "2.42.0+ds-5+deb12u1"
_PATIENCE = 60.0


def program(name: str) -> Path:
    """The path of `prometheus` or `promtool`.

    Raises:
        ServerUnavailable: the package cannot be had, or does not run here.
    """
    wanted = f"prometheus={_VERSION}"
    found = once(wanted.replace("=", "-"), lambda folder: download_debian([wanted], folder)) / "usr/bin" / name
    try:
        subprocess.run([found, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServerUnavailable(f"{wanted} does not run here: {error}") from error
    return found


class Prometheus:
    """A server that has scraped its targets, and its answers."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **values: str) -> Any:
        """The data of an answer of its API."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(values)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression gives."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def answers(self, expression: str) -> bool:
        """Whether an expression gives any series within a minute: a rate needs two scrapes."""
        until = time.monotonic() + _PATIENCE
        while not (found := self.values(expression)) and time.monotonic() < until:
            time.sleep(0.2)
        return bool(found)


@contextmanager
def prometheus(folder: Path, rules: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Start one on loopback with rules and targets, ``host:port`` by the names of their jobs, and end it.

    Raises:
        ServerUnavailable: it cannot be had, or has not scraped every target after a minute.
    """
    server, (port,) = program("prometheus"), free_ports(1)
    jobs = [{"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()]
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    line = [
        server, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(line, stdout=log, stderr=log) as process:
        try:
            one, until = Prometheus(f"http://127.0.0.1:{port}"), time.monotonic() + _PATIENCE
            while not _is_ready(one, len(targets)):
                if process.poll() is not None or time.monotonic() > until:
                    raise ServerUnavailable(f"Prometheus does not start: {(folder / 'log').read_text()[-500:]}")
                time.sleep(0.2)
            yield one
        finally:
            process.kill()


def _is_ready(one: Prometheus, targets: int) -> bool:
    try:
        return len(one.values("up == 1")) == targets
    except OSError:  # it does not listen yet
        return False
