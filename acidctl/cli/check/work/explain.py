"""What `acidctl explain` does: look a word up where it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acidctl import errors
from acidctl.acid.reasons import Code
from acidctl.acid.state import State
from acidctl.cli.output.console import Records, put_line, put_text
from acidctl.cli.report.reason_examples import FAMILIES, example, family_of
from acidctl.cli.report.status_advice import TO_DO
from acidctl.cli.report.terms import PROVE, STATES, TERMS, Term, terms_of
from acidctl.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.nearest import did_you_mean
from acidctl.spelling import spelled
from acidctl.validation.registry import RULES
from acidctl.wording import text_of

_WIDTH = 96
_ERRORS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, AcidctlError) and kind is not AcidctlError
}
"""The codes of errors, each with its class."""

_STATUSES = {str(one.value): one for one in ExitStatus}

Meaning = dict[str, Any]


def work(*, words: tuple[str, ...], output: str) -> int:
    """Explain them; the exit status."""
    found = [meaning for word in words for meaning in _meanings(word)] if words else list(_families())
    records = Records(output)
    for number, meaning in enumerate(found):
        records.put(meaning)
        if output == "table":
            _print(meaning, is_first=number == 0)
    return ExitStatus.DONE


def known_words() -> list[str]:
    """All that can be explained."""
    return [*(code.value for code in Code), *_STATUSES, *RULES, *_ERRORS, *State, *(term.name for term in TERMS)]


def _meanings(word: str) -> Sequence[Meaning]:
    name = word.strip().lower()
    found = []
    if name in list(Code):
        found.append(_of_code(Code(name)))
    if name in _STATUSES:
        found.append(_of_status(_STATUSES[name]))
    if name.upper() in RULES:
        found.append(_of_rule(name.upper()))
    if name in _ERRORS:
        found.append(_of_error(name))
    if name in list(State):
        found.append(_of_state(State(name)))
    found += [_of_term(term) for term in terms_of(name)]
    if not found:
        raise UsageProblem(
            f"nothing is called {word}",
            "it is no code of a reason or an error, no exit status, no rule, no state, no term and no name of Hive's",
            did_you_mean(name, known_words(), "`acidctl explain` lists what there is"),
        )
    return found


def _of_code(code: Code) -> Meaning:
    family = family_of(code)
    return {
        "word": code.value,
        "kind": "reason",
        "family": family.name,
        "what": f"{family.what[:1].upper()}{family.what[1:]}.",
        "example": spelled(text_of(example(code))),
        "todo": family.todo,
    }


def _of_status(status: ExitStatus) -> Meaning:
    return {
        "word": str(status.value),
        "kind": "exit status",
        "family": "exit statuses",
        "what": spelled(status.meaning),
        "example": None,
        "todo": TO_DO[status],
    }


def _of_rule(name: str) -> Meaning:
    rule = RULES[name]
    return {
        "word": rule.id,
        "kind": f"rule, {rule.severity.value}",
        "family": "rules",
        "what": f"{rule.what} {rule.why}",
        "example": None,
        "todo": spelled(rule.hint),
    }


def _of_error(name: str) -> Meaning:
    kind = _ERRORS[name]
    return {
        "word": name,
        "kind": f"error, status {kind.exit_status.value}",
        "family": "errors",
        "what": (kind.__doc__ or "").split("\n")[0],
        "example": None,
        "todo": TO_DO[kind.exit_status],
    }


def _of_state(state: State) -> Meaning:
    return {
        "word": state.value,
        "kind": "state",
        "family": "states",
        "what": STATES[state],
        "example": None,
        "todo": PROVE,
    }


def _of_term(term: Term) -> Meaning:
    return {
        "word": term.name,
        "kind": "term",
        "family": "terms",
        "what": term.what,
        "example": None,
        "todo": term.todo,
    }


def _families() -> Iterator[Meaning]:
    members = {family.name: [code.value for code in Code if family_of(code) is family] for family in FAMILIES}
    for family in FAMILIES:
        yield _family(family.name, family.what, members[family.name])
    yield _family("exit statuses", "what a command ends with", list(_STATUSES))
    yield _family("rules", "what `acidctl validate` checks", list(RULES))
    yield _family("errors", "codes of errors in JSON", sorted(_ERRORS))
    yield _family("states", "what `acidctl ls` calls a directory", list(State))
    yield _family(
        "terms", "words of Hive's, also by the name of a directory: base_10_v0000123", [term.name for term in TERMS]
    )


def _family(name: str, what: str, words: list[str]) -> Meaning:
    return {"word": name, "kind": "family", "family": name, "what": what, "example": None, "todo": None, "words": words}


def _print(meaning: Meaning, *, is_first: bool) -> None:
    if meaning["kind"] == "family":
        put_text(f"{meaning['word']}: {meaning['what']}", most=_WIDTH)
        words = meaning["words"]
        put_text(f"    {(', ' if any(' ' in word for word in words) else ' ').join(words)}", most=_WIDTH)
        return
    if not is_first:
        put_line()
    put_line(f"{meaning['word']} ({meaning['kind']})")
    said = (meaning["what"], meaning["example"] and f"For example: {meaning['example']}")
    for text in filter(None, (*said, f"To do: {meaning['todo']}")):
        put_text(f"    {text}", most=_WIDTH)
