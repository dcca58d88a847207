"""Rule V26: the events of a file ascend by their key; if keys may be equal, the newest event comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acidctl.rows.read.events import Ids
from acidctl.validation.checks.row_facts import Tally, compare, tally_where
from acidctl.validation.findings import DEEP, ERROR, WARNING, Rule

V26 = Rule(
    "V26", ERROR, DEEP, "Events are not in ascending order of their key, or an event is there twice.",
    "Readers merge sorted files: deletes are missed, and rows appear twice.",
    "Rows: run `acidctl compact --major`, which sorts. Deletes: the same with --apply-all-deletes, or "
    "`INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, which keeps what it shows.", "4.2",
)  # fmt: skip
V34 = Rule(
    "V34", WARNING, DEEP, "Several delete events name the same row.",
    "Legal after concurrent deletes; many of them point to a writer that repeats itself.",
    "Nothing; a major compaction removes them.", "4.2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order that the events of a file must have.

    Attributes:
        is_delete: the file holds delete events; several may name one row.
        is_old: its footer has no ``hive.acid.version``: in ACID v1 updates and deletes follow the row's insert.
    """

    is_delete: bool
    is_old: bool

    def check(self, before: Ids, after: Ids) -> Iterator[Tally]:
        """Yield the violations between each event and the one after it (section 4.1)."""
        if not len(after.keys) or _ascend(before, after):
            return
        same, down = compare(before.keys, after.keys)
        yield from tally_where(V26, "events have a lower key than the one before", down, after)
        if not same.any():
            return
        if self.is_delete:
            may_repeat = same
        elif self.is_old:
            may_repeat = same & ((before.operation != 0) | (after.operation != 0))
        else:
            may_repeat = np.zeros_like(same)
        newer = after.current < before.current
        text = "events have the key of the one before and are not older"
        yield from tally_where(V26, text, may_repeat & ~newer, after)
        if self.is_delete:
            yield from tally_where(V34, "delete events name a row again", same & newer, after)


def _ascend(before: Ids, after: Ids) -> bool:
    """Return whether events certainly ascend: most stripes hold consecutive rows of one writer."""
    keys = after.keys
    for then, now in ((before.keys.original, keys.original), (before.keys.bucket, keys.bucket)):
        if now[0] != now[-1] or then[0] != now[0] or not (then == now).all():
            return False
    return bool((before.keys.row_id < keys.row_id).all())
