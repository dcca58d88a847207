"""The content of `acidctl report` as an object, and the files that it reads and writes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acidctl import __version__
from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.cli.inspect.warehouse_lines import Overview
from acidctl.cli.output.console import json_text, out_stream
from acidctl.cli.report.run_files import refuse_target
from acidctl.location.change.own_files import alone_in, followed, replace_file
from acidctl.overview.location_status import Use
from acidctl.overview.trend import FIGURES, PastReport, moments_in, text_with
from acidctl.overview.warehouse_status import TableStats, sum_of
from acidctl.storage.os_errors import mapped
from acidctl.wording import time_of

Record = dict[str, Any]
LARGEST, WORST, BEFORE = 40, 15, 90
"""The most tables named by size, the most named by score, and the most earlier reports."""

_MOST_HISTORY = 64 << 20


def refuse_files(out: str | None, history: str | None, output: str) -> None:
    """Refuse, before minutes of work, files that cannot be written or would replace something else."""
    if out is None and output == "html" and sys.stdout.isatty():
        raise UsageProblem("HTML is not printed to a terminal", "", "give --out FILE, or -o md")
    if out and history and followed(Path(out)) == followed(Path(history)):
        raise UsageProblem("--out and --history are one file", "", "give two")
    for path, kind in ((out, "page"), (history, "history")):
        if path:
            refuse_target(Path(path), kind)


def text_of(output: str, record: dict[str, Any]) -> str:
    if output == "json":
        return json_text(record, lines=False) + "\n"
    from acidctl.cli.page.report_page import report_html, report_markdown  # noqa: PLC0415 - with jinja2: --help has none

    return report_html(record) if output == "html" else report_markdown(record)


def put(text: str, out: str | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if out is None:
        out_stream().write(data)
        out_stream().flush()
        return
    with mapped("write", out):
        replace_file(Path(out), data)


def earlier_reports(history: str | None) -> list[PastReport]:
    if not history or not Path(history).is_file():
        return []
    with mapped("read", history), Path(history).open("rb") as file:
        data = file.read(_MOST_HISTORY + 1)
    if len(data) > _MOST_HISTORY:
        raise BadDataError(f"cannot use {history}", "it is larger than any history of reports", "give another name")
    return moments_in(data.decode("utf-8", "replace"))


def remember(history: str, new: PastReport) -> None:
    with mapped("write", history), alone_in(followed(Path(history)).parent):
        replace_file(Path(history), text_with(earlier_reports(history), new).encode("ascii"))


# --- for programs ---------------------------------------------------------------------------------------------------


def report_record(seen: Overview, before: Sequence[PastReport]) -> Record:
    """Return the JSON form of a report; `docs/reference/json.md` has the meaning of every key.

    Args:
        before: the earlier reports of the same places, the oldest first.
    """
    found = seen.status
    tables = found.largest
    slowest, others = found.slowest, sum_of(tables[LARGEST:])
    return {
        "at": time_of(found.now),
        "acidctl": __version__,
        "olderThan": seen.older_than,
        **seen.record(),
        "failed": found.failed,
        "sources": dict(sorted(found.sources.items())),
        "whole": _table(found.whole),
        "largest": [_table(table) for table in tables[:LARGEST]],
        "others": {"tables": len(tables) - LARGEST, **_table(others)} if len(tables) > LARGEST else None,
        "helped": len(slowest),
        "worst": [_table(table) for table in slowest[:WORST]],
        "before": [{"at": time_of(past.at), **past.figures} for past in before[-BEFORE:]],
    }


def _table(table: TableStats) -> Record:
    advice = table.reading
    return {
        "table": table.name,
        "locations": table.locations,
        "bytes": table.bytes,
        **{use.value: table.uses[use] for use in Use},
        "deltas": table.deltas,
        "files": advice.files,
        "filesAfter": advice.files_after,
        "score": advice.score,
        "seconds": round(advice.seconds, 3),
        "secondsAfter": round(advice.seconds_after, 3),
        "compaction": advice.kind.value if advice.kind else None,
        "rewritten": advice.rewritten,
        "freeBytes": table.free,
        "soonBytes": table.soon,
        "due": table.due,
    }


def figures_of_report(record: Record) -> dict[str, int]:
    """Return the figures of a report that its history keeps."""
    cleaning = record["cleaning"]
    figures = {
        **record, **record["whole"], **cleaning, "trashBytes": record["trash"]["bytes"],
        "due": record["compaction"]["due"], "bytes": record["bytes"], "locations": record["locations"],
    }  # fmt: skip
    return {name: figures[name] for name in FIGURES}
