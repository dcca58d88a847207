"""`acidctl ls`: every directory of a location with its state and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options import DIRECTORY, examples, output_option, snapshot_options, storage_options

if TYPE_CHECKING:
    from rich.table import Table

    from acidctl.cli.locations import Found, SnapshotLists
    from acidctl.storage.snapshot import Snapshot

STATE_STYLES = {"current": "green", "obsolete": "yellow", "aborted": "red", "ignored": "dim"}

_COLUMNS = (
    "location", "name", "kind", "minWriteId", "maxWriteId", "statementId", "visibilityTxnId", "state", "reason",
    "files", "bytes", "rows", "modified",
)  # fmt: skip

_SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: entry["name"],
    "write-id": lambda entry: (entry["maxWriteId"] is None, entry["maxWriteId"] or 0, entry["name"]),
    "size": lambda entry: -entry["bytes"],
    "time": lambda entry: entry["modified"] or "",
    "state": lambda entry: list(STATE_STYLES).index(entry["state"]),
}


@click.command(
    "ls",
    epilog=examples(
        "acidctl ls /warehouse/sales.db/orders",
        "acidctl ls --state obsolete --sort size webhdfs://namenode:9870/warehouse/sales.db",
        "acidctl ls --write-ids 'sales.orders:12:9:9:7' --timeline orders",
        "acidctl ls -o jsonl --recursive /warehouse | jq '.summary.obsolete.bytes'",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH...]", type=DIRECTORY)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(list(STATE_STYLES)),
    help="Only entries in this state. Repeatable.",
)
@click.option("--sort", "sort_key", type=click.Choice(list(_SORT_KEYS)), help="Order of the entries in each location.")
@click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree.")
@click.option("--rows", is_flag=True, help="Count rows, from the files' footers only.")
@click.option("--timeline", is_flag=True, help="Draw each directory as a bar over the write ids.")
@click.option("-a", "--all", "show_all", is_flag=True, help="Show hidden entries in the table too.")
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", "csv", default="table")
def command(
    paths: tuple[str, ...],
    states: tuple[str, ...],
    sort_key: str | None,
    recursive: bool,
    rows: bool,
    timeline: bool,
    show_all: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> None:
    """List the directories of ACID tables with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. A tree of
    several locations gives a line a location, and with --recursive every entry of each.

    Without --write-ids every write id on disk counts as committed.
    """
    from acidctl.cli.locations import find
    from acidctl.cli.report import location_report

    printer = _PRINTERS[output](show_all=show_all, timeline=timeline, rows=rows)
    for found in find(paths or (".",), storage):
        snapshot = found.snapshot(lists)
        report = location_report(snapshot, rows=rows)
        if states:
            report["entries"] = [entry for entry in report["entries"] if entry["state"] in states]
        if sort_key:
            report["entries"].sort(key=_SORT_KEYS[sort_key])
        printer.location(found, snapshot, report, detail=recursive or found.is_given)
    printer.close()


class _Json:
    """One object a location, one after the other."""

    lines = False

    def __init__(self, **_: bool) -> None:
        pass

    def location(self, found: Found, snapshot: Snapshot, report: dict[str, Any], *, detail: bool) -> None:
        from acidctl.cli.output import put_json

        put_json(report, lines=self.lines)

    def close(self) -> None:
        pass


class _JsonLines(_Json):
    lines = True


class _Csv:
    """One line an entry."""

    def __init__(self, **_: bool) -> None:
        self._rows: list[list[object]] = []

    def location(self, found: Found, snapshot: Snapshot, report: dict[str, Any], *, detail: bool) -> None:
        for entry in report["entries"]:
            self._rows.append([report["location"], *(entry[column] for column in _COLUMNS[1:])])

    def close(self) -> None:
        from acidctl.cli.output import put_csv

        put_csv(_COLUMNS, self._rows)


class _Tables:
    """Tables for people; the lines of a tree's locations are gathered into one."""

    def __init__(self, *, show_all: bool, timeline: bool, rows: bool) -> None:
        self._show_all, self._timeline, self._rows = show_all, timeline, rows
        self._overview: list[dict[str, Any]] = []
        self._notes: dict[str, None] = {}
        self._seen = 0

    def location(self, found: Found, snapshot: Snapshot, report: dict[str, Any], *, detail: bool) -> None:
        self._notes |= dict.fromkeys(report["summary"]["notes"])
        self._seen += 1
        if not detail:
            self._overview.append(report)
            return
        from acidctl.cli.output import console, safe
        from acidctl.cli.report import summary_line

        screen = console()
        if self._seen > 1:
            screen.print()
        screen.print(safe(report["location"]), style="bold")
        entries = [e for e in report["entries"] if self._show_all or e["kind"] not in ("staging", "other")]
        if entries:
            screen.print(self._table(entries))
        hidden = len(report["entries"]) - len(entries)
        if self._timeline:
            _print_timeline(snapshot)
        if problem := report["summary"]["historyProblem"]:
            screen.print(f"not enough history: {safe(problem)}", style="red")
        more = f" ({hidden} hidden, -a shows them)" if hidden else ""
        screen.print(safe(summary_line(report)) + more)

    def _table(self, entries: list[dict[str, Any]]) -> Table:
        from rich.text import Text

        from acidctl.cli.output import human_bytes, safe

        table = _new_table("name", "kind", "write ids", "stmt", "vis txn", "state", "files", "size")
        if self._rows:
            table.add_column("rows", justify="right")
        table.add_column("modified (UTC)")
        table.add_column("reason", overflow="fold")
        for entry in entries:
            low, high = entry["minWriteId"], entry["maxWriteId"]
            ids = "" if low is None else str(high) if low == high else f"{low} to {high}"
            cells = [
                safe(entry["name"]),
                entry["kind"],
                ids,
                _number(entry["statementId"]),
                _number(entry["visibilityTxnId"]),
                Text(entry["state"], STATE_STYLES[entry["state"]]),
                str(entry["files"]),
                human_bytes(entry["bytes"]),
            ]
            if self._rows:
                cells.append(_number(entry["rows"]))
            cells += [(entry["modified"] or "-").replace("T", " ").rstrip("Z"), safe(entry["reason"])]
            table.add_row(*cells)
        return table

    def close(self) -> None:
        from acidctl.cli.output import console, human_bytes, note, safe
        from acidctl.cli.report import summary_line

        if self._overview:
            table = _new_table("location", "base", "deltas", "current", "obsolete", "aborted", "size")
            table.add_column("compaction", overflow="fold")
            for report in self._overview:
                summary = report["summary"]
                table.add_row(
                    safe(report["location"]),
                    safe(report["base"] or "-"),
                    str(summary["deltas"]),
                    str(summary["current"]["entries"]),
                    str(summary["obsolete"]["entries"]),
                    str(summary["aborted"]["entries"]),
                    human_bytes(summary["bytes"]),
                    safe(summary_line(report).partition("; ")[2]),
                )
            console().print(table)
        if not self._seen:
            note("no table was found there")
        for text in self._notes:
            note(text)


_PRINTERS: dict[str, type[_Json] | type[_Csv] | type[_Tables]] = {
    "json": _Json,
    "jsonl": _JsonLines,
    "csv": _Csv,
    "table": _Tables,
}


def _new_table(*names: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        right = name in ("stmt", "vis txn", "files", "size", "deltas", "current", "obsolete", "aborted")
        table.add_column(name, justify="right" if right else "left", no_wrap=name in ("name", "write ids", "size"))
    return table


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _print_timeline(snapshot: Snapshot) -> None:
    from rich.text import Text

    from acidctl.cli.output import console, safe
    from acidctl.cli.timeline import MARKS, bars

    screen = console()
    names = [len(safe(v.name)) for v in snapshot.state.verdicts if v.directory]
    if not names:
        return
    indent = max(names) + 2
    width = max(10, min(100, screen.width - indent - 1))
    drawn, (low, high) = bars(snapshot.state.verdicts, width)
    used = max(bar.end for bar in drawn)
    axis = f"{low}{' ' * max(1, used - len(str(low)) - len(str(high)))}{high}"
    screen.print()
    screen.print(Text("write ids".ljust(indent) + axis, "dim"))
    for bar in drawn:
        line = Text(safe(bar.verdict.name).ljust(indent))
        line.append(bar.draw(width).rstrip(), STATE_STYLES[bar.verdict.state.value])
        screen.print(line)
    legend = "  ".join(f"{mark} {state.value}" for state, mark in MARKS.items())
    screen.print(Text(" " * indent + legend, "dim"))
    screen.print()
