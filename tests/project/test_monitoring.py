"""Alert rules and the dashboard: they use series that acidctl writes, with labels that these have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from support.paths import REPO

from acidctl.cli.hive.services import Figures
from acidctl.cli.report import metrics
from acidctl.verbs.hive.service import Counts

RULES = REPO / "docs/monitoring/acidctl-alerts.yml"
BOARD = REPO / "docs/monitoring/acidctl-dashboard.json"
OF_SCRAPES = {"instance"}
"""Labels that Prometheus itself gives."""


def services() -> Iterator[Any]:
    for name in ("worker", "initiator", "cleaner"):
        yield Figures(name, Counts(Counter(x=1), Counter(read=1)))


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


def test_prometheus_itself_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
