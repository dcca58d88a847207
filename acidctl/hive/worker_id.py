"""Names of workers in Hive's queue, from which it can be told whether their process is dead."""

from __future__ import annotations

import itertools
import re

from acidctl.location.change.owner import Owner

_NUMBERS = itertools.count(1)
_NAME = re.compile(r"acidctl-(.+)-([0-9]{1,10})\.([0-9]{1,20})-[0-9]+")
_NO_PID = 1 << 31
"""Process ids are below this."""


def worker_id() -> str:
    """A new name: ``acidctl-<host>-<process>.<its start>-<number>``.

    It does not begin with the name of a host: when an initiator starts, Hive takes the entries of workers back whose
    names begin with that of its own.
    """
    this = Owner.this()
    return f"acidctl-{this.host}-{this.pid}.{this.started}-{next(_NUMBERS)}"


def is_dead(worker: str) -> bool:
    """Whether it is a worker of ours, on this machine, whose process has certainly ended."""
    found = _NAME.fullmatch(worker)
    if not found or not 0 < int(found[2]) < _NO_PID:
        return False
    return Owner(found[1], int(found[2]), int(found[3]), "", 0.0).is_dead()
