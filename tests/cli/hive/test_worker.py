"""The stores with which a worker starts Spark, and the page that it serves."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive

from acidctl.cli.hive import worker as command
from acidctl.cli.hive.services import Figures, serve
from acidctl.metastore import interface as wire
from acidctl.spark import compaction_engine


@pytest.mark.parametrize(("master", "logins"), [("yarn", {"nn:8020": "/k"}), ("local[2]", {})])
def test_spark_knows_them_before_there_is_an_entry(
    acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, master: str, logins: dict[str, str]
) -> None:
    started: list[Any] = []

    @contextmanager
    def engines(options: Any, _: object) -> Iterator[tuple[object, str]]:
        started.append(options)
        yield None, "application"

    monkeypatch.setattr(compaction_engine, "spark_engines", engines)
    with FakeHive(4) as fake:
        fake.databases["default"] = wire.Database("default", "hdfs://nn:8020/warehouse")
        login = ("--set", "storage.keytab=/k", "--set", "storage.principal=p")
        done = acidctl("hive", "worker", "--once", "--master", master, *login, "--metastore", fake.address)
    assert done.status == 0, done.err
    assert {one.authority: dict(one.options)["keytab"] for one in started[0].stores} == logins


def test_its_page_has_the_queue_of_its_metastore(
    acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[str] = []

    @contextmanager
    def looked_at(listen: str, figures: Figures) -> Iterator[None]:
        assert figures.queue
        with serve(listen, figures) as address:
            figures.queue.look()
            pages.append(urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode())
            yield

    monkeypatch.setattr(command, "serve", looked_at)
    with FakeHive(4) as fake:
        fake.entry("s", "t", "working", started=100)
        words = ("hive", "worker", "--once", "--engine", "local", "--listen", "0", "--metastore", fake.address)
        done = acidctl(*words)
    assert done.status == 0, done.err
    assert 'acidctl_queue_entries{state="working"} 1.0' in pages[0]
    assert re.search(r"^acidctl_worker_running 0.0$", pages[0], re.MULTILINE)
