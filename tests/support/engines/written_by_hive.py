"""Tables that Hive 2.3 wrote, and the lists that their expected rows belong to."""

from __future__ import annotations

import json

from support.paths import DATA

HIVE23 = DATA / "hive23-written"


def hive23_cases() -> list[tuple[str, int, str]]:
    cases = []
    for scenario in sorted(HIVE23.glob("*/scenario.json")):
        lists = json.loads(scenario.read_text())["txnlists"]
        cases += [(scenario.parent.name, number, text) for number, text in enumerate(lists)]
    return cases
