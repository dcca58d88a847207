"""What `acidctl validate --list-rules` prints: every rule with what to do."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import put_json, put_line
from acidctl.validation.registry import RULES
from acidctl.validation.rules import Rule

SCHEMA_VERSION = 1
_ITS_OWN = ("list_rules", "output")


def work(output: str) -> int:
    """The registry: a table for people, an object or lines for programs."""
    refuse_unused("--list-rules", *(name for name in click.get_current_context().params if name not in _ITS_OWN))
    if output == "json":
        rules = [_rule(rule) for rule in RULES.values()]
        put_json({"schema_version": SCHEMA_VERSION, "rules": rules}, lines=False)
        return 0
    if output == "jsonl":
        for rule in RULES.values():
            put_json(_rule(rule), lines=True)
        return 0
    for rule in RULES.values():
        where = f"--{rule.depth.value}" if rule.depth.rank else "always"
        readers = f", --for {' '.join(rule.readers)}" if rule.readers else ""
        put_line(f"{rule.id:4}{rule.severity.value} ({where}{readers})")
        for text in (rule.what, rule.why, rule.hint):
            for line in textwrap.wrap(text, 92):
                put_line(f"    {line}")
    return 0


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "severity": rule.severity.value,
        "depth": rule.depth.value,
        "what": rule.what,
        "why": rule.why,
        "hint": rule.hint,
        "section": rule.section,
        "readers": list(rule.readers),
    }
