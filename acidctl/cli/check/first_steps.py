"""Commands for the first steps with acidctl.

`acidctl demo`: Write a table to try things on.
`acidctl completion`: Print the completion script of a shell.
"""

from __future__ import annotations

import click

from acidctl.base.errors import ConflictError
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY
from acidctl.cli.output.command_lines import line_for


@shared.command("demo")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@shared.storage_options
def demo_command(directory: str, storage: dict[str, str]) -> None:
    """Write a demo table to DIR, which must not exist or be empty.

    It is `crud_table (id INT, value STRING)` as Hive leaves it after inserting three rows, updating one and deleting
    it: two deltas and two delete deltas.
    """
    from acidctl.cli.output.console import note, put_line
    from acidctl.demo.walkthrough import write_walkthrough
    from acidctl.storage.registry import open_location

    fs, path = open_location(directory, storage)
    if fs.exists(path) and fs.list_dir(path).entries:
        raise ConflictError(f"{fs.display(path)} is not empty", "", "give a directory that does not exist yet")
    for written in write_walkthrough(fs, path):
        put_line(fs.display(written))
    note(f"try: {line_for(('ls',), [directory])}")


@shared.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of SHELL, which the shell reads at its start.

    Commands, options and files are completed. Packages install the same scripts.
    """
    from click.shell_completion import get_completion_class

    from acidctl.cli.output.console import out_stream

    made = get_completion_class(shell)
    assert made
    root = click.get_current_context().find_root().command
    script = made(root, {}, "acidctl", "_ACIDCTL_COMPLETE").source()
    out_stream().write(f"{script.rstrip()}\n".encode())
