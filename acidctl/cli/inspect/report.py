"""`acidctl report`: Write a page: bytes, cost, what can go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acidctl import __version__
from acidctl.base.errors import UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import NEW_FILE
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.command_lines import hive_line, next_lines
from acidctl.cli.output.console import json_text, out_stream
from acidctl.cli.report.outcomes import RunReporter
from acidctl.storage.os_errors import mapped
from acidctl.wording import time_of

if TYPE_CHECKING:
    from acidctl.verbs.reading.inspect import Overview

Record = dict[str, Any]
LARGEST, WORST = 40, 15
"""The most tables named by size, and the most named by score."""


@verb_command(
    "report",
    None,
    place=shared.places_argument("locations", "[WHERE...]", required=False),
    extras=(
        shared.retention_option,
        click.option(
            "--out",
            type=NEW_FILE,
            metavar="FILE",
            help="Write to FILE instead of standard output; an earlier report there is replaced.",
        ),
    ),
    forms=("html", "md", "json"),
    isolates=True,
)
def command(call: Call[None], *, older_than: float, out: str | None) -> int:
    """Write a report on tables: one page of HTML that needs nothing else, Markdown, or JSON.

    It shows the bytes of every table by their use (current, obsolete, aborted, trash); the tables that are slowest to
    read; what cleaning can free now, within a day or later, and what holds back the rest.

    The page loads nothing, runs no script, and adapts to light, dark, a small screen and paper. At most 40 tables are
    named, the largest first; the rest are one. Each location is listed once, and no file of data is opened.
    """
    from acidctl.cli.report.overview_lines import everything
    from acidctl.verbs.reading.inspect import inspect_all

    selection = everything(call.selection)
    _refuse_file(out, call.output)
    events = RunReporter()
    seen = inspect_all(selection, older_than, events)
    record = {**_report_record(seen), "notLookedAt": events.coverage.as_json()}
    _put(_text_of(call.output, record), out)
    events.tell_strangers()
    return events.status


def _report_record(seen: Overview) -> Record:
    """Return the JSON form of a report; `docs/reference/json.md` has the meaning of every key."""
    from acidctl.cli.report.overview_lines import overview_record
    from acidctl.overview.location_status import Figures

    status = seen.status
    tables, slowest = status.largest, status.slowest
    others = sum((figures for _, figures in tables[LARGEST:]), Figures())
    return {
        "at": time_of(status.now),
        "acidctl": __version__,
        "olderThan": seen.older_than,
        **overview_record(seen, hive_line),
        "failed": status.failed,
        "sources": dict(sorted(status.sources.items())),
        "whole": status.whole.record(),
        "largest": [{"table": name, **figures.record()} for name, figures in tables[:LARGEST]],
        "others": {"table": "", "tables": len(tables) - LARGEST, **others.record()} if others.locations else None,
        "helped": len(slowest),
        "worst": [{"table": name, **figures.record()} for name, figures in slowest[:WORST]],
    }


def _refuse_file(out: str | None, output: str) -> None:
    """Refuse, before minutes of work, a file that cannot be written or would replace something else."""
    from acidctl.cli.report.run_files import refuse_target

    if out is None and output == "html" and sys.stdout.isatty():
        raise UsageProblem("HTML is not printed to a terminal", "", "give --out FILE, or -o md")
    if out:
        refuse_target(Path(out), "page")


def _text_of(output: str, record: Record) -> str:
    if output == "json":
        return json_text(record, lines=False) + "\n"
    from acidctl.cli.page.rendering import report_html, report_markdown

    return report_html(record, next_lines(record["where"])) if output == "html" else report_markdown(record)


def _put(text: str, out: str | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if out:
        from acidctl.location.change.own_files import replace_file

        with mapped("write", out):
            replace_file(Path(out), data)
    else:
        out_stream().write(data)
        out_stream().flush()
