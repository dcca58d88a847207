"""Find the quota of HDFS that left no room for a file, after a write that failed or only seemed to succeed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from acidctl.errors import AcidctlError
from acidctl.storage.os_errors import printable
from acidctl.storage.port import parent_of

Summary = Mapping[str, Any]
"""The answer of WebHDFS's GETCONTENTSUMMARY."""

HINT = "free some space there, or have it raised: hdfs dfsadmin -setSpaceQuota"


def used_up(summary_of: Callable[[str], Summary], path: str, needed: int) -> str:
    """Describe the nearest space quota above a path without room for `needed` more bytes; empty if none is known.

    Args:
        summary_of: returns the summary of a directory; raises an AcidctlError if that is not allowed.
        needed: HDFS reserves a whole block, times its replication, before the first byte is written.
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
    """Yield names, limits (negative: none) and consumed bytes."""
    yield "space quota", int(summary.get("spaceQuota", -1)), int(summary.get("spaceConsumed", 0))
    for kind, quota in (summary.get("typeQuota") or {}).items():
        yield f"space quota for {kind}", int(quota.get("quota", -1)), int(quota.get("consumed", 0))
