"""Every rule: a table with that one fault is found by exactly that rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.made.planted import CASES, D, in_delta
from support.validating import check, found, healthy

from acidctl.validation.checks import RULES
from acidctl.validation.findings import Severity


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_by_its_rule(tmp_path: Path, name: str) -> None:
    depth, plant, expected, options = CASES[name]
    table = healthy(tmp_path / "t")
    plant(table)
    (report,) = check(table, depth=depth, **options)  # type: ignore[arg-type]
    assert found(report) == expected, [f"{f.rule} {f.path}: {f.message}" for f in report.findings]
    assert not report.unchecked
    deeper = found(check(table, depth=D, **options)[0])  # type: ignore[arg-type]
    # Deeper checks only add, but for V11, which rows prove or refute.
    assert deeper >= {one for one in expected if one != "V11 warning"}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"thisFileVersion":"1","dataFormat":"compacted"}', b'{"thisFileVersion":"0"}', b"[" * 9999],
)
def test_malformed_metadata_acid_is_v14(tmp_path: Path, content: bytes) -> None:
    table = healthy(tmp_path / "t")
    write_by_pyorc(table / "base_0000002", [insert(1, 0), insert(1, 1), insert(2, 0)])
    (table / "base_0000002" / "_metadata_acid").write_bytes(content)
    (report,) = check(table)
    assert found(report) == {"V14", "V20 info"}
    assert not report.unchecked


def test_link_among_partitions_is_v40(tmp_path: Path) -> None:
    table = tmp_path / "t"
    healthy(table)
    healthy(table / "p=1")
    healthy(tmp_path / "elsewhere")
    (table / "p=2").symlink_to(tmp_path / "elsewhere")
    reports = {Path(report.location).name: found(report) for report in check(table)}
    assert reports == {"t": {"V45"}, "p=1": {"V40 warning"}, "p=2": {"V40 info"}}


def test_data_between_levels_of_partitions_is_v40(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for path in (table / "d=1", table / "d=1/h=1", table / "d=1/h=2", table / "d=2/h=1"):
        healthy(path)
    reports = {report.location.removeprefix(str(table)): report for report in check(table)}
    assert {where: found(report) for where, report in reports.items()} == {
        "/d=1": {"V45"}, "/d=1/h=1": {"V40 warning"}, "/d=1/h=2": set(), "/d=2/h=1": set(),
    }  # fmt: skip
    assert "the directory of its partitions" in reports["/d=1/h=1"].findings[0].message


def test_nested_location_is_v41_and_a_plain_table_v42(tmp_path: Path) -> None:
    folder, plain = tmp_path / "t", tmp_path / "plain"
    healthy(folder)
    healthy(folder / "sub")
    plain.mkdir()
    (plain / "000000_0").write_bytes((folder / "delta_0000001_0000001_0000" / "bucket_00000").read_bytes())
    reports = {Path(report.location).name: found(report) for report in check(folder, plain)}
    assert reports["t"] >= {"V41 warning"}
    assert "V42 info" in reports["plain"]
    assert reports["sub"] == set()


def test_every_rule_is_planted() -> None:
    elsewhere = {"V40", "V41", "V42", "V44"}
    planted = {one.split()[0] for _, _, expected, _ in CASES.values() for one in expected} | elsewhere
    rules = {rule.id for rule in RULES.values() if not rule.readers}
    missing = sorted(rules - planted)
    assert planted == rules, f"tests/support/made/planted.py: a case for each of {missing}, and for no other"


def test_every_rule_has_its_sentences() -> None:
    for rule in RULES.values():
        assert rule.what.endswith(".")
        assert rule.why.endswith(".")
        assert rule.hint.endswith(".")
        assert rule.section
    worst = {}
    for _, _, expected, _ in CASES.values():
        for one in expected:
            rule_id, _, severity = one.partition(" ")
            rank = Severity(severity or "error").rank
            worst[rule_id] = min(rank, worst.get(rule_id, 9))
    for rule_id, rank in worst.items():
        assert RULES[rule_id].severity.rank == rank, f"{rule_id}: its severity is not the worst that a case plants"


def test_only_and_ignore_pick_findings(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    (table / "delta_x").mkdir()
    in_delta(table, [insert(3, 1), insert(3, 0)])
    assert found(check(table)[0]) == {"V1", "V26"}
    assert found(check(table, only=frozenset({"V26"}))[0]) == {"V26"}
    assert found(check(table, ignored=frozenset({"V26"}))[0]) == {"V1"}


def test_obsolete_directories_are_not_checked_deeply(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    write_by_pyorc(table / "base_0000002", [insert(1, 0), insert(1, 1), insert(2, 0)])
    (table / "delta_0000001_0000001_0000/bucket_00000").write_bytes(b"garbage")
    in_delta(table, [insert(2, 1), insert(2, 0)], "delta_0000002_0000002_0000")
    assert found(check(table)[0]) == {"V20 info"}
    (report,) = check(table, all_directories=True)
    assert found(report) == {"V24", "V26", "V20 info"}
    assert report.files == 4
