"""Options of commands that go through many locations with nobody watching."""

from __future__ import annotations

import click

from acidctl.cli.options.amounts import DURATION, SIZE
from acidctl.cli.options.shared import together

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), default=4, show_default=True, metavar="N", help="Locations at a time."
)
deadline_option = click.option("--deadline", type=DURATION, metavar="TIME", help="End after this long, e.g. 2h or 30m.")
unattended_options = together(
    click.option("--max-bytes", type=SIZE, metavar="SIZE", help="Remove at most so much; the rest is left for later."),
    deadline_option,
    jobs_option,
)
