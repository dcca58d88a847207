"""The pages of `acidctl report -o html` and `-o md`, made from the object of a report."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from acidctl.cli.page.rendering import GENERATOR, count, rendered, resource
from acidctl.cli.report.status_lines import blocked_lines, moment_text, trouble_lines, where_text
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
    series = [*report["before"], {"at": report["at"], **_now(report)}]
    values = {
        "style": style,
        "digest": b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii"),
        "tiles": _tiles(report),
        "freeable": _freeable(report),
        "series": series,
        "trends": list(_trends(series)),
        "trend_of": _FIGURES,
        "trend_heads": [f">{label}" for _, label, _ in _FIGURES],
        "largest_bytes": max(
            (table["bytes"] for table in (*report["largest"], report["others"] or {"bytes": 0})), default=0
        )
        or 1,
    }
    return rendered("report.html.j2", _shared(report) | values)


def report_markdown(report: Record) -> str:
    """Return the report in Markdown, which is also readable as plain text in a mail."""
    return rendered("report.md.j2", _shared(report) | {"glance": list(_glance(report))}, markdown=True)


def _shared(report: Record) -> dict[str, Any]:
    return {
        "r": report,
        "generator": GENERATOR,
        "where": where_text(report),
        "headline": headline(report),
        "verdict": _VERDICTS[report["verdict"]],
        "trouble": list(trouble_lines(report)),
        "blocked": list(blocked_lines(report)),
        "notes": list(notes_of(report)),
        "uses": USES,
        "uses_heads": [f">{use}" for use in USES],
    }


def _now(report: Record) -> dict[str, Any]:
    return {**report["whole"], **report["cleaning"], "due": report["compaction"]["due"], "bytes": report["bytes"]}


def _tiles(report: Record) -> list[tuple[str, str, str]]:
    cleaning, compaction, whole, now = report["cleaning"], report["compaction"], report["whole"], _now(report)
    before = report["before"][-1] if report["before"] else {}
    kept = cleaning["keptBack"]

    def changed(key: str, shown: Callable[[int], str], otherwise: str) -> str:
        return change_text(now[key], before.get(key), shown) or otherwise

    return [
        ("bytes", human_bytes(now["bytes"]),
         changed("bytes", human_bytes, f"in {human_count(report['tables'], 'table')}")),
        ("can go now", human_bytes(now["freeBytes"]),
         changed("freeBytes", human_bytes, f"in {human_count(cleaning['locations'], 'location')}")),
        ("within a day", human_bytes(cleaning["soonBytes"]), f"{human_bytes(cleaning['laterBytes'])} later"),
        ("held back", human_bytes(sum(reason["bytes"] for reason in kept)),
         human_count(len(kept), "reason") + " below" if kept else "nothing"),
        ("compactions due", count(now["due"]),
         changed("due", count, f"{count(compaction['major'])} major, {count(compaction['minor'])} minor")),
        ("read score", f"{whole['score']} of 100", f"{count(whole['files'])} files, {count(whole['deltas'])} deltas"),
    ]  # fmt: skip


def _freeable(report: Record) -> list[tuple[str, int, str]]:
    """Return what cleaning can free: a name, bytes, and where or when."""
    cleaning, trash = report["cleaning"], report["trash"]
    rows = [
        ("can go now", cleaning["freeBytes"], f"in {human_count(cleaning['locations'], 'location')}: acidctl clean"),
        ("within a day", cleaning["soonBytes"], "when they are old enough"),
        ("later", cleaning["laterBytes"], "when they are old enough, or when a time is known"),
        *(("held back", reason["bytes"], f"in {human_count(reason['locations'], 'location')}: {reason['reason']}")
          for reason in cleaning["keptBack"]),
        ("trash", trash["bytes"], f"{human_count(trash['runs'], 'cleaning run')}: acidctl purge"),
    ]  # fmt: skip
    return [row for row in rows if row[1]]


def _glance(report: Record) -> Iterator[tuple[str, int, str, Callable[[int], str]]]:
    """Yield the name, the value now, the change since the last report, and the function that formats values."""
    now, cleaning = _now(report), report["cleaning"]
    before = report["before"][-1] if report["before"] else {}
    for name, value, key, shown in (
        ("all bytes", now["bytes"], "bytes", human_bytes),
        ("can go now", cleaning["freeBytes"], "freeBytes", human_bytes),
        ("within a day", cleaning["soonBytes"], "soonBytes", human_bytes),
        ("later", cleaning["laterBytes"], "laterBytes", human_bytes),
        ("compactions due", now["due"], "due", count),
        ("current deltas", now["deltas"], "deltas", count),
        ("files", now["files"], "files", count),
    ):
        yield name, value, change_text(value, before.get(key), shown), shown


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
        yield label, shown, first, last, change_text(last, first, shown, "at first") or "unchanged", points


def headline(report: Record) -> str:
    """Return how much there is, and the time of the report."""
    tables, places = human_count(report["tables"], "table"), human_count(report["locations"], "location")
    return f"{tables}, {places}, {human_bytes(report['bytes'])}, at {moment_text(report['at'])}"


def change_text(now: int, before: int | None, shown: Callable[[int], str], when: str = "last time") -> str:
    """Return ``2.1 GiB more than last time``; empty if the earlier value is unknown or the same."""
    if before is None or now == before:
        return ""
    return f"{shown(abs(now - before))} {'more' if now > before else 'less'} than {when}"


def notes_of(report: Record) -> Iterator[str]:
    """Yield the notes on how the figures were made."""
    sources = [f"{_SOURCES.get(kind, kind)} ({human_count(n, 'location')})" for kind, n in report["sources"].items()]
    if sources:
        yield f"Source of the committed write ids: {'; '.join(sources)}."
    yield f"Cleaning removes only what was superseded or aborted at least {duration(report['olderThan'])} ago."
    yield f"acidctl {report['acidctl']}, {moment_text(report['at'])}."
