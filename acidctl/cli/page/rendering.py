"""Make pages from templates: the text of each value is escaped, without control characters and known secrets.

Anybody who creates a table chooses names that a page shows.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from acidctl.base.printable import printable
from acidctl.cli.output.redact import hidden_in
from acidctl.cli.report.overview_lines import VERDICTS, blocked_lines, moment_text, name_of, trouble_lines, where_text
from acidctl.wording import duration, human_bytes, human_count

GENERATOR = "acidctl report"
"""The name of the generator in every page: a later run replaces only a file that has it."""

Record = Mapping[str, Any]
USES = {
    "current": "read by queries", "obsolete": "no longer needed", "aborted": "writes that were rolled back",
    "ignored": "open, or from work in progress", "trash": "kept from earlier cleanings",
}  # fmt: skip
"""Uses of bytes and their meanings, in the order of every table and bar."""

_SOURCES = {
    "metastore": "the metastore", "write-ids": "the given lists of write ids",
    "assumption": "an assumption about their age", "everything": "none: everything on disk counts as committed",
    "saved-plan": "the lists of a saved plan",
}  # fmt: skip

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&#!~$])")


def safe(text: str) -> str:
    """Return the text without known secrets, and without control characters that a browser or terminal acts on."""
    return printable(str(hidden_in(text)))


def plain(text: str) -> Markup:
    """Return the text with everything escaped that is special in Markdown, or in HTML inside Markdown."""
    return Markup(_MARKDOWN.sub(r"\\\1", safe(text)))


def unmarked(text: str) -> Markup:
    """Return the text for a terminal: nothing in it is markup."""
    return Markup(safe(text))


def rendered(template: str, values: dict[str, Any]) -> str:
    """Render one of the templates, whose name says whether values are escaped for HTML, Markdown or a terminal.

    Args:
        template: the name of a file in ``templates``: ``report.html.j2``.
        values: the variables of the template; a missing one is an error.
    """
    escape = {".html.j2": safe, ".md.j2": plain, ".txt.j2": unmarked}["".join(Path(template).suffixes)]
    return environment(escape).get_template(template).render(values)


@lru_cache
def environment(escape: Callable[[str], str]) -> Environment:
    """Return what renders templates; `escape` makes a text harmless before it is escaped for HTML."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else escape(str(value)),
    )
    environment.filters |= {
        "bytes": human_bytes, "human": human_count, "moment": moment_text, "count": count, "reads": reads_text,
        "named": name_of,
    }  # fmt: skip
    return environment


def resource(name: str) -> Markup:
    """Return the text of one of acidctl's own files beside the templates, unescaped."""
    return Markup(files(__package__).joinpath("templates", name).read_text("utf-8"))


def count(number: int) -> str:
    """Return the number with separators: ``1,234``."""
    return f"{number:,}"


def reads_text(table: dict[str, Any]) -> str:
    """Return the time of a full read now, and after the compaction: ``2.5 h → 3.1 min``."""
    return f"{_seconds(table['seconds'])} → {_seconds(table['secondsAfter'])}"


def _seconds(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def report_html(report: Record, next_lines: Mapping[str, str]) -> str:
    """Return the page. It loads nothing and runs nothing: its policy allows only its own style.

    Args:
        report: as `acidctl report -o json` has it.
        next_lines: the lines of commands that go on, by their verbs.
    """
    style = resource("report.css")
    tables = [*report["largest"], *filter(None, [report["others"]])]
    values = {
        "next": next_lines,
        "style": style,
        "digest": b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii"),
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
        "generator": GENERATOR,
        "where": where_text(report),
        "headline": f"{tables}, {places}, {human_bytes(report['bytes'])}, at {moment_text(report['at'])}",
        "verdict": VERDICTS[report["verdict"]].capitalize(),
        "trouble": list(trouble_lines(report)),
        "blocked": list(blocked_lines(report)),
        "sources": [
            f"{_SOURCES.get(kind, kind)} ({human_count(n, 'location')})" for kind, n in report["sources"].items()
        ],
        "retention": duration(report["olderThan"]),
        "uses": USES,
        "uses_heads": [f">{use}" for use in USES],
    }
