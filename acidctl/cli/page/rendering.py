"""Render pages from templates: the text of each value is escaped, without control characters and known secrets.

Anybody who creates a table chooses names that a page shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from acidctl.base.printable import printable
from acidctl.cli.output.redact import hidden_in
from acidctl.cli.report.overview_lines import moment_text, shown
from acidctl.wording import human_bytes, human_count

GENERATOR = "acidctl report"
"""The name of the generator in every page: a later run replaces only a file that has it."""

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
        finalize=partial(_finalized, escape),
    )
    environment.filters |= {
        "bytes": human_bytes, "changed_bytes": partial(change, shown=human_bytes), "human": human_count,
        "moment": moment_text, "count": count, "change": change, "reads": reads_text, "shown": shown,
    }  # fmt: skip
    return environment


def resource(name: str) -> Markup:
    """Return the text of one of acidctl's own files beside the templates, unescaped."""
    return Markup(files(__package__).joinpath("templates", name).read_text("utf-8"))


def _finalized(escape: Callable[[str], str], value: object) -> object:
    return value if hasattr(value, "__html__") else escape(str(value))


def count(number: int) -> str:
    """Return the number with separators: ``1,234``."""
    return f"{number:,}"


def change(now: int, before: int | None, shown: Callable[[int], str] = count, when: str = "last time") -> str:
    """Return ``2.1 GiB more than last time``; empty if the earlier value is unknown or the same."""
    if before is None or now == before:
        return ""
    return f"{shown(abs(now - before))} {'more' if now > before else 'less'} than {when}"


def reads_text(table: dict[str, Any]) -> str:
    """Return the time of a full read now, and after the compaction: ``2.5 h → 3.1 min``."""
    return f"{_seconds(table['seconds'])} → {_seconds(table['secondsAfter'])}"


def _seconds(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"
