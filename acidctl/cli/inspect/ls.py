"""`acidctl ls`: List directories with their state: current, obsolete, aborted, ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import list_options
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import Records, console, note
from acidctl.cli.output.screen import ListChoice
from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.outcomes import RunReporter
from acidctl.wording import human_count, text_of

if TYPE_CHECKING:
    from acidctl.verbs.reading.inspect import Inspected

Record = dict[str, Any]
_HIDDEN = ("staging", "other")
"""Kinds of entries that the table shows only with --all."""
_FOR_ENTRIES = "this lists locations: give --recursive, or one location, to list entries"


@verb_command(
    "ls",
    None,
    place=shared.places_argument("locations", "[PATH...]", required=False),
    extras=(
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice(["current", "obsolete", "aborted", "ignored"]),
            help="Only entries in this state, and locations with such entries. Repeatable.",
        ),
        list_options,
        click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree."),
        click.option("--rows", is_flag=True, help="Count rows, from the files' footers only."),
        click.option("-a", "--all", "show_all", is_flag=True, help="Also show hidden entries in the table."),
    ),
    isolates=True,
)
def command(
    call: Call[None], *, states: tuple[str, ...], recursive: bool, rows: bool, show_all: bool, choice: ListChoice
) -> int:
    """List ACID tables, or the directories of one with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. One location
    gives its entries. A tree, or several PATHs, give one line per location; with --recursive, every entry of each. On
    the screen, many partitions of a table, and many entries in the same state, share a line; -v gives all lines.

    --where, --sort and --columns go by the columns of the list, in every form: those of locations (location, verdict,
    deltas, bytes...), or those of entries (name, kind, state, reason, files, bytes...).

    A reader lists every directory, opens every file, and holds the delete events while it reads rows. The `cost` of a
    location counts 4 MiB for each directory and file beyond the fewest that there can be, and the bytes of the delete
    events once for each file of rows. The `score` is the useful part of a full read, 0 to 100; `seconds` are those of
    one reader at 100 MiB a second that needs 40 ms to open a file. `helps` is the compaction, minor or major, with the
    greater `gain`: what it saves at every full read for each byte that it rewrites once. It may help even if no
    threshold is exceeded and nothing is due. What is due follows from names and sizes alone;
    `acidctl compact --dry-run` also opens the files, and shows what would be refused.

    Without --snapshot every write id on disk counts as committed.
    """
    from acidctl.cli.report.location_list import ENTRY_COLUMNS, LOCATION_COLUMNS
    from acidctl.verbs.reading.inspect import InspectOptions, inspect

    output = call.output
    if output in ("json", "jsonl"):
        shared.refuse_unused(f"-o {output}", "no_headers")
    choice.checked(LOCATION_COLUMNS | ENTRY_COLUMNS)  # refuses names that neither list has
    events = RunReporter()
    selection = replace(call.selection, places=call.selection.places or (".",))
    records = Records(output)  # now: an error before the first location ends the document, too
    listed: _Locations | _Entries | None = None
    unknown = shown = 0
    for found, result in inspect(selection, InspectOptions(rows=rows, partial=True, without_readers=True), events):
        if isinstance(result, AcidctlError):
            events.failed(found.shown, result)
            continue
        if listed is None and (recursive or (found.is_given and len(selection.places) == 1)):
            listed = _Entries(choice, records, states, hidden=show_all)
        elif listed is None:
            shared.refuse_unused("a list of locations (--recursive lists entries)", "rows", "show_all")
        listed, status = listed or _Locations(choice, records, states), result.status
        for error in result.closed:
            events.failed(found.shown, error)
        for error in result.damaged:
            events.gap(error)
        is_shown = listed.add(result, is_named=found.is_given)
        shown += is_shown
        if is_shown and output in ("table", "csv"):
            unknown += not status.evidence.may_change
            events.remember(map(text_of, status.notes) if output == "table" else (), status.warnings)
    (listed or _Locations(choice, records, states)).close()
    events.looked_through()
    if unknown and output == "table" and isinstance(listed, _Locations):
        note(f"{human_count(unknown, 'location')} not known to be transactional: acidctl changes nothing there")
    if not shown and output == "table" and not events.status:
        note("no table was found there" if listed is None else "--state or --where leaves out all that is there")
    events.tell_notes()
    events.tell_strangers()
    return events.status


def _checked(choice: ListChoice, columns: Mapping[str, str], hint: str) -> ListChoice:
    try:
        return choice.checked(columns)
    except UsageProblem as error:
        error.hint = hint
        raise


class _Locations:
    """The list of locations, one line or object each."""

    def __init__(self, choice: ListChoice, records: Records, states: tuple[str, ...]) -> None:
        from acidctl.cli.report.location_list import LOCATION_COLUMNS, LocationList

        self._choice = _checked(choice, LOCATION_COLUMNS, _FOR_ENTRIES)
        self._states = states
        self._table = LocationList(self._choice) if records.output == "table" else None
        self._records = records.of(self._choice.columns or tuple(LOCATION_COLUMNS), has_headings=choice.has_headings)
        self._kept: list[Record] = []

    def add(self, location: Inspected, *, is_named: bool) -> bool:
        """Show a location, or keep it until all are known; return False if it is left out."""
        record = location.status.record()
        if self._states and not any(record[state] for state in self._states):
            return False
        if not self._choice.meeting([record]):
            return False
        if self._table:
            self._table.add(location.status)
        elif self._choice.key:
            self._kept.append(record)
        else:
            self._put(record)
        return True

    def close(self) -> None:
        """Show what was kept."""
        if self._table:
            self._table.close()
        for record in self._choice.in_order(self._kept):
            self._put(record)
        self._records.put_header()

    def _put(self, record: Record) -> None:
        columns = self._choice.columns
        self._records.put(record if columns is None else {name: record[name] for name in columns})


class _Entries:
    """The list of the entries of each location."""

    def __init__(self, choice: ListChoice, records: Records, states: tuple[str, ...], *, hidden: bool) -> None:
        from acidctl.cli.report.location_list import ENTRY_COLUMNS

        self._choice = _checked(choice, ENTRY_COLUMNS, "this lists entries: leave out the columns of locations")
        self._states, self._hidden = states, hidden
        columns = self._choice.columns or tuple(ENTRY_COLUMNS)
        self._records = records.of(columns, "entries", has_headings=choice.has_headings)
        self._seen = 0

    def add(self, location: Inspected, *, is_named: bool) -> bool:
        """Show the entries that the user wants to see; return False if a filter leaves out all of them.

        Args:
            is_named: show the location without entries, too.
        """
        from acidctl.location.snapshot import children_of
        from acidctl.overview.location_status import entry_record

        status, columns = location.status, self._choice.columns
        every = [entry_record(child, location.rows.get(child.verdict.name)) for child in children_of(location.snapshot)]
        wanted = [entry for entry in every if not self._states or entry["state"] in self._states]
        located = [{"location": status.location, **entry} for entry in wanted]
        wanted = self._choice.in_order(self._choice.meeting(located))
        if every and not (wanted or is_named):
            return False
        if self._records.output == "table":
            self._print(location, wanted)
        elif columns is None:
            entries = [{name: value for name, value in entry.items() if name != "location"} for entry in wanted]
            self._records.put({**status.record(), "entries": entries})
        else:
            entries = [{name: entry[name] for name in columns} for entry in wanted]
            self._records.put({"location": status.location, "name": status.name or None, "entries": entries})
        return True

    def close(self) -> None:
        """Write the header of CSV if nothing was found."""
        self._records.put_header()

    def _print(self, location: Inspected, wanted: list[Record]) -> None:
        from rich.text import Text

        from acidctl.cli.output.screen import print_table
        from acidctl.cli.report.location_list import VERDICT_STYLES, print_entries, states_text

        status, screen = location.status, console()
        if self._seen:
            screen.print()
        self._seen += 1
        screen.print(printable(status.shown), style="bold", soft_wrap=True)
        entries = [entry for entry in wanted if self._hidden or entry["kind"] not in _HIDDEN]
        choice = self._choice
        if entries and choice.columns is not None:
            print_table(choice.layout(), entries, has_headings=choice.has_headings)
        elif entries:
            print_entries(entries, is_sorted=bool(choice.key), has_headings=choice.has_headings)
        if not status.evidence.may_change:
            text = f"not known to be transactional: {status.evidence.text}"
            screen.print(printable(text), style="yellow", soft_wrap=True)
        if status.history_problem:
            screen.print(f"not enough history: {printable(text_of(status.history_problem))}", style="red")
        style = VERDICT_STYLES.get(status.verdict, "yellow")
        line = Text(f"{states_text(status.figures)}; ").append(status.verdict, style)
        why = text_of(status.compaction.reason) if VERBOSITY.is_verbose else status.why
        free, hidden = status.figures.free.text, len(wanted) - len(entries)
        line.append(printable(f": {why}" if why else "")).append(f"; {free}" if free else "")
        line.append(f" ({hidden} hidden, -a shows them)" if hidden else "")
        screen.print(line, soft_wrap=True)
