"""`acidctl doctor` with a cluster: what each node has and lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import Result

from acidctl.spark.probe import SparkCheck
from acidctl.spark.shipping import problems_of
from acidctl.spark.worker import ExecutorFacts, executor_facts


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``nodes(facts, ...)``: what Spark finds, which is not started."""

    def answer(*found: ExecutorFacts) -> None:
        problems = tuple(problem for node in found for problem in problems_of(node))
        check = SparkCheck(2.5, "4.3.0", "17.0.1", "yarn", found, problems)
        monkeypatch.setattr("acidctl.spark.probe.spark_check", lambda options: asked.append(options) or check)  # type: ignore[func-returns-value]

    asked: list[object] = []
    return answer


def test_nodes_that_have_all_are_shown(acidctl: Callable[..., Result], nodes: Callable[..., None]) -> None:
    facts = executor_facts(0)
    nodes(replace(facts, host="node7", executable="./env/bin/python"), replace(facts, host="node8", versions=()))
    done = acidctl("doctor", "--spark", "--master", "yarn", "--conf", "spark.yarn.queue=etl")
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "4.3.0 on yarn, Java 17.0.1: first task after 2.5 s" in text
    assert f"node node7: Python {facts.python} (./env/bin/python) pyarrow {dict(facts.versions)['pyarrow']}" in text
    assert f"node8: Python {facts.python}" in text


def test_what_a_node_lacks_is_shown_and_is_the_status(
    acidctl: Callable[..., Result], nodes: Callable[..., None]
) -> None:
    bare = replace(executor_facts(0), host="node7", versions=(), problems=(("isal", "No module"), ("numpy", "broken")))
    nodes(executor_facts(0), bare)
    done = acidctl("doctor", "--master", "yarn", "-o", "json")
    assert done.status == 8
    assert "node7" in done.err
    assert "-m pip install isal numpy" in done.err
    record = done.json()
    assert "looked around in" in record["spark"]
    assert [len(node["problems"]) for node in record["nodes"]] == [0, 1]
    assert record["nodes"][1]["packages"] == []
    assert "first task" not in acidctl("doctor", "--master", "yarn").out


def test_stores_are_shown_with_whether_they_can_be_reached(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    done = acidctl("doctor", tmp_path)
    assert (done.status, f"{tmp_path}: can be reached" in " ".join(done.out.split())) == (0, True)
    done = acidctl("doctor", tmp_path, tmp_path / "none", "webhdfs://127.0.0.1:1/t", "--set", "storage.retries=0")
    assert done.status == 3
    assert "check that the NameNode runs" in done.out
    found = acidctl("doctor", tmp_path / "none", tmp_path, "-o", "json").json()["stores"]
    assert [one["problem"] and one["problem"]["code"] for one in found] == ["not-found", None]


@pytest.mark.parametrize("options", [("--conf", "a=b"), ("--conf", "novalue")])
def test_what_spark_would_ignore_is_refused(acidctl: Callable[..., Result], options: tuple[str, ...]) -> None:
    assert acidctl("doctor", *options).status == 2
