"""The line to a metastore is cut, garbled or silent at some byte of some command: it ends soon and clearly, does
nothing twice and nothing by halves, and leaves nothing open.

    ACIDCTL_BAD_DAYS=2000 python -m pytest tests/scenarios/metastore/test_bad_line.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from support.metastore.bad_days import ASKING, CHANGING, COMMANDS, LOOKING, BadDay
from support.trouble.bad_line import BadLine, Trouble

import acidctl
from acidctl.base.errors import AcidctlError
from acidctl.cli.command_table import command_in

TIMES = int(os.environ.get("ACIDCTL_BAD_DAYS", "5"))
"""Every command meets this many troubles of each kind."""

IMPATIENT = ("--set", "metastore.timeout=0.3", "--set", "metastore.connect-timeout=0.3")
_READING = ("ls", "why", "cat", "history", "hive tables")
_SAME = {line for line in LOOKING if command_in(line) in _READING and "json" not in line}


def sizes(day: BadDay, line: tuple[str, ...]) -> tuple[int, int, str]:
    """How many bytes go each way where nothing is wrong, and what the command says then."""
    with day.metastore() as fake, BadLine(fake.address) as through:
        found = day.run(fake, through.address, *line)
        assert found.status in (0, 7), found.err
        day.judge(fake, *line)
        return through.asked, through.answered, found.out.replace(through.address, "")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("line", COMMANDS, ids=" ".join)
def test_a_line_that_breaks_at_any_byte(day: BadDay, line: tuple[str, ...]) -> None:
    asked, answered, said = sizes(day, line)
    chance = random.Random(" ".join(line) + str(TIMES))
    for _ in range(TIMES):
        trouble = Trouble(0, chance.choice(["cut", "reset", "garble", "replay"]), lasting=chance.random() < 0.4)
        is_question = chance.random() < 0.4
        trouble.at = chance.randrange(asked if is_question else answered)
        with day.metastore() as fake, BadLine(fake.address) as through:
            through.questions, through.answers = (trouble, None) if is_question else (None, trouble)
            found = day.run(fake, through.address, *line, *IMPATIENT)
            if trouble.lasting:
                day.judge_files(fake, *line)
            else:
                day.judge(fake, *line)
            if found.status == 0 and line in _SAME:
                assert found.out.replace(through.address, "") == said, trouble


@pytest.mark.slow
@pytest.mark.parametrize("line", (LOOKING[0], LOOKING[5], CHANGING[0], CHANGING[2], *ASKING), ids=" ".join)
def test_a_line_on_which_nothing_comes_any_more(day: BadDay, line: tuple[str, ...]) -> None:
    asked, answered, _ = sizes(day, line)
    for at, is_question in ((answered // 3, False), (answered - 1, False), (asked // 2, True)):
        with day.metastore() as fake, BadLine(fake.address) as through:
            trouble = Trouble(at, "hang")
            through.questions, through.answers = (trouble, None) if is_question else (None, trouble)
            found = day.run(fake, through.address, *line, *IMPATIENT)
            assert found.status in (0, 6, 7), found.err
            day.judge(fake, *line)


def read(metastore: dict[str, str]) -> object:
    return acidctl.open_table("hive:sales.orders", metastore=metastore).scan().to_table()


def compacted(metastore: dict[str, str]) -> object:
    return acidctl.Location("hive:sales.orders", metastore=metastore).compact("major")


def cleaned(metastore: dict[str, str]) -> object:
    return [one.clean() for one in acidctl.find("hive:sales.*", metastore=metastore)]


@pytest.mark.sampled
@pytest.mark.parametrize("verb", [read, compacted, cleaned], ids=lambda verb: verb.__name__)
def test_a_line_that_breaks_under_a_program(day: BadDay, verb: Callable[[dict[str, str]], object]) -> None:
    line = ("clean" if verb is cleaned else "compact", "hive:sales.*")
    with day.metastore() as fake, BadLine(fake.address) as through:
        verb({"uris": through.address})
        asked, answered = through.asked, through.answered
        day.judge(fake, *line)
    chance = random.Random(verb.__name__)
    for _ in range(3 * TIMES):
        is_question = chance.random() < 0.4
        trouble = Trouble(
            chance.randrange(asked if is_question else answered),
            chance.choice(["cut", "garble"]),
            chance.random() < 0.4,
        )
        with day.metastore() as fake, BadLine(fake.address) as through:
            through.questions, through.answers = (trouble, None) if is_question else (None, trouble)
            try:
                verb({"uris": through.address, "timeout": "0.3", "connect-timeout": "0.3"})
            except AcidctlError as error:
                assert type(error) is not AcidctlError
                assert str(error)
            day.judge_files(fake, *line)
