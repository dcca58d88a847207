"""`acidctl meta`: Show an ORC file's footer."""

from __future__ import annotations

from typing import Any

import click

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import printable
from acidctl.cli.options.param_types import FILE
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import Records, console, put_line
from acidctl.cli.output.screen import Column, Layout, column, number, print_table
from acidctl.cli.report.outcomes import RunReporter
from acidctl.storage.registry import naming_near, open_location
from acidctl.wording import human_bytes, human_count

_SIZES = {"offset": "offset", "index": "indexLength", "data": "dataLength", "footer": "footerLength"}


@verb_command(
    "meta",
    None,
    place=click.argument("locations", nargs=-1, required=True, metavar="FILE...", type=FILE),
    source=None,
    forms=("table", "json", "jsonl"),
    isolates=True,
)
def command(call: Call[None]) -> int:
    """Show the footer of ORC files: types, stripes with the key index, statistics, compression, writer, hive.acid.*."""
    from acidctl.orc.byte_source import ByteSource
    from acidctl.orc.tail import read_tail
    from acidctl.orc.tail_document import tail_document

    events, records = RunReporter(), Records(call.output)
    for place, path in enumerate(call.selection.places):
        try:
            fs, inner = open_location(path, call.selection.storage)
            with naming_near(fs, inner):
                tail = read_tail(ByteSource(fs, inner))
            description = {"path": fs.display(inner), **tail_document(tail, with_streams=True)}
        except AcidctlError as error:
            if len(call.selection.places) == 1:
                raise
            events.failed(path, error)
            continue
        records.put(description)
        if call.output == "table":
            if place:
                put_line()
            _print(description)
    return events.status


def _print(document: dict[str, Any]) -> None:
    screen = console()
    screen.print(printable(document["path"]), style="bold", soft_wrap=True)
    software = f", {document['softwareVersion']}" if document["softwareVersion"] else ""
    stripes = human_count(len(document["stripes"]), "stripe")
    facts = [
        ("rows", f"{document['rows']:,} in {stripes}, {human_bytes(document['fileLength'])}"),
        ("type", document["type"]),
        ("compression", f"{document['compression']}, blocks of {human_bytes(document['compressionBlockSize'])}"),
        ("row index", f"a row in {document['rowIndexStride']:,}" if document["rowIndexStride"] else "none"),
        (
            "writer",
            f"{document['writer']} (version {document['writerVersion']}{software}), format {document['formatVersion']}",
        ),
        ("calendar", document["calendar"] or "not recorded"),
    ]
    if acid := document["acid"]:
        stats = acid["stats"]
        counts = ", ".join(f"{count:,} {name}" for name, count in stats.items()) if stats else "missing"
        index = "missing" if acid["keyIndex"] is None else human_count(len(acid["keyIndex"]), "entry", "entries")
        facts += [
            ("hive.acid.version", acid["version"] if acid["version"] is not None else "missing"),
            ("hive.acid.stats", counts),
            ("hive.acid.key.index", index),
        ]
    facts += [(f"metadata {key}", value) for key, value in document["userMetadata"].items()]
    facts += [("note", text) for text in document["notes"]] + [("problem", text) for text in document["problems"]]
    for label, value in facts:
        screen.print(f"  {printable(label):20} {printable(str(value))}", soft_wrap=True)
    if document["stripes"]:
        print_table(_STRIPES, document["stripes"])
    print_table(_COLUMNS, document["columns"])


def _key(stripe: dict[str, Any]) -> str:
    key = stripe["lastKey"]
    return "{originalTransaction}, {bucket}, {rowId}".format(**key) if key else "-"


_NULLS = {True: "some", False: "none", None: "-"}
_STRIPES = Layout(
    (
        column("stripe", text=str, right=True),
        column("rows", text=number, right=True),
        *(column(name, key, str, right=True) for name, key in _SIZES.items()),
        Column("last key (transaction, bucket, row id)", _key),
        Column("time zone", lambda stripe: stripe.get("writerTimezone") or "-"),
    )
)


def _statistics(column: dict[str, Any]) -> dict[str, Any]:
    return column["statistics"] or {}


_COLUMNS = Layout[dict[str, Any]](
    (
        column("id", text=str, right=True),
        column("column", "name", lambda name: name or "(root)"),
        column("type"),
        Column("values", lambda column: number(_statistics(column).get("values")) or "-", right=True),
        Column("nulls", lambda column: _NULLS[_statistics(column).get("hasNull")]),
    ),
    "statistics",
    lambda column: ", ".join(
        f"{key} {value}" for key, value in _statistics(column).items() if key not in ("values", "hasNull")
    ),
)
