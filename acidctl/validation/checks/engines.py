"""The R rules: what one kind of reader refuses or misreads (format sections 1.4, 3.4 and 6.5)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    MINL,
    NO_STATEMENT,
    AcidDirectory,
    BucketFile,
    Kind,
    OriginalFile,
    is_hidden,
    parse_file,
)
from acidctl.acid.reasons import Code
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import EntryKind, State
from acidctl.rows.foreign.format import Format
from acidctl.validation.checks.footers import TailFacts
from acidctl.validation.checks.listing import ListingToCheck, on_listing
from acidctl.validation.findings import ERROR, FOOTERS, INFO, LISTING, MOST_NAMES, WARNING, Finding, Rule
from acidctl.wording import text_of

R6 = Rule(
    "R6", WARNING, LISTING, "Which _v directories count is not looked at.",
    "Trino ignores visibility ids: it reads results of compactions that are not committed.",
    "Clean aborted compactions.", "6.5", ("trino",),
)  # fmt: skip


@on_listing
def _for_readers(listed: ListingToCheck) -> Iterator[Finding]:
    if not listed.readers:
        return
    for directory in listed.current:
        yield from _of_a_name(directory, listed.snapshot.base_formats.get(directory.name))
        yield from _of_its_files(directory, listed)
    yield from _of_the_location(listed)
    if listed.snapshot.txns is not None:
        for verdict in listed.snapshot.state.verdicts:
            if verdict.reason.code in (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED):
                yield R6.finding(verdict.name, text_of(verdict.reason))


R1 = Rule(
    "R1", ERROR, LISTING, "Visibility ids (_v) are unknown to the reader.",
    "Hive before 4 fails on the name.",
    "Rename after checking that the transaction is committed, or read with Hive 4.", "6.5", ("hive2", "hive3"),
)  # fmt: skip
R4 = Rule(
    "R4", ERROR, LISTING, "A base is marked `truncated` or `dropped` in _metadata_acid.",
    "The reader knows `compacted` only, and refuses the base.",
    "Run `acidctl compact --major` after the next insert.", "1.4", ("hive3",),
)  # fmt: skip
R7 = Rule(
    "R7", ERROR, LISTING, "A name has a statement id and a visibility id.",
    "Impala takes the directory for one of original files.",
    "Rename it without the statement id.", "1.1", ("impala",),
)  # fmt: skip
R18 = Rule(
    "R18", WARNING, LISTING, "A compacted base without a visibility id.",
    "Impala knows no _metadata_acid: it takes the base for an INSERT OVERWRITE, whatever write ids are open below.",
    "Compact when no write id below the base is open.", "6.5", ("impala",),
)  # fmt: skip


def _of_a_name(directory: AcidDirectory, form: BaseFormat | None) -> Iterator[Finding]:
    name = directory.name
    if directory.visibility_txn:
        yield R1.finding(name, f"visibility id {directory.visibility_txn}")
        if directory.statement_id != NO_STATEMENT:
            yield R7.finding(name, f"statement id {directory.statement_id}")
    elif form is BaseFormat.COMPACTED:
        yield R18.finding(name, "marked by _metadata_acid alone")
    if form and form.is_empty:
        yield R4.finding(name, f"its _metadata_acid says {form}")


R2 = Rule(
    "R2", ERROR, LISTING, "Bucket files have attempt ids, bucket_N_A.",
    "Hive before 4 does not match them: their rows are missed. Of delete events Trino does not match them either: "
    "deleted rows come back.",
    "Run `acidctl compact --major`: its files have none.", "1.4", ("hive2", "hive3", "trino"),
)  # fmt: skip
R5 = Rule(
    "R5", ERROR, LISTING, "A _flush_length file lies beside a data file.",
    "Impala refuses the directory; Trino takes it for a data file, and fails.",
    "Compact when the streaming writer has closed its batch; if it died, run `acidctl repair`.", "12",
    ("trino", "impala"),
)  # fmt: skip
R8 = Rule(
    "R8", ERROR, LISTING, "Data files lie deeper than one level inside an ACID directory.",
    "Trino does not look into HIVE_UNION_SUBDIR directories: their rows are missed.",
    "Rewrite the partition with INSERT OVERWRITE.", "6.5", ("trino",),
)  # fmt: skip
R10 = Rule(
    "R10", ERROR, LISTING, "Raw files lie in ACID directories, as LOAD DATA leaves them.",
    "Hive 2 expects the ACID columns in every file there.",
    "Run `acidctl compact --major`.", "5.2", ("hive2",),
)  # fmt: skip


R19 = Rule(
    "R19", ERROR, LISTING, "A base that hides other directories has no data file.",
    "Trino does not see such a base: rows that were truncated, or deleted by a DELETE of all rows, come back.",
    "Where V43 is found as well, do what it says. Else clean what it hides, or run `acidctl compact --major` "
    "after the next insert.", "6.5", ("trino",),
)  # fmt: skip


def _of_its_files(directory: AcidDirectory, listed: ListingToCheck) -> Iterator[Finding]:
    name = directory.name
    names = listed.direct(name)
    parsed = [parse_file(file) for file in names]
    is_delete = directory.kind is Kind.DELETE_DELTA
    attempts = sorted(file.name for file in parsed if isinstance(file, BucketFile) and file.attempt is not None)
    if is_delete or {"hive2", "hive3"} & {*listed.readers}:
        yield from R2.of_several(attempts, name, "delete events in {}" if is_delete else "rows in {}", most=3)
    if directory.kind is Kind.BASE and all(map(is_hidden, names)):
        hidden = [verdict.name for verdict in listed.snapshot.state.in_state(State.OBSOLETE)]
        yield from R19.of_several(hidden, name, "it hides {}", noun="directories", key="hidden")
    yield from R5.of_several(sorted(file for file in names if file.endswith(FLUSH_LENGTH_SUFFIX)), name)
    yield from R8.of_several([entry.path for entry in listed.files(name) if entry.path.count("/") > 1], name)
    if listed.is_full and any(isinstance(file, OriginalFile) for file in parsed):
        yield R10.finding(name, "its files have the names of original files")


R9 = Rule(
    "R9", ERROR, LISTING, "Original files of several buckets have delete events.",
    "Trino numbers originals of unbucketed tables as bucket 0: deletes hit the wrong rows.",
    "Run `acidctl compact --major`.", "5.1", ("trino",),
)  # fmt: skip
R20 = Rule(
    "R20", INFO, LISTING, "Original files are called _copy_N, or lie in folders, as UNION ALL leaves them.",
    "Their rows are numbered by the order of these names: their ROW__IDs change if a copy gets other names.",
    "Run `acidctl compact --major`: it writes the ROW__IDs down.", "5.1", ("hive3", "hive4"),
)  # fmt: skip
R16 = Rule(
    "R16", ERROR, LISTING, "Spark's own ORC reader shows events, not rows.",
    "It sees six columns, ignores deletes, and reads what is obsolete, aborted and open.",
    "Use `spark.read.format(\"hive_acid\")`, which acidctl brings.", "3.1", ("spark",),
)  # fmt: skip
R17 = Rule(
    "R17", ERROR, LISTING, "A base that this snapshot may not use.",
    "Hive 3 and Trino refuse the location for any such base, an INSERT OVERWRITE that is open or aborted too.",
    "Wait until the write id is committed; clean where it is aborted.", "6.5", ("hive3", "trino"),
)  # fmt: skip


def _of_the_location(listed: ListingToCheck) -> Iterator[Finding]:
    state = listed.snapshot.state
    deletes = [d.name for d in listed.current if d.kind is Kind.DELETE_DELTA]
    numbers = {
        f.bucket for e in state.originals if isinstance(f := parse_file(e.path.rpartition("/")[2]), OriginalFile)
    }
    if deletes and numbers - {0}:
        text = f"originals of {len(numbers)} buckets, {len(deletes)} delete deltas"
        yield R9.finding("", text, {"buckets": sorted(numbers)[:MOST_NAMES]})
    unsteady = [entry.path for entry in state.originals if "_copy_" in entry.path or "/" in entry.path]
    yield from R20.of_several(unsteady, noun="original files")
    if listed.is_full:
        counts = f"{len(listed.current)} ACID directories, {len(deletes)} of them with delete events"
        yield R16.finding("", counts, {"deleteDeltas": len(deletes)})
    else:
        unread = [v.name for v in state.verdicts if v.directory and v.state is not State.CURRENT]
        text = "it also reads directories that are not current: {}"
        yield from R16.of_several(unread, text=text, noun="directories", key="directories")
    if state.base is None:
        for verdict in (*state.in_state(State.IGNORED), *state.in_state(State.ABORTED)):
            is_base = verdict.kind is EntryKind.BASE and verdict.directory is not None
            if is_base and verdict.directory and verdict.directory.max_write_id != MINL:
                yield R17.finding(verdict.name, text_of(verdict.reason))


R3 = Rule(
    "R3", ERROR, FOOTERS, "Neither _orc_acid_version nor the files say of which version they are.",
    "Trino takes them for files from before Hive 3 and refuses them.",
    "Run `acidctl compact --major`, or `acidctl repair`.", "3.3", ("trino",),
)  # fmt: skip
R11 = Rule(
    "R11", ERROR, FOOTERS, "Files lack hive.acid.key.index.",
    "Hive up to 3.1 takes such a file for one without ids and shows the six columns as rows.",
    "Run `acidctl compact --major`.", "3.4", ("hive2", "hive3"),
)  # fmt: skip
R12 = Rule(
    "R12", ERROR, FOOTERS, "Files are of ACID version 2.",
    "Hive 2 takes the encoded bucket column for a bucket number.",
    "Read them with Hive 3 or newer.", "15", ("hive2",),
)  # fmt: skip
R13 = Rule(
    "R13", ERROR, FOOTERS, "Updates and deletes stand among the inserts: ACID version 1.",
    "Readers since Hive 3 ignore the operation: updates and deletes are read as rows, or, by Trino, refused.",
    "Run a major compaction first.", "4.2", ("hive3", "hive4", "trino", "impala"),
)  # fmt: skip
R15 = Rule(
    "R15", INFO, FOOTERS, "Files have no row index (stride 0).",
    "Their statistics mean nothing: the reader reads whole stripes, whatever the condition. Minor compactions of Hive "
    "by MapReduce write such files.",
    "Run `acidctl compact --major`.", "3.4", ("hive3", "hive4", "trino", "impala", "spark"),
)  # fmt: skip


def for_readers_by_tails(
    files: Mapping[str, TailFacts], markers: Container[str], readers: Sequence[str]
) -> Iterator[Finding]:
    """Yield the findings of R rules that the footers show, one for each rule, with the files.

    Args:
        markers: the directories with an ``_orc_acid_version``.
    """
    if not readers:
        return
    native = [facts for facts in files.values() if facts.is_acid]
    inserts = [facts for facts in native if not facts.path.startswith("delete_delta_")]
    # An update in a base is the remaining row, as a compaction of Hive 2 writes it; Hive's own tool ignores it.
    takes_bases = bool(set(readers) & {"trino", "impala"})
    changing = [facts for facts in inserts if takes_bases or not facts.path.startswith("base_")]
    cases = {
        R3: [facts.path for facts in inserts if facts.acid_version is None and facts.directory not in markers],
        R11: [facts.path for facts in native if not facts.has_key_index],
        R12: [facts.path for facts in native if facts.acid_version is not None],
        R13: [facts.path for facts in changing if facts.has_changes],
        R15: [facts.path for facts in files.values() if facts.rows and not facts.stride and facts.format is Format.ORC],
    }
    uncounted = [facts.path for facts in changing if facts.has_changes is None and facts.acid_version is None]
    text = "files do not count their operations, so only their events show whether updates are among them: {}"
    yield from R13.of_several(uncounted, text=text, severity=WARNING)
    for rule, paths in cases.items():
        yield from rule.of_several(paths)
