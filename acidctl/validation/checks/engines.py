"""What one kind of reader refuses or misreads: the R rules (format sections 1.4, 3.4 and 6.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    MINL,
    NO_STATEMENT,
    ORC_ACID_VERSION,
    AcidDirectory,
    BucketFile,
    Kind,
    OriginalFile,
    parse_file,
)
from acidctl.acid.reasons import Code
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import EntryKind, State
from acidctl.rows.foreign.parquet_and_text import Format
from acidctl.validation.checks.footers import TailFacts
from acidctl.validation.checks.listing import Look
from acidctl.validation.findings import Finding
from acidctl.validation.rules import RULES, rule
from acidctl.wording import text_of

_MOST = 10


def wanted_rules(readers: Sequence[str]) -> set[str]:
    """Ids of the rules that concern some readers."""
    return {one.id for one in RULES.values() if set(one.readers) & set(readers)}


def for_readers(look: Look, readers: Sequence[str]) -> Iterator[Finding]:
    """What the listing shows."""
    wanted = wanted_rules(readers)
    return (finding for finding in _by_listing(look) if finding.rule in wanted)


def _by_listing(look: Look) -> Iterator[Finding]:
    for directory in look.current:
        yield from _of_a_name(directory, look.snapshot.base_formats.get(directory.name))
        yield from _of_its_files(directory, look)
    yield from _of_the_location(look)
    if look.snapshot.txns is not None:
        for verdict in look.snapshot.state.verdicts:
            if verdict.reason.code in (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED):
                yield rule("R6").finding(verdict.name, text_of(verdict.reason))


def _of_a_name(directory: AcidDirectory, form: BaseFormat | None) -> Iterator[Finding]:
    name = directory.name
    if directory.visibility_txn:
        yield rule("R1").finding(name, f"visibility id {directory.visibility_txn}")
        if directory.statement_id != NO_STATEMENT:
            yield rule("R7").finding(name, f"statement id {directory.statement_id}")
    elif form is BaseFormat.COMPACTED:
        yield rule("R18").finding(name, "marked by _metadata_acid alone")
    if form is BaseFormat.TRUNCATED:
        yield rule("R4").finding(name, "its _metadata_acid says truncated")


def _of_its_files(directory: AcidDirectory, look: Look) -> Iterator[Finding]:
    name = directory.name
    names = look.direct(name)
    parsed = [parse_file(file) for file in names]
    buckets = [file for file in parsed if isinstance(file, BucketFile)]
    if any(file.attempt is not None for file in buckets):
        files = sorted(file.name for file in buckets if file.attempt is not None)
        what = "delete events" if directory.kind is Kind.DELETE_DELTA else "rows"
        text = f"{what} in {', '.join(files[:3])}"
        yield rule("R2").finding(name, text, {"files": files[:_MOST], "count": len(files)})
    if buckets and directory.kind is not Kind.BASE and ORC_ACID_VERSION not in names:
        yield rule("R3").finding(name, f"it has no {ORC_ACID_VERSION}")
    sides = sorted(file for file in names if file.endswith(FLUSH_LENGTH_SUFFIX))
    if sides:
        yield rule("R5").finding(name, f"{sides[0]}", {"files": sides[:_MOST]})
    deep = [entry.path for entry in look.files(name) if entry.path.count("/") > 1]
    if deep:
        text = f"{len(deep)} files, {deep[0]} for example" if len(deep) > 1 else deep[0]
        yield rule("R8").finding(name, text, {"files": deep[:_MOST]})
    if look.is_full and any(isinstance(file, OriginalFile) for file in parsed):
        yield rule("R10").finding(name, "its files have the names of original files")


def _of_the_location(look: Look) -> Iterator[Finding]:
    state = look.snapshot.state
    deletes = [d.name for d in look.current if d.kind is Kind.DELETE_DELTA]
    numbers = {
        f.bucket for e in state.originals if isinstance(f := parse_file(e.path.rpartition("/")[2]), OriginalFile)
    }
    if deletes and numbers - {0}:
        text = f"originals of {len(numbers)} buckets, {len(deletes)} delete deltas"
        yield rule("R9").finding("", text, {"buckets": sorted(numbers)[:_MOST]})
    if look.is_full:
        counts = f"{len(look.current)} ACID directories, {len(deletes)} of them with delete events"
        yield rule("R16").finding("", counts, {"deleteDeltas": len(deletes)})
    else:
        unread = [v.name for v in state.verdicts if v.directory and v.state is not State.CURRENT]
        if unread:
            text = f"it also reads {len(unread)} directories that are not current, {unread[0]} for example"
            yield rule("R16").finding("", text, {"directories": unread[:_MOST]})
    if state.base is None:
        for verdict in state.in_state(State.IGNORED):
            is_base = verdict.kind is EntryKind.BASE and verdict.directory is not None
            if is_base and verdict.directory and verdict.directory.max_write_id != MINL:
                yield rule("R17").finding(verdict.name, text_of(verdict.reason))


def for_readers_by_tails(files: Mapping[str, TailFacts], readers: Sequence[str]) -> Iterator[Finding]:
    """What the tails show: one finding a rule, with the files."""
    native = [facts for facts in files.values() if facts.is_acid]
    inserts = [facts for facts in native if not facts.path.startswith("delete_delta_")]
    cases = {
        "R11": [facts.path for facts in native if not facts.has_key_index],
        "R12": [facts.path for facts in native if facts.acid_version is not None],
        "R13": [facts.path for facts in inserts if facts.has_changes],
        "R14": [facts.path for facts in native if not facts.is_exact],
        "R15": [
            facts.path for facts in files.values() if facts.rows and not facts.stride and facts.format is Format.ORC
        ],
    }
    wanted = wanted_rules(readers)
    for rule_id, paths in cases.items():
        if paths and rule_id in wanted:
            text = f"{len(paths)} files, {paths[0]} for example" if len(paths) > 1 else paths[0]
            yield rule(rule_id).finding("", text, {"files": paths[:_MOST], "count": len(paths)})
