"""`acidctl explain`: every code, status and rule has a meaning and says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.command_line import Result

from acidctl.acid.names import acid_directory
from acidctl.acid.reasons import Code
from acidctl.acid.state import State
from acidctl.base.errors import ExitStatus
from acidctl.cli.check.explain import known_words, texts
from acidctl.validation.checks import RULES
from acidctl.wording import example, text_of

Acidctl = Callable[..., Result]


def test_everything_that_can_be_said_is_explained(acidctl: Acidctl) -> None:
    found = acidctl("explain", "-o", "jsonl", *known_words())
    assert found.status == 0, found.err
    meanings = found.lines()
    assert {*Code, *map(str, map(int, ExitStatus)), *RULES} <= {one["word"] for one in meanings}
    errors = [one["word"] for one in acidctl("explain", "-o", "jsonl", "errors").lines()]
    assert len(errors) == len({*errors}) > 10
    assert all(one["what"] and one["todo"] and one["kind"] for one in meanings)
    assert set(texts()["states"]) == set(State)
    assert [*texts()["statuses"]] == [str(status.value) for status in ExitStatus]
    assert "exit_code" not in found.out, "as users type it"
    codes = [meaning["word"] for meaning in acidctl("explain", "-o", "jsonl", "errors").lines()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("few-deltas", "of the base's bytes"), ("14", "something needs attention"), ("v26", "INSERT OVERWRITE"),
        (" Conflict ", "status 9"), ("no-cleanup", "is set for the table"),
        ("superseded-by-delta", "its write ids are in delta_0000001_0000005"),
        ("half-a-minor", "delta_0000001_0000005 hides it"),
        ("minor", "The base stays"), ("major", "new base"), ("compaction", "same rows"), ("ROW__ID", "identifier of"),
        ("HWM", "highest write id"),
        ("obsolete", "No reader needs it"), ("Snapshot", "a listing of the location"), ("7", "--assume-committed"),
    ],
)  # fmt: skip
def test_one_word(acidctl: Acidctl, word: str, said: str) -> None:
    found = acidctl("explain", word)
    assert found.status == 0
    assert said in found.out
    assert "To do: " in found.out


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("_v0000123", ["visibility transaction"]),
        ("_v", ["visibility transaction"]),
        ("delete_delta", ["delete delta"]),
        ("base_0000010_v0000026", ["base", "visibility transaction"]),
        ("base_-9223372036854775808", ["base"]),
        ("delta_0000007_0000007_0001", ["delta", "statement id"]),
        ("delete_delta_0000001_0000005_v0000009", ["delete delta", "visibility transaction"]),
        ("000000_0_copy_1", ["original file"]),
        ("bucket_00000_flush_length", ["flush length"]),
        ("aborted", ["aborted"]),
    ],
)
def test_what_a_name_on_disk_shows(acidctl: Acidctl, name: str, terms: list[str]) -> None:
    assert [one["word"] for one in acidctl("explain", "-o", "jsonl", name).lines()] == terms


@pytest.mark.parametrize("name", ["base_", "base_x", "delta_1", "delta_1_²", "base_1_v1_copy"])
def test_names_that_are_none_of_hives(acidctl: Acidctl, name: str) -> None:
    assert acidctl("explain", name).status == 2


@pytest.mark.parametrize("word", ["high watermark", "high-watermark", "High_Watermark"])
def test_a_term_is_found_with_dashes_for_its_blanks(acidctl: Acidctl, word: str) -> None:
    assert [one["word"] for one in acidctl("explain", "-o", "jsonl", word).lines()] == ["high watermark"]


@pytest.mark.parametrize(("word", "near"), [("few-delta", "few-deltas"), ("V62", "V6"), ("confict", "conflict")])
def test_what_is_mistyped_is_asked_about(acidctl: Acidctl, word: str, near: str) -> None:
    found = acidctl("explain", word)
    assert (found.status, found.out) == (2, "")
    assert near in found.err


@pytest.mark.parametrize("word", ["", "²", "99999999999999999999", "\x1b[31m", "x" * 5000])
def test_what_nothing_is_called_is_no_bug(acidctl: Acidctl, word: str) -> None:
    found = acidctl("explain", word)
    assert found.status == 2
    assert "\x1b" not in found.err


def test_without_a_word_every_word_is_listed_once(acidctl: Acidctl) -> None:
    listed = [word for one in acidctl("explain", "-o", "json").json() for word in one["words"]]
    assert sorted(listed) == sorted(known_words())
    assert acidctl("explain").out.startswith("reasons: ")


def test_examples_are_true_of_one_table() -> None:
    """Names can be parsed, and numbers agree with what their sentence says about them."""
    for code in Code:
        made = example(code)
        text = text_of(made)
        above = re.search(r"(?:id|transaction) (\d+) is (?:on disk.* none )?above (?:the high watermark )?(\d+)", text)
        assert above is None or int(above[1]) > int(above[2]), text
        below = re.search(r"delta_(\d+)_(\d+) begins at or below write id (\d+)", text)
        assert below is None or int(below[1]) <= int(below[3]) < int(below[2]), text
        for name in re.findall(r"(?<![-.\w])(?:base|delta|delete_delta)_[-\w]+", text):
            assert acid_directory(name), text
    one, other = map(acid_directory, example(Code.OVERLAP).by)
    assert one and other and one.max_write_id >= other.min_write_id


def test_a_rule_has_its_parts_as_fields(acidctl: Acidctl) -> None:
    found = {one["word"]: one for one in acidctl("explain", "-o", "jsonl", "rules").lines()}
    assert list(found) == list(RULES)
    for rule in RULES.values():
        one = found[rule.id]
        assert (one["severity"], one["depth"], one["section"]) == (rule.severity, rule.depth, rule.section)
        assert (one["what"], one["why"], one["readers"]) == (rule.what, rule.why, list(rule.readers))
        assert " ".join(f"{rule.what} {rule.why}".split()) in " ".join(acidctl("explain", rule.id).out.split())
    assert "readers" not in acidctl("explain", "-o", "jsonl", "few-deltas").lines()[0]


def test_all_rules_are_explained_by_one_word(acidctl: Acidctl) -> None:
    found = acidctl("explain", "rules")
    titles = [line for line in found.out.splitlines() if re.match(r"[A-Z]+\d+ \(", line)]
    assert [title.partition(" ")[0] for title in titles] == list(RULES)
    assert all(f"(rule, {rule.severity.value}" in title for rule, title in zip(RULES.values(), titles, strict=True))
    assert [one["word"] for one in acidctl("explain", "-o", "json", "rules").json()] == list(RULES)
