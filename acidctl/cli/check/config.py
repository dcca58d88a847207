"""`acidctl config`: the settings that count, and where they are from."""

from __future__ import annotations

import click

from acidctl.cli.options import shared


@click.group(
    "config",
    epilog=shared.examples("acidctl config show --origin", "acidctl config path"),
    no_args_is_help=True,
)
def command() -> None:
    """Show the settings of the configuration file and of ACIDCTL_* in the environment.

    Precedence: command line, environment, file, default. The file has a table for each command, [clean] for example,
    whose keys are the command's options. [storage."URL"] holds options for the stores below a URL, and
    [profile.NAME.clean] holds options that --profile NAME puts before the others.
    """


@shared.command(
    "show",
    "acidctl config show --origin",
    "acidctl config show --profile prod -o json",
    "acidctl config show --all",
    group=command,
    short_help="Print every setting that is set, checked.",
)
@click.option("--origin", is_flag=True, help="Say where each is from.")
@click.option("-a", "--all", "with_defaults", is_flag=True, help="Defaults, too.")
@shared.output_option("table", "json", "toml", default="table")
@shared.by_work("show_settings")
def show_command() -> None:
    """Print what files and environment set for each command, after checking all of it. Secrets are shown as ***.

    A variable of the environment because of which a command would refuse to run is told, too.
    """


@shared.command("path", "acidctl config path", group=command, short_help="Print the path of the file.")
@shared.output_option("table", "json", default="table")
@shared.by_work("show_paths")
def path_command() -> None:
    """Print the path of the configuration file, and whether it is used."""
