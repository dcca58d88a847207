"""JSON records about transactions, locks and compactions, their tables for people, and the results of commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.cli.options import shared
from acidctl.cli.output.console import Records, note, put_text
from acidctl.wording import time_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from acidctl.metastore.activity import KnownTxns, Lock, Txn
    from acidctl.metastore.queue import Compaction

_NAMED = 3
_NUMBERED = ("id", "part")
"""Fields in which 0 is a value, and not a missing one."""

Record = dict[str, Any]

tables_argument = shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
"""Tables and patterns, ``db.table`` or ``db.*``, passed on as the keyword `names`; empty for all."""


class Results:
    """Prints results: a sentence for people, a record for programs."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.is_table = output == "table"
        self.status = 0
        self.counts: Counter[str] = Counter()
        self._records = Records(output)

    def say(self, text: str) -> None:
        """Print a sentence, for people only."""
        if self.is_table and text:
            put_text(text)

    def put(self, record: Record, text: str = "") -> None:
        """Print the record, or the sentence if there is one."""
        self._records.put(record)
        self.say(text)

    def failed(self, what: str, error: AcidctlError, record: Record) -> None:
        """Print an error, and a record of it."""
        from acidctl.cli.report.outcomes import show_failure

        self.status = max(self.status, error.exit_status)
        self._records.put({**record, "result": "failed", "error": error.code})
        show_failure(what, error)

    def sum_up(self, checked: str) -> None:
        """Print the counts, for people only."""
        if self.is_table:
            parts = [f"{count:,} {words}" for words, count in sorted(self.counts.items())]
            note(f"{checked}{': ' if parts else ''}{', '.join(parts)}")

    def is_only_planned(
        self, items: Iterable[tuple[str, Record]], what: str, do: str, done: str, *, dry_run: bool, yes: bool
    ) -> bool:
        """Show what would be done, and ask; return whether to stop after that.

        Args:
            do, done: the verb, as an order and as a participle.
        """
        from acidctl.cli.report.verb_screen import confirm

        for text, record in items:
            self.say(text)
            if dry_run:
                self.put({**record, "result": "planned"})
        if not dry_run:
            confirm(f"{what} would be {done}", f"{do} {what}?", f"nothing was {done}", yes=yes)
        return dry_run


def refuse(reasons: Mapping[str, str]) -> None:
    """Refuse for the first of several reasons, if there is one.

    Args:
        reasons: why an item cannot be ended, by its name; empty if it can.
    """
    refused = [f"{what} {why}" for what, why in reasons.items() if why]
    if refused:
        more = f"; and {len(refused) - 1} more like it" if len(refused) > 1 else ""
        raise RefusedError(refused[0], f"nothing was ended{more}", "see `acidctl hive txns` and `compactions`")


def whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)


def fields_of(value: DataclassInstance) -> Record:
    """Return the JSON form of a value of the metastore: names in camel case, times as text, null for empty fields."""
    record: Record = {}
    for each in fields(value):
        first, *rest = each.name.split("_")
        item = getattr(value, each.name)
        shown = time_of(item) if isinstance(item, float) else item
        record[first + "".join(map(str.title, rest))] = shown if shown or each.name in _NUMBERED else None
    return record


def txn_record(txn: Txn, known: KnownTxns, locks: Sequence[Lock]) -> Record:
    ages = {"age": whole(known.age(txn.started)), "silent": whole(known.age(txn.last_heartbeat))}
    return {**fields_of(txn), **ages, "locks": list(map(lock_record, locks))}


def lock_record(lock: Lock) -> Record:
    """Return a lock in short, as part of another record."""
    return {"lock": lock.id, "on": lock.name, "type": lock.type, "state": lock.state}


def entry_record(entry: Compaction, now: float) -> Record:
    record = {"on": entry.name, **fields_of(entry)}
    del record["cleanerStart"]
    return {**record, "age": None if entry.since is None else whole(max(now - entry.since, 0.0))}


def locks_text(locks: Sequence[Record]) -> str:
    """Return ``SHARED_READ on sales.orders and 2 more``."""
    return some(
        [f"{lock['type']} on {lock['on']}{', which waits' if lock['state'] == 'WAITING' else ''}" for lock in locks]
    )


def some(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    rest = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + rest


def sentence(*parts: str | None) -> str:
    """Return the parts that are not empty, with semicolons between them."""
    return "; ".join(filter(None, parts))
