"""`acidctl clean`: remove what is obsolete or aborted, after showing the plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options import (
    assume_committed_option,
    examples,
    exit_code_option,
    locations_argument,
    output_option,
    snapshot_options,
    storage_options,
)

if TYPE_CHECKING:
    from acidctl.cleaning.plan import CleaningPlan
    from acidctl.cli.locations import SnapshotLists
    from acidctl.storage.snapshot import Snapshot


@click.command(
    "clean",
    epilog=examples(
        "acidctl clean --dry-run /warehouse/sales.db",
        "acidctl clean --yes orders",
        "acidctl clean --write-ids 'sales.orders:12:9:9:7' --valid-txns '900:880:880:' orders",
        "acidctl clean --yes --no-trash orders",
    ),
)
@locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--no-trash", is_flag=True, help="Delete at once instead of moving to the location's trash.")
@assume_committed_option
@exit_code_option
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    locations: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    no_trash: bool,
    assume_committed: bool,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Remove the obsolete and aborted directories of every location at or below LOCATION.

    They move to a hidden directory of the location, .acidctl-trash, from which `acidctl restore` brings them back and
    `acidctl purge` deletes them for good. What is current, open, or above the high watermark is never touched.

    Running queries may still read obsolete directories: clean when those that began before the compaction have ended.
    """
    from acidctl.errors import NothingToDo

    plans, status = _plans(locations, lists, storage, assume_committed)
    work = [plan for plan in plans if plan.removals]
    _show(plans, output, dry_run=dry_run)
    if work and not dry_run:
        _confirm(work, yes, no_trash)
        status = max(status, _apply(work, output, trash=not no_trash))
    if not work and not status and exit_code:
        return NothingToDo.exit_status
    return status


def _plans(
    locations: Sequence[str], lists: SnapshotLists, storage: dict[str, str], assume_committed: bool
) -> tuple[list[CleaningPlan], int]:
    """The plans of all locations, and the worst status of those that have none."""
    from acidctl.cleaning.plan import plan_cleaning
    from acidctl.cli.failures import Failures
    from acidctl.cli.locations import find
    from acidctl.errors import AcidctlError

    if assume_committed:
        lists = lists.assuming_committed()
    plans, failures = [], Failures()
    for found in find(locations, storage, lists, failures.add):
        try:
            plans.append(plan_cleaning(found.snapshot(lists)))
        except AcidctlError as error:
            failures.add(error, found.shown)
    return plans, failures.worst


def _show(plans: Sequence[CleaningPlan], output: str, *, dry_run: bool) -> None:
    from acidctl.cli.output import note, put_json

    for plan in plans:
        if output == "table":
            _table(plan)
        elif dry_run or not plan.removals:
            put_json(_record(plan, "planned" if plan.removals else "nothing-to-do"), lines=output == "jsonl")
    for plan in plans:
        _kept_back(plan)
    for text in dict.fromkeys(text for plan in plans for text in plan.snapshot.state.notes):
        if "_v directory" not in text:
            note(text)


def _table(plan: CleaningPlan) -> None:
    from acidctl.cli.output import console, human_bytes, human_count, safe
    from acidctl.cli.screen import Column, FittedTable, Row

    location = safe(_shown(plan.snapshot))
    if not plan.removals:
        click.echo(f"{location}: nothing to clean")
        return
    files = human_count(plan.files, "file")
    click.echo(f"{location}: {len(plan.removals)} to remove, {files}, {human_bytes(plan.bytes)}")
    rows = tuple(
        Row((removal.name, removal.state.value, human_bytes(removal.bytes)), removal.reason.text)
        for removal in plan.removals
    )
    columns = (Column("name"), Column("state"), Column("size", right=True))
    FittedTable(columns, "reason", rows).print(console())


def _kept_back(plan: CleaningPlan) -> None:
    """What stays, and why: entries of one reason in one line."""
    from acidctl.cli.output import note

    by_reason: dict[str, list[str]] = {}
    for name, reason in plan.kept_back:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        note(f"{_shown(plan.snapshot)}: kept back: {', '.join(names)}: {reason}")
    if any("committed" in reason for reason in by_reason):
        note("give --valid-txns, or --assume-committed when no compaction is at work")


def _shown(snapshot: Snapshot) -> str:
    return snapshot.fs.display(snapshot.path)


def _record(plan: CleaningPlan, result: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "location": _shown(plan.snapshot),
        "result": result,
        "bytes": plan.bytes,
        "files": plan.files,
        "removals": [
            {
                "name": removal.name,
                "kind": removal.kind.value,
                "state": removal.state.value,
                "reason": removal.reason.text,
                "files": removal.files,
                "bytes": removal.bytes,
            }
            for removal in plan.removals
        ],
        "keptBack": [{"name": name, "reason": reason} for name, reason in plan.kept_back],
    }


def _confirm(plans: Sequence[CleaningPlan], yes: bool, no_trash: bool) -> None:
    from acidctl.cli.output import human_bytes, human_count
    from acidctl.errors import RefusedError

    if yes:
        return
    count = human_count(sum(len(plan.removals) for plan in plans), "entry", "entries")
    size = human_bytes(sum(plan.bytes for plan in plans))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RefusedError(
            f"{count} ({size}) would be removed", "there is no terminal to ask at", "look at the plan, then give --yes"
        )
    how = "Delete for good" if no_trash else "Move to the trash"
    if not click.confirm(f"{how}: {count}, {size}?", err=True):
        raise RefusedError("nothing was removed", "it was not confirmed")


def _apply(plans: Sequence[CleaningPlan], output: str, *, trash: bool) -> int:
    from acidctl.cleaning.trash import apply_plan
    from acidctl.cli.failures import show_failure
    from acidctl.cli.output import human_bytes, note, put_json, safe
    from acidctl.errors import AcidctlError

    status = 0
    for plan in plans:
        location = _shown(plan.snapshot)
        try:
            run = apply_plan(plan, trash=trash)
        except AcidctlError as error:
            show_failure(location, error)
            status = max(status, error.exit_status)
            continue
        if output != "table":
            record = {**_record(plan, "cleaned"), "trashRun": run.id if run else None}
            put_json(record, lines=output == "jsonl")
            continue
        verb = f"moved to the trash as {run.id}" if run else "deleted"
        click.echo(f"{safe(location)}: {len(plan.removals)} {verb}, {human_bytes(plan.bytes)}")
        if run:
            note(f"undo: acidctl restore {location}   free the space: acidctl purge {location}")
    return status
