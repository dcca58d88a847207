"""A Java that dies is told, also when its connection breaks some time before its exit status is there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from acidctl.base.errors import AccessError, StorageError
from acidctl.spark.driver import session as session_module
from acidctl.spark.driver.gateway import Driver, DriverLog
from acidctl.spark.driver.session import Session
from acidctl.spark.driver.session_plan import SparkOptions

Starter = Callable[[str], Session]


@pytest.fixture
def java() -> Iterator[Starter]:
    """Sessions whose Java is a shell script."""
    drivers: list[Driver] = []

    def start(script: str) -> Session:
        process = subprocess.Popen(
            ["sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log = DriverLog()
        drivers.append(Driver(process, log))
        context: Any = None
        return Session(context, "local[2]", None, drivers[-1], log, SparkOptions())

    yield start
    for driver in drivers:
        driver.kill()


class _Deaf:
    """What answers for an exception of Java when Java is gone."""

    _target_id = "o1"

    @property
    def _gateway_client(self) -> Any:
        raise ConnectionRefusedError("nobody there")


LOST = (
    Py4JError("An error occurred while calling o1.x"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JJavaError("An error occurred while calling o1.x.\n", _Deaf()),
    ConnectionRefusedError(111, "Connection refused"),
    EOFError(),
    RuntimeError("Job 3 cancelled because SparkContext was shut down"),
)


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_the_exit_status_is_waited_for(java: Starter, error: Exception) -> None:
    told = java("echo its last words; sleep 0.5; kill -9 $$").explain(error)
    assert told.what == "The Java process of Spark was killed by signal 9"
    assert told.why == "often by the system, when memory runs out"
    assert "its last words" in told.__dict__["spark_log"]


def test_an_end_with_a_status(java: Starter) -> None:
    told = java("sleep 0.3; exit 143").explain(ConnectionResetError())
    assert told.what == "The Java process of Spark ended with status 143"


def test_the_wait_is_bounded(java: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "EXIT_SECONDS", 0.2)
    session = java("sleep 600")
    assert session.explain(LOST[0]).what == "Spark failed"
    assert session.driver is not None
    assert session.driver.status is None


def test_what_a_living_java_says_is_not_waited_for(java: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "EXIT_SECONDS", 600.0)
    session = java("sleep 600")
    began = time.monotonic()
    assert session.explain(RuntimeError("something unheard of")).what == "Spark failed"
    ours = StorageError("SparkContext was shut down", "", "")
    assert session.explain(ours) is ours
    assert time.monotonic() - began < 60


def test_a_login_that_is_missing_ends_the_start_at_once(java: Starter) -> None:
    said = "AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]"
    session = java(f"read _; echo '{said}'; sleep 600")
    ended = []

    def connect(conf: object) -> None:
        assert session.driver is not None
        session.driver._stdin.write(b"\n")
        session.driver._stdin.flush()
        ended.append(session.driver.wait(60))
        raise ConnectionResetError

    conf = SimpleNamespace(setAll=lambda pairs: None)
    pyspark = SimpleNamespace(SparkConf=lambda: conf, SparkContext=connect)
    plan: Any = SimpleNamespace(conf={}, master="yarn")
    with pytest.raises(AccessError, match="Spark cannot log in to") as raised:
        session_module._context(pyspark, plan, session)
    assert "kinit" in raised.value.hint
    assert ended == [-9]
    assert session.log.listener is None


YARN = {"spark.executor.cores": "4"}
DYNAMIC = YARN | {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "now", "conf", "cores"),
    [
        ("local[3]", 3, {"spark.executor.instances": "50"}, 3),
        ("spark://host:7077", 6, {}, 6),
        ("yarn", 2, YARN | {"spark.executor.instances": "5"}, 20),
        ("yarn", 40, YARN | {"spark.executor.instances": "5"}, 40),
        ("yarn", 2, YARN | {"spark.executor.instances": "5", "spark.task.cpus": "2"}, 10),
        ("yarn", 2, DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "10"}, 40),
        ("yarn", 2, DYNAMIC, 4 * 64),
        (
            "yarn",
            2,
            DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "2147483647"},
            4 * 64,
        ),
        ("yarn", 2, YARN, 8),
        ("spark://host:7077", 2, YARN, 2),
        ("local", 0, {}, 1),
    ],
)
def test_executors_that_may_come_count(master: str, now: int, conf: dict[str, str], cores: int) -> None:
    class Context:
        defaultParallelism = now  # noqa: N815 - PySpark's name

        def getConf(self) -> dict[str, str]:
            return conf

    context: Any = Context()
    assert Session(context, master, None, None, DriverLog(), SparkOptions()).cores() == cores
