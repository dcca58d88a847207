"""The rules on files that a listing shows: side files, data files, original files, and files that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.layout import Role, data_files_of, passed_over, union_folders
from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    METADATA_ACID,
    ORC_ACID_VERSION,
    BucketFile,
    Kind,
    OriginalFile,
    is_visible_path,
    parse_file,
)
from acidctl.acid.state import EntryKind, State
from acidctl.validation.checks.listing import ListingToCheck, on_listing
from acidctl.validation.findings import ERROR, INFO, LISTING, MOST_NAMES, WARNING, Finding, Rule
from acidctl.wording import human_count, text_of

# --- small files ----------------------------------------------------------------------------------------------------


V13 = Rule(
    "V13", ERROR, LISTING, "The marker _orc_acid_version is missing, is not a known version, or differs.",
    "Trino refuses deltas without it where their files do not say it either; before 356 it refuses all.",
    "Run `acidctl repair`, which writes the marker if all files are certainly of version 2.", "3.3",
)  # fmt: skip


@on_listing
def _markers(listed: ListingToCheck) -> Iterator[Finding]:
    marked = {d.name for d in listed.current if ORC_ACID_VERSION in listed.direct(d.name)}
    for directory in listed.current:
        name = directory.name
        empty = [e for e in listed.files(name) if e.path == f"{name}/{ORC_ACID_VERSION}" and not e.size]
        if empty:
            yield V13.finding(f"{name}/{ORC_ACID_VERSION}", "it is empty")
        native = any(isinstance(parse_file(file), BucketFile) for file in listed.direct(name))
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
def _metadata(listed: ListingToCheck) -> Iterator[Finding]:
    for path, error in listed.bad_metadata.items():
        yield V14.finding(path, error.why or error.what)
    formats = listed.snapshot.base_formats
    for directory in listed.directories:
        name = directory.name
        if directory.kind is not Kind.BASE and METADATA_ACID in listed.direct(name):
            yield V14.finding(f"{name}/{METADATA_ACID}", "it belongs in a base only", severity=WARNING)
        form = formats.get(name)
        if form and form.is_empty and listed.has_data(directory):
            yield V14.finding(name, f"it is marked {form}, but holds data files")


V15 = Rule(
    "V15", WARNING, LISTING, "A base or delta holds no data file.",
    "With its metadata file it is a compaction or an overwrite by nothing; without, a writer may have died.",
    "If no writer is at work, look at what should be in it.",
)  # fmt: skip


@on_listing
def _empty(listed: ListingToCheck) -> Iterator[Finding]:
    for directory in listed.current:
        if listed.has_data(directory):
            continue
        metadata = sorted(listed.direct(directory.name) & {METADATA_ACID, ORC_ACID_VERSION})
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
def _flush_lengths(listed: ListingToCheck) -> Iterator[Finding]:
    for directory in listed.current:
        files = {entry.path: entry for entry in listed.files(directory.name) if is_visible_path(entry.path)}
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
    "Queries fail on it, and its rows are not shown.",
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
def _data_files(listed: ListingToCheck) -> Iterator[Finding]:
    for directory in listed.current:
        files = data_files_of(directory, listed.files(directory.name), listed.snapshot.table_type)
        for file in files:
            if file.flush_length_path and not file.size:
                continue  # a streaming writer has just begun
            if not file.size:
                # Harmless without ids, but vectorized readers of Hive fail on such a file in a delete delta.
                severity = INFO if not file.native_name else ERROR if file.role is Role.DELETE else WARNING
                yield V46.finding(file.path, "it has 0 bytes", {"bytes": 0}, severity)
        raw = [file for file in files if not file.native_name]
        if len(raw) < len(files):
            text = f"files of other names stand beside {human_count(len(files) - len(raw), 'bucket file')}: {{}}"
            yield from V25.of_several([file.path for file in raw], directory.name, text)
    names = {directory.name for directory in listed.current}
    for entry in listed.snapshot.listing.entries:
        name, slash, rest = entry.path.partition("/")
        data = rest.removesuffix(FLUSH_LENGTH_SUFFIX)
        is_file_of = slash and entry.is_dir and isinstance(parse_file(data), BucketFile)
        if is_file_of and name in names:
            rule = V36 if rest.endswith(FLUSH_LENGTH_SUFFIX) else V24
            yield rule.finding(entry.path, "it is a directory, not a file")
    for entry in listed.snapshot.state.originals:
        if not entry.size:
            yield V46.finding(entry.path, "it has 0 bytes", {"bytes": 0}, INFO)


V18 = Rule(
    "V18", ERROR, LISTING, "Original files lie beside a base, or have names that Hive does not number.",
    "Beside a base they are obsolete; on a name without a number Hive fails, and reads nothing of the table.",
    "Obsolete ones: `acidctl clean`. Others: move away what is not data; rename data as 000000_0_copy_1.", "5.1",
)  # fmt: skip


@on_listing
def _originals(listed: ListingToCheck) -> Iterator[Finding]:
    state = listed.snapshot.state
    hidden = [verdict.name for verdict in state.in_state(State.OBSOLETE) if verdict.kind is EntryKind.ORIGINAL]
    if state.base:
        text = f"{len(hidden)} original files or directories are in {state.base.name}: {{}}"
        yield from V18.of_several(hidden, text=text, severity=INFO, most=3)
    odd = [e.path for e in state.originals if not isinstance(parse_file(e.path.rpartition("/")[2]), OriginalFile)]
    if listed.directories:
        text = f"{len(odd)} original files have no bucket number in their name: {{}}"
        yield from V18.of_several(odd, text=text, severity=ERROR if listed.is_full else WARNING, most=3)


V45 = Rule(
    "V45", ERROR, LISTING, "Files lie where Hive does not read them, or reads them as something else.",
    "Their rows are not visible, and no compaction includes them; whoever put them there expects otherwise.",
    "Load them with LOAD DATA, or move them away.", "11",
)  # fmt: skip


@on_listing
def _passed_over(listed: ListingToCheck) -> Iterator[Finding]:
    listing, state = listed.snapshot.listing, listed.snapshot.state
    for problem in listed.problems:
        if problem.rule == V45.id:
            yield V45.finding(problem.path, text_of(problem.reason))
    declared = listed.snapshot.declared
    unread = [*passed_over(listing, state)]
    unread += () if declared and declared.hive is Hive.HIVE4 else union_folders(listing, state)
    for path in unread[:MOST_NAMES]:
        yield V45.finding(path.path, text_of(path.reason), severity=ERROR if path.is_certain else WARNING)
    more = len(unread) - MOST_NAMES
    if more > 0:
        yield V45.finding("", f"{more} further files that Hive does not read", {"count": more})
