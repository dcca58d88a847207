"""What a hint calls a setting or a verb: as Python spells it, or as users of the command line type it.

Texts below the command line name them in backticks: "give `offline` when nothing reads the table", "run
`compact('major')`".  The command line says once, when it starts, how they are spelled there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUOTED = re.compile(r"`([^`]+)`")


def _as_python(_: str) -> None:
    return None


_spell: Callable[[str], str | None] = _as_python


@contextmanager
def speaking(spell: Callable[[str], str | None]) -> Iterator[None]:
    """Within it, all texts of this process are spelled so.

    Args:
        spell: what takes the place of something in backticks and of these; None where it stays as it is.
    """
    global _spell  # noqa: PLW0603 - as a locale: one user sits in front of a process
    before, _spell = _spell, spell
    try:
        yield
    finally:
        _spell = before


def spelled(text: str) -> str:
    """Return a text in the spelling of whom it is for; one that is spelled already stays so."""
    return _QUOTED.sub(lambda found: _spell(found[1]) or found[0], text) if "`" in text else text
