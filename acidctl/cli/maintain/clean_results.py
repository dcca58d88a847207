"""What `clean`, `apply` and `restore` say: plans, one result a location, and a summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from acidctl.acid.reasons import Code
from acidctl.cli.output.console import Records, console, human_bytes, human_count, iso_time, note, put_line, warn
from acidctl.cli.output.screen import Column, FittedTable, Row
from acidctl.cli.report.failures import show_failure
from acidctl.errors import AcidctlError, ExitStatus
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.cleaning.apply import Cleaned
    from acidctl.cleaning.plan import CleaningPlan
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.evidence import Evidence
    from acidctl.location.find import Found
    from acidctl.location.snapshot import Snapshot

NAMES_SHOWN = 8
MOST_NOTES = 20
"""Locations of which it is told one by one what there is to say."""

_FAILED_SHOWN = 20
_MOST_GIVEN = 3


class Results:
    """Results of one run, and the worst exit status of all its locations."""

    def __init__(self, output: str, run: RunReport) -> None:
        self.run = run
        self.records = Records(output)
        self.status = 0
        self._output = output
        self._failed: list[str] = []
        self._postponed: list[str] = []

    def failed(self, location: str, error: AcidctlError) -> None:
        """A location that was passed over; `location` is empty for what is none."""
        self.status = max(self.status, error.exit_status)
        self.run.failed(location, error)
        if location:
            self._failed.append(location)
        show_failure(location, error)
        self._put({"location": location, "result": "failed", "error": error.code, "reason": str(error)})

    def skipped(self, found: Found, evidence: Evidence) -> None:
        """A location that is not known to be transactional."""
        self.run.add(found.shown, "skipped", reason=evidence.text)
        self._put({"location": found.shown, "result": "skipped", "code": evidence.code, "reason": evidence.text})

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed so far, nor was left for later."""
        return not (self.status or self._failed or self._postponed)

    def not_begun(self, location: str) -> None:
        """The time was up before its turn."""

        self._postponed.append(location)
        self.run.add(location, "postponed", reason="the time is up")
        if self._output == "table":
            put_line(f"{location}: left for later: the time is up")
        self._put({"location": location, "result": "postponed", "reason": "the time is up"})

    def _put(self, value: dict[str, Any]) -> None:
        self.records.put({"schema_version": 1} | value)

    def _sum_up(self, locations: int, done: str) -> None:
        """What became of all locations together; names those that failed, and those that are left."""
        rests = [("failed", self._failed), ("left for later", self._postponed)]
        rests = [(what, names) for what, names in rests if names]
        note(f"{human_count(locations, 'location')}: {', '.join([done, *(f'{len(n)} {what}' for what, n in rests)])}")
        for what, names in rests:
            warn(f"{what}: {some(names, _FAILED_SHOWN)}")


class Printer(Results):
    """Those of cleanings.

    Args:
        given: the places that were typed; empty where nothing but a file was.
    """

    def __init__(self, output: str, run: RunReport, given: Sequence[str] = ()) -> None:
        super().__init__(output, run)
        self._given = given
        self._planned_count = 0
        self._cleaned = 0
        self._bytes = 0
        self._undo: dict[str, str] = {}

    def plans(self, planned: Iterable[CleaningPlan], *, dry_run: bool) -> list[CleaningPlan]:
        """The plans that remove something, before anything is done; each of all is shown when it is made."""
        plans: list[CleaningPlan] = []
        kept: list[CleaningPlan] = []
        notes: dict[str, None] = {}
        more = 0
        for plan in planned:
            self._planned_count += 1
            if plan.removals:
                plans.append(plan)
            if plan.kept_back or plan.waiting or plan.postponed:
                more += len(kept) == MOST_NOTES
                kept += [plan] * (len(kept) < MOST_NOTES)
            notes |= dict.fromkeys(map(text_of, plan.snapshot.state.notes))
            self._planned(plan, dry_run=dry_run)
            if plan.postponed and not plan.removals:
                self._postponed.append(shown(plan.snapshot))
            if self._output == "table":
                _table(plan)
            elif dry_run or not plan.removals:
                result = "planned" if plan.removals else "postponed" if plan.postponed else "nothing-to-do"
                self._put(record(plan, result))
        for plan in kept:
            _kept_back(plan)
        if more:
            others = human_count(more, "more location keeps", "more locations keep")
            note(f"{others} something back: -o jsonl says of each what and why")
        for text in notes:
            note(text)
        return plans

    def _planned(self, plan: CleaningPlan, *, dry_run: bool) -> None:
        """For the report of the run."""
        self.run.saw(plan.snapshot)
        if not plan.removals:
            self.run.add(shown(plan.snapshot), "postponed" if plan.postponed else "nothing-to-do")
        elif dry_run:
            self.run.add(shown(plan.snapshot), "planned", removals=len(plan.removals))

    def done(self, plan: CleaningPlan, cleaned: Cleaned) -> None:
        """A location's plan was carried out, or as much of it as time allowed."""
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
        run = cleaned.run
        if self._output != "table":
            value = record(plan, result) | {
                "postponed": [*left, *plan.postponed],
                "trashRun": run.id if run else None,
                "hdfsTrash": [plan.snapshot.fs.display(place) for place in cleaned.places],
            }
            self._put(value)
            return
        count = f"{len(cleaned.removed)} of {len(plan.removals)}" if left else f"{len(cleaned.removed)}"
        how = f"moved to the trash as {run.id}" if run else "deleted"
        if cleaned.places:
            how = "moved to the trash of HDFS"
        if not cleaned.removed:
            put_line(f"{location}: left for later")
            return
        put_line(f"{location}: {count} {how}, {human_bytes(cleaned.bytes)}")
        for folder in dict.fromkeys(place.rpartition("/")[0] for place in cleaned.places):
            note(f"moved to {plan.snapshot.fs.display(folder)}: undo by moving back from there")
        if run:
            self._undo[location] = run.id

    def summary(self) -> None:
        """What became of all locations together."""
        if len(self._undo) == 1:
            (location,) = map(shlex.quote, self._undo)
            note(f"undo: acidctl restore {location}   free the space: acidctl purge {location}")
        elif self._undo:
            run_id = next(iter(self._undo.values()))  # of all of them
            places = self._given if 0 < len(self._given) <= _MOST_GIVEN else ("LOCATION...",)
            where = shlex.join(places)
            note(f"undo: acidctl restore --run {run_id} {where}   free the space: acidctl purge {where}")
        if self._planned_count > 1:
            self._sum_up(self._planned_count, f"{self._cleaned} cleaned, {human_bytes(self._bytes)}")

    def exit_status(self, speaks: bool) -> int:
        """With `speaks` there is a status for nothing to do and for what was left for later."""
        if self.status or not speaks:
            return self.status
        if self._postponed:
            return ExitStatus.POSTPONED
        return 0 if self._cleaned else ExitStatus.NOTHING_TO_DO


def shown(snapshot: Snapshot) -> str:
    """The location as a user would type it."""
    return snapshot.fs.display(snapshot.path)


def record(plan: CleaningPlan, result: str) -> dict[str, Any]:
    """The JSON form, schema_version 1."""
    return {
        "schema_version": 1,
        "location": shown(plan.snapshot),
        "result": result,
        "bytes": plan.bytes,
        "files": plan.files,
        "removals": [removal.record for removal in plan.removals],
        "keptBack": [{"name": name, "reason": text_of(why), "code": why.code} for name, why in plan.kept_back],
        "waiting": [
            {
                "name": one.name,
                "since": iso_time(one.since),
                "until": iso_time(one.until),
                "reason": text_of(one.reason),
                "code": one.reason.code,
            }
            for one in plan.waiting
        ],
        "postponed": list(plan.postponed),
    }


def _table(plan: CleaningPlan) -> None:
    location = shown(plan.snapshot)
    if not plan.removals:
        put_line(f"{location}: nothing to clean{' yet' if plan.waiting or plan.postponed else ''}")
        return
    files = human_count(plan.files, "file")
    put_line(f"{location}: {len(plan.removals)} to remove, {files}, {human_bytes(plan.bytes)}")
    rows = tuple(
        Row(
            (removal.name, _state(removal.kind.value, removal.state.value), human_bytes(removal.bytes)),
            text_of(removal.reason),
        )
        for removal in plan.removals
    )
    columns = (Column("name"), Column("state"), Column("size", right=True))
    FittedTable(columns, "reason", rows).print(console())


def _state(kind: str, state: str) -> str:
    return "leftover" if kind == "staging" else state


def _kept_back(plan: CleaningPlan) -> None:
    """What stays, and why: entries of one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    codes: set[Code] = set()
    for name, reason in (*plan.kept_back, *((one.name, one.reason) for one in plan.waiting)):
        by_reason.setdefault(text_of(reason), []).append(name)
        codes |= reason.codes
    for text, names in by_reason.items():
        note(f"{shown(plan.snapshot)}: kept back: {some(names, NAMES_SHOWN)}: {text}")
    if plan.postponed:
        note(f"{shown(plan.snapshot)}: left for later: {some(plan.postponed, NAMES_SHOWN)}: more than --max-bytes")
    if codes & {Code.TRANSACTION_UNKNOWN, Code.INSERT_OVERWRITE_UNKNOWN}:
        note("give Hive's lists, or --assume-committed[=AGE] if all older than AGE (1h) is committed")


def some(names: Sequence[str], most: int) -> str:
    """The first of them, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
