"""`producer | acidctl stream`: lines are there soon and once, whatever ends it and whenever it is started again."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.paths import PYTHONPATH
from support.writing import WrittenTable, written_table

from acidctl.metastore.interface import ColumnConstraint, NotNull

Acidctl = Callable[..., Result]
Streamed = Callable[..., Result]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", {"a": "int", "b": "string"}, version=request.param) as made:
        yield made


def lines(*numbers: int, **more: object) -> str:
    return "".join(json.dumps({"a": number, "b": "x", "n": number, **more}) + "\n" for number in numbers)


@pytest.fixture
def streamed(table: WrittenTable, acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Streamed:
    """Run the command with a text as its input, to its end."""

    def run(text: str, *words: str) -> Result:
        file = tmp_path / "input"
        file.write_text(text)
        with file.open() as given:
            monkeypatch.setattr("sys.stdin", given)
            return acidctl("stream", "hive:db.t", f"--metastore={table.hive.address}", "-o", "jsonl", *words)

    return run


def test_lines_are_written_until_the_end_of_the_input(table: WrittenTable, streamed: Streamed) -> None:
    done = streamed('{"a": 1, "B": "x"}\n\n{"B": "y"}\n{"a": 3}')
    assert (done.status, table.rows(), table.is_quiet) == (0, [(1, "x"), (3, None), (None, "y")], True)
    assert json.loads(done.out)["inserted"] == 3
    assert "4 lines" in done.err
    assert streamed("").status == streamed("\n\n").status == 0
    assert len(table.hive.write_ids["db.t"]) == 1, "no lines, no transaction"


@pytest.mark.parametrize(
    ("last", "ends"),
    [
        ('{"a": 4}', ("written", "input", "the end of its input")),
        ("null", ("failed", "bad-data", "an error (bad-data)")),
    ],
)
def test_a_run_has_one_line_in_the_log_with_its_transactions_and_its_end(
    table: WrittenTable,
    streamed: Streamed,
    acidctl: Acidctl,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
    ends: tuple[str, str, str],
) -> None:
    monkeypatch.setattr("acidctl.verbs.writing.stream._MOST", 16)
    monkeypatch.setattr("acidctl.verbs.writing.stream._CHUNK", 9)
    table.door.table("db.t").delete("true")  # which changes nothing, and is not logged
    streamed('{"a": 1}\n{"a": 2}\n{"a": 3}\n' + last)
    assert len(table.hive.write_ids["db.t"]) > 2
    (told,) = acidctl("log", "-o", "jsonl", table.path).lines()
    facts, rows = told["facts"], table.rows()
    assert (told["verb"], told["result"], facts["end"], facts["inserted"]) == ("stream", *ends[:2], len(rows))
    assert facts["transactions"] == facts["maxWriteId"] - facts["minWriteId"] + 1 > 1
    assert f"{facts['transactions']} transactions; {len(rows)} rows inserted" in (out := acidctl("log", table.path).out)
    assert f"ended by {ends[2]}" in " ".join(out.split())
    streamed('{"a": 9}\n')
    assert streamed("").status == 0
    assert len(acidctl("log", "-o", "jsonl", table.path).lines()) == 2, "a line for each run that wrote"


def test_it_goes_on_from_the_last_offset(table: WrittenTable, streamed: Streamed) -> None:
    for text, expected, passed in (
        (lines(0, 1, 2), [0, 1, 2], ""), (lines(1, 2, 3, 4), [0, 1, 2, 3, 4], "2 rows passed over"),
        (lines(1, 2), [0, 1, 2, 3, 4], "2 rows passed over"),
        (lines(5, 6, 5, 6, 7), [0, 1, 2, 3, 4, 5, 6, 7], "2 rows passed over"),
    ):  # fmt: skip
        done = streamed(text, "--offset-key", "n")
        assert (done.status, [row[0] for row in table.rows()]) == (0, expected)
        assert passed in done.err


def test_the_offset_may_be_a_column_of_the_table(table: WrittenTable, streamed: Streamed) -> None:
    for text in ('{"a": 1}\n{"a": 2}\n', '{"A": 2}\n{"A": 3}\n'):
        assert streamed(text, "--offset-key", "A" if "A" in text else "a").status == 0
    assert [row[0] for row in table.rows()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("null", "a JSON object"), ("3", "a JSON object"), ('{"a": ', "Invalid"),
        ('{"a": "x", "n": 7}', 'column a is int and cannot hold "x"'), ('{"a": 3000000000, "n": 7}', "3000000000"),
        ('{"a": 1, "z": 1, "n": 7}', "no column z"), ('{"a": 1}', "no number n"), ('{"a": 1, "n": "7"}', "string"),
        ('{"a": 1, "n": -1}', "below 0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_bad_line_ends_it_after_the_lines_before_it(
    table: WrittenTable, streamed: Streamed, bad: str, why: str, place: int
) -> None:
    good = lines(0, 1, 2).splitlines(keepends=True)
    done = streamed("".join([*good[:place], f"{bad}\n", *good[place:]]), "--offset-key", "n")
    assert (done.status, f"line {place + 1} cannot" in done.err, why in done.err) == (4, True, True), done.err
    assert [row[0] for row in table.rows()] == list(range(place))
    assert table.is_quiet
    assert streamed("".join(good), "--offset-key", "n").status == 0
    assert [row[0] for row in table.rows()] == [0, 1, 2]


def test_a_line_ends_at_its_line_feed_alone(table: WrittenTable, streamed: Streamed) -> None:
    done = streamed('{"a": 1}\r\r\n{"a":\r2}\r\n3\n')
    assert (done.status, "line 3 cannot" in done.err) == (4, True), done.err
    assert [row[0] for row in table.rows()] == [1, 2]


def test_lines_before_one_that_is_too_long_are_written(
    table: WrittenTable, streamed: Streamed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acidctl.verbs.writing.stream._MOST", 100)
    monkeypatch.setattr("acidctl.verbs.writing.stream._CHUNK", 200)
    done = streamed('{"a": 1}\n{"a": 2}\n{"b": "' + "x" * 1000)
    assert (done.status, "line 3 is longer" in done.err) == (4, True), done.err
    assert [row[0] for row in table.rows()] == [1, 2]


def test_a_null_for_a_column_that_has_none_is_a_bad_line(table: WrittenTable, streamed: Streamed) -> None:
    table.hive.not_null = (NotNull("b", True),)
    done = streamed('{"a": 1, "b": "x"}\n{"a": 2}\n')
    assert (done.status, "line 2 cannot" in done.err, table.rows()) == (4, True, [(1, "x")])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("failed", "lines from 1 on were not written"),
        ("done", "whether lines from 1 on were written is not known"),
    ],
)
def test_a_commit_that_fails_ends_it_with_the_first_line_that_is_missing(
    table: WrittenTable, streamed: Streamed, kind: str, said: str
) -> None:
    table.hive.remembers = False
    table.hive.fault("commit_txn", kind)
    done = streamed(lines(1, 2), "--offset-key", "n")
    assert (done.status, said in done.err) == (6, True), done.err
    for txn in [txn.id for txn in table.hive.txns.values()]:
        table.hive.end(txn, commit=False)
    assert streamed(lines(1, 2, 3), "--offset-key", "n").status == 0
    assert [row[0] for row in table.rows()] == [1, 2, 3]


def test_a_table_with_defaults_is_refused(table: WrittenTable, streamed: Streamed) -> None:
    table.hive.defaults = (ColumnConstraint("b", "'x'", True),)
    assert streamed('{"a": 1}\n').status == 7
    assert table.rows() == []


def test_partitions_come_from_the_lines(acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with written_table(tmp_path / "t", {"a": "int"}, {"day": "string"}) as table:
        for text, status in (
            ('{"a": 1, "day": "x"}\n{"a": 2, "day": "y"}\n{"a": 3, "day": ""}\n', 4), ('{"a": 4}\n', 4),
        ):  # fmt: skip
            (tmp_path / "input").write_text(text)
            with (tmp_path / "input").open() as given:
                monkeypatch.setattr("sys.stdin", given)
                done = acidctl("stream", "hive:db.t", f"--metastore={table.hive.address}")
            assert done.status == status
        assert table.rows() == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("every", ["0", "0.5s"])
def test_an_interval_has_a_least_length(table: WrittenTable, streamed: Streamed, every: str) -> None:
    assert streamed(lines(1), "--every", every).status == 2


class Process:
    """The command as a process of its own, with a pipe."""

    def __init__(self, table: WrittenTable, *words: str) -> None:
        self.table = table
        line = ["stream", "hive:db.t", f"--metastore={table.hive.address}", "--every", "1s", *words]
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "acidctl", *line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )

    def give(self, text: str) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def wait_for(self, count: int) -> None:
        """Wait until this number of rows is visible, while the input stays open."""
        for _ in range(300):
            if len(self.table.rows()) >= count:
                return
            time.sleep(0.1)
        pytest.fail("the rows did not come")

    def end(self) -> tuple[int, str]:
        _, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, err


@pytest.mark.slow
def test_lines_are_visible_while_the_producer_is_at_work(table: WrittenTable) -> None:
    process = Process(table)
    process.give(lines(1).replace(', "n": 1', ""))
    process.wait_for(1)
    process.give('{"a": 2}\n{"a"')
    process.wait_for(2)
    process.give(": 3}")
    assert process.end()[0] == 0
    assert [row[0] for row in table.rows()] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_it_has(table: WrittenTable, number: int) -> None:
    process = Process(table, "--every", "10m", "--offset-key", "n")
    process.give(lines(1, 2) + '{"a": 3, ')
    wait_until_read(process)
    process.popen.send_signal(number)
    status, err = process.end()
    assert (status, [row[0] for row in table.rows()]) == (0, [1, 2]), err
    assert "9 bytes are not a whole line" in err
    assert table.is_quiet


def wait_until_read(process: Process) -> None:
    """Wait until the process has taken everything from its pipe, and waits for more."""
    assert process.popen.stdin
    for _ in range(300):
        waiting = fcntl.ioctl(process.popen.stdin.fileno(), termios.FIONREAD, b"\0\0\0\0")
        if waiting == b"\0\0\0\0":
            break
        time.sleep(0.1)
    time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["lock", "commit_txn"])
def test_a_killed_stream_is_started_again(table: WrittenTable, call: str, is_done: bool) -> None:
    process = Process(table, "--offset-key", "n")
    killed = threading.Event()

    def kill(name: str, now_done: bool) -> None:
        if (name, now_done) == (call, is_done) and not killed.is_set() and table.hive.calls.count(call) > 1:
            killed.set()
            process.popen.kill()

    table.hive.at_call = kill
    process.give(lines(1, 2))
    process.wait_for(2)
    process.give(lines(3, 4))
    assert process.end()[0] == -signal.SIGKILL
    table.hive.at_call = lambda *_: None
    for txn in [txn.id for txn in table.hive.txns.values()]:
        table.hive.end(txn, commit=False)
    process = Process(table, "--offset-key", "n")
    process.give(lines(1, 2, 3, 4, 5))
    assert process.end()[0] == 0
    assert [row[0] for row in table.rows()] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_of_two_streams_with_one_key_one_ends(table: WrittenTable) -> None:
    first, second = Process(table, "--offset-key", "n"), Process(table, "--offset-key", "n")
    wait_until_read(second)
    first.give(lines(1, 2))
    first.wait_for(2)
    second.give(lines(1, 2, 3))
    status, err = second.end()
    assert (status, "another process" in err, "lines from 1 on" in err) == (7, True, True)
    assert first.end()[0] == 0
    assert [row[0] for row in table.rows()] == [1, 2]
