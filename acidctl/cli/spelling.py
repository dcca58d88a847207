"""How users of the command line type what hints name as Python spells it."""

from __future__ import annotations

import re

OPTIONS = frozenset(
    (
        "accept_fewer", "apply_all_deletes",
        "assume_committed", "break_lock", "buckets", "debug", "engine", "exit_code", "fail_on",
        "follow_links", "force",
        "jobs",
        "major", "master", "max_bytes", "metastore", "min_deltas", "no_lock", "no_trash", "offline", "older_than",
        "order_by", "queue", "read_lock",
        "reader", "storage_option", "table", "table_type", "take_over", "task_bytes", "trash",
        "unsafe_retention", "valid_txns", "verify", "visibility_txn", "wait", "write_ids", "write_ids_form",
        "write_ids_from",
    )
)  # fmt: skip
"""Settings that hints name, of whatever command."""

_RENAMED = {"reader": "for"}  # a word that Python keeps for itself

COMMANDS = {
    "clean()": "clean",
    "clean(leftovers=True)": "clean --leftovers",
    "clean(plan=FILE)": "clean --plan FILE",
    "compact()": "compact",
    "compact('auto')": "compact --auto",
    "compact('major')": "compact --major",
    "dump()": "dump",
    "forget_repair()": "repair forget",
    "purge()": "purge",
    "repair('empty-result')": "repair empty-result",
    "repair('flush-length')": "repair flush-length",
    "repair('key-index')": "repair key-index",
    "repair('nested')": "repair nested",
    "repair('version-file')": "repair version-file",
    "restore()": "restore",
    "state()": "ls",
    "trash()": "restore --list",
    "undo_repair()": "repair undo",
    "undo_repair(list)": "repair undo --list",
    "validate()": "validate",
    "why()": "why",
}
"""Verbs that hints name."""

_SETTING = re.compile(r"([a-z_]+)(?:=(.*))?")
_PROPERTY = re.compile(r"spark(\.[A-Za-z]+)+=.*")


def shell_spelling(quoted: str) -> str | None:
    """``--table-type full-acid`` for ``table_type='full-acid'``, ``--conf spark...`` for a property of Spark, a command
    line for a verb; None for anything else.
    """
    if quoted in COMMANDS:
        return f"`acidctl {COMMANDS[quoted]}`"
    if _PROPERTY.fullmatch(quoted):
        return f"--conf {quoted}"
    setting = _SETTING.fullmatch(quoted)
    if setting is None or setting[1] not in OPTIONS:
        return None
    value = "" if setting[2] is None else " " + setting[2].strip("'")
    return "--" + _RENAMED.get(setting[1], setting[1]).replace("_", "-") + value
