"""`acidctl restore`: bring back what a cleaning run moved to the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.clean_work import Work
from acidctl.cli.options import DIRECTORY, examples, lock_options, output_option, report_options, storage_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acidctl.cleaning.trash import TrashRun
    from acidctl.cli.run_report import RunReport
    from acidctl.storage.port import FileSystem


@click.command(
    "restore",
    epilog=examples(
        "acidctl restore --list orders", "acidctl restore orders", "acidctl restore orders --run 20261121T2224"
    ),
)
@report_options
@click.argument("location", metavar="LOCATION", type=DIRECTORY)
@click.option("--list", "list_only", is_flag=True, help="List the runs in the trash and stop.")
@click.option("--run", "run_id", metavar="ID", help="Which run, or how its id begins; the newest by default.")
@lock_options
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    location: str,
    list_only: bool,
    run_id: str | None,
    lock: bool,
    break_lock: bool,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> None:
    """Undo a cleaning run of one LOCATION: move everything it took back to its place.

    The files are compared with those that were moved, and the state of the location with the one before the cleaning;
    where others wrote meanwhile, the difference is told.
    """
    from acidctl.cleaning.trash import changes_since, list_runs, restore
    from acidctl.cli.output import note, put_json, safe
    from acidctl.storage.registry import open_location

    fs, path = open_location(location, storage)
    fs.stat(path)
    runs = list_runs(fs, path)
    if list_only:
        _list(fs.display(path), runs, output)
        return
    with Work(lock=lock, break_lock=break_lock).at(fs, path):
        chosen = _chosen(fs, path, list_runs(fs, path), run_id)
        names = restore(fs, chosen)
        changes = changes_since(fs, chosen)
    run.add(fs.display(path), "restored", restored=chosen.bytes, names=len(names))
    if output != "table":
        record = _record(fs.display(path), chosen, "restored") | {"changes": None if changes is None else list(changes)}
        put_json(record, lines=output == "jsonl")
        return
    what = f"{len(names)} restored: {safe(' '.join(names))}" if names else f"{chosen.id} was restored already"
    click.echo(f"{safe(fs.display(path))}: {what}")
    if changes == ():
        note("the state is the one before that cleaning")
    elif changes:
        note(f"otherwise than before that cleaning: {'; '.join(changes)}")


def _chosen(fs: FileSystem, path: str, runs: Sequence[TrashRun], run_id: str | None) -> TrashRun:
    from acidctl.cleaning.trash import Phase
    from acidctl.cli.output import note
    from acidctl.errors import NotFoundError

    matching = [run for run in runs if run_id is None or run.id.startswith(run_id)]
    if not runs:
        why = "it has no trash of its own, or that was purged"
        hint = "give a partition, or a table without partitions: each has its own trash"
        raise NotFoundError(f"nothing to restore in {fs.display(path)}", why, hint)
    if not matching:
        raise NotFoundError(f"no such run in the trash of {fs.display(path)}", "", "see `acidctl restore --list`")
    # Nothing was moved by a run without a manifest: the newest one that can be undone is meant.
    usable = (run for run in reversed(matching) if run.phase in (Phase.IN_TRASH, Phase.RESTORED, Phase.DAMAGED))
    chosen = next(usable, matching[-1])
    if chosen is not matching[-1]:
        note(f"passed over {matching[-1].id}: it was interrupted, nothing can be restored from it")
    return chosen


_PHASES = {
    "unfinished": "incomplete: interrupted, nothing can be restored from it",
    "restored": "restored already",
    "purged": "incomplete: it was being purged, nothing can be restored from it",
    "damaged": "damaged: its manifest is none of acidctl's",
}


def _list(shown: str, runs: Sequence[TrashRun], output: str) -> None:
    from acidctl.cli.output import human_bytes, human_count, note, put_json, safe

    if not runs:
        note("the trash is empty")
    for run in runs:
        if output != "table":
            put_json(_record(shown, run, "in-trash"), lines=output == "jsonl")
        elif run.is_complete:
            count = human_count(len(run.names), "entry", "entries")
            click.echo(f"{safe(run.id)}  {count}  {human_bytes(run.bytes)}  {safe(' '.join(run.names))}")
        else:
            click.echo(f"{safe(run.id)}  {_PHASES[run.phase.value]}")


def _record(location: str, run: TrashRun, result: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "location": location,
        "result": result,
        "trashRun": run.id,
        "isComplete": run.is_complete,
        "names": list(run.names),
        "bytes": run.bytes,
    }
