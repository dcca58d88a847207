"""`acidctl hive request`: Ask Hive's workers for compactions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.cli.hive.records import Record, Results, some
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import COUNT, DURATION
from acidctl.cli.options.set_option import key_and_value
from acidctl.cli.output.command_lines import hive_line
from acidctl.cli.output.console import note, warn
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue import Compaction, Wish
    from acidctl.metastore.tables import HiveTable

_POLL_SECONDS = 1.0
_MOST_SECONDS = 15.0
_ONE_BY_ONE = 20
"""Up to this many entries are fetched by their ids; for more, the whole queue is fetched."""


@shared.command("request")
@shared.places_argument("names", "TABLE...", only_names=True)
@shared.typed_option("--major", "kind", flag_value="major", help="All rows into a base.")
@shared.typed_option("--minor", "kind", flag_value="minor", help="The deltas into one.")
@shared.typed_option(
    "--rebalance", "kind", flag_value="rebalance", help="All rows into a base, spread evenly over buckets (Hive 4)."
)
@click.option("--pool", metavar="NAME", help="For the workers of this pool (Hive 4).")
@click.option(
    "--property",
    "property_",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of this compaction, compactor.KEY for its job, tblprops.KEY for the table. Repeatable.",
)
@click.option("--buckets", type=COUNT, help="With --rebalance: the number of buckets.")
@shared.typed_option("--order-by", metavar="SQL", help="With --rebalance: sort the rows by this, 'id desc'.")
@click.option(
    "--wait", is_flag=True, help="Wait until they are compacted or have failed, and print the result of each."
)
@click.option("--deadline", type=DURATION, metavar="TIME", help="With --wait: wait no longer than this, e.g. 2h.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be requested and stop.")
@exclude_option
@asked_metastore
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
def command(
    names: tuple[str, ...],
    kind: str | None,
    pool: str | None,
    property_: tuple[str, ...],
    buckets: int | None,
    order_by: str | None,
    wait: bool,
    deadline: float | None,
    dry_run: bool,
    exclude: tuple[str, ...],
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Put compactions into the metastore's queue, as ALTER TABLE ... COMPACT does, one for each partition.

    TABLE is db.table, db.table/day=2026-11-20 or db.*. Hive's own workers compact; `acidctl compact`
    does it itself. The metastore refuses a location that already has a waiting entry, and names that entry. acidctl
    refuses one whose files are newer than the metastore: it lists each location for that.

    Exits with 7 if one was refused, and with 6 if a compaction failed that it waited for.
    """
    from acidctl.hive.table_names import newer_than_metastore, wishes_for
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.queue import Wish, check_wish

    if kind is None:
        raise click.UsageError("say which compaction: --major, --minor or --rebalance.")
    if kind != "rebalance" and (buckets or order_by):
        raise click.UsageError("--buckets and --order-by are for --rebalance.")
    properties = tuple(key_and_value(item, "--property") for item in property_)
    asked = Wish("", "", "", kind, pool or "", properties, buckets, order_by or "")
    check_wish(metastore, asked)

    def warn_of_sorted(table: HiveTable) -> None:
        warn(f"{table.full_name} is sorted: Hive's workers refuse to compact it")

    warehouse, results = Warehouse(metastore, exclude), Results(output)
    wishes = list(wishes_for(warehouse, names, asked, warn_of_sorted))
    unknown: list[AcidctlError] = []
    refused = newer_than_metastore(warehouse, names, storage, unknown.append)
    if unknown:
        more = f" (and {len(unknown) - 1:,} more)" if len(unknown) > 1 else ""
        warn(f"could not check whether files are newer than the metastore: {unknown[0]}{more}")
    for wish in wishes:
        if wish.key in refused:
            results.status = ExitStatus.REFUSED
            _put(results, wish, "refused", why=refused[wish.key].why)
    wishes = [wish for wish in wishes if wish.key not in refused]
    if dry_run:
        for wish in wishes:
            _put(results, wish, "planned")
        return results.status
    accepted = _ask(metastore, wishes, results, is_last=not wait)
    if wait and accepted and _wait(metastore, accepted, results, deadline) and not results.status:
        return ExitStatus.POSTPONED
    return results.status


def _record(wish: Wish, result: str, id_: int = 0, state: str = "", why: str = "") -> Record:
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


def _put(
    results: Results, wish: Wish, result: str, *, id_: int = 0, state: str = "", why: str = "", is_last: bool = True
) -> None:
    """Print a result; programs get only the last one of a compaction."""
    entry = f" as {id_}" if id_ and result != "refused" else ""
    shown = f", {state}{f': {why}' if why else ''}" if state or why else ""
    if is_last:
        results.put(_record(wish, result, id_, state, why))
    results.say(f"{wish.name}: {wish.kind} {result}{entry}{shown}")


def _ask(metastore: Metastore, wishes: Sequence[Wish], results: Results, *, is_last: bool) -> dict[int, Wish]:
    """Request each compaction; return those that are in the queue now, by their ids."""
    from acidctl.metastore.errors import Unreachable, Unreadable
    from acidctl.metastore.queue import request_compaction

    accepted: dict[int, Wish] = {}
    for wish in wishes:
        try:
            answer = request_compaction(metastore, wish)
        except UsageProblem:
            raise
        except AcidctlError as error:
            results.failed(wish.name, error, _record(wish, "failed", why=str(error)))
            if isinstance(error, Unreachable | Unreadable):
                note(f"whether the last one was taken is not known: {hive_line('compactions')} shows it")
                break  # the server cannot be reached any more
            continue
        put = partial(_put, results, wish, id_=answer.id, state=answer.state)
        if answer.accepted:
            accepted[answer.id] = wish
            put("requested", is_last=is_last)
            continue
        results.status = max(results.status, ExitStatus.REFUSED)
        why = answer.message or "the metastore gives no reason"
        if answer.id:
            why = f"compaction {answer.id} of it is {answer.state or 'in the queue'}"
        put("refused", why=why)
    if results.is_table and len(wishes) > 1:
        note(f"{human_count(len(accepted), 'compaction')} of {len(wishes):,} requested")
    return accepted


def _wait(metastore: Metastore, asked: Mapping[int, Wish], results: Results, deadline: float | None) -> bool:
    """Poll until all are done or time is up; return whether some are unfinished."""
    from acidctl.base.deadline import Deadline
    from acidctl.base.errors import DeadlineError
    from acidctl.cli.output.progress import progress
    from acidctl.metastore.queue import INITIATED, WORKING, find_compactions

    until = Deadline() if deadline is None else Deadline(time.monotonic() + deadline)
    metastore.until = until
    waiting, pause = dict(asked), _POLL_SECONDS
    states: dict[int, Compaction] = {}
    with progress("waiting for compactions", len(asked)) as bar:
        while waiting:
            try:
                is_short = metastore.features.txn_types and len(waiting) <= _ONE_BY_ONE
                lists = [find_compactions(metastore, id=id_) for id_ in (waiting if is_short else (None,))]
            except DeadlineError:
                break
            states = {entry.id: entry for entries in lists for entry in entries}
            for id_ in list(waiting):
                entry = states.get(id_)
                if entry is None or entry.state not in (INITIATED, WORKING):
                    _done(waiting.pop(id_), id_, entry, results)
                    bar.advance()
            if not waiting or until.is_over:
                break
            time.sleep(max(0.0, min(pause, until.at - time.monotonic())))
            pause = min(pause * 1.5, _MOST_SECONDS)
    for id_, wish in waiting.items():
        entry = states.get(id_)
        _put(results, wish, "unfinished", id_=id_, state=entry.state if entry else "")
    if waiting:
        names = some([wish.name for wish in waiting.values()])
        note(f"time is up: {names} not done; {hive_line('compactions')} shows them")
    return bool(waiting)


def _done(wish: Wish, id_: int, entry: Compaction | None, results: Results) -> None:
    from acidctl.metastore.queue import FAILED_STATES, READY

    if entry is None:
        # The history keeps only a few entries of a location.
        _put(results, wish, "gone", id_=id_, why="the queue and its history do not have it any more")
    elif entry.state in FAILED_STATES:
        results.status = max(results.status, ExitStatus.STORAGE)
        _put(results, wish, "failed", id_=id_, state=entry.state, why=entry.error)
    else:
        why = "it is cleaned when nobody reads the old files any more" if entry.state == READY else ""
        _put(results, wish, "compacted", id_=id_, state=entry.state, why=why)
