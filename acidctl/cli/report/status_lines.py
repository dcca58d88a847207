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
    for location in unfinished["first"]:
        yield f"{location['location']}: {location['staging']} is half published: acidctl compact finishes it"
    yield from _more(unfinished["count"], unfinished["first"], "half-published compactions")
    refused = record["refused"]
    for location in refused["first"]:
        place = "" if location["location"] in location["what"] else f"{location['location']}: "
        yield f"{place}{location['what']}" + (f": {location['why']}" if location["why"] else "")
    yield from _more(
        refused["locations"], refused["first"], "locations that cannot be compacted or cleaned as they are"
    )
    if stuck := record["stuck"]:
        for entry in stuck["first"]:
            yield f"{entry['id']} {entry['kind']} of {entry['on']} is stuck: {entry['why']}"
        yield from _more(stuck["count"], stuck["first"], "stuck entries of the queue")


def _more(number: int, first: list[Any], noun: str) -> Iterator[str]:
    if number > len(first):
        yield f"{number - len(first):,} more: {noun}"


def blocked_lines(record: Record) -> Iterator[str]:
    """Yield a line for each transaction or lock that holds back cleaning."""
    blocked = record["blocked"]
    if not blocked:
        return
    for blocker in blocked["first"]:
        what = f"transaction {blocker['id']}" if blocker["id"] else f"lock {blocker['lock']}"
        size = f", {human_bytes(blocker['bytes'])}" if blocker["bytes"] is not None else ""
        since = f" since {moment_text(blocker['started'])}" if blocker["started"] else ""
        places = human_count(blocker["waiting"], "location")
        yield f"{what} of {blocker['user']}@{blocker['host']}{since}: {places}{size}; {blocker['advice']}"
    yield from _more(blocked["count"], blocked["first"], "transactions and locks")
