"""With which stores a worker starts Spark: those of the databases, where its master gives tokens for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive

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
