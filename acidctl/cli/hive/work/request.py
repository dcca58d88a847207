"""What `acidctl hive request` does: one request for each location, and wait for what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from acidctl.cli.hive.work.listed import some
from acidctl.cli.output.console import Records, note, put_text, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import show_failure
from acidctl.deadline import Deadline
from acidctl.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.hive.hive import wishes_for
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.queue.compactions import (
    FAILED_STATES,
    INITIATED,
    READY,
    WORKING,
    Compaction,
    QueueAnswer,
    Wish,
    check_wish,
    find_compactions,
    request_compaction,
)
from acidctl.metastore.tables import HiveTable
from acidctl.wording import human_count

_POLL_SECONDS = 1.0
_MOST_SECONDS = 15.0
_ONE_BY_ONE = 20
"""Entries that are asked for by their ids; of more the whole queue is."""


def work(
    *,
    names: tuple[str, ...],
    kind: str | None,
    pool: str | None,
    properties: tuple[tuple[str, str], ...],
    buckets: int | None,
    order_by: str | None,
    wait: bool,
    deadline: float | None,
    dry_run: bool,
    exit_code: bool,
    exclude: tuple[str, ...],
    metastore: Metastore,
    output: str,
) -> int:
    """Ask for them; the exit status."""
    if kind is None:
        raise click.UsageError("say which compaction: --major, --minor or --rebalance.")
    if kind != "rebalance" and (buckets or order_by):
        raise click.UsageError("--buckets and --order-by are for --rebalance.")
    asked = Wish("", "", "", kind, pool or "", properties, buckets, order_by or "")
    check_wish(metastore, asked)
    wishes = list(wishes_for(Warehouse(metastore, exclude), names, asked, _warn_of_sorted))
    said = _Said(output)
    if dry_run:
        for wish in wishes:
            said.put(wish, "planned")
        return ExitStatus.DONE
    accepted = _ask(metastore, wishes, said, is_last=not wait)
    if wait and accepted:
        left = _wait(metastore, accepted, said, deadline)
        if left and not said.status:
            return ExitStatus.POSTPONED if exit_code else ExitStatus.DONE
    return said.status


def _warn_of_sorted(table: HiveTable) -> None:
    warn(f"{table.full_name} is sorted: Hive's workers refuse to compact it")


class _Said:
    """What is said of each request.

    Attributes:
        status: the exit status so far.
    """

    def __init__(self, output: str) -> None:
        self.is_table = output == "table"
        self.status = 0
        self._records = Records(output)

    def put(
        self, wish: Wish, result: str, id_: int = 0, state: str = "", why: str = "", *, is_last: bool = True
    ) -> None:
        """Say what became of one.

        Args:
            is_last: False where more becomes of it: programs are told of the end only.
        """
        if self.is_table:
            entry = f" as {id_}" if id_ and result != "refused" else ""
            shown = f"{state}{f': {why}' if why else ''}" if state or why else ""
            put_text(f"{wish.name}: {wish.kind} {result}{entry}{f', {shown}' if shown else ''}")
        elif is_last:
            self._records.put(_record(wish, result, id_, state, why))

    def failed(self, wish: Wish, error: AcidctlError) -> None:
        """The metastore did not take one."""
        self.status = max(self.status, error.exit_status)
        if not self.is_table:
            self._records.put({**_record(wish, "failed", 0, "", str(error)), "error": error.code})
        show_failure(wish.name, error)


def _record(wish: Wish, result: str, id_: int, state: str, why: str) -> dict[str, Any]:
    return {
        "on": wish.name,
        "database": wish.database,
        "table": wish.table,
        "partition": wish.partition or None,
        "kind": wish.kind,
        "pool": wish.pool or None,
        "result": result,
        "id": id_ or None,
        "state": state or None,
        "reason": why or None,
    }


def _ask(metastore: Metastore, wishes: Sequence[Wish], said: _Said, *, is_last: bool) -> dict[int, Wish]:
    """Ask for each; those that are in the queue now, by their ids."""
    accepted: dict[int, Wish] = {}
    for wish in wishes:
        try:
            answer = request_compaction(metastore, wish)
        except (Unreachable, Unreadable) as error:
            said.failed(wish, error)
            note("whether the last one was taken is not known: acidctl hive compactions shows it")
            break  # of a server that is gone nothing more is to be had
        except UsageProblem:
            raise
        except AcidctlError as error:
            said.failed(wish, error)
            continue
        if answer.accepted:
            accepted[answer.id] = wish
            said.put(wish, "requested", answer.id, answer.state, is_last=is_last)
        else:
            said.status = max(said.status, ExitStatus.REFUSED)
            said.put(wish, "refused", answer.id, answer.state, _refusal(answer))
    if said.is_table and len(wishes) > 1:
        note(f"{human_count(len(accepted), 'compaction')} of {len(wishes):,} requested")
    return accepted


def _refusal(answer: QueueAnswer) -> str:
    if answer.id:
        return f"compaction {answer.id} of it is {answer.state or 'in the queue'}"
    return answer.message or "the metastore gives no reason"


def _wait(metastore: Metastore, asked: dict[int, Wish], said: _Said, deadline: float | None) -> bool:
    """Look until all are done, or time is up; whether some are left."""
    until = None if deadline is None else time.monotonic() + deadline
    metastore.until = Deadline() if until is None else Deadline(until)
    left, pause = dict(asked), _POLL_SECONDS
    states: dict[int, Compaction] = {}
    with progress("waiting for compactions", len(asked)) as bar:
        while left:
            states = _states(metastore, list(left))
            for id_ in list(left):
                entry = states.get(id_)
                if entry is None or entry.state not in (INITIATED, WORKING):
                    _done(left.pop(id_), id_, entry, said)
                    bar.advance()
            if not left or (until is not None and time.monotonic() >= until):
                break
            time.sleep(pause if until is None else max(0.0, min(pause, until - time.monotonic())))
            pause = min(pause * 1.5, _MOST_SECONDS)
    for id_, wish in left.items():
        entry = states.get(id_)
        said.put(wish, "unfinished", id_, entry.state if entry else "")
    if left:
        note(f"time is up: {some([wish.name for wish in left.values()])} not done; acidctl hive compactions shows them")
    return bool(left)


def _states(metastore: Metastore, ids: Sequence[int]) -> dict[int, Compaction]:
    if metastore.features.txn_types and len(ids) <= _ONE_BY_ONE:
        return {one.id: one for id_ in ids for one in find_compactions(metastore, id=id_)}
    return {one.id: one for one in find_compactions(metastore)}


def _done(wish: Wish, id_: int, entry: Compaction | None, said: _Said) -> None:
    if entry is None:
        # Its history keeps a few entries of a location only.
        said.put(wish, "gone", id_, "", "the queue and its history do not have it any more")
    elif entry.state in FAILED_STATES:
        said.status = max(said.status, ExitStatus.STORAGE)
        said.put(wish, "failed", id_, entry.state, entry.error)
    else:
        why = "it is cleaned when nobody reads the old files any more" if entry.state == READY else ""
        said.put(wish, "compacted", id_, entry.state, why)
