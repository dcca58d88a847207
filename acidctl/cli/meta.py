"""`acidctl meta`: what an ORC file's tail says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options import examples, output_option, storage_options

if TYPE_CHECKING:
    from rich.console import Console


@click.command(
    "meta",
    epilog=examples(
        "acidctl meta base_0000003/bucket_00000",
        "acidctl meta -o json delta_*/bucket_* | jq '.acid.stats'",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(paths: tuple[str, ...], storage: dict[str, str], output: str) -> None:
    """Show the tail of ORC files: types, stripes with the key index, statistics, compression, writer, hive.acid.*."""
    from acidctl.cli.output import put_json
    from acidctl.orc.meta import describe
    from acidctl.orc.source import ByteSource
    from acidctl.orc.tail import read_tail
    from acidctl.storage.registry import open_location

    for place, path in enumerate(paths):
        fs, inner = open_location(path, storage)
        source = ByteSource(fs, inner)
        description = {"path": fs.display(inner), **describe(read_tail(source), source)}
        if output == "table":
            if place:
                click.echo()
            _print(description)
        else:
            put_json(description, lines=output == "jsonl")
