"""`acidctl explain`: Explain a code, exit status, rule or term."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import click

from acidctl.acid.reasons import Code
from acidctl.acid.state import State
from acidctl.base import errors
from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.cli.options import shared
from acidctl.cli.output.console import Records, put_line, put_text
from acidctl.wording import example, next_step, text_of

_WIDTH = 96
Meaning = dict[str, Any]


@lru_cache
def texts() -> dict[str, Any]:
    """Return the content of ``explain.toml``: `kinds`, `states`, `statuses` (what to do) and `terms`.

    A term has a `name` and `what` it is, may have `todo` (by default `prove`), and `names`: a regular expression for
    the names, in lower case, of directories and files that show it.
    """
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files(__package__).joinpath("explain.toml").read_text("utf-8"))


@shared.command("explain")
@click.argument("words", nargs=-1, metavar="[WORD...]")
@shared.output_option("table", "json", "jsonl", default="table")
def command(*, words: tuple[str, ...], output: str) -> int:
    """Explain a code, exit status, rule or term, and what to do about it.

    WORD is the code of a reason (few-deltas), an exit status (14), a rule of validate (V26), the code of an error
    (conflict), a state (obsolete), a term (snapshot), or the name of a directory. The name of a kind, `rules` for
    example, explains all of its words. Without a word all are listed.
    """
    found = [meaning for word in words for meaning in _meanings(word)] if words else _listed()
    records = Records(output)
    for number, meaning in enumerate(found):
        records.put(meaning)
        if output == "table":
            _print(meaning, is_first=number == 0)
    return ExitStatus.DONE


def known_words() -> list[str]:
    """Return all words that can be explained."""
    return [meaning["word"] for _, meaning in _glossary()]


def _glossary() -> Iterator[tuple[str, Meaning]]:
    """Yield the meaning of every word, with the kind that it is listed under."""
    from acidctl.validation.checks import RULES

    said = texts()
    for code in Code:
        yield "reasons", _meaning(code, "reason", f"For example: {text_of(example(code))}", next_step(code))
    for status in ExitStatus:
        word = str(status.value)
        yield "exit statuses", _meaning(word, "exit status", status.meaning, said["statuses"][word])
    for rule in RULES.values():
        depth = f"--{rule.depth.value}" if rule.depth.rank else ""
        readers = f"--for {' '.join(rule.readers)}" if rule.readers else ""
        kind = ", ".join(filter(None, ("rule", rule.severity.value, depth, readers)))
        parts = {"severity": rule.severity.value, "depth": rule.depth.value, "readers": list(rule.readers)}
        more = {"why": rule.why, **parts, "section": rule.section}
        yield "rules", _meaning(rule.id, kind, rule.what, rule.hint) | more
    by_code: dict[str, type[AcidctlError]] = {}
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, AcidctlError) and error is not AcidctlError:
            by_code.setdefault(error.code, error)
    for name, error in by_code.items():
        kind = f"error, status {error.exit_status.value}"
        what, todo = (error.__doc__ or "").split("\n")[0], said["statuses"][str(error.exit_status.value)]
        yield "errors", _meaning(name, kind, what, todo)
    for state in State:
        yield "states", _meaning(state, "state", said["states"][state], said["prove"])
    for term in said["terms"]:
        yield "terms", _meaning(term["name"], "term", term["what"], term.get("todo", said["prove"]))


def _meanings(word: str) -> list[Meaning]:
    name = word.strip().lower()
    every = [*_glossary()]
    named = _terms_of(name) or _terms_of(re.sub("[-_]", " ", name))
    found = [
        meaning
        for kind, meaning in every
        if kind == name or (meaning["word"] in named if kind == "terms" else meaning["word"].lower() == name)
    ]
    if not found:
        raise UsageProblem(
            f"nothing is called {word}",
            "reasons, errors, exit statuses, rules, states, terms and Hive's names were searched",
            did_you_mean(name, known_words(), "`acidctl explain` lists what there is"),
        )
    return found


def _terms_of(word: str) -> list[str]:
    """Return the terms that a word in lower case names, or that it shows as the name of a directory or file."""
    return [
        term["name"]
        for term in texts()["terms"]
        if word == term["name"].lower() or ("names" in term and re.fullmatch(term["names"], word, re.ASCII))
    ]


def _meaning(word: str, kind: str, what: str, todo: str) -> Meaning:
    return {"word": str(word), "kind": kind, "what": what, "todo": todo}


def _listed() -> list[Meaning]:
    words: dict[str, list[str]] = {}
    for kind, meaning in _glossary():
        words.setdefault(kind, []).append(meaning["word"])
    return [
        {"word": kind, "kind": "kind", "what": what, "todo": None, "words": words[kind]}
        for kind, what in texts()["kinds"].items()
    ]


def _print(meaning: Meaning, *, is_first: bool) -> None:
    if meaning["kind"] == "kind":
        words = meaning["words"]
        put_text(f"{meaning['word']}: {meaning['what']}", most=_WIDTH)
        put_text(f"    {(', ' if any(' ' in word for word in words) else ' ').join(words)}", most=_WIDTH)
        return
    if not is_first:
        put_line()
    put_line(f"{meaning['word']} ({meaning['kind']})")
    what = " ".join(meaning[key] for key in ("what", "why") if key in meaning)
    for text in (what, f"To do: {meaning['todo']}"):
        put_text(f"    {text}", most=_WIDTH)
