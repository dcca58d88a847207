"""Declare the commands that change the rows of one table."""

from __future__ import annotations

from functools import partial

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import verb_command

statement_command = partial(
    verb_command, place=shared.one_place("TABLE"), source=shared.table_options, changes=True, asks=True
)
"""As :func:`~acidctl.cli.options.verb_command.verb_command`, with TABLE, the options of a metastore, and ``--yes``."""
