"""The plan of a rescue, a value: which ids count as committed, which as aborted, what is taken aside, what is added."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from acidctl.acid.names import Kind
from acidctl.acid.writeids import joined_ranges
from acidctl.base.errors import ExitStatus, RefusedError, UsageProblem
from acidctl.outcome import Details, Outcome, Remark, Result
from acidctl.rescue.findings import Disagreement, Finding, Folder, Look
from acidctl.rescue.look import Place
from acidctl.wording import human_count, some_of

_IDS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_MOST_IDS = 1_000_000
"""Write ids in a range that is typed, or that one rescue gives: each takes a call."""

_MOST_TXNS = 10**12
"""Transactions that are used up at most: no cluster had as many, and the sequence can never be lowered."""

_OF_WRITE_IDS = {Disagreement.OLDER_METASTORE, Disagreement.RECREATED_TABLE, Disagreement.OTHER_CLUSTER}
_MENDED = {*_OF_WRITE_IDS, Disagreement.FUTURE_TRANSACTION, Disagreement.LOST_PARTITION}


@dataclass(frozen=True, slots=True)
class Wishes:
    """Hold the decisions of a human about the ids of one table, which no file records.

    Attributes:
        aborted: write ids whose transactions were aborted: their rows are never read.
        aside_ids: write ids whose directories are taken aside.
        aside_names: directories that are taken aside, as the plan names them.
    """

    aborted: frozenset[int] = frozenset()
    aside_ids: frozenset[int] = frozenset()
    aside_names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, aborted: str, aside: str) -> Wishes:
        """Parse ``4,9-12`` and, for what is taken aside, names of directories as well.

        Raises:
            UsageProblem: a part is neither an id nor a range of ids.
        """
        parts = [part.strip() for part in aside.split(",") if part.strip()]
        names = frozenset(part for part in parts if not _IDS.fullmatch(part))
        if wrong := next((name for name in names if "_" not in name), ""):
            raise UsageProblem(
                f"--aside cannot be {wrong!r}", "it is neither a write id nor a directory", "give 4,9-12"
            )
        return cls(
            parse_ids(aborted, "--aborted"),
            parse_ids(",".join(part for part in parts if part not in names), "--aside"),
            names,
        )


def parse_ids(text: str, option: str) -> frozenset[int]:
    """Parse ``4,9-12``.

    Raises:
        UsageProblem: it is something else.
    """
    ids: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _IDS.fullmatch(part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 0 < low <= high or high - low >= _MOST_IDS:
            raise UsageProblem(f"{option} cannot be {part!r}", "it is neither an id nor a range of ids", "give 4,9-12")
        ids.update(range(low, high + 1))
    return frozenset(ids)


@dataclass(frozen=True, kw_only=True)
class RescuePlan(Outcome):
    """Hold the disagreements of a table with its metastore, and the steps that mend them.

    Attributes:
        raise_to: the write id up to which the metastore has to give ids; 0 if it gave enough.
        sequence: the transaction id up to which transactions have to be given; 0 if enough were.
        aborted: the ids, of those to be given, that a human calls aborted.
        aside: the directories that are taken aside, relative to the table.
        partitions: the folders of the partitions that are added.
        findings: what disagrees; of a table that was mended, what is left.
        rows: the rows in the directories that will count, where footers say so.
        only_looked: nothing is carried out after this.
    """

    place: Place
    look: Look
    wishes: Wishes
    findings: tuple[Finding, ...]
    raise_to: int = 0
    sequence: int = 0
    aborted: tuple[int, ...] = ()
    aside: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    rows: Mapping[str, int | None] = field(default_factory=dict)
    only_looked: bool = False

    @property
    def given(self) -> int:
        """The highest write id that the metastore ever gave."""
        return self.look.answers.given

    @property
    def has_work(self) -> bool:
        """Whether the plan changes anything."""
        return bool(self.raise_to or self.sequence or self.aside or self.partitions)

    @property
    def exit_status(self) -> int:
        """14 if something disagrees and nothing more is done about it."""
        is_found = any(not finding.kind.is_hint for finding in self.findings)
        is_left = self.only_looked or self.result in (Result.FINDINGS, Result.REPAIRED)
        return ExitStatus.FINDINGS if is_found and is_left else super().exit_status

    @cached_property
    def committed(self) -> tuple[tuple[int, int], ...]:
        """Return the ranges of ids that will count as committed, both ends included."""
        low = self.look.answers.write_ids.open[:1] if self.look.answers.unfinished else ()
        start, ranges = min([self.given + 1, *low]), []
        for end in (*self.aborted, self.raise_to + 1):
            if start < end:
                ranges.append((start, end - 1))
            start = max(start, end + 1)
        return tuple(ranges)

    @property
    def digest(self) -> str:
        """A digest of what is done and of the names on which that rests."""
        names = sorted(folder.path(d.name) for folder in self.look.folders for d in folder.directories)
        return hashlib.sha256(json.dumps([self.steps, names], sort_keys=True).encode()).hexdigest()[:32]

    @property
    def steps(self) -> dict[str, Any]:
        """The steps for JSON."""
        return {
            "given": self.given,
            "raiseTo": self.raise_to or None,
            "aborted": list(self.aborted),
            "sequence": self.sequence or None,
            "aside": list(self.aside),
            "partitions": list(self.partitions),
        }

    def line(self) -> str:
        """Return the result for people."""
        if self.result is Result.NOTHING_FOUND:
            return f"{self.location}: nothing found"
        if self.result is Result.REPAIRED:
            return f"{self.location}: repaired: {'; '.join(step for step, _ in self._sentences())}"
        count = human_count(len(self.findings), "disagreement")
        return f"{self.location}: {count}{'' if self.has_work else ', nothing that a rescue can mend'}"

    def details(self, *, every: bool) -> Details | None:  # noqa: ARG002 - it is the same
        """Return the findings, then the steps."""
        if not self.findings and self.result is not Result.PLANNED:
            return None
        found = [("found", finding.kind.value, f"{finding.why}; {finding.advice}") for finding in self.findings]
        steps = [("plan", step, text) for step, text in self._sentences() if self.result is Result.PLANNED]
        return Details(("", "what", "why"), tuple(found + steps))

    def _sentences(self) -> Iterable[tuple[str, str]]:
        if self.aside:
            yield f"take aside {some_of(self.aside)}", "`acidctl restore` brings it back until it is purged"
        if self.sequence:
            yield f"transactions up to {self.sequence}", "they count as committed"
        for low, high in self.committed:
            what = f"write id {low}" if low == high else f"write ids {low}-{high}"
            yield f"{what} committed", self._counted(low, high)
        if self.aborted:
            ids = ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in _runs(self.aborted))
            what = "write id" if len(self.aborted) == 1 else "write ids"
            yield f"{what} {ids} aborted", "their rows are never read, and Hive's cleaner removes them in time"
        if self.partitions:
            yield f"add {human_count(len(self.partitions), 'partition')}", some_of(self.partitions)

    def _counted(self, low: int, high: int) -> str:
        """Say what becomes visible by a range of ids."""
        every = "it will count" if low == high else f"all of {low}-{high} will count"
        texts = []
        for folder in self.look.folders:
            for directory in folder.directories:
                path = folder.path(directory.name)
                if path in self.aside or not low <= directory.max_write_id <= high:
                    continue
                rows = self.rows.get(path)
                what = "delete" if directory.kind is Kind.DELETE_DELTA else "row"
                texts.append(f"{path} ({'rows unknown' if rows is None else human_count(rows, what)})")
        return f"{every} as committed: {some_of(texts, 8) or 'no directory'}"

    def remarks(self) -> Iterable[Remark]:
        """Say what only a human can know."""
        if self.result is Result.PLANNED and self.raise_to and not self.aborted:
            text = (
                "which transactions were aborted is on no disk: name their write ids by --aborted, or --aside in doubt"
            )
            yield Remark(text, is_warning=True)
        if self.result is Result.PLANNED and self.sequence:
            yield Remark("a compaction that failed left a name that looks the same: take it --aside if you know of one")

    def facts(self) -> dict[str, Any]:
        """Return the findings and the steps for JSON."""
        numbers = {"given": self.given, "sequence": self.look.answers.sequence, "highest": self.look.highest}
        return {
            "disagreements": [
                {"kind": f.kind.value, **numbers, "directories": list(f.directories), "why": f.why, "advice": f.advice}
                for f in self.findings
            ],
            "steps": self.steps,
        }


def plan_rescue(place: Place, look: Look, wishes: Wishes) -> RescuePlan:
    """Return the plan of a table.

    Raises:
        RefusedError: a name holds an id that is too far above those that were given.
        UsageProblem: an id of the wishes cannot be aborted, or taken aside alone.
    """
    kinds = {finding.kind for finding in look.findings}
    raise_to = look.highest if kinds & _OF_WRITE_IDS else 0
    sequence = look.highest_txn if Disagreement.FUTURE_TRANSACTION in kinds else 0
    _require_bounded(look, raise_to, sequence)
    aside = tuple(path for folder in look.folders for path in _aside(folder, wishes))
    _require_known(look, wishes, aside, raise_to)
    committed_before = tuple(
        folder.path(d.name)
        for folder in look.folders
        for d in folder.directories
        if folder.path(d.name) in aside and d.max_write_id <= look.answers.given and not d.visibility_txn
    )
    findings = look.findings
    if committed_before:
        why = f"the metastore has their ids as committed: {some_of(committed_before)}"
        findings = (*findings, Finding(Disagreement.FORGOTTEN_ABORT, committed_before, why))
    lost = next((f.directories for f in findings if f.kind is Disagreement.LOST_PARTITION), ())
    known = look.answers.write_ids
    plan = RescuePlan(
        location=place.name,
        result=Result.NOTHING_FOUND,
        place=place,
        look=look,
        wishes=wishes,
        findings=findings,
        raise_to=raise_to,
        sequence=sequence,
        aborted=tuple(sorted(id_ for id_ in wishes.aborted if id_ <= raise_to and not known.is_aborted(id_))),
        aside=aside,
        partitions=tuple(folder.name for folder in look.lost_partitions() if folder.name in lost),
    )
    if plan.has_work or findings:
        object.__setattr__(plan, "result", Result.PLANNED if plan.has_work else Result.FINDINGS)
    return plan


def _aside(folder: Folder, wishes: Wishes) -> Iterable[str]:
    for directory in folder.directories:
        path = folder.path(directory.name)
        low, high = directory.range
        # A damaged name may hold no id, or more than anybody can type.
        is_range = directory.kind is not Kind.BASE and low <= high < low + _MOST_IDS
        is_of_ids = is_range and wishes.aside_ids.issuperset(range(low, high + 1))
        if path in wishes.aside_names or is_of_ids:
            yield path


def _require_bounded(look: Look, raise_to: int, sequence: int) -> None:
    """Refuse numbers that no metastore gave: names are untrusted, and what was given is never taken back."""
    given, most = look.answers.given, look.answers.sequence + _MOST_TXNS
    named = [(folder.path(d.name), d) for folder in look.folders for d in folder.directories]
    if raise_to - given > _MOST_IDS:
        path = next(path for path, d in named if d.max_write_id == raise_to)
        what = f"{path} is {human_count(raise_to - given, 'write id')} above those that were given"
        why = f"each takes a call, and a rescue gives {_MOST_IDS} at most"
    elif sequence > most:
        path = next(path for path, d in named if d.visibility_txn == sequence)
        what = f"{path} holds a transaction that no metastore can have opened"
        why = f"the newest is {look.answers.sequence}, and the sequence can never be lowered"
    else:
        return
    hint = "let nobody write; if the name is damaged, move the directory out of the table, and look again"
    raise RefusedError(what, why, hint)


def _require_known(look: Look, wishes: Wishes, aside: Sequence[str], raise_to: int) -> None:
    ids, unfinished = look.answers.write_ids, look.answers.unfinished
    for id_ in sorted(wishes.aborted):
        is_left = bool(unfinished) and not ids.is_valid(id_)
        if look.answers.given < id_ <= raise_to or is_left or ids.is_aborted(id_):
            continue
        if id_ <= look.answers.given:
            why, hint = "the metastore gave it, and counts it as committed", f"take its rows aside: --aside {id_}"
            raise UsageProblem(f"write id {id_} cannot be aborted any more", why, hint)
        raise UsageProblem(f"write id {id_} cannot be aborted", f"the files go up to {look.highest}", "leave it out")
    for id_ in sorted(wishes.aside_ids):
        holders = [
            folder.path(d.name)
            for folder in look.folders
            for d in folder.directories
            if (d.kind is Kind.BASE or d.min_write_id <= id_) and id_ <= d.max_write_id
            # A base of a compaction that failed is not read.
            if d.kind is not Kind.BASE or not d.visibility_txn or look.answers.txns.is_valid(d.visibility_txn)
        ]
        if alone := [path for path in holders if path not in aside]:
            why, hint = f"{alone[0]} may hold its rows, beside others", "name directories, or all ids of a delta"
            raise UsageProblem(f"write id {id_} cannot be taken aside alone", why, hint)
    if missing := sorted(wishes.aside_names.difference(aside)):
        raise UsageProblem(f"the table has no directory {missing[0]}", "", "give it as the plan names it")


def _runs(ids: Sequence[int]) -> list[tuple[int, int]]:
    return joined_ranges((id_, id_) for id_ in ids)
