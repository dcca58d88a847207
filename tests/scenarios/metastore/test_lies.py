"""A metastore that lies: places that are not the table's, lists that contradict themselves, numbers and names that no
honest one has. What it says is refused or told; nothing outside of a table is touched, and no row is lost.

    ACIDCTL_LIES=all python -m pytest tests/scenarios/metastore/test_lies.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.files.acid_files import insert, write_acid
from support.metastore.bad_days import COMMANDS, ROWS, BadDay
from support.metastore.fake_hive import FakeHive
from support.metastore.lies import Lie, lies_about

import acidctl
from acidctl.base.errors import RefusedError
from acidctl.metastore import interface as wire

TIMES = os.environ.get("ACIDCTL_LIES", "12")
"""Of each command; ``all`` for every lie there is."""


def lies(day: BadDay, line: tuple[str, ...]) -> list[tuple[str, Lie]]:
    """Every lie about every answer that a command gets, with the method's name."""
    answers: dict[str, list[Any]] = {}
    with day.metastore() as fake:
        for name, do in list(fake.answers.items()):
            fake.answers[name] = _noted(do, answers.setdefault(name, []))
        day.run(fake, fake.address, *line)
        day.judge(fake, *line)
    sales = f"file:{day.root}/sales.db"
    places = (
        f"file:{day.root}",
        sales,
        f"{sales}/other",
        f"{sales}/parts",
        f"{sales}/orders/delta_0000001_0000001_0000",
    )
    found: dict[tuple[str, str], Lie] = {}
    for name, given in answers.items():
        for answer in given:
            for lie in lies_about(answer, places):
                if not _is_the_truth(name, lie[0]):
                    found.setdefault((name, lie[0]), lie)
    return [(name, lie) for (name, _), lie in found.items()]


def _noted(do: Callable[..., Any], into: list[Any]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        into.append(do(*arguments))
        return into[-1]

    return noted


def _is_the_truth(name: str, said: str) -> bool:
    """Whether nobody could tell: another table's open transaction as one's own, say."""
    return name == "open_txns" and "txn_ids[0] = " in said


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", COMMANDS, ids=" ".join)
def test_a_lie_is_refused_or_told(day: BadDay, line: tuple[str, ...]) -> None:
    every = lies(day, line)
    chosen = every if TIMES == "all" else random.Random(" ".join(line)).sample(every, min(int(TIMES), len(every)))
    for name, (said, change) in chosen:
        with day.metastore() as fake:
            honest = fake.answers[name]
            fake.answers[name] = lambda *arguments, honest=honest, change=change: change(honest(*arguments))
            try:
                day.run(fake, fake.address, *line)
                fake.answers[name] = honest
                day.judge(fake, *line)
            except AssertionError as error:
                raise AssertionError(f"{name}: {said}") from error


# --- places ---------------------------------------------------------------------------------------------------------


def moved(fake: FakeHive, table: str, location: str) -> None:
    """The metastore has a table somewhere else."""
    one = fake.tables["sales", table]
    assert one.storage
    fake.tables["sales", table] = replace(one, storage=replace(one.storage, location=location))


@pytest.mark.parametrize(
    "place", ["file:/", "file:///", "/", "", "..", "file:///a/../..", "relative/path", "hdfs://nn:8020/", "s3a://bucket",
              "hive:sales.other", "file:/a\x1b[2J"],
)  # fmt: skip
@pytest.mark.parametrize(
    "command", [("ls",), ("clean", "--yes"), ("compact", "--major", "--engine", "local"), ("purge", "--yes")]
)
def test_no_table_lies_in_all_of_a_store_or_elsewhere(day: BadDay, place: str, command: tuple[str, ...]) -> None:
    with day.metastore() as fake:
        moved(fake, "orders", place)
        found = day.run(fake, fake.address, *command, "hive:sales.orders")
        assert found.status == (7 if place else found.status), found.err
        if place:
            assert "sales.orders is left alone" in found.err
        moved(fake, "orders", f"file:{day.root}/sales.db/orders")
        day.judge(fake, "ls")


@pytest.mark.parametrize(
    "command", [("clean", "--yes", "--older-than", "1h"), ("compact", "--major", "--engine", "local")]
)
@pytest.mark.parametrize("names", ["hive:sales.orders", "hive:sales.*"])
@pytest.mark.parametrize("place", ["other", "parts/day=1"])
def test_another_tables_directory_is_not_changed(day: BadDay, command: tuple[str, ...], names: str, place: str) -> None:
    with day.metastore() as fake:
        moved(fake, "orders", f"file:{day.root}/sales.db/{place}")
        found = day.run(fake, fake.address, *command, names)
        assert found.status == 7, found.err
        assert "each has its own write ids" in found.err
        changed = {path for path, data in day.files().items() if day.tree.get(path, 0) != data}
        assert not any(path.startswith(f"sales.db/{place}") for path in changed)


@pytest.mark.parametrize("verb", ["compact", "clean"])
def test_another_tables_directory_is_not_changed_by_a_program(day: BadDay, verb: str) -> None:
    with day.metastore() as fake:
        moved(fake, "orders", f"file:{day.root}/sales.db/other")
        location = acidctl.Location("hive:sales.orders", metastore=fake.address)
        with pytest.raises(RefusedError, match="each has its own write ids"):
            getattr(location, verb)()
        assert day.files() == day.tree


def test_a_partition_in_another_tables_directory_is_not_changed_and_the_others_are(day: BadDay) -> None:
    with day.metastore() as fake:
        other = f"file:{day.root}/sales.db/other"
        fake.partitions["sales", "parts"]["day=1"] = wire.Partition(("1",), wire.PartitionStorage(other))
        found = day.run(fake, fake.address, "compact", "--major", "--engine", "local", "hive:sales.parts")
        assert found.status == 7, found.err
        assert not (day.root / "sales.db/other/base_0000004").exists()


def test_one_table_in_a_store_that_nobody_knows_does_not_keep_the_others(day: BadDay) -> None:
    # A compaction of one of the others is refused, too, as Hive is about to compact it.
    for line in (("ls",), ("clean", "--yes"), ("compact", "--major", "--engine", "local")):
        with day.metastore() as fake:
            moved(fake, "orders", "o3fs://bucket.volume/orders")
            found = day.run(fake, fake.address, *line, "hive:sales.*")
            assert found.status in (2, 7), found
            assert "o3fs" in found.err
            assert "day=2" in found.out
        day.renew()


# --- what changes between two calls ---------------------------------------------------------------------------------


def dropped(day: BadDay, fake: FakeHive) -> None:
    fake.tables.pop(("sales", "orders"))
    (day.root / "sales.db/orders").rename(day.root / "trash")


def renamed(day: BadDay, fake: FakeHive) -> None:
    fake.tables["sales", "renamed"] = replace(fake.tables.pop(("sales", "orders")), name="renamed")
    fake.write_ids["sales.renamed"] = fake.write_ids.pop("sales.orders")
    (day.root / "sales.db/orders").rename(day.root / "sales.db/renamed")
    moved(fake, "renamed", f"file:{day.root}/sales.db/renamed")


def made_anew(day: BadDay, fake: FakeHive) -> None:
    """Dropped and created again in the same place, with write ids from 1."""
    dropped(day, fake)
    fake.table("sales", "orders", f"file:{day.root}/sales.db/orders")
    txns = list(fake.begin_many(4))
    fake.write_ids["sales.orders"] = txns
    for txn in txns:
        fake.end(txn)
    for write_id in range(1, 5):
        name = f"delta_{write_id:07}_{write_id:07}_0000"
        write_acid(day.root / "sales.db/orders" / name / "bucket_00000", insert(write_id, 0, (100 + write_id,)))


LINES = {
    "clean": ("clean", "--yes", "--older-than", "1h"),
    "clean-at-once": ("clean", "--yes", "--no-trash", "--unsafe-retention", "--older-than", "0s"),
    "compact": ("compact", "--major", "--engine", "local"),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("happens", "at"),
    [*((made_anew, at) for at in range(9)), *((one, at) for one in (dropped, renamed) for at in (1, 4, 6))],
)
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("names", ["hive:sales.orders", "hive:sales.*"])
def test_a_table_that_is_another_one_between_two_calls(
    day: BadDay, happens: Callable[[BadDay, FakeHive], None], line: tuple[str, ...], names: str, at: int
) -> None:
    with day.metastore() as fake:
        calls = 0

        def then(do: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                nonlocal calls
                answer = do(*arguments)
                calls += 1
                if calls == at + 3:  # after who one is, and two that find out what the server can do
                    happens(day, fake)
                return answer

            return call

        honest = dict(fake.answers)
        fake.answers.update({name: then(do) for name, do in honest.items()})
        day.run(fake, fake.address, *line, names)
        fake.answers.update(honest)
        happened = calls >= at + 3
        for name in ("sales.orders", "sales.renamed"):
            database, _, table = name.partition(".")
            if (database, table) not in fake.tables:
                continue
            is_new = happens is made_anew and happened
            assert day.rows_of(fake, f"hive:{name}") == (
                [f'{{"a":{100 + one}}}' for one in range(1, 5)] if is_new else ROWS["hive:sales.orders"]
            )
        for other in ("hive:sales.parts", "hive:sales.other"):
            assert day.rows_of(fake, other) == ROWS[other]
