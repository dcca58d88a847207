"""What `acidctl clean` and `acidctl apply` say: plans, one result a location, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from acidctl.cleaning.apply import Cleaned
    from acidctl.cleaning.plan import CleaningPlan
    from acidctl.cli.run_report import RunReport
    from acidctl.errors import AcidctlError
    from acidctl.storage.snapshot import Snapshot

_NAMES_SHOWN = 8
_FAILED_SHOWN = 20


_MOST_NOTES = 20
"""Locations of which it is told one by one what they keep back."""


class Printer:
    """Results of one run, and the worst exit status of all its locations."""

    def __init__(self, output: str, run: RunReport) -> None:
        self.run = run
        self._output = output
        self.status = 0
        self._failed: list[str] = []
        self._postponed: list[str] = []
        self._cleaned = 0
        self._bytes = 0
        self._undo: list[str] = []

    def plans(self, planned: Iterable[CleaningPlan], *, dry_run: bool) -> list[CleaningPlan]:
        """All plans, before anything is done; each is shown when it is made."""
        from acidctl.cli.output import human_count, note, put_json

        plans = []
        for plan in planned:
            plans.append(plan)
            self._planned(plan, dry_run=dry_run)
            if plan.postponed and not plan.removals:
                self._postponed.append(shown(plan.snapshot))
            if self._output == "table":
                _table(plan)
            elif dry_run or not plan.removals:
                result = "planned" if plan.removals else "postponed" if plan.postponed else "nothing-to-do"
                put_json(record(plan, result), lines=self._output == "jsonl")
        kept = [plan for plan in plans if plan.kept_back or plan.waiting or plan.postponed]
        for plan in kept[:_MOST_NOTES]:
            _kept_back(plan)
        if len(kept) > _MOST_NOTES:
            more = human_count(len(kept) - _MOST_NOTES, "more location keeps", "more locations keep")
            note(f"{more} something back: -o jsonl says of each what and why")
        for text in dict.fromkeys(text for plan in plans for text in plan.snapshot.state.notes):
            if "_v directory" not in text:
                note(text)
        return plans

    def _planned(self, plan: CleaningPlan, *, dry_run: bool) -> None:
        """For the report of the run."""
        self.run.saw(plan.snapshot)
        if not plan.removals:
            self.run.add(shown(plan.snapshot), "postponed" if plan.postponed else "nothing-to-do")
        elif dry_run:
            self.run.add(shown(plan.snapshot), "planned", removals=len(plan.removals))

    def failed(self, location: str, error: AcidctlError) -> None:
        """A location that was passed over; `location` is empty for what is none."""
        from acidctl.cli.failures import show_failure
        from acidctl.cli.output import put_json

        self.status = max(self.status, error.exit_status)
        self.run.failed(location, error)
        if location:
            self._failed.append(location)
        show_failure(location, error)
        if self._output != "table":
            value = {"location": location, "result": "failed", "error": error.code, "reason": str(error)}
            put_json({"schema_version": 1, **value}, lines=self._output == "jsonl")

    def done(self, plan: CleaningPlan, cleaned: Cleaned) -> None:
        """A location's plan was carried out, or as much of it as time allowed."""
        from acidctl.cli.output import human_bytes, note, put_json, safe

        location = shown(plan.snapshot)
        left = [removal.name for removal in plan.removals[len(cleaned.removed) :]]
        if left or plan.postponed:
            self._postponed.append(location)
        if cleaned.removed:
            self._cleaned += 1
            self._bytes += cleaned.bytes
        result = "cleaned" if not left else "stopped" if cleaned.removed else "postponed"
        self.run.add(
            location,
            result,
            is_changed=bool(cleaned.removed),
            removed=cleaned.bytes,
            removals=len(cleaned.removed),
            left=len(left) + len(plan.postponed),
        )
        run = cleaned.run if cleaned.removed else None
        if self._output != "table":
            value = record(plan, result) | {
                "postponed": [*left, *plan.postponed],
                "trashRun": run.id if run else None,
                "hdfsTrash": [plan.snapshot.fs.display(place) for place in cleaned.places],
            }
            put_json(value, lines=self._output == "jsonl")
            return
        count = f"{len(cleaned.removed)} of {len(plan.removals)}" if left else f"{len(cleaned.removed)}"
        how = f"moved to the trash as {run.id}" if run else "deleted"
        if cleaned.places:
            how = "moved to the trash of HDFS"
        if not cleaned.removed:
            click.echo(f"{safe(location)}: left for later")
            return
        click.echo(f"{safe(location)}: {count} {how}, {human_bytes(cleaned.bytes)}")
        for folder in dict.fromkeys(place.rpartition("/")[0] for place in cleaned.places):
            note(f"moved to {plan.snapshot.fs.display(folder)}: undo by moving back from there")
        if run:
            self._undo.append(location)

    def not_begun(self, location: str) -> None:
        """The time was up before its turn."""
        from acidctl.cli.output import put_json, safe

        self._postponed.append(location)
        self.run.add(location, "postponed", reason="the time is up")
        if self._output == "table":
            click.echo(f"{safe(location)}: left for later: the time is up")
        else:
            value = {"schema_version": 1, "location": location, "result": "postponed", "reason": "the time is up"}
            put_json(value, lines=self._output == "jsonl")

    def summary(self, locations: int) -> None:
        """What became of all locations together; names those that failed, and those that are left."""
        from acidctl.cli.output import human_bytes, human_count, note, warn

        if self._undo:
            more = f" (and {len(self._undo) - 1} more)" if len(self._undo) > 1 else ""
            first = self._undo[0]
            note(f"undo: acidctl restore {first}{more}   free the space: acidctl purge {first}{more}")
        if locations > 1:
            parts = [f"{self._cleaned} cleaned, {human_bytes(self._bytes)}"]
            parts += [f"{len(names)} {what}" for what, names in self._rests() if names]
            note(f"{human_count(locations, 'location')}: {', '.join(parts)}")
            for what, names in self._rests():
                if names:
                    warn(f"{what}: {_some(names, _FAILED_SHOWN)}")

    def exit_status(self, speaks: bool) -> int:
        """With `speaks` there is a status for nothing to do and for what was left for later."""
        from acidctl.errors import NothingToDo, Postponed

        if self.status or not speaks:
            return self.status
        if self._postponed:
            return Postponed.exit_status
        return 0 if self._cleaned else NothingToDo.exit_status

    def _rests(self) -> tuple[tuple[str, list[str]], ...]:
        return ("failed", self._failed), ("left for later", self._postponed)


def shown(snapshot: Snapshot) -> str:
    """The location as a user would type it."""
    return snapshot.fs.display(snapshot.path)


def record(plan: CleaningPlan, result: str) -> dict[str, Any]:
    """The JSON form, schema_version 1."""
    from acidctl.cli.output import iso_time

    return {
        "schema_version": 1,
        "location": shown(plan.snapshot),
        "result": result,
        "bytes": plan.bytes,
        "files": plan.files,
        "removals": [removal.record for removal in plan.removals],
        "keptBack": [{"name": name, "reason": reason} for name, reason in plan.kept_back],
        "waiting": [
            {"name": w.name, "since": iso_time(w.since), "until": iso_time(w.until), "reason": w.reason}
            for w in plan.waiting
        ],
        "postponed": list(plan.postponed),
    }


def _table(plan: CleaningPlan) -> None:
    from acidctl.cli.output import console, human_bytes, human_count, safe
    from acidctl.cli.screen import Column, FittedTable, Row

    location = safe(shown(plan.snapshot))
    if not plan.removals:
        click.echo(f"{location}: nothing to clean{' yet' if plan.waiting or plan.postponed else ''}")
        return
    files = human_count(plan.files, "file")
    click.echo(f"{location}: {len(plan.removals)} to remove, {files}, {human_bytes(plan.bytes)}")
    rows = tuple(
        Row(
            (removal.name, _state(removal.kind.value, removal.state.value), human_bytes(removal.bytes)),
            removal.reason.text,
        )
        for removal in plan.removals
    )
    columns = (Column("name"), Column("state"), Column("size", right=True))
    FittedTable(columns, "reason", rows).print(console())


def _state(kind: str, state: str) -> str:
    return "leftover" if kind == "staging" else state


def _kept_back(plan: CleaningPlan) -> None:
    """What stays, and why: entries of one reason in one line."""
    from acidctl.cli.output import note

    by_reason: dict[str, list[str]] = {}
    for name, reason in (*plan.kept_back, *((w.name, w.reason) for w in plan.waiting)):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        note(f"{shown(plan.snapshot)}: kept back: {_some(names, _NAMES_SHOWN)}: {reason}")
    if plan.postponed:
        note(f"{shown(plan.snapshot)}: left for later: {_some(plan.postponed, _NAMES_SHOWN)}: more than --max-bytes")
    if any("is committed is not known" in reason for reason in by_reason):
        note("give --valid-txns, or --assume-committed when no compaction is at work")


def _some(names: Sequence[str], most: int) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
