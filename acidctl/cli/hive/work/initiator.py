"""What `acidctl hive initiator` does and says: a line for each location that something is asked for in, and a sum."""

from __future__ import annotations

from contextlib import ExitStack

from acidctl.cli.hive.work.service_figures import InitiatorFigures
from acidctl.cli.hive.work.service_page import serve
from acidctl.cli.hive.work.service_said import ServiceSaid
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import note, put_line
from acidctl.errors import ConflictError, ExitStatus
from acidctl.hive.hive import as_hive_names
from acidctl.hive.initiator import Initiated, Initiation, Initiator
from acidctl.metastore.client import Metastore
from acidctl.outcome import Result
from acidctl.wording import human_count

_QUIET = (Result.NOTHING_TO_DO, Result.SKIPPED)
"""Most locations of a warehouse: people are told their number only."""


def work(
    *,
    names: tuple[str, ...],
    every: float,
    once: bool,
    standby: bool,
    most: int | None,
    pool: str | None,
    listen: str | None,
    dry_run: bool,
    exclude: tuple[str, ...],
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Look, once or until it is ended; the exit status, of one look."""
    if once or dry_run:  # one look waits for nobody
        refuse_unused("--once" if once else "--dry-run", "standby")
    said = _Said(output)
    asked = Initiation(
        as_hive_names(names or ("*.*",)), exclude, pool or "", most, changes_nothing=dry_run, storage=storage
    )
    initiator = Initiator(metastore, asked, said.done, said.failed)
    with ExitStack() as stack:
        if listen:
            address = stack.enter_context(serve(listen, InitiatorFigures(initiator.counts)))
            note(f"metrics are at http://{address}/metrics")
        if once or dry_run:
            initiator.once()
            said.end()
            return said.status
        note(f"looking over {metastore.shown} every {every:g} s; end it with Ctrl-C or SIGTERM")
        try:
            initiator.run(every, said.waits if standby else None)
        except KeyboardInterrupt:  # a service is ended so, and that is no failure
            note("told to end: its lock is given back")
    return ExitStatus.DONE


class _Said(ServiceSaid):
    """Of each location that something is asked for in, or would be, a line."""

    def done(self, one: Initiated) -> None:
        """One was looked at."""
        if self.counted(one) and one.result not in _QUIET:
            kind = one.kind.value if one.kind else ""
            entry = f" as {one.entry}" if one.entry else ""
            put_line(f"{one.location}: {kind} {one.result.words}{entry}: {one.reason}")

    def waits(self, error: ConflictError) -> None:
        """Another one is at work."""
        note(f"in standby: {error.what}: {error.why}")

    def end(self) -> None:
        """The end of a round."""
        self.sum_up(f"{human_count(self.counts.total(), 'location')} looked at")
