"""`acidctl hive request`: Ask Hive's workers for compactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.cli.hive.records import Record, Results
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import COUNT
from acidctl.cli.options.set_option import key_and_value
from acidctl.cli.output.command_lines import hive_line
from acidctl.cli.output.console import note, warn
from acidctl.wording import human_count

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.queue import Wish
    from acidctl.metastore.tables import HiveTable


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

    Exits with 7 if one was refused. `acidctl hive compactions` shows how each goes on.
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
    _ask(metastore, wishes, results)
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


def _put(results: Results, wish: Wish, result: str, *, id_: int = 0, state: str = "", why: str = "") -> None:
    entry = f" as {id_}" if id_ and result != "refused" else ""
    shown = f", {state}{f': {why}' if why else ''}" if state or why else ""
    results.put(_record(wish, result, id_, state, why), f"{wish.name}: {wish.kind} {result}{entry}{shown}")


def _ask(metastore: Metastore, wishes: Sequence[Wish], results: Results) -> None:
    """Request each compaction."""
    from acidctl.metastore.errors import Unreachable, Unreadable
    from acidctl.metastore.queue import request_compaction

    accepted = 0
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
        if answer.accepted:
            accepted += 1
            _put(results, wish, "requested", id_=answer.id, state=answer.state)
            continue
        results.status = max(results.status, ExitStatus.REFUSED)
        why = answer.message or "the metastore gives no reason"
        if answer.id:
            why = f"compaction {answer.id} of it is {answer.state or 'in the queue'}"
        _put(results, wish, "refused", id_=answer.id, state=answer.state, why=why)
    if results.is_table and accepted:
        requested = f"{human_count(accepted, 'compaction')} of {len(wishes):,} requested"
        note(f"{requested}: {hive_line('compactions')} shows how they go on")
