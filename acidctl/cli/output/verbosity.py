"""How much is told: everything, a summary, or what failed and nothing else."""

from __future__ import annotations

import click
from click.core import ParameterSource


class Verbosity:
    """What `-v` and `-q` of this run said.

    Attributes:
        is_verbose: every location and every entry has lines of its own.
        is_quiet: neither results for people nor remarks are printed; what a program reads is, and so are errors.
    """

    def __init__(self) -> None:
        self.is_verbose = self.is_quiet = self._is_typed = False

    def take(self, context: click.Context, param: click.Parameter, is_given: bool) -> None:
        """A callback of both options; what is typed goes before what is set."""
        if not is_given or context.resilient_parsing:
            return
        is_typed = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if self._is_typed and is_typed:
            raise click.UsageError("-v says more and -q says less: leave one of them out.", context)
        if self._is_typed:
            return
        self._is_typed = is_typed
        self.is_verbose, self.is_quiet = param.name == "verbose", param.name == "quiet"

    def forget(self) -> None:
        """A run begins, which says it anew."""
        self.is_verbose = self.is_quiet = self._is_typed = False


VERBOSITY = Verbosity()
"""One for the process."""
