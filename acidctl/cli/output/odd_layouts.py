"""Warnings of layouts that Hive never writes, for every command that shows what readers see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acidctl.cli.output.console import warn

_SHOWN = 10
"""Of thousands of directories all may have the same fault."""


def tell(warnings: Sequence[str]) -> None:
    """The first of them as warnings, and how many more there are."""
    for text in warnings[:_SHOWN]:
        warn(text)
    if len(warnings) > _SHOWN:
        warn(f"and {len(warnings) - _SHOWN} more like these")


class OddLayouts:
    """Those of many locations, told at the end."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, warnings: Iterable[str]) -> None:
        """Of one more location."""
        self._found |= dict.fromkeys(warnings)

    def tell(self) -> None:
        """What was found."""
        tell(list(self._found))
