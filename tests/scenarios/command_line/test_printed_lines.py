"""Commands that a screen names can be typed as they stand: with their places and the metastore."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

Acidctl = Callable[..., Result]


def table(path: Path, count: int) -> Path:
    for one in range(1, count + 1):
        write_acid(path / f"delta_{one:07}_{one:07}_0000" / "bucket_00000", insert(one, 0, (one, "x")))
    return path


@pytest.mark.parametrize("output", ["status", "report"])
def test_what_would_save_reads_is_listed_by_the_line_that_is_named(
    acidctl: Acidctl, tmp_path: Path, output: str
) -> None:
    for number in range(25 if output == "report" else 1):
        table(tmp_path / "a b" / f"t{number}", 3)
    words = ("status",) if output == "status" else ("report", "-o", "html")
    shown = acidctl(*words, "--assume-committed=0s", tmp_path / "a b").out.replace("&#39;", "'")
    (line,) = re.findall("acidctl (ls --sort gain .*?)(?:</p>)?$", shown, re.M)
    typed = shlex.split(line)
    assert typed[-1] == str(tmp_path / "a b")
    assert "--assume-committed=0s" in typed
    assert acidctl(*typed).status == 0


def test_lines_of_hive_have_the_metastore(acidctl: Acidctl, tmp_path: Path) -> None:
    with FakeHive(4) as hive:
        hive.table("d", "t", str(table(tmp_path / "t", 3)))
        hive.write_ids["d.t"] = list(hive.begin_many(3))
        for txn in hive.write_ids["d.t"]:
            hive.end(txn)
        reader = hive.begin(ago=10800, silent=10)
        hive.entry("d", "t", "ready for cleaning", next_txn=reader + 1, txn=2, committed=50)
        advice = acidctl("hive", "txns", "--blocking", "-o", "json", "--metastore", hive.address).out
        assert f"acidctl hive abort txn {reader} --metastore={hive.address}" in advice


def test_erasure_names_a_line_with_a_place_and_sql_that_hive_can_parse(acidctl: Acidctl, tmp_path: Path) -> None:
    place = table(tmp_path / "union-tag", 2)
    absent = acidctl("erasure", "--where", "none = 1", place)
    (line,) = re.findall("`acidctl (cat .*)`", absent.err)
    assert acidctl(*shlex.split(line)).status == 0
    held = acidctl("erasure", "--where", "a = 1", "-o", "json", place).json()
    assert held["locations"][0]["steps"][0]["command"] == "DELETE FROM `union-tag` WHERE a = 1;"


def lines_in(done: Result) -> list[list[str]]:
    """Return the words of every line of acidctl that an output names, whatever stands around it."""
    found = re.findall(r"acidctl ((?:[a-z]+ )+.*?)(?:`| shows| says| ends| lists|\",?$|$)", done.out + done.err, re.M)
    return [shlex.split(line) for line in found]


def test_lines_with_places_run_as_they_stand(acidctl: Acidctl, tmp_path: Path) -> None:
    tree, plan = tmp_path / "a b", str(tmp_path / "p q.json")
    retention = ("--older-than", "0s", "--unsafe-retention")
    with FakeHive(4) as hive:
        for name in ("t", "u"):
            hive.table("d", name, str(table(tree / name, 3)))
            hive.write_ids[f"d.{name}"] = list(hive.begin_many(3))
        for txn in range(1, 7):
            hive.end(txn)
        told = ("--metastore", hive.address, "--set", "metastore.timeout=9s")
        for words in (
            ("erasure", "--where", "a = 1", "-o", "json", *told, "hive:d.*"),
            ("erasure", "--where", "q = 1", *told, "hive:d.*"),
            ("erasure", "--where", "q = 1", tree),
            ("why", tree / "t", "nothing"),
            ("demo", tmp_path / "de mo"),
            ("hive", "request", "--major", *told, "d.u"),
            ("compact", "--major", "--engine", "local", *told, "hive:d.t"),
            ("clean", *retention, "--plan", plan, *told, "hive:d.t"),
            ("clean", "--yes", *retention, *told, "hive:d.t"),
            ("status", *told, "hive:d.*"),
        ):
            named = lines_in(acidctl(*words))
            assert named, words
            for line in named:
                assert not any(word.startswith("--assume-committed") for word in line)
                confirmed = ["--dry-run"] if line[0] in ("compact", "clean", "purge", "restore") else []
                done = acidctl(line[0], *confirmed, *line[1:])
                assert done.status in (0, 14), (words, line, done.err)
