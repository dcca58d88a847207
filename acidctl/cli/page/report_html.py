"""`acidctl report -o html`: one page from the object of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any

from acidctl.cli.output.console import human_bytes
from acidctl.cli.page.markup import Content, Element, el, html_page
from acidctl.cli.page.pictures import USES, column_chart, curve, legend, meter, treemap_pictures
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
from acidctl.cli.page.timeline_svg import timeline_picture
from acidctl.overview.lanes import Lanes
from acidctl.wording import human_count

Record = Mapping[str, Any]
_TREND = (
    ("bytes", "all bytes", human_bytes), ("freeBytes", "can go now", human_bytes), ("deltas", "current deltas", count),
    ("due", "compactions due", count),
)  # fmt: skip


def report_html(report: Record, lanes: Sequence[tuple[str, Lanes]]) -> str:
    """The page.

    Args:
        report: as `acidctl report -o json` has it.
        lanes: of the locations that cost their readers most.
    """
    title = f"{where_text(report)}: {headline(report)}"
    head = el(
        "header",
        el("h1", where_text(report)),
        el("p", headline(report), class_="quiet"),
        el("p", verdict_text(report), class_=f"verdict {report['verdict']}"),
    )
    body = el(
        "main",
        _tiles(report),
        _trouble(report),
        _bytes(report),
        el("div", _cleaning(report), _written(report), class_="pair"),
        _trend(report),
        _worst(report, lanes),
        _compacted(report),
        _tables(report),
    )
    foot = el("footer", [el("p", note) for note in notes_of(report)])
    style = files("acidctl.cli.page").joinpath("page.css").read_text("utf-8")
    return html_page(title, style, head, body, foot)


# --- parts ----------------------------------------------------------------------------------------------------------


def _section(name: str, title: str, *content: Content) -> Element:
    return el("section", el("h2", title, id=name), *content, aria_labelledby=name)


def _tiles(report: Record) -> Element:
    cleaning, compaction, whole = report["cleaning"], report["compaction"], report["whole"]
    before = report["before"][-1] if report["before"] else {}

    def changed(key: str, now: int, shown: Callable[[int], str]) -> str:
        return change_text(now, before.get(key), shown)

    tiles = [
        ("bytes", human_bytes(report["bytes"]), changed("bytes", report["bytes"], human_bytes) or
         f"in {human_count(report['tables'], 'table')}"),
        ("can go now", human_bytes(cleaning["freeBytes"]), changed("freeBytes", cleaning["freeBytes"], human_bytes) or
         f"in {human_count(cleaning['locations'], 'location')}"),
        ("within a day", human_bytes(cleaning["soonBytes"]), f"{human_bytes(cleaning['laterBytes'])} later"),
        ("held back", human_bytes(_held(report)), human_count(len(cleaning["keptBack"]), "reason") + " below"
         if cleaning["keptBack"] else "nothing is"),
        ("compactions due", count(compaction["due"]), changed("due", compaction["due"], count) or
         f"{count(compaction['major'])} major, {count(compaction['minor'])} minor"),
        ("read score", f"{whole['score']} of 100", f"{count(whole['files'])} files, {count(whole['deltas'])} deltas"),
    ]  # fmt: skip
    return el(
        "ul",
        [
            el(
                "li",
                el("span", label, class_="label"),
                el("span", value, class_="value"),
                el("span", more, class_="more"),
            )
            for label, value, more in tiles
        ],
        class_="tiles",
        role="list",
        aria_label="At a glance",
    )


def _held(report: Record) -> int:
    return sum(one["bytes"] for one in report["cleaning"]["keptBack"])


def _trouble(report: Record) -> Element | None:
    lines = list(trouble_lines(report))
    if not lines:
        return None
    return _section("trouble", "What needs attention", el("ul", [el("li", line) for line in lines], role="list"))


def _bytes(report: Record) -> Element:
    pictures = treemap_pictures(report["largest"], report["others"])
    if not pictures:
        return _section("bytes", "Bytes by table", el("p", "There are none.", class_="quiet"))
    lead = el(
        "p", "An area is as large as its table; each leads to its numbers ", el("a", "below", href="#tables"), "."
    )
    lead.set("class", "quiet")
    return _section("bytes", "Bytes by table", lead, pictures, legend(report["whole"]))


def _tables(report: Record) -> Element | None:
    def cells(one: Record) -> list[Element]:
        sizes = [el("td", human_bytes(one[key]) if one[key] else "–", class_="num") for key in ("bytes", *USES)]
        numbers = [el("td", count(one[key]), class_="num") for key in ("locations", "deltas", "files")]
        return sizes + numbers

    rows = [
        el("tr", el("th", one["table"], scope="row", class_="name"), cells(one), id=f"table-{number}")
        for number, one in enumerate(report["largest"], 1)
    ]
    if others := report["others"]:
        name = human_count(others["tables"], "smaller table")
        rows.append(el("tr", el("th", name, scope="row", class_="name"), cells(others)))
    if not rows:
        return None
    heads = ("table", *(f">{head}" for head in ("all", *USES, "locations", "deltas", "files")))
    caption = "Bytes by what they are for, the largest table first"
    return _section("tables", "Tables in numbers", _table(caption, heads, rows))


def _trend(report: Record) -> Element | None:
    if not report["before"]:
        return None
    now = {**report["whole"], **report["cleaning"], "due": report["compaction"]["due"], "bytes": report["bytes"]}
    series = [*report["before"], {"at": report["at"], **now}]
    charts = []
    for key, label, shown in _TREND:
        known = [(one["at"], one[key]) for one in series if key in one]
        if len(known) < 2:
            continue
        points = [(datetime.fromisoformat(at).timestamp(), value) for at, value in known]
        (_, first), (_, last) = known[0], known[-1]
        said = f"{label}: {shown(first)} at first, {shown(last)} now"
        change = change_text(last, first, shown, "at first") or "as at first"
        charts.append(
            el(
                "div",
                el("h3", label),
                el("p", el("strong", shown(last)), " ", el("span", change, class_="quiet")),
                curve(points, said),
            )
        )
    rows = [
        el(
            "tr",
            el("th", moment_text(one["at"]), scope="row"),
            [el("td", shown(one[key]) if key in one else "–", class_="num") for key, _, shown in _TREND],
        )
        for one in reversed(series)
    ]
    ends = el(
        "p", el("span", moment_text(series[0]["at"])), el("span", moment_text(report["at"])), class_="ends"
    )  # fmt: skip
    return _section(
        "trend",
        f"Against {human_count(len(report['before']), 'report')} before this one",
        el("div", charts, class_="trends"),
        ends,
        el(
            "details",
            el("summary", "The same in numbers"),
            _table("Figures of each report", ("when", *(f">{label}" for _, label, _ in _TREND)), rows),
        ),
    )


def _cleaning(report: Record) -> Element:
    cleaning = report["cleaning"]
    rows = [
        ("can go now", cleaning["freeBytes"], f"in {human_count(cleaning['locations'], 'location')}: acidctl clean"),
        ("within a day", cleaning["soonBytes"], "when they are old enough"),
        ("later", cleaning["laterBytes"], "when they are old enough, or when a time is known"),
        *(("held back", one["bytes"], f"in {human_count(one['locations'], 'location')}: {one['reason']}")
          for one in cleaning["keptBack"]),
        ("trash", report["trash"]["bytes"], f"{human_count(report['trash']['runs'], 'cleaning run')}: acidctl purge"),
    ]  # fmt: skip
    shown = [
        el(
            "tr",
            el("th", what, scope="row"),
            el("td", human_bytes(size), class_="num"),
            el("td", why, class_="words"),
        )
        for what, size, why in rows
        if size
    ]
    content: Content = _table("Bytes that cleaning can free, and when", ("what", ">bytes", "where and why"), shown)
    if not shown:
        content = el("p", "Nothing is obsolete or aborted.", class_="quiet")
    blockers = list(blocked_lines(report))
    more = [el("h3", "Who holds it back"), el("ul", [el("li", line) for line in blockers])] if blockers else []
    return _section("cleaning", "What cleaning can free", content, more)


def _written(report: Record) -> Element:
    days = report["days"]
    values = [one["deltas"] for one in days]
    if not any(values):
        return _section(
            "written",
            "Deltas a day",
            el("p", f"None was written in the last {len(days)} days that is still there.", class_="quiet"),
        )
    highest = max(days, key=lambda one: one["deltas"])
    said = f"{count(sum(values))} in {len(days)} days, at most {count(highest['deltas'])} on {highest['day']}"
    rows = [
        el("tr", el("th", one["day"], scope="row"), el("td", count(one["deltas"]), class_="num"))
        for one in reversed(days)
        if one["deltas"]
    ]
    return _section(
        "written",
        "Deltas a day",
        el("p", f"{said}: of those that are still there.", class_="quiet"),
        column_chart(values, f"Deltas a day: {said}"),
        el("p", el("span", days[0]["day"]), el("span", days[-1]["day"]), class_="ends"),
        el(
            "details",
            el("summary", "The same in numbers"),
            _table("Deltas by the day on which they were written", ("day", ">deltas"), rows),
        ),
    )


def _worst(report: Record, lanes: Sequence[tuple[str, Lanes]]) -> Element:
    if not report["worst"]:
        return _section("worst", "Read worst", el("p", "Compaction would help no table.", class_="quiet"))
    rows = [
        el(
            "tr",
            el("th", one["table"], scope="row", class_="name"),
            el("td", meter(one["score"] / 100), f"{one['score']}", class_="num"),
            el("td", reads_text(one), class_="num"),
            el("td", f"{count(one['files'])} → {count(one['filesAfter'])}", class_="num"),
            el("td", count(one["deltas"]), class_="num"),
            el("td", human_bytes(one["rewritten"]), class_="num"),
            el("td", f"{count(one['due'])} due" if one["due"] else "not due", class_="num"),
        )
        for one in report["worst"]
    ]
    left = report["helped"] - len(rows)
    pictures = [
        (
            el("h3", location),
            el(
                "div",
                timeline_picture(location, one, f"lanes-{number}"),
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label=f"Write ids of {location}",
            ),
        )
        for number, (location, one) in enumerate(lanes, 1)
    ]
    return _section(
        "worst",
        "Read worst",
        el(
            "p",
            "The score is the part of a full read that is of use; seconds are those of one reader of 100 MiB a second "
            "now, and after a compaction.",
            class_="quiet",
        ),
        _table(
            "Tables by score, the lowest first",
            ("table", ">score", ">a read", ">files", ">deltas", ">to rewrite", ">compaction"),
            rows,
        ),
        el("p", f"{count(left)} more would gain from a compaction: acidctl advise", class_="quiet")
        if left > 0
        else None,
        el("p", "Over the write ids, the locations that compaction helps most:", class_="quiet") if pictures else None,
        pictures,
    )


def _compacted(report: Record) -> Element:
    done = report["compactions"]
    if not done["count"]:
        return _section(
            "compacted",
            "Compactions of the last 30 days",
            el("p", "The logs of these tables tell of none by acidctl.", class_="quiet"),
        )
    largest = max((one["inputBytes"] or 0 for one in done["newest"]), default=0) or 1
    rows = [
        el(
            "tr",
            el("th", moment_text(one["at"]), scope="row"),
            el("td", one["location"], class_="name"),
            el("td", one["kind"] or ""),
            el("td", meter((one["inputBytes"] or 0) / largest, "before"), human_bytes(one["inputBytes"]), class_="num"),
            el("td", meter((one["bytes"] or 0) / largest, "after"), human_bytes(one["bytes"]), class_="num"),
            el("td", "@".join(filter(None, (one["user"], one["host"])))),
        )
        for one in done["newest"]
    ]
    which = human_count(done["count"], "compaction")
    said = f"{which} by acidctl: {human_bytes(done['inputBytes'])} became {human_bytes(done['bytes'])}."
    return _section(
        "compacted",
        "Compactions of the last 30 days",
        el("p", said, class_="quiet"),
        _table("The newest of them", ("when", "location", "kind", ">before", ">after", "by"), rows),
    )


def _table(caption: str, heads: Iterable[str], rows: Sequence[Element]) -> Element:
    """A table that scrolls by itself where the screen is narrow; a heading with ``>`` before it is of numbers."""
    columns = [
        el("th", head.lstrip(">"), scope="col", class_="num" if head.startswith(">") else None) for head in heads
    ]
    table = el("table", el("caption", caption), el("thead", el("tr", columns)), el("tbody", rows))
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)
