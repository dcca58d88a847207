"""The rules that a listing shows: on names, ranges, side files and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from acidctl.acid.bucket import MAX_STATEMENT
from acidctl.acid.layout import data_files_of
from acidctl.acid.listing import Entry
from acidctl.acid.names import (
    ACID_PREFIXES,
    MINL,
    NO_STATEMENT,
    AcidDirectory,
    Kind,
    acid_directory,
    is_hidden,
    manifest_for,
)
from acidctl.acid.reasons import Code
from acidctl.acid.state import State, Verdict
from acidctl.acid.triggers import Thresholds, decide, figures_of
from acidctl.acid.unfinished import LayoutProblem, half_finished, layout_problems, spelled_twice
from acidctl.acid.writeids import holes
from acidctl.base.errors import AcidctlError
from acidctl.location.change.publication import half_published
from acidctl.location.snapshot import Snapshot
from acidctl.validation.findings import ERROR, INFO, LISTING, MOST_NAMES, WARNING, Finding, Rule
from acidctl.wording import some_of, text_of

STALE_SECONDS = 24 * 3600
"""A staging directory that did not change for this long does not belong to a writer at work."""


_Check = Callable[["ListingToCheck"], Iterator[Finding]]
_CHECKS: list[_Check] = []


@dataclass(frozen=True)
class ListingToCheck:
    """The input of the listing rules.

    Attributes:
        now: seconds since the epoch.
        bad_metadata: errors of unusable ``_metadata_acid`` files, by their path in the location.
        readers: the readers whose R rules are wanted.
    """

    snapshot: Snapshot
    now: float
    bad_metadata: Mapping[str, AcidctlError] = field(default_factory=dict)
    readers: tuple[str, ...] = ()

    @cached_property
    def children(self) -> Mapping[str, list[Entry]]:
        """Return the files of each child of the location."""
        return self.snapshot.listing.files_by_child

    @cached_property
    def is_full(self) -> bool:
        """Return whether names alone show a full-ACID table."""
        return self.snapshot.listing.is_full_acid

    @cached_property
    def directories(self) -> list[AcidDirectory]:
        """Return every ACID directory whose name can be parsed, whatever its state."""
        return [v.directory for v in self.snapshot.state.verdicts if v.directory]

    @cached_property
    def current(self) -> list[AcidDirectory]:
        """Return the base and the current deltas."""
        state = self.snapshot.state
        return [v.directory for v in (state.base, *state.deltas) if v and v.directory]

    @cached_property
    def compacted(self) -> frozenset[str]:
        """Return the names of the directories that a compaction certainly made."""
        return frozenset(verdict.name for verdict in self.snapshot.state.verdicts if verdict.compacted)

    @cached_property
    def problems(self) -> list[LayoutProblem]:
        """Return the layouts that Hive reads but never writes."""
        return list(layout_problems(self.snapshot.listing, self.snapshot.state))

    def files(self, name: str) -> list[Entry]:
        """Return every file below a child."""
        return self.children.get(name, [])

    def direct(self, name: str) -> set[str]:
        """Return the names of the files directly in a directory."""
        return {entry.path.partition("/")[2] for entry in self.files(name) if entry.path.count("/") == 1}

    def has_data(self, directory: AcidDirectory) -> bool:
        """Return whether a directory has a data file."""
        return bool(data_files_of(directory, self.files(directory.name), self.snapshot.table_type))


def on_listing(check: _Check) -> _Check:
    """Register a function that :func:`check_listing` calls."""
    _CHECKS.append(check)
    return check


def check_listing(listed: ListingToCheck) -> Iterator[Finding]:
    """Yield every finding that names, sizes and times show."""
    for check in _CHECKS:
        yield from check(listed)


# --- names ----------------------------------------------------------------------------------------------------------


V1 = Rule(
    "V1", ERROR, LISTING, "The name of an ACID directory, or of a file of deletes, is not one that Hive gives.",
    "Hive fails on the whole location; Hive 4 applies no delete where the numbers of a delete delta, or of a file in "
    "it, are not padded.",
    "Rename or remove it; nothing that Hive wrote is called so.", "1.1",
)  # fmt: skip
V2 = Rule(
    "V2", ERROR, LISTING, "A delta ends before it begins, or a base has a negative write id.",
    "Readers pass over it or fail; its rows are not seen.",
    "Find out what wrote it, and move it out of the location.", "1.1",
)  # fmt: skip
V3 = Rule(
    "V3", WARNING, LISTING, "A name has a statement id and a visibility id, or a statement id above 4095.",
    "No version of Hive writes such a name; Impala refuses it, and a bucket value has 12 bits for it.",
    "Find out what wrote it.", "1.1",
)  # fmt: skip
V4 = Rule(
    "V4", INFO, LISTING, "The numbers in a name are not padded as Hive pads them.",
    "Readers compare numbers, so it does no harm; other tools may compare text.",
    "Nothing.", "1.1",
)  # fmt: skip
V6 = Rule(
    "V6", WARNING, LISTING, "A delta of several write ids has a statement id.",
    "Only the streaming API of Hive 3 may write that.",
    "Nothing if a streaming client writes to the table.", "1.1",
)  # fmt: skip


@on_listing
def _names(listed: ListingToCheck) -> Iterator[Finding]:
    for verdict in listed.snapshot.state.verdicts:
        if verdict.reason.code is Code.UNPARSEABLE:
            yield _unparseable(verdict)
    for directory in listed.directories:
        name, statement = directory.name, directory.statement_id
        if statement != NO_STATEMENT and directory.visibility_txn:
            yield V3.finding(name, f"statement id {statement} and visibility id {directory.visibility_txn}")
        elif statement > MAX_STATEMENT:
            yield V3.finding(name, f"statement id {statement} is above {MAX_STATEMENT}")
        if name != directory.canonical_name:
            yield V4.finding(name, f"Hive would write {directory.canonical_name}")
        if statement != NO_STATEMENT and directory.min_write_id < directory.max_write_id:
            yield V6.finding(name, f"statement id {statement} on several write ids")


def _unparseable(verdict: Verdict) -> Finding:
    directory = acid_directory(verdict.name)
    if directory is None:
        return V1.finding(verdict.name, text_of(verdict.reason))
    evidence = {"minWriteId": directory.min_write_id, "maxWriteId": directory.max_write_id}
    text = verdict.reason.value("why") or text_of(verdict.reason)
    return V2.finding(verdict.name, text, evidence)


# --- ranges ---------------------------------------------------------------------------------------------------------


V5 = Rule(
    "V5", ERROR, LISTING, "Two directories have the same numbers in a different spelling.",
    "Readers take both: rows appear twice, or in an order that nobody chose.",
    "Keep one of them: compare their rows with `acidctl dump`.", "1.1",
)  # fmt: skip
V7 = Rule(
    "V7", ERROR, LISTING, "Two deltas of one kind overlap, and neither holds the other's range.",
    "Compaction never produces this: rows are read twice, or not at all.",
    "Find out what wrote them; restore the narrower deltas from a copy.", "6.3",
)  # fmt: skip
V9 = Rule(
    "V9", ERROR, LISTING, "A delta begins at or below the base's write id and ends above it.",
    "It is read whole, so rows that the base holds appear twice; Impala refuses it.",
    "Compare its rows up to the base's write id with the base, and move the wrong one away.",
    "6.3",
)  # fmt: skip
V17 = Rule(
    "V17", ERROR, LISTING, "A directory lies inside an ACID directory, as when a rename met an existing one.",
    "Hive 3 does not look into it: its rows are lost. Hive 4 does: copies are read twice, deleted rows may come back.",
    "Run `acidctl repair`; where that refuses, move it to where it belongs by hand.",
)  # fmt: skip
V22 = Rule(
    "V22", ERROR, LISTING, "A directory holds several files for one bucket, or a stray file named like a bucket.",
    "Attempts of one task hold the same rows, which are read twice; Hive fails on stray names.",
    "Keep the attempt that the task's manifest names; move the others away.", "1.4",
)  # fmt: skip


@on_listing
def _layout(listed: ListingToCheck) -> Iterator[Finding]:
    """Report V5, V7, V9, V10, V17, V22: layouts that must not be merged, either."""
    rules = {rule.id: rule for rule in (V5, V7, V9, V10, V22)}
    nested: dict[str, str] = {}
    for problem in listed.problems:
        if problem.rule == "V17":
            nested.setdefault("/".join(problem.path.split("/")[:2]), text_of(problem.reason))
        elif problem.reason.code is Code.UNPADDED_DELETES:
            yield V1.finding(problem.path, text_of(problem.reason))
        elif problem.rule in rules:  # other checks report more about the other rules
            yield rules[problem.rule].finding(problem.path, text_of(problem.reason), {"others": list(problem.others)})
    current = {directory.name for directory in listed.current}
    for entry in listed.snapshot.listing.entries:
        parts = entry.path.split("/")
        if entry.is_dir and len(parts) == 2 and parts[0] in current and parts[1].startswith(ACID_PREFIXES):
            nested.setdefault(entry.path, f"{entry.path} is nested in {parts[0]}")
    for path, text in nested.items():
        yield V17.finding(path, text)
    spelled: dict[str, AcidDirectory] = {}
    for directory in listed.directories:
        other = spelled.setdefault(directory.canonical_name, directory)
        if other is not directory and not {other.name, directory.name} <= current:
            text = text_of(spelled_twice(other, directory))
            yield V5.finding(directory.name, text, {"others": [other.name]})


V8 = Rule(
    "V8", INFO, LISTING, "Write ids are missing between the directories.",
    "Normal: other partitions, aborted and empty transactions use write ids too.",
    "Nothing.",
)  # fmt: skip
V10 = Rule(
    "V10", ERROR, LISTING, "Two visible directories differ in their visibility id only.",
    "Hive before 4.2 reads both deltas and returns rows twice; Hive 4.2, acidctl and Impala read the later one. "
    "Hive may read either of two bases.",
    "Move the one with the lower visibility id out of the location; until then nothing is compacted, and both stay.",
    "6.3",
)  # fmt: skip


@on_listing
def _ranges(listed: ListingToCheck) -> Iterator[Finding]:
    base = listed.snapshot.state.base
    top = base.directory.max_write_id if base and base.directory else MINL
    deltas = [d for d in listed.current if d.kind is not Kind.BASE]
    ranges = sorted([*([(1, top)] if top > 0 else []), *(delta.range for delta in deltas)])
    missing = list(holes(ranges, ranges[0][0], max(high for _, high in ranges))) if ranges else []
    if missing:
        shown = some_of([f"{low}" if low == high else f"{low} to {high}" for low, high in missing], MOST_NAMES)
        evidence = {"ranges": [list(gap) for gap in missing[:MOST_NAMES]], "count": len(missing)}
        yield V8.finding("", f"no directory has write id {shown}", evidence)


V11 = Rule(
    "V11", ERROR, LISTING, "A minor compaction was shown half: a wide delta hides directories of the other kind.",
    "Deleted rows come back, or rows vanish.",
    "If acidctl's own compaction died, run `acidctl compact` again: it finishes it. Otherwise move the lone wide "
    "directory away.", "8.6",
)  # fmt: skip


@on_listing
def _half(listed: ListingToCheck) -> Iterator[Finding]:
    for name, wide in half_finished(listed.snapshot.state).items():
        # Whether rows are wrong depends on their events, which the deepest check compares.
        text = f"only {wide}, which has no twin of this kind, hides it"
        yield V11.finding(name, text, {"others": [wide]}, WARNING)
    for staging, waiting in half_published(listed.snapshot):
        text = f"{some_of(waiting)} is still in {staging}, the rest of the result is shown already"
        yield V11.finding(staging, text, {"others": list(waiting)})


# --- staging, and what is due ---


V16 = Rule(
    "V16", WARNING, LISTING, "A staging directory has been lying around for more than a day.",
    "A writer or a compaction died; it takes space, and readers pass over it.",
    "Remove it when nothing writes to the table.", "8.6",
)  # fmt: skip


@on_listing
def _staging(listed: ListingToCheck) -> Iterator[Finding]:
    newest: dict[str, float] = {}
    for entry in listed.snapshot.listing.entries:
        name = entry.path.partition("/")[0]
        if entry.modified is not None and is_hidden(name):
            newest[name] = max(newest.get(name, entry.modified), entry.modified)
    half = {staging for staging, _ in half_published(listed.snapshot)}
    for name, modified in sorted(newest.items()):
        age = listed.now - modified
        is_scratch = name.startswith(("_tmp", ".hive-staging")) or manifest_for(name)
        if is_scratch and name not in half and age > STALE_SECONDS:
            yield V16.finding(name, f"nothing changed in it for {int(age // 3600)} hours", {"seconds": int(age)})


V19 = Rule(
    "V19", WARNING, LISTING, "There are more deltas, or larger ones, than Hive's thresholds allow.",
    "Reading becomes slow; perhaps Hive's initiator is not running.",
    "Run `acidctl compact`.", "9",
)  # fmt: skip
V20 = Rule(
    "V20", INFO, LISTING, "Obsolete or aborted directories take space.",
    "No reader needs them.",
    "Run `acidctl clean`.", "10",
)  # fmt: skip


@on_listing
def _figures(listed: ListingToCheck) -> Iterator[Finding]:
    state = listed.snapshot.state
    decision = decide(figures_of(listed.snapshot.listing, state), Thresholds())
    if decision.kind and not listed.problems:
        yield V19.finding(
            "", text_of(decision.reason), {"deltas": len(state.deltas), "compaction": decision.kind.value}
        )
    counts: dict[str, int] = {}
    for which in (State.OBSOLETE, State.ABORTED):
        names = {verdict.name for verdict in state.in_state(which)}
        size = sum(entry.size for name in names for entry in listed.files(name))
        counts |= {which.value: len(names), f"{which.value}Bytes": size}
    if counts["obsolete"] or counts["aborted"]:
        text = ", ".join(f"{counts[s]} {s} with {counts[f'{s}Bytes']:,} bytes" for s in ("obsolete", "aborted"))
        yield V20.finding("", text, counts)
