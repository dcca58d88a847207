"""`acidctl explain`: Explain a code, exit status, rule or term."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from acidctl.acid.reasons import Code
from acidctl.acid.state import State
from acidctl.base import errors
from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.cli.options import shared
from acidctl.cli.output.console import Records, put_line, put_text
from acidctl.cli.report.terms import PROVE, STATES, TERMS, TO_DO, terms_of
from acidctl.wording import example, next_step, text_of


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(word) for word in known_words() if word.lower().startswith(incomplete.lower())]


_WIDTH = 96
_ERRORS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, AcidctlError) and kind is not AcidctlError
}
"""The classes of errors by code."""
_STATUSES = {str(status.value): status for status in ExitStatus}
Meaning = dict[str, Any]


@shared.command(
    "explain",
    "acidctl explain few-deltas",
    "acidctl explain 14",
    "acidctl explain V26",
    "acidctl explain base_0000010_v0000123",
    "acidctl explain -o json superseded-by-base | jq -r '.[].todo'",
)
@click.argument("words", nargs=-1, metavar="[WORD...]", shell_complete=_complete)
@shared.output_option("table", "json", "jsonl", default="table")
@shared.runs(pages=True)
def command(*, words: tuple[str, ...], output: str) -> int:
    """Explain a code, exit status, rule or term, and what to do about it.

    WORD is the code of a reason (few-deltas), an exit status (14), a rule of validate (V26), the code of an error
    (conflict), a state (obsolete), a term (snapshot), or the name of a directory. Without a word all are listed.
    """
    found = [meaning for word in words for meaning in _meanings(word)] if words else list(_kinds())
    records = Records(output)
    for number, meaning in enumerate(found):
        records.put(meaning)
        if output == "table":
            _print(meaning, is_first=number == 0)
    return ExitStatus.DONE


def known_words() -> list[str]:
    """Return all words that can be explained."""
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    return [*(code.value for code in Code), *_STATUSES, *RULES, *_ERRORS, *State, *(term.name for term in TERMS)]


def _meanings(word: str) -> Sequence[Meaning]:
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    name = word.strip().lower()
    found = []
    if name in list(Code):
        found.append(_meaning(name, "reason", f"For example: {text_of(example(Code(name)))}", next_step(Code(name))))
    if name in _STATUSES:
        found.append(_meaning(name, "exit status", _STATUSES[name].meaning, TO_DO[_STATUSES[name]]))
    if name.upper() in RULES:
        found.append(_of_rule(name.upper()))
    if name in _ERRORS:
        kind = _ERRORS[name]
        what = (kind.__doc__ or "").split("\n")[0]
        found.append(_meaning(name, f"error, status {kind.exit_status.value}", what, TO_DO[kind.exit_status]))
    if name in list(State):
        found.append(_meaning(name, "state", STATES[State(name)], PROVE))
    found += [_meaning(term.name, "term", term.what, term.todo) for term in terms_of(name)]
    if not found:
        raise UsageProblem(
            f"nothing is called {word}",
            "reasons, errors, exit statuses, rules, states, terms and Hive's names were searched",
            did_you_mean(name, known_words(), "`acidctl explain` lists what there is"),
        )
    return found


def _of_rule(name: str) -> Meaning:
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    rule = RULES[name]
    return _meaning(rule.id, f"rule, {rule.severity.value}", f"{rule.what} {rule.why}", rule.hint)


def _meaning(word: str, kind: str, what: str, todo: str) -> Meaning:
    return {"word": word, "kind": kind, "what": what, "todo": todo}


def _kinds() -> Iterator[Meaning]:
    from acidctl.validation.registry import RULES  # noqa: PLC0415 - --help does without

    for name, what, words in (
        ("reasons", "codes of why something was decided", list(Code)),
        ("exit statuses", "what a command ends with", list(_STATUSES)),
        ("rules", "what `acidctl validate` checks", list(RULES)),
        ("errors", "codes of errors in JSON", sorted(_ERRORS)),
        ("states", "what `acidctl ls` calls a directory", list(State)),
        ("terms", "words of Hive's, also by the name of a directory: base_10_v0000123", [term.name for term in TERMS]),
    ):
        yield {"word": name, "kind": "kind", "what": what, "todo": None, "words": [str(word) for word in words]}


def _print(meaning: Meaning, *, is_first: bool) -> None:
    if meaning["kind"] == "kind":
        put_text(f"{meaning['word']}: {meaning['what']}", most=_WIDTH)
        words = meaning["words"]
        put_text(f"    {(', ' if any(' ' in word for word in words) else ' ').join(words)}", most=_WIDTH)
        return
    if not is_first:
        put_line()
    put_line(f"{meaning['word']} ({meaning['kind']})")
    for text in (meaning["what"], f"To do: {meaning['todo']}"):
        put_text(f"    {text}", most=_WIDTH)
