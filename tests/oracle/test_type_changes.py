"""Hive 3.1.3 and 4.0.1 read values after a change of type as recorded: the tests try a sample of the changes.

``python -m support.conformance.changes`` in tests/ tries all changes, and records the values.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conformance.changes import SETTINGS, ZONE, asked, kinds, recorded
from support.engines.real_hive import started

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("version")]

EVERY = 5
"""Each type is changed to every fifth of the other types; the next type starts at a different one."""


@pytest.mark.parametrize("version", [3, 4])
def test_what_is_recorded_is_what_hive_reads(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ZONE)
    hive = started(version, tmp_path, SETTINGS)
    differing = {}
    try:
        for place, (own, entry) in enumerate(recorded().items()):
            some = [one for one in kinds() if one != own][place % EVERY :: EVERY]
            found = dict(asked(hive, own, entry["values"], some))
            for target in some:
                by = entry["targets"].get(target, {})
                wanted = by.get("both", by.get(f"hive{version}"))
                if found.get(target) != wanted:
                    differing[own, target] = (found.get(target), wanted)
    finally:
        hive.stop()
    assert not differing


@pytest.mark.parametrize("version", [3, 4])
def test_hive_3_moves_times_by_its_zone(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    hive = started(version, tmp_path, SETTINGS)
    try:
        as_text = dict(asked(hive, "timestamp", ["2020-01-02 03:04:05.5"], ["string", "bigint"]))
        as_time = dict(asked(hive, "date", ["2020-01-02"], ["string", "timestamp"]))
        of_numbers = [
            dict(asked(hive, own, ["1594000000"], ["timestamp"]))["timestamp"] for own in ("bigint", "double")
        ]
    finally:
        hive.stop()
    texts = (
        ["2020-01-02 08:34:05.5", "2020-01-01 18:30:00"]
        if version == 3
        else ["2020-01-02 03:04:05.5", "2020-01-02 00:00:00"]
    )
    assert [as_text["string"], as_time["timestamp"]] == [[text] for text in texts]
    assert (as_text["bigint"], as_time["string"]) == (["1577934245"], ["2020-01-02"])
    millis = "1970-01-19 10:46:40" if version == 3 else "2020-07-06 01:46:40"
    assert of_numbers == [[millis], ["2020-07-06 01:46:40"]]
