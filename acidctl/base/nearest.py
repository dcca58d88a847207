"""Suggest names that a mistyped one may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from acidctl.base.errors import UsageProblem

E = TypeVar("E", bound=StrEnum)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question for a hint, "did you mean id or ids?"; `otherwise` if no known name is similar.

    Args:
        name: the name as it was typed; case does not count.
        known: the possible names; of names that differ in case only, the first counts.
    """
    return asked(near_names(name, known), otherwise)


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three similar names, the nearest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - milliseconds that only a mistake costs

    folded = {candidate.lower(): candidate for candidate in reversed(list(known))}
    return [folded[match] for match in get_close_matches(name.lower(), list(folded), 3)]


def member(kind: type[E], name: str, what: str) -> E:
    """Return the member of an enumeration with a name; UsageProblem, with similar names, if there is none.

    Args:
        name: the name, or the member itself.
        what: the kind for the message, "type of compaction".
    """
    try:
        return kind(name)
    except ValueError:
        known = [choice.value for choice in kind]
        hint = did_you_mean(str(name), known)
        raise UsageProblem(f"there is no {what} {name!r}", f"there are {', '.join(known)}", hint) from None


def asked(near: Sequence[str], otherwise: str = "") -> str:
    """Return the question for names that are known to be similar."""
    return f"did you mean {' or '.join(near)}?" if near else otherwise
