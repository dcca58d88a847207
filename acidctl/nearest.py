"""What a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A question for a hint: "did you mean id or ids?"; `otherwise` where nothing is near.

    Args:
        name: as it was typed; case does not count.
        known: what it can be; of names that differ in case only, the first.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - milliseconds that only a mistake costs

    folded = {one.lower(): one for one in reversed(list(known))}
    return asked([folded[one] for one in get_close_matches(name.lower(), list(folded), 3)], otherwise)


def asked(near: Sequence[str], otherwise: str = "") -> str:
    """The question itself, for names that are known to be near."""
    return f"did you mean {' or '.join(near)}?" if near else otherwise
