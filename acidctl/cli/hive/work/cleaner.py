"""What `acidctl hive cleaner` does and says: a line for each entry that something becomes of, and a sum."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from acidctl.cleaning.apply import How
from acidctl.cleaning.retention import Policy
from acidctl.cli.hive.work.service_figures import CleanerFigures
from acidctl.cli.hive.work.service_page import serve
from acidctl.cli.hive.work.service_said import ServiceSaid
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.output.console import note, put_line
from acidctl.cli.report.outcomes import show_failure
from acidctl.errors import AcidctlError, ExitStatus, UsageProblem
from acidctl.hive.cleaner import CleanedEntry, Cleaner, CleanerWork
from acidctl.hive.hive import as_hive_names
from acidctl.metastore.client import Metastore
from acidctl.outcome import Result
from acidctl.wording import human_bytes, human_count


def work(
    *,
    names: tuple[str, ...],
    every: float,
    once: bool,
    dry_run: bool,
    yes: bool,
    how: str,
    older_than: float,
    unsafe_retention: bool,
    listen: str | None,
    exclude: tuple[str, ...],
    metastore: Metastore,
    storage: dict[str, str],
    output: str,
) -> int:
    """Clean, once or until it is ended; the exit status, of one look."""
    policy = Policy(older_than)
    if not (dry_run or unsafe_retention):
        policy.require_safe()
    if not (once or dry_run or yes):
        raise UsageProblem("a service asks nobody", "it removes what it finds", "look at `dry_run`, then give `yes`")
    asked = CleanerWork(as_hive_names(names or ("*.*",)), exclude, policy, How(how), storage=storage)
    said = _Said(output)
    if dry_run or not yes:
        _round(metastore, replace(asked, changes_nothing=True), said)
        if dry_run or not said.planned:
            return said.status
        count = human_count(said.planned, "entry", "entries")
        Procedure(yes).confirm(f"{count} would be cleaned", f"Clean {count}?", "nothing was cleaned")
        said = _Said(output)
    if once:
        return _round(metastore, asked, said)
    cleaner = Cleaner(metastore, asked, said.done, said.lost)
    with ExitStack() as stack:
        if listen:
            address = stack.enter_context(serve(listen, CleanerFigures(cleaner.counts)))
            note(f"metrics are at http://{address}/metrics")
        note(f"cleaning what {metastore.shown} has to clean every {every:g} s; end it with Ctrl-C or SIGTERM")
        try:
            cleaner.run(every)
        except KeyboardInterrupt:  # a service is ended so, and that is no failure
            note("told to end: what was begun is finished by the next look")
    return ExitStatus.DONE


def _round(metastore: Metastore, asked: CleanerWork, said: _Said) -> int:
    Cleaner(metastore, asked, said.done, said.lost).once()
    said.end()
    return said.status


class _Said(ServiceSaid):
    """Of each entry a line."""

    @property
    def planned(self) -> int:
        """Entries of which something would be done."""
        return self.counts[Result.PLANNED]

    def done(self, one: CleanedEntry) -> None:
        """One was looked at."""
        if one.error:
            self.status = max(self.status, one.error.exit_status)
        if not self.counted(one):
            return
        if one.error:
            show_failure(f"compaction {one.entry} of {one.location}", one.error)
        else:
            put_line(f"{one.entry}: {one.location}: {one.result.words}{_what(one)}")

    def lost(self, error: AcidctlError) -> None:
        """A whole round failed."""
        self.failed("", error)

    def end(self) -> None:
        """The end of a round."""
        self.sum_up(f"{human_count(self.counts.total(), 'entry', 'entries')} ready for cleaning")


def _what(one: CleanedEntry) -> str:
    removed = (
        human_count(len(one.names), "directory", "directories") + f", {human_bytes(one.bytes)}" if one.names else ""
    )
    marked = "marked as done" if one.marked else f"left to Hive: {one.reason}" if one.reason else ""
    text = ", ".join(filter(None, (removed, marked)))
    return f": {text}" if text else ""
