"""What acidctl has done in a location: kept short on every store, and harmless whatever is planted."""

from __future__ import annotations

import json
import os
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stores import Store, fill
from support.tables import make, snapshot_of

from acidctl.base.errors import StorageError
from acidctl.cleaning.leftovers import is_leftover
from acidctl.location.change import work_log
from acidctl.location.change.work_log import MOST_LINES, MOST_LOG_BYTES, LogEntry, log_done, logged_at, read_log
from acidctl.location.walk import LOG, LOG_SUFFIX
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()
NAME = f"{LOG}20260101T000000.000Z-0123abcd{LOG_SUFFIX}"
FACTS: dict[str, Any] = {"kind": "major", "bytes": 7, "outputs": ["base_5"]}


def entry(number: int = 1, **facts: Any) -> LogEntry:
    return LogEntry("compact", "compacted", f"run-{number}", facts=facts or FACTS)


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{LOG}*"))


def test_what_was_written_is_read_newest_first_on_every_store(store: Store) -> None:
    fill(store, "base_0000001/bucket_00000")
    for number in range(3):
        log_done(store.fs, store.root, entry(number), pytest.fail)
    found = read_log(store.fs, store.root)
    assert [one.run for one in found] == ["run-2", "run-1", "run-0"]
    assert all((one.verb, one.result, one.facts) == ("compact", "compacted", FACTS) for one in found)
    assert found[0].user
    (name,) = [one.path for one in store.fs.list_dir(store.root).entries if not one.is_dir]
    at = logged_at(name)
    assert at is not None
    assert abs(at - found[0].at) < 5


def step(count: Any, **more: Any) -> LogEntry:
    facts = {"transactions": 1, "inserted": count, "minWriteId": count, "maxWriteId": count, **more}
    return LogEntry("stream", "written", "query", facts=facts, id="stream query")


def test_the_steps_of_one_operation_share_a_line_that_counts_them(tmp_path: Path) -> None:
    log_done(FS, str(tmp_path), step(5), pytest.fail)
    (first,) = logs(tmp_path)
    before = first.read_bytes()
    log_done(FS, str(tmp_path), entry(1), pytest.fail)
    log_done(FS, str(tmp_path), step(7), pytest.fail)
    (tmp_path / NAME).write_bytes(before)  # as another writer leaves it, who had not read the later step
    for _ in range(2):
        last, other = read_log(FS, str(tmp_path))
        counts = {"transactions": 2, "inserted": 12, "bytes": 0, "minWriteId": 5, "maxWriteId": 7}
        assert (last.run, last.facts, other.run) == ("query", counts, "run-1")
        log_done(FS, str(tmp_path), LogEntry("compact", "compacted", "run-2"), pytest.fail)
        assert [one.run for one in read_log(FS, str(tmp_path))] == ["run-2", "query", "run-1"]
        for path in logs(tmp_path):
            path.write_text("\n".join(line for line in path.read_text().split("\n") if "run-2" not in line))


@pytest.mark.parametrize("count", [-5, True, "x", 1 << 62, [], 0.5])
def test_a_step_after_a_planted_line_is_logged_all_the_same(tmp_path: Path, count: Any) -> None:
    planted = step(count, transactions=count, end=count, **{f"x{number}": "y" for number in range(30)})
    (tmp_path / NAME).write_text(planted.line().replace('"at": 0.0', '"at": 5.0') + "\n\n")
    log_done(FS, str(tmp_path), step(1 << 62), pytest.fail)
    assert [one.id for one in read_log(FS, str(tmp_path))] == ["stream query"]


def test_two_at_once_lose_nothing_and_the_next_makes_one_file_of_theirs(tmp_path: Path) -> None:
    log_done(FS, str(tmp_path), entry(1))
    first = logs(tmp_path)[0].read_bytes()
    log_done(FS, str(tmp_path), entry(2))
    (tmp_path / NAME).write_bytes(first)  # as the other of two, who had read only the first line, leaves it
    other = entry(3).line().replace('"id": ""', '"id": "x"').replace('"at": 0.0', '"at": 5.0')
    (tmp_path / NAME).write_bytes(first + other.encode() + b"\n")
    assert [one.run for one in read_log(FS, str(tmp_path))] == ["run-2", "run-1", "run-3"]
    log_done(FS, str(tmp_path), entry(4))
    assert len(logs(tmp_path)) == 1
    assert [one.run for one in read_log(FS, str(tmp_path))] == ["run-4", "run-2", "run-1", "run-3"]


def test_many_at_once_lose_nothing_and_none_of_them_complains(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for again in range(4):
            log_done(FS, str(tmp_path), entry(10 * number + again), pytest.fail)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    log_done(FS, str(tmp_path), entry(99), pytest.fail)
    assert len(logs(tmp_path)) == 1
    expected = {f"run-{10 * number + again}" for number in range(5) for again in range(4)} | {"run-99"}
    assert {one.run for one in read_log(FS, str(tmp_path))} == expected


def test_what_another_is_writing_is_not_taken_for_all_of_it(tmp_path: Path) -> None:
    log_done(FS, str(tmp_path), entry(1))
    (first,) = logs(tmp_path)
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    log_done(FS, str(tmp_path), entry(2), pytest.fail)
    assert first.exists()
    first.write_bytes(whole)
    log_done(FS, str(tmp_path), entry(3), pytest.fail)
    assert len(logs(tmp_path)) == 1
    assert [one.run for one in read_log(FS, str(tmp_path))] == ["run-3", "run-2", "run-1"]


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_log, "MOST_LINES", 5)
    for number in range(9):
        log_done(FS, str(tmp_path), entry(number))
    assert [one.run for one in read_log(FS, str(tmp_path))] == [f"run-{n}" for n in (8, 7, 6, 5, 4)]


@settings(max_examples=25)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=4), st.integers() | st.lists(st.text(max_size=400), max_size=3), max_size=2),
        max_size=6,
    )
)
def test_it_stays_bounded_and_says_what_was_said(tmp_path_factory: pytest.TempPathFactory, many: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_log, "MOST_LOG_BYTES", 2000)
        for number, facts in enumerate(many):
            log_done(FS, str(folder), LogEntry("clean", "cleaned", str(number), facts=facts), pytest.fail)
    found = read_log(FS, str(folder))
    assert [one.run for one in found] == [str(n) for n in reversed(range(len(many)))][: len(found)]
    assert sum(path.stat().st_size for path in logs(folder)) <= max(2000, *(len(one.line()) + 2 for one in found), 0)
    assert bool(found) == bool(many)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["id", "at", "verb", "result", "run", "user", "host", "acidctl", "source", "facts"]), JSON
    )
)
def test_a_line_of_other_types_is_no_entry_or_one_of_texts_and_numbers(changed: dict[str, Any]) -> None:
    good = {**json.loads(entry().line()), "at": 5.0}
    found = LogEntry.of(json.dumps(good | changed))
    if found is None:
        assert changed
        return
    assert 0 <= found.at < 1e12
    assert all(isinstance(getattr(found, name), str) for name in ("verb", "result", "run", "user", "host", "id"))
    assert all(isinstance(value, str | int | float | list) for value in found.facts.values())


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_bytes_that_are_no_log_are_no_entries(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("t")
    (folder / NAME).write_bytes(data)
    read_log(FS, str(folder))
    log_done(FS, str(folder), entry(), pytest.fail)
    assert "run-1" in [one.run for one in read_log(FS, str(folder))]


def test_a_number_that_nothing_counts_is_left_out() -> None:
    said = json.loads(LogEntry("clean", "cleaned", "r", 5.0, facts={"bytes": 7}, id="i").line())
    said["facts"] |= {"rows": 10**300, "ratio": 1e300, "files": -(1 << 62)}
    found = LogEntry.of(json.dumps(said))
    assert found is not None
    assert found.facts == {"bytes": 7, "files": -(1 << 62)}


def test_what_is_planted_is_neither_followed_nor_waited_for_nor_removed(tmp_path: Path) -> None:
    table, outside = tmp_path / "t", tmp_path / "outside"
    table.mkdir()
    outside.write_text(entry(66).line() + "\n")
    (table / NAME).symlink_to(outside)
    os.mkfifo(table / NAME.replace("0123", "4444"))
    (table / NAME.replace("0123", "5555")).mkdir()
    log_done(FS, str(table), entry(1), pytest.fail)
    assert [one.run for one in read_log(FS, str(table))] == ["run-1"]
    assert outside.exists()
    assert (table / NAME).is_symlink()


def test_a_huge_file_is_read_in_part_only(tmp_path: Path) -> None:
    line = entry(1).line().replace('"id": ""', '"id": "x"') + "\n"
    with (tmp_path / NAME).open("wb") as file:
        file.write(line.encode())
        file.truncate(1 << 40)  # of which the disk has next to nothing
    assert [one.run for one in read_log(FS, str(tmp_path))] == ["run-1"]
    assert MOST_LOG_BYTES < 1 << 20
    assert MOST_LINES < 1000


def test_one_that_cannot_be_written_is_told_and_raises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_done(FS, str(tmp_path), entry(1))
    before = logs(tmp_path)

    def full(*_: object) -> None:
        raise StorageError("cannot write", "the disk is full")

    monkeypatch.setattr(LocalFileSystem, "write_bytes", full)
    said: list[str] = []
    log_done(FS, str(tmp_path), entry(2), said.append)
    log_done(FS, str(tmp_path), entry(2))
    assert len(said) == 1
    assert "the disk is full" in said[0]
    assert logs(tmp_path) == before


def test_no_look_at_a_location_shows_it(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_0000001")
    before = snapshot_of(table)
    log_done(FS, str(table), entry(1))
    assert snapshot_of(table).state == before.state
    assert snapshot_of(table).listing == before.listing
    assert not is_leftover(logs(table)[0].name)
