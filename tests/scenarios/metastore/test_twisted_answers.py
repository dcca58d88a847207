"""Answers of a metastore whose bytes are twisted: a command ends with a status and a sentence, and changes nothing
that it does not say.

    ACIDCTL_TWISTS=200 python -m pytest tests/scenarios/metastore/test_twisted_answers.py
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from support.metastore.bad_days import COMMANDS, ROWS, BadDay
from support.metastore.fake_hive import FakeHive
from support.metastore.twisted import BYTES, TwistedLine

from acidctl.base.errors import ExitStatus
from acidctl.metastore.interface import TxnState

TIMES = int(os.environ.get("ACIDCTL_TWISTS", "3"))
"""Every command gets this many twisted answers of each kind."""

IMPATIENT = ("--set", "metastore.timeout=1.5", "--set", "metastore.connect-timeout=1.5")
WRITES: dict[tuple[str, ...], list[int]] = {
    ("insert", "--yes", "--wait", "0", "hive:sales.orders", "ROWS"): [1, 3, 4, 9],
    ("insert", "--yes", "--wait", "0", "--once", "k", "hive:sales.orders", "ROWS"): [1, 3, 4, 9],
    ("insert", "--yes", "--wait", "0", "--overwrite", "hive:sales.orders", "ROWS"): [9],
    ("delete", "--yes", "--wait", "0", "--where", "a = 3", "hive:sales.orders"): [1, 4],
    ("update", "--yes", "--wait", "0", "--set", "a = 9", "--where", "a = 3", "hive:sales.orders"): [1, 4, 9],
    ("merge", "--yes", "--wait", "0", "--key", "a", "hive:sales.orders", "ROWS"): [1, 3, 4, 9],
    ("truncate", "--yes", "--wait", "0", "hive:sales.orders"): [],
}
"""Statements, and the rows after them."""
NOW = ("--older-than", "0", "--unsafe-retention")
SERVICES = (
    ("hive", "worker", "--once", "--engine", "local"), ("hive", "cleaner", "--once", "--yes", *NOW),
    ("hive", "initiator", "--once"), ("nightly", "--yes", "--engine", "local", "hive:sales.*"),
    ("status", "hive:sales.*"), ("doctor",),
)  # fmt: skip
_CHANGING = ("compact", "clean", "nightly", *{line[0] for line in WRITES})
_ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"


def made_writable(fake: FakeHive) -> None:
    fake.locks = [lock for lock in fake.locks if lock.table != "orders"]
    table = fake.tables["sales", "orders"]
    assert table.storage
    fake.tables["sales", "orders"] = replace(table, storage=replace(table.storage, input_format=_ORC))


def judge(day: BadDay, fake: FakeHive, line: tuple[str, ...], status: int, after: list[int] | None) -> None:
    """No row is lost; of a statement, the rows are those before or after it, and after it if the status says so."""
    now, before = day.files(), day.tree
    if line[0] not in _CHANGING and line[:2] not in (("hive", "worker"), ("hive", "cleaner")):
        assert now == before, "it only looks"
    if after is not None and status == 0:
        assert now != before
    if now != before:
        seen = {name: day.rows_of(fake, name) for name in ROWS}
        new = [f'{{"a":{number}}}' for number in after or ()]
        if after is not None and (status == 0 or seen["hive:sales.orders"] == new):
            assert seen.pop("hive:sales.orders") == new
        assert seen == {name: ROWS[name] for name in seen}
        day.renew()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("line", [*COMMANDS, *SERVICES, *WRITES], ids=" ".join)
def test_an_answer_that_is_twisted(day: BadDay, line: tuple[str, ...]) -> None:
    rows = day.root.parent / "rows.jsonl"
    rows.write_text('{"a": 9}\n')
    after = WRITES.get(line)
    line = tuple(str(rows) if word == "ROWS" else word for word in line)
    with day.metastore() as fake, TwistedLine(fake.address) as through:
        made_writable(fake)
        found = day._acidctl(*line, "--metastore", through.address)
        assert found.status in ((0, 1, 7) if after is None else (0,)), found
        calls = len(through.answers)
        judge(day, fake, line, found.status, after)
    name = " ".join(word for word in line if word != str(rows))
    chance = random.Random(f"{name} {TIMES}")
    for number in range(TIMES):
        twist, at, lasting = chance.choice(BYTES), chance.randrange(calls), chance.random() < 0.3
        seed = f"{name} {number}"
        with day.metastore() as fake, TwistedLine(fake.address, twist, seed, at, lasting=lasting) as through:
            made_writable(fake)
            try:
                if line in SERVICES or after is not None:
                    found = day._acidctl(*line, *IMPATIENT, "--metastore", through.address)
                    assert found.status in set(ExitStatus) - {ExitStatus.INTERRUPTED}
                    assert "Traceback" not in found.err
                    assert "a bug in acidctl" not in found.err
                else:
                    found = day.run(fake, through.address, *line, *IMPATIENT)
                judge(day, fake, line, found.status, after)
                if not lasting:
                    assert not [
                        one for one in fake.txns.values() if one.state == TxnState.OPEN and "acidctl" in one.host
                    ]
                    assert not [one for one in fake.queue if one.state == "working"]
            except AssertionError as error:
                called = through.answers[at] if at < len(through.answers) else ""
                raise AssertionError(
                    f"{twist.__name__} of {called} ({at}), lasting: {lasting}, seed {seed!r}"
                ) from error
