"""The pages of `acidctl report -o html` and `-o md`, made from the object of a report."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from acidctl.cli.page.rendering import GENERATOR, change, count, rendered, resource
from acidctl.cli.report.overview_lines import blocked_lines, moment_text, trouble_lines, where_text
from acidctl.wording import duration, human_bytes, human_count

Record = Mapping[str, Any]
USES = {
    "current": "read by queries", "obsolete": "no longer needed", "aborted": "writes that were rolled back",
    "ignored": "open, or from work in progress", "trash": "kept from earlier cleanings",
}  # fmt: skip
"""Uses of bytes and their meanings, in the order of every table and bar."""

_FIGURES = (
    ("bytes", "all bytes", human_bytes), ("freeBytes", "can go now", human_bytes), ("deltas", "current deltas", count),
    ("due", "compactions due", count),
)  # fmt: skip
_VERDICTS = {
    "fine": "Fine: nothing to do", "due": "Due: maintenance is due, no problems",
    "trouble": "Trouble: something needs attention",
}  # fmt: skip
_SOURCES = {
    "metastore": "the metastore", "write-ids": "the given lists of write ids",
    "assumption": "an assumption about their age", "everything": "none: everything on disk counts as committed",
    "saved-plan": "the lists of a saved plan",
}  # fmt: skip


def report_html(report: Record) -> str:
    """Return the page. It loads nothing and runs nothing: its policy allows only its own style.

    Args:
        report: as `acidctl report -o json` has it.
    """
    style = resource("report.css")
    series = [*report["before"], {"at": report["at"], **report["whole"]}]
    tables = [*report["largest"], *filter(None, [report["others"]])]
    values = {
        "style": style,
        "digest": b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii"),
        "series": series,
        "trends": list(_trends(series)),
        "trend_of": _FIGURES,
        "trend_heads": [f">{label}" for _, label, _ in _FIGURES],
        "largest_bytes": max((sum(table[f"{use}Bytes"] for use in USES) for table in tables), default=0) or 1,
    }
    return rendered("report.html.j2", _shared(report) | values)


def report_markdown(report: Record) -> str:
    """Return the report in Markdown, which is also readable as plain text in a mail."""
    return rendered("report.md.j2", _shared(report))


def _shared(report: Record) -> dict[str, Any]:
    tables, places = human_count(report["tables"], "table"), human_count(report["locations"], "location")
    return {
        "r": report,
        "last": report["before"][-1] if report["before"] else {},
        "generator": GENERATOR,
        "where": where_text(report),
        "headline": f"{tables}, {places}, {human_bytes(report['bytes'])}, at {moment_text(report['at'])}",
        "verdict": _VERDICTS[report["verdict"]],
        "trouble": list(trouble_lines(report)),
        "blocked": list(blocked_lines(report)),
        "sources": [
            f"{_SOURCES.get(kind, kind)} ({human_count(n, 'location')})" for kind, n in report["sources"].items()
        ],
        "retention": duration(report["olderThan"]),
        "uses": USES,
        "uses_heads": [f">{use}" for use in USES],
    }


def _trends(series: Sequence[Record]) -> Iterator[tuple[str, Callable[[int], str], int, int, str, list[str]]]:
    """Yield label, formatting function, first and last value, change, and the points of a curve 100 wide, 40 high."""
    for key, label, shown in _FIGURES:
        known = [(datetime.fromisoformat(past["at"]).timestamp(), past[key]) for past in series if key in past]
        if len(known) < 2:
            continue
        (start, first), (end, last) = known[0], known[-1]
        highest = max(value for _, value in known) or 1
        points = [
            f"{100 * ((at - start) / (end - start) if end > start else place):.2f},{40 - 38 * value / highest:.2f}"
            for place, (at, value) in enumerate(known)
        ]
        yield label, shown, first, last, change(last, first, shown, "at first") or "unchanged", points
