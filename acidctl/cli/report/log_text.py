"""Entries of a location's log as JSON and in words."""

from __future__ import annotations

from typing import Any

from acidctl.location.change.work_log import LogEntry
from acidctl.wording import human_bytes, human_count, iso_time, some_of


def log_record(entry: LogEntry) -> dict[str, Any]:
    """Return the JSON form of an entry."""
    return {
        "at": iso_time(entry.at),
        "verb": entry.verb,
        "result": entry.result,
        "run": entry.run or None,
        "user": entry.user or None,
        "owner": entry.owner or None,
        "host": entry.host or None,
        "acidctl": entry.version or None,
        "snapshotFrom": entry.source or None,
        "facts": dict(entry.facts),
    }


def who(entry: LogEntry) -> str:
    """Return the user and host, ``etl@node3``; empty if neither is recorded."""
    return f"{entry.user}@{entry.host}" if entry.user or entry.host else ""


def what(entry: LogEntry) -> str:
    """Return the facts in words; unknown facts are left out."""
    parts = [_write_ids(entry), *_texts(entry, "kind", "repair"), _outputs(entry), _amount(entry)]
    postponed = entry.number("left")
    parts.append(f"{postponed:,} left for later" if postponed else "")
    parts += [f"night {text}" for text in _texts(entry, "night")]
    return "; ".join(filter(None, parts))


def _write_ids(entry: LogEntry) -> str:
    low, high = entry.number("minWriteId"), entry.number("maxWriteId")
    if low is None or high is None:
        return ""
    return f"write id {low}" if low == high else f"write ids {low} to {high}"


def _texts(entry: LogEntry, *keys: str) -> list[str]:
    return [text for key in keys if isinstance(text := entry.facts.get(key), str)]


def _outputs(entry: LogEntry) -> str:
    names = entry.facts.get("outputs")
    return f"to {some_of(names)}" if isinstance(names, list) and names else ""


def _amount(entry: LogEntry) -> str:
    entries, read, size = (entry.number(key) for key in ("entries", "inputBytes", "bytes"))
    parts = [human_count(entries, "entry", "entries")] if entries is not None else []
    if size is not None:
        parts.append(human_bytes(size) if read is None else f"{human_bytes(read)} -> {human_bytes(size)}")
    return ", ".join(parts)
