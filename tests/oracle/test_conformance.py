"""The conformance set: acidctl reads its tables as Hive does, and its compactions keep what Hive reads.

So it is for tables of the set that are laid over each other at random. More of these:

    ACIDCTL_MIXED_TABLES=90 ACIDCTL_MIXED_SEED=1000 python -m pytest -m server tests/oracle/test_conformance.py -k mixed
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest
from support.conformance.__main__ import by_table, judged, ours
from support.conformance.cases import CASES
from support.conformance.declared import Case
from support.conformance.hives import Reading
from support.conformance.known import KNOWN
from support.conformance.mixed import mixed
from support.conformance.ours import CRASH
from support.conformance.results import HIVES, MODES, Result, differences, load
from support.servers.hdfs_server import ServerUnavailable

EVERY = 20
"""One table of so many is read again by real servers."""
MIXED = int(os.environ.get("ACIDCTL_MIXED_TABLES", "6"))
MIXED_SEED = int(os.environ.get("ACIDCTL_MIXED_SEED", "1"))


@pytest.fixture(scope="module")
def recorded() -> dict[str, Result]:
    return load()


def by_kind() -> dict[str, list[Case]]:
    found = defaultdict(list)
    for case in CASES.values():
        found[case.kind].append(case)
    return found


def test_every_table_is_recorded_as_it_is_declared(recorded: dict[str, Result]) -> None:
    declared = {name: (case.kind, case.source, case.what) for name, case in CASES.items()}
    assert {name: (one["kind"], one["source"], one["what"]) for name, one in recorded.items()} == declared


def test_every_table_is_read_by_both_hives_as_it_is_now(recorded: dict[str, Result]) -> None:
    """Where this fails: ``python -m support.conformance NAME...`` in tests/ has the servers read those tables again."""
    for name, one in recorded.items():
        compacted = [one[mode] for mode in MODES if one[mode]["outcome"] == "compacted"]
        assert all(set(HIVES) <= set(part["readers"]) for part in (one, *compacted)), name


def test_the_known_differences_are_exactly_those_that_are_recorded(recorded: dict[str, Result]) -> None:
    assert {name for name, one in recorded.items() if differences(one)} == set(KNOWN)
    assert {name: one["reason"] for name, one in recorded.items() if one["reason"]} == KNOWN


@pytest.mark.parametrize("kind", by_kind())
def test_acidctl_does_what_is_recorded(kind: str, recorded: dict[str, Result], tmp_path: Path) -> None:
    """Where this fails: ``python -m support.conformance --ours`` in tests/ writes down what acidctl does now."""
    results, _ = ours(by_kind()[kind], tmp_path)
    for name, now in results.items():
        before = recorded[name]
        assert now["acidctl"] == before["acidctl"], name
        for mode in MODES:
            assert now[mode] | {"readers": {}} == before[mode] | {"readers": {}}, (name, mode)


@pytest.mark.server
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", [3, 4], ids=["hive-3.1", "hive-4.0"])
def test_a_real_hive_reads_what_is_recorded(version: int, recorded: dict[str, Result], tmp_path: Path) -> None:
    chosen = [CASES[name] for name in list(recorded)[version::EVERY]]
    groups = []
    for table, members in by_table(chosen).items():
        _, copies = ours(members, tmp_path / table)
        groups.append((table, copies))
    try:
        for found in judged(version, groups, chosen, tmp_path, with_trino=False):
            for (name, copy), readings in found.items():
                before = recorded[name] if copy == "before" else recorded[name][copy]
                wanted = {reader: _rows(before["readers"][reader]) for reader in readings}
                assert {reader: _rows(one) for reader, one in readings.items()} == wanted, (name, copy)
    except ServerUnavailable as error:
        pytest.skip(f"no Hive {version} to judge: {error}")


@pytest.mark.server
@pytest.mark.timeout(1800)
def test_mixed_tables_are_read_as_by_hive_and_as_before_a_compaction(tmp_path: Path) -> None:
    with mixed(MIXED_SEED, MIXED) as chosen:
        results: dict[str, Result] = {}
        groups = []
        for table, members in by_table(chosen).items():
            made, copies = ours(members, tmp_path / table)
            results |= made
            groups.append((table, copies))
        try:
            for version in (3, 4):
                for found in judged(version, groups, chosen, tmp_path, with_trino=False):
                    for (name, copy), readings in found.items():
                        (results[name] if copy == "before" else results[name][copy])["readers"] |= readings
        except ServerUnavailable as error:
            pytest.skip(f"no Hive to judge: {error}")
    for case in chosen:
        assert not differences(_where_it_was_read(results[case.name])), case.source


def _where_it_was_read(result: Result) -> Result:
    """Leave out, after a compaction, what a reader refuses as it did before."""
    changed = {}
    for mode in MODES:
        after: dict[str, Reading] = result[mode]["readers"]
        kept = {
            one: rows for one, rows in after.items() if isinstance(rows, list) or _rows(result["readers"][one]) != "!"
        }
        changed[mode] = {**result[mode], "readers": kept}
    return result | changed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MIXED_SEED, MIXED_SEED + 2))
def test_acidctl_crashes_on_no_mixed_table(seed: int, tmp_path: Path) -> None:
    with mixed(seed, 8) as chosen:
        results, _ = ours(chosen, tmp_path)
    for case in chosen:
        found = results[case.name]
        assert not str(found["acidctl"]["rows"]).startswith(CRASH), case.source
        assert all(found[mode]["outcome"] != "crashed" for mode in MODES), case.source


def _rows(reading: Reading) -> Reading:
    """The rows; of an error alone that it is one: the two ways of reading name it by chance."""
    return reading if isinstance(reading, list) else "!"
