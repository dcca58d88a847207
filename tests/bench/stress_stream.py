"""A stream into a partitioned table for an hour at a quick pace, with compactions beside it, judged by a real Hive.

PYTHONPATH=.:tests python tests/bench/stress_stream.py [--hive 3|4] [--minutes N] [--every SECONDS] [--at DIR]

`acidctl stream` commits each --every seconds, two for twelve: ten minutes have as many commits as an hour. On Hive
4.0.1 `acidctl hive initiator`, `worker` and `cleaner` run beside it, on 3.1.3 `acidctl compact --auto` and `clean`, as
cron would start them. With --kills the stream is killed now and then, and started with input that begins earlier.
The metastore of Hive 4.0.1 is on PostgreSQL, if that is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from support.metastore.stress_servers import Servers3, Servers4
from support.paths import PYTHONPATH
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveError
from support.servers.postgres_server import PostgresServer

import acidctl

PARTITIONS, PAUSE, MOST = 3, 0.2, 20
TIMEOUT = 60
"""Seconds after which a transaction of a killed process is dead."""

NAME = "streamed"
KEEPING = ("--older-than", "0", "--unsafe-retention")


class Producer(threading.Thread):
    """Gives numbered lines to a stream, which it kills at times, until it is told to end.

    Attributes:
        given: the time at which each line was given first.
    """

    def __init__(self, line: Sequence[str], folder: Path, kills: float) -> None:
        super().__init__()
        self._line, self._log, self._kills = line, folder / "stream.log", kills
        self.given: list[float] = []
        self.is_over = threading.Event()
        self.killed = 0
        self.problems: list[str] = []

    def run(self) -> None:
        while not self.is_over.is_set():
            with self._log.open("a") as log:
                stream = subprocess.Popen(self._line, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
            assert stream.stdin
            until = time.monotonic() + random.uniform(0.5, 1.5) * (self._kills or math.inf)
            first = max(0, len(self.given) - 2000)  # earlier than what is loaded, if less than 2,000 are on the way
            for number in range(first, len(self.given)):
                stream.stdin.write(_line(number))
            while not self.is_over.wait(PAUSE) and time.monotonic() < until and stream.poll() is None:
                for number in range(len(self.given), len(self.given) + 7):
                    stream.stdin.write(_line(number))
                    self.given.append(time.monotonic())
                stream.stdin.flush()
            if stream.poll() is not None:
                self.problems.append(f"the stream ended with {stream.returncode}: see {self._log}")
                return
            if self.is_over.is_set():
                stream.stdin.close()
                if stream.wait(300):
                    self.problems.append(f"the stream ended with {stream.returncode}: see {self._log}")
            else:
                stream.kill()
                stream.wait()
                self.killed += 1


def _line(number: int) -> str:
    return json.dumps({"id": number, "name": f"n{number}", "p": number % PARTITIONS}) + "\n"


def _count(log: Path, words: str) -> int:
    """Return the number of lines of a log that have these words."""
    return sum(words in line for line in log.read_text(errors="replace").splitlines())


@contextmanager
def running(line: Sequence[str], log: Path) -> Iterator[None]:
    """Run a service of acidctl meanwhile."""
    with log.open("a") as output:
        process = subprocess.Popen(line, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


@contextmanager
def repeated(lines: Sequence[Sequence[str]], pause: float, log: Path) -> Iterator[None]:
    """Run lines one after the other meanwhile, again after each pause, as cron does."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(pause):
            for line in lines:
                with log.open("a") as output:
                    subprocess.run(line, stdout=output, stderr=output, check=False)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hive", type=int, choices=(3, 4), default=4, help="3.1.3, or 4.0.1, which it is without")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between commits")
    parser.add_argument("--look", type=float, default=10.0, help="seconds between looks of the initiator, or of cron")
    parser.add_argument(
        "--kills",
        type=float,
        default=0.0,
        help="seconds between kills of the stream, about; rows then wait for the time-out of its transaction",
    )
    parser.add_argument("--at", type=Path, help="a folder to work in, which is kept")
    asked = parser.parse_args()
    folder = asked.at or Path(tempfile.mkdtemp(prefix="acidctl-stress-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = PYTHONPATH
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    with ExitStack() as running_servers:
        servers = _servers(running_servers, folder, asked.hive)
        problems = play(servers, folder, asked)
    if not problems and not asked.at:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(problems) if problems else "each row is there once, and readers never met too many deltas")
    return 1 if problems else 0


def _servers(running_servers: ExitStack, folder: Path, version: int) -> Servers3 | Servers4:
    servers: Servers3 | Servers4
    if version == 3:
        servers = Servers3(folder, TIMEOUT, hives_compactor=False)
    else:
        postgres = None
        with suppress(ServerUnavailable):  # Derby deadlocks when transactions compete
            postgres = PostgresServer()
            running_servers.callback(postgres.stop)
        servers = Servers4(folder, TIMEOUT, hives_cleaner=False, hives_worker=False, postgres=postgres)
    running_servers.callback(servers.stop)
    return servers


def play(servers: Servers3 | Servers4, folder: Path, asked: argparse.Namespace) -> list[str]:
    """Run it, print figures, and return what was wrong."""
    hive, directory = servers.hive, folder / "warehouse" / NAME
    hive.sql(
        f"create table {NAME} (id int, name string) partitioned by (p int) stored as orc"
        " tblproperties('transactional'='true')"
    )
    table, to = f"hive:default.{NAME}", ("--metastore", servers.address)
    program = (sys.executable, "-m", "acidctl")
    stream = (*program, "stream", table, "--every", f"{asked.every:g}s", "--offset-key", "id", *to)
    look = f"{asked.look:g}s"
    problems: list[str] = []
    with ExitStack() as beside:
        if asked.hive == 4:
            cleaner = ("hive", "cleaner", "--yes", "--no-trash", "--every", look, *KEEPING)
            for words in (("hive", "initiator", "--every", look), ("hive", "worker", "--engine", "local"), cleaner):
                beside.enter_context(running((*program, *words, *to), folder / f"{words[1]}.log"))
        else:
            lines = (
                (*program, "compact", "--auto", "--engine", "local", table, *to),
                (*program, "clean", "--yes", "--no-trash", *KEEPING, table, *to),
            )
            beside.enter_context(repeated(lines, asked.look, folder / "cron.log"))
        producer = Producer(stream, folder, asked.kills)
        producer.start()
        beside.callback(producer.join)
        beside.callback(producer.is_over.set)
        most, on_disk, late, samples, failures = 0, 0, [0.0], 0, Counter[str]()
        end = time.monotonic() + asked.minutes * 60
        seen = -1
        while time.monotonic() < end and producer.is_alive():
            begun = time.monotonic()
            try:
                count, highest = hive.sql(f"select count(*), max(id) from {NAME}")[0]
            except HiveError as error:  # Hive lists each directory that it found, also those that a cleaner removes
                failures["FileNotFoundException" if "FileNotFoundException" in str(error) else str(error)] += 1
                continue
            now = time.monotonic()
            newest = -1 if highest == "NULL" else int(highest)
            if int(count) != newest + 1:
                problems.append(f"Hive counts {count} rows up to {highest}")
            waiting = next(iter(producer.given[newest + 1 :]), now)  # not yet visible when the query began
            late.append(max(begun - waiting, 0.0))
            samples += newest > seen
            seen = newest
            deltas = [
                (status.figures.deltas, len(list((directory / f"p={number}").glob("*delta_*"))))
                for number, status in enumerate(acidctl.find(table, metastore=servers.address).status())
            ]
            most = max([most, *(current for current, _ in deltas)])
            on_disk = max([on_disk, *(there for _, there in deltas)])
            time.sleep(0.2)
    problems += producer.problems
    print(f"failed queries of Hive: {dict(failures)}")
    late.sort()
    print(
        f"{len(producer.given):,} lines, {producer.killed} kills; {samples} different answers of Hive; "
        f"at most {most} current deltas and {on_disk} directories of deltas in a location; "
        f"the longest wait for a row {late[-1]:.1f} s, median of waits {late[len(late) // 2]:.1f} s"
    )
    commits = _count(folder / "stream.log", "rows inserted")
    majors = _count(folder / ("worker.log" if asked.hive == 4 else "cron.log"), ": major: ")
    left = [status.figures.deltas for status in acidctl.find(table, metastore=servers.address).status()]
    print(f"{commits:,} commits, {majors:,} major compactions; current deltas left: {left}")
    expected = [[str(number), f"n{number}", str(number % PARTITIONS)] for number in range(len(producer.given))]
    found = sorted(hive.sql(f"select id, name, p from {NAME}"), key=lambda row: int(row[0]))
    if found != expected:
        problems.append(f"Hive reads {len(found):,} rows, and {len(expected):,} were given")
    if most > MOST:
        problems.append(f"{most} deltas")
    if late[-1] > 15 and not asked.kills:
        problems.append(f"a row was not visible after {late[-1]:.1f} s")
    return problems


if __name__ == "__main__":
    sys.exit(main())
