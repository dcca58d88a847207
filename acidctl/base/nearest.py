"""Suggest names that a mistyped one may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from acidctl.base.errors import UsageProblem

E = TypeVar("E", bound=StrEnum)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question for a hint: "did you mean id or ids?"; `otherwise` where nothing is near.

    Args:
        name: as it was typed; case does not count.
        known: what it can be; of names that differ in case only, the first.
    """
    return asked(near_names(name, known), otherwise)


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three similar names, the nearest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - milliseconds that only a mistake costs

    folded = {one.lower(): one for one in reversed(list(known))}
    return [folded[one] for one in get_close_matches(name.lower(), list(folded), 3)]


def member(kind: type[E], name: str, what: str) -> E:
    """Return the member of a kind that a name says; the member itself is taken as well.

    Args:
        what: it is, for the message: "type of compaction".

    Raises:
        UsageProblem: there is none of that name; the hint has near ones.
    """
    try:
        return kind(name)
    except ValueError:
        known = [one.value for one in kind]
        raise UsageProblem(
            f"there is no {what} {name!r}", f"there are {', '.join(known)}", did_you_mean(str(name), known)
        ) from None


def asked(near: Sequence[str], otherwise: str = "") -> str:
    """Return the question itself, for names that are known to be near."""
    return f"did you mean {' or '.join(near)}?" if near else otherwise
