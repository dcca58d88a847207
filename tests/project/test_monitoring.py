"""Alert rules and the dashboard: they use series that acidctl writes, with labels that these have."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import yaml
from prometheus_client import generate_latest
from support.metastore.fake_hive import FakeHive
from support.paths import REPO
from support.servers.hdfs_server import ServerUnavailable
from support.servers.prometheus_server import program, prometheus
from support.tables import age, make

from acidctl.cli.hive.services import Figures
from acidctl.cli.report import metrics
from acidctl.verbs.hive.service import Counts

RULES = REPO / "docs/monitoring/acidctl-alerts.yml"
BOARD = REPO / "docs/monitoring/acidctl-dashboard.json"
OF_SCRAPES = {"instance"}
"""Labels that Prometheus itself gives."""


def services() -> Iterator[Any]:
    for name in ("worker", "initiator", "cleaner"):
        yield Figures(name, Counts(Counter(failed=1), Counter(read=1)))


def series() -> dict[str, set[str]]:
    """The labels of everything that acidctl writes, by name."""
    found = {name: {"command", *metrics._LABELS.get(name, ())} for name in metrics._HELP}
    for service in services():
        for metric in service.collect():
            for sample in metric.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions() -> list[str]:
    rules = yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]
    board = json.loads(BOARD.read_text("utf-8"))
    return [one["expr"] for one in rules] + [t["expr"] for p in board["panels"] for t in p.get("targets", ())]


@pytest.mark.parametrize("expression", expressions())
def test_series_and_labels_are_those_that_are_written(expression: str) -> None:
    known = series()
    names = re.findall(r"\bacidctl_\w+", expression)
    assert names
    labels = set().union(*(known[name] for name in names)) | OF_SCRAPES
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    chosen = re.findall(r"[{,]\s*(\w+)=", expression)
    assert {label.strip() for text in grouped for label in text.split(",")} | set(chosen) <= labels


def test_every_series_is_on_the_dashboard_or_in_a_rule_but_what_they_rest_on() -> None:
    shown = {name for expression in expressions() for name in re.findall(r"\bacidctl_\w+", expression)}
    told = {"acidctl_last_run_timestamp_seconds", "acidctl_exit_status", "acidctl_locations_left_out"}
    told |= {"acidctl_locations_looked_at"}  # of which exit status 17 tells
    rounds = {
        name
        for name in series()
        if re.search(r"_(rounds|round_seconds|marked|created)(_total)?$|cleaner_entries", name)
    }
    assert series().keys() - shown - told - rounds == set()


def test_the_page_has_the_limits_of_the_rules() -> None:
    page = (REPO / "docs/how-to/schedule.md").read_text("utf-8")
    rules = {one["expr"] for one in yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]}
    table = set(re.findall(r"^\| `([^`]+)` \|", page.partition("## Alerts")[2], flags=re.MULTILINE))
    assert table and table <= rules


def test_panels_have_places_and_ids_of_their_own() -> None:
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for one in panels:
        place = one["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells and place["x"] + place["w"] <= 24, one["title"]
        taken |= cells


@pytest.fixture
def promtool() -> Path:
    try:
        return program("promtool")
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.server
@pytest.mark.parametrize("words", [("check", "rules", RULES), ("test", "rules", REPO / "tests/project/alerts.yml")])
def test_promtool_takes_the_rules_and_they_fire(promtool: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.server
def test_prometheus_answers_every_query_of_rules_and_dashboard(
    acidctl: Callable[..., Any], tmp_path: Path, promtool: Path
) -> None:
    """The text is that of commands and services over a warehouse in which everything has a figure."""
    text = (text_of_status(acidctl, tmp_path) + text_of_services()).encode()
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

    def page(_: object, start: Callable[..., Any]) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/plain; version=0.0.4")])
        return [text]

    with make_server("127.0.0.1", 0, page, handler_class=Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "prometheus").mkdir()
        target = {"acidctl": f"127.0.0.1:{server.server_port}"}
        with prometheus(tmp_path / "prometheus", RULES, target) as one:
            rules = one.ask("rules")["groups"][0]["rules"]
            assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
            for expression in expressions():
                asked = re.sub(r" (?:>|==) [\d* ]+(?=\)|$)", "", expression)  # what a rule compares is there
                assert one.answers(asked), expression
            names = set(one.ask("label/__name__/values"))
        server.shutdown()
    assert {name for name in metrics._HELP if name.startswith(("acidctl_state", "acidctl_queue"))} <= names


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def text_of_status(acidctl: Callable[..., Any], tmp_path: Path) -> str:
    """Of a table whose cleaning a transaction holds back, and of runs without a metastore."""
    file = tmp_path / "run.prom"
    kept = make(tmp_path / "kept", "base_0000005", "delta_0000001_0000005")
    age(kept, 48)
    with FakeHive(4) as fake:
        fake.table("s", "kept", str(kept))
        fake.write_ids["s.kept"] = [100] * 5
        txn = fake.begin(ago=3 * 86400)
        fake.lock("s", "kept", txn=txn, ago=3 * 86400)
        fake.entry("s", "kept", "ready for cleaning", next_txn=txn + 1, txn=2, committed=50)
        words = ("--metastore", fake.address, "--metrics-file", file, "hive:s.*")
        assert acidctl("status", *words).status == 14
    acidctl("demo", crud := tmp_path / "crud")
    for words in (("compact", "--major", "--engine", "local"), ("validate",), ("clean", "--dry-run")):
        assert acidctl(*words, "--assume-committed=0s", "--metrics-file", file, crud).status in (0, 14)
    return file.read_text()


def text_of_services() -> str:
    return "".join(generate_latest(service).decode() for service in services())
