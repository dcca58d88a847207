"""`acidctl doctor` with a cluster: what each node has and lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
        monkeypatch.setattr("acidctl.cli.check.work.doctor.spark_check", lambda options: asked.append(options) or check)  # type: ignore[func-returns-value]

    asked: list[object] = []
    return answer


def test_nodes_that_have_all_are_shown(acidctl: Callable[..., Result], nodes: Callable[..., None]) -> None:
    facts = executor_facts(0)
    nodes(replace(facts, host="node7", executable="./env/bin/python"), replace(facts, host="node8", versions=()))
    done = acidctl("doctor", "--spark", "--master", "yarn", "--queue", "etl")
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "4.3.0 on yarn, Java 17.0.1: first task after 2.5 s" in text
    assert f"node node7: Python {facts.python} (./env/bin/python) pyarrow {dict(facts.versions)['pyarrow']}" in text
    assert "hive_acid reads the columns that a query uses" in text
    assert "s3fs not installed, which only some stores and checks need" in text.partition("node8")[2]


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


def test_a_spark_whose_plans_stay_as_they_are_is_shown(
    acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = SparkCheck(2.5, "5.0.0", "21", "local[*]", pruning="CompileException: line 3", columnar="no jar")
    monkeypatch.setattr("acidctl.cli.check.work.doctor.spark_check", lambda options: check)
    shown = " ".join(acidctl("doctor", "--spark").out.split())
    assert "hive_acid reads every column (CompileException: line 3), and gives Spark rows one by one (no jar)" in shown
    found = acidctl("doctor", "--spark", "-o", "json").json()
    assert (found["pruning"], found["columnar"]) == ("CompileException: line 3", "no jar")


@pytest.mark.parametrize("options", [("--queue", "etl", "--master", "local"), ("--conf", "a=b"), ("--conf", "novalue")])
def test_what_spark_would_ignore_is_refused(acidctl: Callable[..., Result], options: tuple[str, ...]) -> None:
    assert acidctl("doctor", *options).status == 2
