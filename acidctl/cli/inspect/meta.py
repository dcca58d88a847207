"""`acidctl meta`: Show an ORC file's footer."""

from __future__ import annotations

from typing import Any

import click

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE
from acidctl.cli.output.console import Records, console, put_line, table_of
from acidctl.cli.report.outcomes import RunReporter
from acidctl.storage.registry import naming_near, open_location
from acidctl.wording import human_bytes, human_count


@shared.command(
    "meta",
    "acidctl meta base_0000003/bucket_00000",
    "acidctl meta -o json delta_*/bucket_* | jq '.[].acid.stats'",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=FILE)
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.runs(pages=True)
def command(
    *,
    paths: tuple[str, ...],
    storage: dict[str, str],
    output: str,
) -> int:
    """Show the tail of ORC files: types, stripes with the key index, statistics, compression, writer, hive.acid.*."""
    from acidctl.orc.byte_source import ByteSource  # noqa: PLC0415 - with Arrow: --help has none
    from acidctl.orc.tail import read_tail  # noqa: PLC0415 - as above
    from acidctl.orc.tail_document import tail_document  # noqa: PLC0415 - as above

    events, records = RunReporter(), Records(output)
    for number, path in enumerate(paths):
        try:
            fs, inner = open_location(path, storage)
            with naming_near(fs, inner):
                tail = read_tail(ByteSource(fs, inner))
            description = {"path": fs.display(inner), **tail_document(tail, with_streams=True)}
        except AcidctlError as error:
            if len(paths) == 1:
                raise
            events.failed(path, error)
            continue
        records.put(description)
        if output == "table":
            if number:
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
        ("calendar", document["calendar"] or "not said"),
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
        screen.print(_stripes(document["stripes"]))
    screen.print(_columns(document["columns"]))


def _stripes(stripes: list[dict[str, Any]]) -> Any:
    sizes = ("offset", "indexLength", "dataLength", "footerLength")
    numbers = ["stripe", "rows", "offset", "index", "data", "footer"]
    rows = []
    for stripe in stripes:
        key = stripe["lastKey"]
        key_text = "{originalTransaction}, {bucket}, {rowId}".format(**key) if key else "-"
        cells = [str(stripe["stripe"]), f"{stripe['rows']:,}", *(str(stripe[name]) for name in sizes)]
        rows.append([*cells, key_text, stripe.get("writerTimezone") or "-"])
    return table_of([*numbers, "last key (transaction, bucket, row id)", "time zone"], rows, right=numbers)


def _columns(columns: list[dict[str, Any]]) -> Any:
    rows = []
    for column in columns:
        statistics = dict(column["statistics"] or {})
        values = statistics.pop("values", None)
        null = {True: "some", False: "none"}.get(statistics.pop("hasNull", None), "-")
        rest = ", ".join(f"{key} {value}" for key, value in statistics.items())
        count = "-" if values is None else f"{values:,}"
        rows.append([str(column["id"]), column["name"] or "(root)", column["type"], count, null, rest])
    return table_of(["id", "column", "type", "values", "nulls", "statistics"], rows, right=("id", "values"))
