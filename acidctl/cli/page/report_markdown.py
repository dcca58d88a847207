"""`acidctl report -o md`: the same in Markdown, which is read as it stands in a mail, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from acidctl.cli.output.console import human_bytes
from acidctl.cli.page.markup import GENERATOR, safe
from acidctl.cli.page.pictures import USES
from acidctl.cli.page.report_words import (
    blocked_lines,
    change_text,
    count,
    headline,
    moment_text,
    notes_of,
    reads_text,
    trouble_lines,
    verdict_text,
    where_text,
)
from acidctl.wording import human_count

Record = Mapping[str, Any]
_SPECIAL = re.compile(r"([\\`*_\[\]<>|&#!~$])")
_LARGEST = 15


def report_markdown(report: Record) -> str:
    """The report; names of others are escaped, so that none of them is markup."""
    return f"<!-- {GENERATOR} -->\n" + "\n".join(_lines(report)) + "\n"


def plain(text: str) -> str:
    """Text in which Markdown, and HTML in it, sees nothing special."""
    return _SPECIAL.sub(r"\\\1", safe(text))


def _lines(report: Record) -> Iterator[str]:
    yield f"# {plain(where_text(report))}"
    yield f"\n{plain(headline(report))}\n"
    yield f"**{plain(verdict_text(report))}**"
    if trouble := list(trouble_lines(report)):
        yield from ("\n## What needs attention\n", *(f"- {plain(line)}" for line in trouble))
    yield from _glance(report)
    yield from _bytes(report)
    yield from _worst(report)
    yield from _cleaning(report)
    yield from _compacted(report)
    days = [one for one in report["days"] if one["deltas"]]
    if days:
        yield "\n## Deltas a day\n"
        yield from _table(("day", ">deltas"), ((one["day"], count(one["deltas"])) for one in reversed(days)))
    yield ""
    yield from (f"{plain(note)}  " for note in notes_of(report))


def _glance(report: Record) -> Iterator[str]:
    cleaning, whole = report["cleaning"], report["whole"]
    before = report["before"][-1] if report["before"] else {}
    rows = [
        ("all bytes", report["bytes"], "bytes", human_bytes),
        ("can go now", cleaning["freeBytes"], "freeBytes", human_bytes),
        ("within a day", cleaning["soonBytes"], "soonBytes", human_bytes),
        ("later", cleaning["laterBytes"], "laterBytes", human_bytes),
        ("compactions due", report["compaction"]["due"], "due", count),
        ("current deltas", whole["deltas"], "deltas", count),
        ("files", whole["files"], "files", count),
    ]
    yield "\n## At a glance\n"
    heads = ("figure", ">now", *((f">since {moment_text(before['at'])}",) if before else ()))
    yield from _table(
        heads,
        (
            (name, shown(now), *((change_text(now, before.get(key), shown) or "as it was",) if before else ()))
            for name, now, key, shown in rows
        ),
    )


def _bytes(report: Record) -> Iterator[str]:
    tables = report["largest"][:_LARGEST]
    if not tables:
        return
    yield "\n## Bytes by table\n"
    yield from _table(
        ("table", ">all", *(f">{use}" for use in USES)),
        ((one["table"], *(human_bytes(one[key]) for key in ("bytes", *USES))) for one in tables),
    )
    left = report["tables"] - len(tables)
    if left > 0:
        yield f"\n{human_count(left, 'smaller table')} besides."


def _worst(report: Record) -> Iterator[str]:
    if not report["worst"]:
        return
    yield "\n## Read worst\n"
    yield from _table(
        ("table", ">score", ">a read", ">files", ">deltas", ">to rewrite"),
        (
            (
                one["table"],
                str(one["score"]),
                reads_text(one),
                f"{count(one['files'])} → {count(one['filesAfter'])}",
                count(one["deltas"]),
                human_bytes(one["rewritten"]),
            )
            for one in report["worst"]
        ),
    )


def _cleaning(report: Record) -> Iterator[str]:
    lines = [
        f"{human_bytes(one['bytes'])} in {human_count(one['locations'], 'location')}: {one['reason']}"
        for one in report["cleaning"]["keptBack"]
    ]
    lines += blocked_lines(report)
    if lines:
        yield from ("\n## What holds back cleaning\n", *(f"- {plain(line)}" for line in lines))


def _compacted(report: Record) -> Iterator[str]:
    done = report["compactions"]
    if not done["count"]:
        return
    which = human_count(done["count"], "compaction")
    yield "\n## Compactions of the last 30 days\n"
    yield f"{which} by acidctl: {human_bytes(done['inputBytes'])} became {human_bytes(done['bytes'])}.\n"
    yield from _table(
        ("when", "location", "kind", ">before", ">after"),
        (
            (
                moment_text(one["at"]),
                one["location"],
                one["kind"] or "",
                human_bytes(one["inputBytes"]),
                human_bytes(one["bytes"]),
            )
            for one in done["newest"]
        ),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table; a heading with ``>`` before it is of numbers."""
    cells = [[plain(cell) for cell in row] for row in rows]
    yield f"| {' | '.join(plain(head.lstrip('>')) for head in heads)} |"
    yield f"| {' | '.join('---:' if head.startswith('>') else '---' for head in heads)} |"
    yield from (f"| {' | '.join(row)} |" for row in cells)
