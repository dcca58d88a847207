"""`acidctl restore`: bring back what a cleaning run moved to the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options import DIRECTORY, examples, output_option, storage_options

if TYPE_CHECKING:
    from acidctl.cleaning.trash import TrashRun


@click.command(
    "restore",
    epilog=examples(
        "acidctl restore --list orders", "acidctl restore orders", "acidctl restore orders --run 20261121T2224"
    ),
)
@click.argument("location", metavar="LOCATION", type=DIRECTORY)
@click.option("--list", "list_only", is_flag=True, help="List the runs in the trash and stop.")
@click.option("--run", "run_id", metavar="ID", help="Which run, or how its id begins; the newest by default.")
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(location: str, list_only: bool, run_id: str | None, storage: dict[str, str], output: str) -> None:
    """Undo a cleaning run of one LOCATION: move everything it took back to its place."""
    from acidctl.cleaning.trash import list_runs, restore
    from acidctl.cli.output import human_bytes, human_count, note, put_json, safe
    from acidctl.errors import NotFoundError
    from acidctl.storage.registry import open_location

    fs, path = open_location(location, storage)
    fs.stat(path)
    runs = list_runs(fs, path)
    if list_only:
        if not runs:
            note("the trash is empty")
        for run in runs:
            if output != "table":
                put_json(_record(fs.display(path), run, "in-trash"), lines=output == "jsonl")
                continue
            if not run.is_complete:
                click.echo(f"{safe(run.id)}  incomplete: interrupted, nothing can be restored from it")
                continue
            count = human_count(len(run.names), "entry", "entries")
            click.echo(f"{safe(run.id)}  {count}  {human_bytes(run.bytes)}  {safe(' '.join(run.names))}")
        return
    matching = [run for run in runs if run_id is None or run.id.startswith(run_id)]
    if not matching:
        raise NotFoundError(f"no such run in the trash of {fs.display(path)}", "", "see `acidctl restore --list`")
    # Nothing was moved by a run without a manifest: the newest one that can be undone is meant.
    chosen = next((run for run in reversed(matching) if run.is_complete), matching[-1])
    if chosen is not matching[-1]:
        note(f"passed over {matching[-1].id}: it was interrupted, nothing can be restored from it")
    names = restore(fs, chosen)
    if output != "table":
        put_json(_record(fs.display(path), chosen, "restored"), lines=output == "jsonl")
        return
    click.echo(f"{safe(fs.display(path))}: {len(names)} restored: {safe(' '.join(names))}")


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
