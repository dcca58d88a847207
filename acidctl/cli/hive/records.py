"""JSON records about transactions, locks and compactions, and the results of commands on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.cli.options import shared
from acidctl.cli.output.console import Records, note, put_text
from acidctl.wording import time_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from acidctl.metastore.activity import KnownTxns, Lock, Txn
    from acidctl.metastore.queue.compactions import Compaction

_NAMED = 3
_NUMBERED = ("id", "part")
"""Fields in which 0 is a value, and not a missing one."""

Record = dict[str, Any]

tables_argument = shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
"""Tables and patterns, ``db.table`` or ``db.*``, passed on as the keyword `names`; empty for all."""


class Results:
    """Prints results: a sentence for people, a record for programs.

    Attributes:
        status: the worst exit status of all failures.
        counts: the number of results of each kind.
    """

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

    def sum_up(self, looked: str) -> None:
        """Print the counts, for people only.

        Args:
            looked: what was checked, with its number.
        """
        if self.is_table:
            parts = [f"{count:,} {words}" for words, count in sorted(self.counts.items())]
            note(f"{looked}{': ' if parts else ''}{', '.join(parts)}")

    def is_only_planned(
        self, shown: Iterable[tuple[str, Record]], what: str, do: str, done: str, *, dry_run: bool, yes: bool
    ) -> bool:
        """Show what would be done, and ask; return whether to stop after that.

        Args:
            shown: a sentence and a record for each item.
            what: the items, with their number.
            do, done: the verb, as an order and as a participle.

        Raises:
            RefusedError: the answer was no, or nobody can answer.
        """
        from acidctl.cli.report.verb_screen import confirm

        for text, record in shown:
            self.say(text)
            if dry_run:
                self.put({**record, "result": "planned"})
        if not dry_run:
            confirm(f"{what} would be {done}", f"{do} {what}?", f"nothing was {done}", yes=yes)
        return dry_run


def refuse(reasons: Sequence[tuple[str, str]]) -> None:
    """Refuse for the first of several reasons, if there is one.

    Args:
        reasons: pairs of an item, and why it cannot be ended.
    """
    if reasons:
        what, why = reasons[0]
        more = f"; and {len(reasons) - 1} more like it" if len(reasons) > 1 else ""
        raise RefusedError(f"{what} {why}", f"nothing was ended{more}", "see `acidctl hive txns` and `compactions`")


def whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)


def fields_of(value: DataclassInstance) -> Record:
    """Return the JSON form of a value of the metastore: names in camel case, times as text, null for empty fields."""
    record: Record = {}
    for field in fields(value):
        first, *rest = field.name.split("_")
        item = getattr(value, field.name)
        shown = time_of(item) if isinstance(item, float) else item
        record[first + "".join(map(str.title, rest))] = shown if shown or field.name in _NUMBERED else None
    return record


def txn_record(txn: Txn, known: KnownTxns, locks: Sequence[Lock]) -> Record:
    ages = {"age": whole(known.age(txn.started)), "silent": whole(known.age(txn.last_heartbeat))}
    return {**fields_of(txn), **ages, "locks": list(map(lock_record, locks))}


def lock_record(lock: Lock) -> Record:
    """Return a lock in short, as part of another record."""
    return {"lock": lock.id, "on": lock.on, "type": lock.type, "state": lock.state}


def entry_record(entry: Compaction, now: float) -> Record:
    record = {"on": entry.name, **fields_of(entry)}
    del record["cleanerStart"]
    return {**record, "age": None if entry.since is None else whole(max(now - entry.since, 0.0))}


def locks_text(locks: Sequence[Lock]) -> str:
    """Return ``SHARED_READ on sales.orders and 2 more``."""
    return some([f"{lock.type} on {lock.on}{', which waits' if lock.is_waiting else ''}" for lock in locks])


def held_text(record: Record) -> str:
    """Return the locks of a record in short."""
    return some([f"{lock['type']} on {lock['on']}" for lock in record["locks"]])


def some(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    rest = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + rest


def sentence(*parts: str | None) -> str:
    """Return the parts that are not empty, with semicolons between them."""
    return "; ".join(filter(None, parts))
