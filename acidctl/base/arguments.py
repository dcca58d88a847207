"""Check the arguments of library calls: an error about a wrong type names the argument."""

from __future__ import annotations

import os

from acidctl.base.errors import UsageProblem


def require_type(value: object, kinds: type | tuple[type, ...], name: str, hint: str) -> None:
    """Refuse, by UsageProblem, an argument that is neither None nor of one of some types."""
    if value is not None and not isinstance(value, kinds):
        raise UsageProblem(f"{name} cannot be {value!r}", f"its type is {type(value).__name__}", hint)


def as_path(url: object) -> str:
    """Return the text of a path or a URL; UsageProblem if it is neither text nor a path."""
    if not isinstance(url, str | bytes | os.PathLike):
        raise UsageProblem(f"not a path: {url!r}", f"its type is {type(url).__name__}", "give text or a pathlib.Path")
    return os.fsdecode(url)
