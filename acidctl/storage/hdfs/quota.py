"""Which quota of HDFS a file had no room under: told after a write that failed, or that only seemed to succeed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from acidctl.errors import AcidctlError
from acidctl.storage.os_errors import printable
from acidctl.storage.port import parent_of

Summary = Mapping[str, Any]
"""GETCONTENTSUMMARY, in the words of WebHDFS."""

HINT = "free some space there, or have it raised: hdfs dfsadmin -setSpaceQuota"


def used_up(summary_of: Callable[[str], Summary], path: str, needed: int) -> str:
    """The nearest space quota above a path that has no room for so many bytes more; empty where none is known.

    Args:
        summary_of: of a directory; raises an AcidctlError where it may not be asked.
        needed: HDFS takes a whole block, as often as it is replicated, before the first byte is written.
    """
    while path != "/":
        path = parent_of(path)
        try:
            summary = summary_of(path)
        except AcidctlError:
            continue
        for name, quota, consumed in _quotas(summary):
            if 0 <= quota < consumed + needed:
                return (
                    f"the {name} of {printable(path)} is used up: {consumed:,} of {quota:,} bytes are taken, "
                    f"and another block takes {needed:,}"
                )
    return ""


def _quotas(summary: Summary) -> Iterator[tuple[str, int, int]]:
    """Names, limits (negative: none) and what is taken, in bytes."""
    yield "space quota", int(summary.get("spaceQuota", -1)), int(summary.get("spaceConsumed", 0))
    for kind, one in (summary.get("typeQuota") or {}).items():
        yield f"space quota for {kind}", int(one.get("quota", -1)), int(one.get("consumed", 0))
