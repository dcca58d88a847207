"""`acidctl advise`: which locations cost their readers most, and what compaction would save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.shared import (
    examples,
    global_words,
    locations_argument,
    output_option,
    snapshot_options,
    snapshot_words,
    storage_options,
    storage_words,
)

if TYPE_CHECKING:
    from acidctl.acid.advice import Advice
    from acidctl.cli.output.console import Records
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.snapshot import Snapshot

SCHEMA_VERSION = 1
_SHOWN = 20
"""Locations in the table, unless --limit says more."""

_ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cost": lambda found: found["cost"],
    "gain": lambda found: found["gain"],
    "files": lambda found: found["files"],
    "small-files": lambda found: found["smallFiles"],
    "deletes": lambda found: (found["deleteRows"] or 0, found["deleteBytes"]),
}


@click.command(
    "advise",
    epilog=examples(
        "acidctl advise /warehouse",
        "acidctl advise --sort gain --limit 5 hdfs://nn/warehouse/sales.db",
        "acidctl advise --rows --sort deletes orders",
        "acidctl advise -o jsonl /warehouse | jq -r 'select(.gain > 1) | .command'",
    ),
)
@locations_argument()
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(_ORDERS)),
    default="cost",
    show_default=True,
    help="What the highest is first of: cost to readers, gain of compacting, files, small files, deletes to hold.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Show the first N locations; without it {_SHOWN} in the table, and all in the other forms.",
)
@click.option("--rows", is_flag=True, help="Count the delete events too, from the files' footers.")
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", "csv", default="table")
def command(
    locations: tuple[str, ...],
    order: str,
    limit: int | None,
    rows: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Rank the locations at or below LOCATION by what they cost their readers.

    A reader lists every directory, opens every file, and holds the delete events while it reads rows. The cost counts
    4 MiB for each directory and file beyond the fewest that there can be, and the bytes of the delete events once for
    each file of rows. The gain is what the better of the two compactions saves at every full read, for each byte that
    it rewrites once.

    The command to run, in the forms for programs, says what was said here of the snapshot and of the storage (of
    secrets the names only), or else that what is older than an hour is committed. With --offline it is one for a time
    when nothing reads the table.

    Only listings are read, unless --rows asks for the footers of delete deltas.
    """
    from acidctl.acid.advice import advise
    from acidctl.cli.output.console import Records
    from acidctl.cli.output.odd_layouts import OddLayouts
    from acidctl.cli.output.strangers import Strangers
    from acidctl.cli.report.failures import Failures
    from acidctl.errors import AcidctlError
    from acidctl.location.find import find
    from acidctl.rows.scan.odd_layout import odd_layout

    failures = Failures()
    records = Records(output)
    ranked: list[dict[str, Any]] = []
    odd = OddLayouts()
    strangers = Strangers(failures.add)
    told, program = [*snapshot_words(), *storage_words()], ["acidctl", *global_words()]
    for found in strangers.known(find(locations, storage, lists, strangers.observer)):
        try:
            snapshot = found.snapshot(lists)
            odd.add(odd_layout(snapshot))
            snapshot.require_history()
            advice = advise(snapshot.listing, snapshot.state)
            delete_rows = _delete_rows(snapshot, advice) if rows else None
            ranked.append(_record(found.shown, advice, delete_rows, [*_offline(advice), *told], program))
        except AcidctlError as error:
            failures.add(error, found.shown)
    ranked.sort(key=lambda one: one["location"])
    ranked.sort(key=_ORDERS[order], reverse=True)
    _show(ranked, limit, output, records, failed=failures.worst > 0)
    odd.tell()
    strangers.tell()
    return failures.worst


def _delete_rows(snapshot: Snapshot, advice: Advice) -> int:
    from acidctl.acid.layout import current_files
    from acidctl.rows.foreign.parquet_and_text import footer_rows

    wanted = set(advice.delete_files)
    files = (file for file in current_files(snapshot.state, snapshot.listing) if file.path in wanted)
    return sum(footer_rows(snapshot, file, full=True) or 0 for file in files)


def _offline(advice: Advice) -> list[str]:
    """What the command of an advice would ask for: whether both kinds of delta may appear one after the other."""
    from acidctl.acid.triggers import CompactionKind

    return ["--offline"] if advice.kind is CompactionKind.MINOR and advice.delete_files else []


def _record(
    location: str,
    advice: Advice,
    delete_rows: int | None,
    words: Sequence[str] = (),
    program: Sequence[str] = ("acidctl",),
) -> dict[str, Any]:
    """Its JSON form.

    Args:
        words: further ones of the command to run.
        program: those before its name.
    """
    import shlex

    kind = advice.kind.value if advice.kind else None
    return {
        "schema_version": SCHEMA_VERSION,
        "location": location,
        "cost": advice.cost,
        "directories": advice.directories,
        "files": advice.files,
        "smallFiles": advice.small_files,
        "bytes": advice.bytes,
        "deleteFiles": len(advice.delete_files),
        "deleteBytes": advice.delete_bytes,
        "deleteRows": delete_rows,
        "compaction": kind,
        "rewritten": advice.rewritten,
        "saved": advice.saved,
        "gain": round(advice.gain, 4),
        "command": shlex.join([*program, "compact", f"--{kind}", *words, location]) if kind else None,
    }


def _show(ranked: Sequence[dict[str, Any]], limit: int | None, output: str, records: Records, *, failed: bool) -> None:
    from acidctl.cli.output.console import note, put_csv

    if output in ("json", "jsonl"):
        for record in ranked[:limit]:
            records.put(record)
    elif output == "csv":
        names = [name for name in _record_names() if name != "schema_version"]
        put_csv(names, [[record[name] for name in names] for record in ranked[:limit]])
    elif ranked:
        _table(ranked[: limit or _SHOWN])
        left = len(ranked) - (limit or _SHOWN)
        if left > 0:
            note(f"{left} more, which come after these; --limit shows them")
    elif not failed:
        note("no table was found there")


def _record_names() -> Sequence[str]:
    from acidctl.acid.advice import Advice

    return list(_record("", Advice(0, 0, 0, 0, (), 0, 0, None, 0, 0), None))


def _table(ranked: Sequence[dict[str, Any]]) -> None:
    from acidctl.cli.output.console import console, human_bytes
    from acidctl.cli.output.screen import Column, FittedTable, Row

    columns = [
        Column("location"),
        Column("cost", right=True, is_clear=False),
        Column("dirs", right=True, worth=4, is_clear=False),
        Column("files", right=True, worth=5, is_clear=False),
        Column("small", right=True, worth=2, beside=True, is_clear=False),
        Column("deletes", right=True, worth=3, is_clear=False),
        Column("size", right=True, worth=1, beside=True),
    ]
    rows = []
    for one in ranked:
        deletes = human_bytes(one["deleteBytes"]) if one["deleteRows"] is None else f"{one['deleteRows']:,} rows"
        cells = (
            one["location"],
            human_bytes(one["cost"]),
            str(one["directories"]),
            str(one["files"]),
            str(one["smallFiles"]),
            deletes if one["deleteFiles"] else "-",
            human_bytes(one["bytes"]),
        )
        rows.append(Row(cells, _remark(one), is_plain=one["compaction"] is None))
    FittedTable(tuple(columns), "compaction", tuple(rows)).print(console())


def _remark(one: dict[str, Any]) -> str:
    from acidctl.cli.output.console import human_bytes

    if one["compaction"] is None:
        return "nothing to save"
    saved, rewritten, gain = human_bytes(one["saved"]), human_bytes(one["rewritten"]), one["gain"]
    times = f"{gain:,.0f}" if gain >= 10 else f"{gain:.2g}"
    offline = " --offline" if "--offline" in one["command"].split() else ""
    return f"--{one['compaction']}{offline} rewrites {rewritten} and saves {saved} a read, {times} for each byte"
