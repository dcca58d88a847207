"""The rules that a listing shows: on names, ranges, side files and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from acidctl.acid.bucket import MAX_STATEMENT
from acidctl.acid.layout import Role, data_files_of, is_full_acid, passed_over
from acidctl.acid.listing import Entry
from acidctl.acid.names import (
    ACID_PREFIXES,
    FLUSH_LENGTH_SUFFIX,
    METADATA_ACID,
    MINL,
    NO_STATEMENT,
    ORC_ACID_VERSION,
    AcidDirectory,
    BucketFile,
    Kind,
    OriginalFile,
    acid_directory,
    is_hidden,
    is_visible_path,
    manifest_for,
    parse_file,
)
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind, State, Verdict
from acidctl.acid.triggers import Thresholds, decide, figures_of
from acidctl.acid.unfinished import half_finished, layout_problems, spelled_twice
from acidctl.acid.writeids import holes
from acidctl.base.errors import AcidctlError
from acidctl.location.change.publication import half_published
from acidctl.location.snapshot import Snapshot
from acidctl.validation.findings import ERROR, INFO, LISTING, WARNING, Finding, Rule
from acidctl.wording import some_of, text_of

STALE_SECONDS = 24 * 3600
"""A staging directory that did not change for this long does not belong to a writer at work."""
_MOST_NAMES = 10
"""The most names in one finding."""


_Check = Callable[["ListingToCheck"], Iterator[Finding]]
_CHECKS: list[_Check] = []


@dataclass(frozen=True)
class ListingToCheck:
    """The input of the listing rules.

    Attributes:
        now: seconds since the epoch.
        thresholds: of rule V19.
        bad_metadata: errors of unusable ``_metadata_acid`` files, by their path in the location.
    """

    snapshot: Snapshot
    now: float
    thresholds: Thresholds = field(default_factory=Thresholds)
    bad_metadata: Mapping[str, AcidctlError] = field(default_factory=dict)

    @cached_property
    def children(self) -> Mapping[str, list[Entry]]:
        """Return the files of each child of the location."""
        return self.snapshot.listing.files_by_child

    @cached_property
    def is_full(self) -> bool:
        """Return whether names alone show a full-ACID table."""
        return is_full_acid(self.snapshot.listing)

    @cached_property
    def directories(self) -> list[AcidDirectory]:
        """Return every ACID directory whose name can be parsed, whatever its state."""
        return [v.directory for v in self.snapshot.state.verdicts if v.directory]

    @cached_property
    def current(self) -> list[AcidDirectory]:
        """Return the base and the current deltas."""
        state = self.snapshot.state
        return [v.directory for v in (state.base, *state.deltas) if v and v.directory]

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


def check_listing(look: ListingToCheck) -> Iterator[Finding]:
    """Yield every finding that names, sizes and times show."""
    for check in _CHECKS:
        yield from check(look)


# --- names ----------------------------------------------------------------------------------------------------------


V1 = Rule(
    "V1", ERROR, LISTING, "A directory has the prefix of an ACID directory, but the rest is not a name of Hive's.",
    "Hive fails on the whole location; Hive 4 applies no delete of a delete delta whose numbers are not padded.",
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
def _names(look: ListingToCheck) -> Iterator[Finding]:
    for verdict in look.snapshot.state.verdicts:
        if verdict.reason.code is Code.UNPARSEABLE:
            yield _unparseable(verdict)
    for directory in look.directories:
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
def _layout(look: ListingToCheck) -> Iterator[Finding]:
    """Report V5, V7, V9, V10, V17, V22: layouts that must not be merged, either."""
    rules = {rule.id: rule for rule in (V5, V7, V9, V10, V22)}
    nested: dict[str, str] = {}
    for problem in layout_problems(look.snapshot.listing, look.snapshot.state):
        if problem.rule == "V17":
            nested.setdefault("/".join(problem.path.split("/")[:2]), text_of(problem.reason))
        elif problem.reason.code in (Code.PARTITION_BESIDE, Code.UNPADDED_DELETES):
            yield (V45 if problem.rule == V45.id else V1).finding(problem.path, text_of(problem.reason))
        elif problem.rule in rules:  # other checks report more about the other rules
            yield rules[problem.rule].finding(problem.path, text_of(problem.reason), {"others": list(problem.others)})
    current = {directory.name for directory in look.current}
    for entry in look.snapshot.listing.entries:
        parts = entry.path.split("/")
        if entry.is_dir and len(parts) == 2 and parts[0] in current and parts[1].startswith(ACID_PREFIXES):
            nested.setdefault(entry.path, f"{entry.path} is nested in {parts[0]}")
    for path, text in nested.items():
        yield V17.finding(path, text)
    spelled: dict[str, AcidDirectory] = {}
    for directory in look.directories:
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
    "Hive before 4.2 reads both and returns every row twice; Hive 4.2, acidctl and Impala read the later one.",
    "Move the one with the lower visibility id out of the location; nothing is compacted before that.", "6.3",
)  # fmt: skip


@on_listing
def _ranges(look: ListingToCheck) -> Iterator[Finding]:
    base = look.snapshot.state.base
    top = base.directory.max_write_id if base and base.directory else MINL
    deltas = [d for d in look.current if d.kind is not Kind.BASE]
    ranges = sorted([*([(1, top)] if top > 0 else []), *(delta.range for delta in deltas)])
    missing = list(holes(ranges, ranges[0][0], max(high for _, high in ranges))) if ranges else []
    if missing:
        shown = some_of([f"{low}" if low == high else f"{low} to {high}" for low, high in missing], _MOST_NAMES)
        evidence = {"ranges": [list(gap) for gap in missing[:_MOST_NAMES]], "count": len(missing)}
        yield V8.finding("", f"no directory has write id {shown}", evidence)


V11 = Rule(
    "V11", ERROR, LISTING, "A minor compaction was shown half: a wide delta hides directories of the other kind.",
    "Deleted rows come back, or rows vanish.",
    "If acidctl's own compaction died, run `acidctl compact` again: it finishes it. Otherwise move the lone wide "
    "directory away.", "8.6",
)  # fmt: skip


@on_listing
def _half(look: ListingToCheck) -> Iterator[Finding]:
    for name, wide in half_finished(look.snapshot.state).items():
        # Whether rows are wrong depends on their events, which the deepest check compares.
        text = f"only {wide}, which has no twin of this kind, hides it"
        yield V11.finding(name, text, {"others": [wide]}, WARNING)
    for staging, waiting in half_published(look.snapshot):
        text = f"{some_of(waiting)} is still in {staging}, the rest of the result is shown already"
        yield V11.finding(staging, text, {"others": list(waiting)})


# --- small files ----------------------------------------------------------------------------------------------------


V13 = Rule(
    "V13", ERROR, LISTING, "The marker _orc_acid_version is missing, is not a known version, or differs.",
    "Trino refuses deltas without it where their files do not say it either; before 356 it refuses all.",
    "Run `acidctl repair`, which writes the marker if all files are certainly of version 2.", "3.3",
)  # fmt: skip


@on_listing
def _markers(look: ListingToCheck) -> Iterator[Finding]:
    marked = {d.name for d in look.current if ORC_ACID_VERSION in look.direct(d.name)}
    for directory in look.current:
        name = directory.name
        empty = [e for e in look.files(name) if e.path == f"{name}/{ORC_ACID_VERSION}" and not e.size]
        if empty:
            yield V13.finding(f"{name}/{ORC_ACID_VERSION}", "it is empty")
        native = any(isinstance(parse_file(file), BucketFile) for file in look.direct(name))
        if native and name not in marked and (marked or directory.visibility_txn):
            others = f"{len(marked)} other directories have it" if marked else "Hive 4 wrote this directory"
            yield V13.finding(name, f"it has no {ORC_ACID_VERSION}; {others}", severity=WARNING)


V14 = Rule(
    "V14", ERROR, LISTING,
    "A _metadata_acid cannot be used, lies in a delta, or says `truncated` or `dropped` beside data.",
    "It decides whether a base is a compaction; Hive refuses to read on.",
    "Restore it, or remove it where it lies in a delta.", "1.4",
)  # fmt: skip


@on_listing
def _metadata(look: ListingToCheck) -> Iterator[Finding]:
    for path, error in look.bad_metadata.items():
        yield V14.finding(path, error.why or error.what)
    formats = look.snapshot.base_formats
    for directory in look.directories:
        name = directory.name
        if directory.kind is not Kind.BASE and METADATA_ACID in look.direct(name):
            yield V14.finding(f"{name}/{METADATA_ACID}", "it belongs in a base only", severity=WARNING)
        form = formats.get(name)
        if form and form.is_empty and look.has_data(directory):
            yield V14.finding(name, f"it is marked {form}, but holds data files")


V15 = Rule(
    "V15", WARNING, LISTING, "A base or delta holds no data file.",
    "With its metadata file it is a compaction or an overwrite by nothing; without, a writer may have died.",
    "If no writer is at work, look at what should be in it.",
)  # fmt: skip


@on_listing
def _empty(look: ListingToCheck) -> Iterator[Finding]:
    for directory in look.current:
        if look.has_data(directory):
            continue
        metadata = sorted(look.direct(directory.name) & {METADATA_ACID, ORC_ACID_VERSION})
        if metadata:
            yield V15.finding(directory.name, f"no data, but {' and '.join(metadata)}", severity=INFO)
        else:
            yield V15.finding(directory.name, "neither data nor a metadata file")


V36 = Rule(
    "V36", ERROR, LISTING, "A _flush_length file is damaged, lies where none belongs, or says more than there is.",
    "Streaming writers record there how much of a file counts; too much means that rows are lost.",
    "If no writer is at work, run `acidctl repair`.", "12",
)  # fmt: skip


@on_listing
def _flush_lengths(look: ListingToCheck) -> Iterator[Finding]:
    for directory in look.current:
        files = {entry.path: entry for entry in look.files(directory.name) if is_visible_path(entry.path)}
        streams = directory.kind is Kind.DELTA and not directory.visibility_txn
        for path, entry in files.items():
            if not path.endswith(FLUSH_LENGTH_SUFFIX):
                continue
            if not streams or directory.min_write_id == directory.max_write_id:
                text = "no streaming writer makes one here: readers do not look at it"
                yield V36.finding(path, text, severity=WARNING)
            elif path.removesuffix(FLUSH_LENGTH_SUFFIX) not in files:
                yield V36.finding(path, "its data file is missing", severity=WARNING)
            elif not entry.size:
                yield V36.finding(path, "it is empty: Hive refuses to read the data file", {"bytes": 0})
            elif entry.size % 8:
                text = f"its {entry.size} bytes are not a whole number of lengths: the last was torn"
                yield V36.finding(path, text, {"bytes": entry.size}, WARNING)


# --- data files, originals, staging ---------------------------------------------------------------------------------


V24 = Rule(
    "V24", ERROR, LISTING, "A data file cannot be read: it is damaged, not an ORC file, or crashes the reader.",
    "Queries fail on it, and its rows are lost.",
    "Restore it from a copy; `acidctl dump` shows what can still be read.",
)  # fmt: skip
V25 = Rule(
    "V25", ERROR, LISTING, "A file lacks the ACID columns where it must have them, or has them where it must not.",
    "Readers fail, or number its rows wrongly.",
    "Find out what wrote it; move it out of the directory.", "3.1",
)  # fmt: skip
V46 = Rule(
    "V46", ERROR, LISTING, "A data file has 0 bytes.",
    "Readers take it for a file without rows; in a delete delta Hive's vectorized queries fail on it.",
    "Find out whether its writer died or the store lost it; `acidctl compact --major` leaves it out.", "12",
)  # fmt: skip


@on_listing
def _data_files(look: ListingToCheck) -> Iterator[Finding]:
    for directory in look.current:
        files = data_files_of(directory, look.files(directory.name), look.snapshot.table_type)
        for file in files:
            if file.flush_length_path and not file.size:
                continue  # a streaming writer has just begun
            if not file.size:
                # Harmless without ids, but vectorized readers of Hive fail on such a file in a delete delta.
                severity = INFO if not file.native_name else ERROR if file.role is Role.DELETE else WARNING
                yield V46.finding(file.path, "it has 0 bytes", {"bytes": 0}, severity)
        raw = [file for file in files if not file.native_name]
        if raw and len(raw) < len(files):
            text = f"{len(raw)} raw files stand beside {len(files) - len(raw)} bucket files"
            yield V25.finding(directory.name, text, {"files": [file.path for file in raw[:_MOST_NAMES]]})
    names = {directory.name for directory in look.current}
    for entry in look.snapshot.listing.entries:
        name, slash, rest = entry.path.partition("/")
        data = rest.removesuffix(FLUSH_LENGTH_SUFFIX)
        is_file_of = slash and entry.is_dir and isinstance(parse_file(data), BucketFile)
        if is_file_of and name in names:
            rule = V36 if rest.endswith(FLUSH_LENGTH_SUFFIX) else V24
            yield rule.finding(entry.path, "it is a directory, not a file")
    for entry in look.snapshot.state.originals:
        if not entry.size:
            yield V46.finding(entry.path, "it has 0 bytes", {"bytes": 0}, INFO)


V18 = Rule(
    "V18", ERROR, LISTING, "Original files lie beside a base, or have names that Hive does not number.",
    "Beside a base they are obsolete; on a name without a number Hive fails, and reads nothing of the table.",
    "Obsolete ones: `acidctl clean`. Others: move away what is not data; rename data as 000000_0_copy_1.", "5.1",
)  # fmt: skip


@on_listing
def _originals(look: ListingToCheck) -> Iterator[Finding]:
    state = look.snapshot.state
    hidden = [v for v in state.in_state(State.OBSOLETE) if v.kind is EntryKind.ORIGINAL]
    if hidden and state.base:
        names = [verdict.name for verdict in hidden]
        text = f"{len(hidden)} original files or directories are in {state.base.name}: {some_of(names)}"
        yield V18.finding("", text, {"files": names[:_MOST_NAMES], "count": len(names)}, INFO)
    odd = [e.path for e in state.originals if not isinstance(parse_file(e.path.rpartition("/")[2]), OriginalFile)]
    if odd and look.directories:
        text = f"{len(odd)} original files have no bucket number in their name: {some_of(odd)}"
        severity = ERROR if look.is_full else WARNING
        yield V18.finding("", text, {"files": odd[:_MOST_NAMES], "count": len(odd)}, severity)


V45 = Rule(
    "V45", ERROR, LISTING, "Files lie where Hive does not read them, or reads them as something else.",
    "Their rows are not visible, and no compaction includes them; whoever put them there expects otherwise.",
    "Load them with LOAD DATA, or move them away.", "11",
)  # fmt: skip


@on_listing
def _passed_over(look: ListingToCheck) -> Iterator[Finding]:
    listing, state = look.snapshot.listing, look.snapshot.state
    for problem in layout_problems(listing, state):
        if problem.rule == "V45":
            yield V45.finding(problem.path, text_of(problem.reason))
    unread = list(passed_over(listing, state))
    for path in unread[:_MOST_NAMES]:
        yield V45.finding(path.path, text_of(path.reason), severity=ERROR if path.is_certain else WARNING)
    more = len(unread) - _MOST_NAMES
    if more > 0:
        yield V45.finding("", f"{more} further files that Hive does not read", {"count": more})


V16 = Rule(
    "V16", WARNING, LISTING, "A staging directory has been lying around for more than a day.",
    "A writer or a compaction died; it takes space, and readers pass over it.",
    "Remove it when nothing writes to the table.", "8.6",
)  # fmt: skip


@on_listing
def _staging(look: ListingToCheck) -> Iterator[Finding]:
    newest: dict[str, float] = {}
    for entry in look.snapshot.listing.entries:
        name = entry.path.partition("/")[0]
        if entry.modified is not None and is_hidden(name):
            newest[name] = max(newest.get(name, entry.modified), entry.modified)
    half = {staging for staging, _ in half_published(look.snapshot)}
    for name, modified in sorted(newest.items()):
        age = look.now - modified
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
def _figures(look: ListingToCheck) -> Iterator[Finding]:
    state = look.snapshot.state
    decision = decide(figures_of(look.snapshot.listing, state), look.thresholds)
    if decision.kind and not layout_problems(look.snapshot.listing, state):
        yield V19.finding(
            "", text_of(decision.reason), {"deltas": len(state.deltas), "compaction": decision.kind.value}
        )
    counts: dict[str, int] = {}
    for which in (State.OBSOLETE, State.ABORTED):
        names = {verdict.name for verdict in state.in_state(which)}
        size = sum(entry.size for name in names for entry in look.files(name))
        counts |= {which.value: len(names), f"{which.value}Bytes": size}
    if counts["obsolete"] or counts["aborted"]:
        text = ", ".join(f"{counts[s]} {s} with {counts[f'{s}Bytes']:,} bytes" for s in ("obsolete", "aborted"))
        yield V20.finding("", text, counts)
