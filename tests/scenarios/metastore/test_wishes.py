"""Owners say in the metastore that nothing is compacted by itself, or nothing cleaned: it is heard, and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.tables import age

from acidctl.metastore import interface as wire
from acidctl.verbs.engine import EngineOptions

Ask = Callable[..., Result]
KEY = "compactorthreshold.hive.compactor.delta.num.threshold"


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    with FakeHive(request.param) as one:
        yield one


@pytest.fixture
def ask(acidctl: Ask, fake: FakeHive) -> Ask:
    return lambda *line: acidctl(*line, "--metastore", fake.address)


def lived(fake: FakeHive, root: Path, *parts: str, **parameters: str) -> None:
    """A table with three deltas, and a compaction of them that is a day old, for each partition."""
    fake.table("db", "t", f"file:{root}", ["day"] if parts else [], parameters)
    fake.write_ids["db.t"] = [1, 2, 3]
    for part in parts or ("",):
        where = root / part if part else root
        if part:
            fake.partition("db", "t", part)
        for number in (1, 2, 3):
            write_acid(where / f"delta_{number:07}_{number:07}_0000" / "bucket_00000", insert(number, 0, (number,)))
        write_acid(where / "base_0000003" / "bucket_00000", *(insert(number, 0, (number,)) for number in (1, 2, 3)))
        age(where, 25)


def settings_of_database(fake: FakeHive, **parameters: str) -> None:
    fake.databases["db"] = replace(fake.databases["db"], parameters=parameters)


def cleaned(ask: Ask, *places: str | Path) -> dict[str, Any]:
    return {one["location"].rpartition("/")[2]: one for one in ask("clean", "--dry-run", "-o", "json", *places).json()}


@pytest.mark.parametrize("state", ["initiated", "working", "ready for cleaning", "succeeded"])
@pytest.mark.parametrize(("began", "part"), [(3600, "day=1"), (3600, "day=2"), (60, "day=1")])
def test_what_hive_3_still_looks_at_is_not_cleaned(
    ask: Ask, fake: FakeHive, tmp_path: Path, state: str, began: float, part: str
) -> None:
    """Its compactions have no lock and no transaction; what was obsolete before one began is nothing to it."""
    lived(fake, tmp_path / "t", "day=1", "day=2")
    for one in ("day=1", "day=2"):
        age(tmp_path / "t" / one, 0.5)
    fake.entry("db", "t", partition=part, state=state, started=began)
    options = ("--older-than", "0", "--unsafe-retention")
    found = {
        one["location"].rpartition("/")[2]: len(one["removals"])
        for one in ask("clean", "--dry-run", "-o", "json", *options, "hive:db.t").json()
    }
    is_held = fake.version == 3 and state in ("working", "ready for cleaning") and began == 3600
    assert found == {"day=1": 3, "day=2": 3} | ({part: 0} if is_held else {})


@pytest.mark.parametrize("who", ["table", "database"])
@pytest.mark.parametrize("by_name", [True, False])
def test_nothing_is_cleaned_against_the_owner_s_wish(
    ask: Ask, fake: FakeHive, tmp_path: Path, who: str, by_name: bool
) -> None:
    lived(fake, tmp_path / "t")
    place = "hive:db.t" if by_name else tmp_path / "t"
    assert len(cleaned(ask, place)["t"]["removals"]) == 3
    table = fake.tables["db", "t"]
    if who == "table":
        fake.tables["db", "t"] = replace(table, parameters={**table.parameters, "no_cleanup": "TRUE"})
    else:
        settings_of_database(fake, no_cleanup="true")
    kept = cleaned(ask, place)["t"]
    assert (kept["removals"], kept["result"]) == ([], "nothing-to-do")
    assert {one["reason"] for one in kept["keptBack"]} == {f"no_cleanup is set for the {who}"}
    assert {one["code"] for one in kept["keptBack"]} == {"no-cleanup"}
    done = ask("clean", "--yes", place)
    three = ", ".join(f"delta_{number:07}_{number:07}_0000" for number in (1, 2, 3))
    assert f"kept back: {three}: no_cleanup is set for the {who}" in done.err
    assert re.search(rf"nothing to clean yet: [0-9.]+ K?i?B kept back: no_cleanup is set for the {who}\n", done.out)
    assert len(list((tmp_path / "t").iterdir())) == 4
    proof = ask("why", place, "delta_0000001_0000001_0000")
    assert "no_cleanup is set" in proof.out
    assert "set no_cleanup to false" in proof.out


@pytest.mark.parametrize("by_name", [True, False])
def test_a_partition_may_say_so_by_itself(ask: Ask, fake: FakeHive, tmp_path: Path, by_name: bool) -> None:
    lived(fake, tmp_path / "t", "day=1", "day=2")
    partition = fake.partitions["db", "t"]["day=2"]
    fake.partitions["db", "t"]["day=2"] = replace(partition, parameters={"no_cleanup": "true"})
    found = cleaned(ask, "hive:db.t" if by_name else tmp_path / "t")
    assert [len(found[name]["removals"]) for name in ("day=1", "day=2")] == [3, 0]
    assert found["day=2"]["keptBack"][0]["reason"] == "no_cleanup is set for the partition"


def test_what_is_not_to_be_compacted_by_itself_is_left_alone_with_the_reason(
    ask: Ask, fake: FakeHive, tmp_path: Path
) -> None:
    lived(fake, tmp_path / "t", **{KEY: "0"})
    for number in (4, 5):
        fake.write_ids["db.t"].append(number)
        write_acid(
            tmp_path / "t" / f"delta_{number:07}_{number:07}_0000" / "bucket_00000", insert(number, 0, (number,))
        )
    auto = ("compact", "--auto", "--dry-run", "-o", "json", "--engine", "local", "hive:*.*")
    assert ask(*auto).one()["result"] == "planned"
    assert ask("ls", "-o", "json", "hive:db.t").one()["compaction"], "by the table's own threshold"
    settings_of_database(fake, no_auto_compaction="true")
    left = ask(*auto).one()
    assert (left["result"], left["reason"]) == ("nothing-to-do", "no_auto_compaction is set for the database")
    assert left["reasonCodes"] == ["auto-is-off"]
    summary = ask("ls", "-o", "json", "hive:db.t").one()
    assert (summary["compaction"], summary["compactionReasonCode"]) == (None, "auto-is-off")
    assert (
        ask("compact", "--major", "--dry-run", "-o", "json", "--engine", "local", "hive:db.t").one()["result"]
        == "planned"
    )
    said = ask(*auto, "--property", "no_auto_compaction=true").one()
    assert said["reason"] == "no_auto_compaction is set"


def test_who_says_what_counts_is_the_metastore_at_a_time(ask: Ask, fake: FakeHive, tmp_path: Path) -> None:
    lived(fake, tmp_path / "t")
    for line in (("ls",), ("why",), ("history",), ("clean", "-n"), ("validate",),
                 ("compact", "--major", "-n", "--engine", "local")):  # fmt: skip
        source = ask(*line, "-o", "json", "hive:db.t").one()["snapshotSource"]
        assert (source["from"], source["server"]) == ("metastore", fake.address), line
        assert source["at"].endswith("Z"), line
    for line in (("ls",), ("why",), ("history",), ("clean", "-n"), ("validate",), ("cat",),
                 ("compact", "--auto", "-n")):  # fmt: skip
        said = ask(*line, "hive:db.t").err
        assert said.count(f"as the metastore {fake.address} had it at") == 1, (line, said)
    other = tmp_path / "other"
    write_acid(other / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
    assert ask("ls", "-o", "json", other).one()["snapshotSource"]["from"] == "everything", "it is not in the metastore"


def test_a_directory_of_two_tables_is_told_and_read_by_name_alone(ask: Ask, fake: FakeHive, tmp_path: Path) -> None:
    lived(fake, tmp_path / "db.db" / "shared")
    fake.table("db", "u", f"file:{tmp_path}/db.db/shared")
    write_acid(tmp_path / "db.db/v/delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)))
    fake.table("db", "v", f"file:{tmp_path}/db.db/v")
    alone = ask("cat", tmp_path / "db.db/shared")
    assert alone.status == 7
    assert "db.t, db.u: each has its own write ids" in alone.err
    assert "hive:db.t" in alone.err
    among = ask("ls", "-o", "json", tmp_path / "db.db")
    assert "db.t, db.u" in among.err, "and the others are listed"
    assert [Path(one["location"]).name for one in among.json()] == ["v"]
    assert ask("cat", "hive:db.t").status == 0


def test_a_server_that_does_not_tell_of_databases_is_no_trouble(ask: Ask, fake: FakeHive, tmp_path: Path) -> None:
    lived(fake, tmp_path / "t")
    fake.databases.pop("db")
    assert len(cleaned(ask, "hive:db.t")["t"]["removals"]) == 3
    assert isinstance(fake.tables["db", "t"], wire.Table)


@pytest.mark.parametrize(
    ("given", "queues", "expected"),
    [
        ({"master": "yarn"}, ["etl", "etl"], "etl"),
        ({"master": "yarn"}, ["etl", "adhoc"], None),
        ({"master": "yarn"}, ["etl", ""], None),
        ({"master": "yarn"}, ["", ""], None),
        ({"master": "yarn"}, [], None),
        ({"master": "yarn", "conf": (("spark.yarn.queue", "mine"),)}, ["etl"], "mine"),
        ({"master": "local[2]"}, ["etl"], None),
        ({}, ["etl"], None),
    ],
)
def test_a_queue_that_all_tables_name_is_taken(given: dict[str, Any], queues: list[str], expected: str | None) -> None:
    for engine, queue in ((EngineOptions(**given), expected), (EngineOptions(engine="local"), None)):
        assert dict(engine.in_queue_of(queues).conf).get("spark.yarn.queue") == queue
