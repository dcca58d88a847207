"""`acidctl completion`: Print the completion script of a shell."""

from __future__ import annotations

import click

from acidctl.cli.options import shared


@shared.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
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
