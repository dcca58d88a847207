"""How much is printed: everything, a summary, or failures only."""

from __future__ import annotations

import click
from click.core import ParameterSource


class Verbosity:
    """The effect of `-v` and `-q` on this run.

    Attributes:
        is_verbose: every location and every entry has lines of its own.
        is_quiet: results for people and remarks are not printed; results for programs and errors are.
    """

    def __init__(self) -> None:
        self.is_verbose = self.is_quiet = self._is_typed = False

    def take(self, context: click.Context, param: click.Parameter, is_given: bool) -> None:
        """Take a value as the callback of both options; the command line overrides settings."""
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
        """Reset the state at the beginning of a run."""
        self.is_verbose = self.is_quiet = self._is_typed = False


VERBOSITY = Verbosity()
