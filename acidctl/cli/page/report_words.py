"""What a report says in words, the same on a page and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from acidctl.cli.output.console import human_bytes
from acidctl.cli.output.screen import on_screen
from acidctl.wording import duration, human_count

Record = Mapping[str, Any]
_VERDICTS = {
    "fine": "Fine: nothing to do", "due": "Due: there is work, and nothing is wrong",
    "trouble": "Trouble: something needs attention",
}  # fmt: skip
_SOURCES = {
    "metastore": "the metastore", "write-ids": "the lists of write ids that were given",
    "assumption": "an assumption about their age", "everything": "nobody: all that is on disk counts as committed",
    "saved-plan": "the lists of a saved plan",
}  # fmt: skip


def count(number: int) -> str:
    """``1,234``."""
    return f"{number:,}"


def where_text(report: Record) -> str:
    """The places."""
    where: list[str] = report["where"]
    return where[0] + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")


def headline(report: Record) -> str:
    """How much there is, and when."""
    tables, places = human_count(report["tables"], "table"), human_count(report["locations"], "location")
    return f"{tables}, {places}, {human_bytes(report['bytes'])}, at {moment_text(report['at'])}"


def moment_text(at: str | None) -> str:
    """``2026-11-25 20:02 UTC``."""
    return f"{on_screen(at)[:16]} UTC"


def verdict_text(report: Record) -> str:
    """The verdict in a line."""
    return _VERDICTS[report["verdict"]]


def change_text(now: int, before: int | None, shown: Callable[[int], str], when: str = "last time") -> str:
    """``2.1 GiB more than last time``; empty where nothing is known of that, or nothing changed."""
    if before is None or now == before:
        return ""
    return f"{shown(abs(now - before))} {'more' if now > before else 'less'} than {when}"


def reads_text(table: Record) -> str:
    """A full read now, and after the compaction."""
    return f"{_seconds(table['seconds'])} → {_seconds(table['secondsAfter'])}"


def _seconds(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def trouble_lines(report: Record) -> Iterator[str]:
    """What needs attention, a line each; a last line says how many more there are."""
    if report["failed"]:
        yield f"{human_count(report['failed'], 'location')} could not be looked at: acidctl status says why"
    unfinished = report["unfinished"]
    for one in unfinished["first"]:
        yield f"{one['location']}: {one['staging']} is half shown: acidctl compact finishes it"
    yield from _more(unfinished["count"], unfinished["first"], "half-published compaction")
    refused = report["refused"]
    for one in refused["first"]:
        yield f"{one['location']}: {one['what']}" + (f": {one['why']}" if one["why"] else "")
    yield from _more(refused["locations"], refused["first"], "location that cannot be compacted or cleaned as it is")
    if stuck := report["stuck"]:
        for one in stuck["first"]:
            yield f"{one['id']} {one['kind']} of {one['on']} is stuck: {one['why']}"
        yield from _more(stuck["count"], stuck["first"], "stuck entry of the queue")


def _more(number: int, first: list[Any], noun: str) -> Iterator[str]:
    if number > len(first):
        yield f"{number - len(first):,} more: {noun}"


def blocked_lines(report: Record) -> Iterator[str]:
    """Who holds back cleanings, a line each."""
    blocked = report["blocked"]
    if not blocked:
        return
    for one in blocked["first"]:
        what = f"transaction {one['id']}" if one["id"] else f"lock {one['lock']}"
        size = f", {human_bytes(one['bytes'])}" if one["bytes"] is not None else ""
        since = f" since {moment_text(one['started'])}" if one["started"] else ""
        places = human_count(one["waiting"], "location")
        yield f"{what} of {one['user']}@{one['host']}{since}: {places}{size}; {one['advice']}"
    yield from _more(blocked["count"], blocked["first"], "transactions and locks")


def notes_of(report: Record) -> Iterator[str]:
    """How the figures came about."""
    sources = [f"{_SOURCES.get(kind, kind)} ({human_count(n, 'location')})" for kind, n in report["sources"].items()]
    if sources:
        yield f"Who said which write ids are committed: {'; '.join(sources)}."
    yield f"Cleaning may take what was superseded, or aborted, at least {duration(report['olderThan'])} ago."
    yield f"acidctl {report['acidctl']}, {moment_text(report['at'])}."
