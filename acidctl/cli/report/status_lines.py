"""Lines about what needs attention, made from the object that `status` and `report` print as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acidctl.cli.output.screen import on_screen
from acidctl.wording import human_bytes, human_count

Record = Mapping[str, Any]


def moment_text(at: str | None) -> str:
    """Return the time to the minute: ``2026-11-25 20:02 UTC``."""
    return f"{on_screen(at)[:16]} UTC"


def where_text(record: Record) -> str:
    """Return the first place, and how many more there are."""
    where: list[str] = record["where"]
    return where[0] + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")


def trouble_lines(record: Record) -> Iterator[str]:
    """Yield a line for each problem, and a last line with the number of those left out."""
    if record.get("failed"):
        yield f"{human_count(record['failed'], 'location')} could not be looked at: see acidctl status"
    unfinished = record["unfinished"]
    for one in unfinished["first"]:
        yield f"{one['location']}: {one['staging']} is half published: acidctl compact finishes it"
    yield from _more(unfinished["count"], unfinished["first"], "half-published compactions")
    refused = record["refused"]
    for one in refused["first"]:
        place = "" if one["location"] in one["what"] else f"{one['location']}: "
        yield f"{place}{one['what']}" + (f": {one['why']}" if one["why"] else "")
    yield from _more(
        refused["locations"], refused["first"], "locations that cannot be compacted or cleaned as they are"
    )
    if stuck := record["stuck"]:
        for one in stuck["first"]:
            yield f"{one['id']} {one['kind']} of {one['on']} is stuck: {one['why']}"
        yield from _more(stuck["count"], stuck["first"], "stuck entries of the queue")


def _more(number: int, first: list[Any], noun: str) -> Iterator[str]:
    if number > len(first):
        yield f"{number - len(first):,} more: {noun}"


def blocked_lines(record: Record) -> Iterator[str]:
    """Yield a line for each transaction or lock that holds back cleaning."""
    blocked = record["blocked"]
    if not blocked:
        return
    for one in blocked["first"]:
        what = f"transaction {one['id']}" if one["id"] else f"lock {one['lock']}"
        size = f", {human_bytes(one['bytes'])}" if one["bytes"] is not None else ""
        since = f" since {moment_text(one['started'])}" if one["started"] else ""
        places = human_count(one["waiting"], "location")
        yield f"{what} of {one['user']}@{one['host']}{since}: {places}{size}; {one['advice']}"
    yield from _more(blocked["count"], blocked["first"], "transactions and locks")
