"""Refusals of locations that cannot be compacted without changing what readers see, now or later."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import NO_BUCKET, DataFile, Role, crossing, shows_full_acid
from acidctl.acid.listing import Entry, TableType, with_entries
from acidctl.acid.names import MAXL, METADATA_ACID, manifest_for
from acidctl.acid.reasons import Code
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.unfinished import doubtful, layout_problems, live_writers, only_by_doubt
from acidctl.acid.writeids import ValidTxns
from acidctl.base.errors import BadDataError, ConflictError, RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.lost_rows import find_lost_rows
from acidctl.wording import lost_events, some_of, text_of


def refuse_layout(snapshot: Snapshot) -> None:
    """Raise BadDataError for a layout that Hive never writes: a compaction would make its faults permanent."""
    if problems := layout_problems(snapshot.listing, snapshot.state):
        raise BadDataError(
            f"cannot compact {snapshot.fs.display(snapshot.path)}",
            some_of([f"{text_of(problem.reason)} ({problem.rule})" for problem in problems], between="; "),
            "find out which of the files and directories are right, and move the others away",
        )


def refuse_unsafe(snapshot: Snapshot, now: float, *, force: bool) -> None:
    """Refuse a location that its listing does not prove to be safe to compact, before any file is opened.

    Args:
        now: seconds since the epoch.
        force: compact although writers seem to be at work.

    Raises:
        BadDataError: Hive never writes such a layout; merging it would make its faults permanent.
        RefusedError: directories are obsolete only because of others that may be unfinished, or a writer is at work.
    """
    refuse_layout(snapshot)
    listing, state, shown = snapshot.listing, snapshot.state, snapshot.fs.display(snapshot.path)
    hidden = only_by_doubt(listing, state, snapshot.write_ids, snapshot.txns, snapshot.base_formats)
    if hidden and not force:
        doubts = doubtful(listing, state, snapshot.write_ids, snapshot.txns)
        raise RefusedError(
            f"cannot compact {shown}",
            "; ".join(
                f"{name} hides {len(hidden)} others, but {text_of(why)}" for name, why in list(doubts.items())[:3]
            )
            or f"whether what hides {min(hidden)} is committed is not known",
            "give `snapshot` with Hive's transactions, or `assume_committed` if no compaction and no writer runs",
        )
    # With a list of write ids the rows of open writers are left out individually. Without a list only the age of their
    # directories counts, and a writer that just began has no directory.
    is_assumed = snapshot.assumed is not None and snapshot.assumed.of_write_ids
    signs = live_writers(listing, state, now) if is_assumed or snapshot.write_ids.is_everything else []
    if is_assumed:  # a manifest already ends what counts as committed
        signs = [sign for sign in signs if not manifest_for(sign)]
    if signs and not force:
        raise RefusedError(
            f"a writer seems to be at work in {shown}",
            f"there is {', '.join(signs[:3])}",
            "wait until it has ended, give `snapshot`, or `force` when you know that it is dead",
        )


def refuse_lost_rows(snapshot: Snapshot) -> None:
    """Raise BadDataError if an empty result hides rows from readers: after a compaction they could not come back."""
    for lost in find_lost_rows(snapshot):
        if lost.result.is_read:
            raise BadDataError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"{lost_events(lost.rows, lost.deletes, lost.result.name)} (V43)",
                "run `repair('empty-result')`, which brings that back, or says why it cannot",
            )


def refuse_of_insert_only(snapshot: Snapshot, kind: CompactionKind, *, is_rebalance: bool) -> None:
    """Raise RefusedError for a rebalance, and for a first base that would hide files beside the deltas.

    Hive reads such files only if ``hive.mm.allow.originals`` is set; it is off by default.
    """
    if is_rebalance:
        raise RefusedError(
            f"cannot rebalance {snapshot.fs.display(snapshot.path)}",
            "its table is insert-only, whose rows have no ROW__IDs",
            "use `major`, as Hive itself does then",
        )
    beside = [v.name for v in snapshot.state.verdicts if v.reason.code is Code.BESIDE_DIRECTORIES]
    if beside and snapshot.state.base is None and kind is CompactionKind.MAJOR:
        raise RefusedError(
            f"cannot compact {snapshot.fs.display(snapshot.path)}",
            f"the first base would hide {some_of(beside)} without including it: Hive reads it only if"
            " hive.mm.allow.originals is set",
            "load it with LOAD DATA, or move it away; or use `minor`, which hides nothing",
        )


def refuse_odd_names(snapshot: Snapshot, files: Sequence[DataFile]) -> None:
    for file in files:
        if file.bucket == NO_BUCKET and file.size:
            raise BadDataError(
                f"cannot compact {snapshot.display(file.path)}",
                "its name tells no bucket, so its rows have no ROW__ID; Hive's compactor fails on it too",
                "rename it by Hive's pattern, for example 000000_0_copy_9, or remove it if it is not data",
            )


def refuse_existing(snapshot: Snapshot, names: Sequence[str]) -> None:
    existing = {verdict.name: verdict for verdict in snapshot.state.verdicts}
    for name in names:
        if name in existing:
            raise ConflictError(
                f"{snapshot.display(name)} exists already",
                f"it is {existing[name].state.value}: {text_of(existing[name].reason)}",
                "see `state()`; clean it first if it is not current",
            )


def refuse_crossing(snapshot: Snapshot, low: int, high: int) -> None:
    """Refuse a delta beside the result of a compaction with an open transaction: once committed, both would be read."""
    taken = snapshot.state.current_names
    others = (v.directory for v in snapshot.state.verdicts if v.name not in taken and v.state is not State.ABORTED)
    if other := crossing(filter(None, others), low, high):
        raise RefusedError(
            f"cannot compact write ids {low} to {high} of {snapshot.fs.display(snapshot.path)} to a delta",
            f"{other.name} ends among them, and once it is read its rows would be there twice",
            "wait until its transaction has ended, and give a newer `snapshot`; or use `major`",
        )


def type_of(snapshot: Snapshot, sources: Sequence[EventFile], known: TableType | None) -> TableType:
    """Return the type of a table.

    Full-ACID tables have `bucket_` files or delete deltas, and only ORC files. If there are only raw ORC files in ACID
    directories, the table is insert-only, or full-ACID with just loaded data (section 11). If there are only original
    ORC files, it became full-ACID, because the original files of an insert-only table move into a delta.

    Args:
        sources: the files that a reader opens.
        known: the type according to the user or a metastore.

    Raises:
        RefusedError: the type cannot be determined, or is not `known`.
    """
    shown = snapshot.fs.display(snapshot.path)
    native = next((source for source in sources if source.synthetic is None), None)
    if native is not None or shows_full_acid(snapshot.listing):
        if known is TableType.INSERT_ONLY:
            raise RefusedError(
                f"cannot compact {shown} as an insert-only table",
                f"{snapshot.display(native.file.path)} has ACID columns" if native else "it has bucket files",
                "it is a full-ACID table: leave `table_type` out",
            )
        return TableType.FULL_ACID
    other = next((source for source in sources if source.format is not Format.ORC), None)
    if other is not None and known is TableType.FULL_ACID:
        raise RefusedError(
            f"cannot compact {shown} as a full-ACID table",
            f"{snapshot.display(other.file.path)} is {other.format}, and full-ACID tables are ORC",
            "it is an insert-only table: leave `table_type` out",
        )
    if known is not None or not sources:
        return known or TableType.FULL_ACID
    if other is not None:
        return TableType.INSERT_ONLY
    if all(source.file.role is Role.ORIGINAL for source in sources) and not any(
        verdict.directory for verdict in snapshot.state.verdicts
    ):
        return TableType.FULL_ACID
    raise RefusedError(
        f"cannot compact {shown}",
        "none of its files has ACID columns: it is an insert-only table, or a full-ACID one with loaded files alone",
        "say which: `table_type='insert-only'` or `table_type='full-acid'`",
    )


def require_read(
    snapshot: Snapshot, kind: CompactionKind, names: Collection[str], inputs: Collection[str], visibility_txn: int
) -> None:
    """Refuse a result that readers of this snapshot would not read, or would read in addition to its inputs.

    Args:
        names: the directories that will appear.
        inputs: the names of the directories and files that they replace.
        visibility_txn: the compaction's transaction, treated as committed.

    Raises:
        RefusedError: the layout is unforeseen, for example a write id at the end of all numbers.
    """
    after = _state_after(snapshot, kind, names, visibility_txn)
    read = after.current_names
    missing = [] if after.history_problem else sorted(set(names) - read)
    twice = sorted(set(inputs) & read)
    if after.history_problem or missing or twice:
        why = (after.history_problem and text_of(after.history_problem)) or (
            f"readers would not read {missing[0]}" if missing else f"readers would still read {twice[0]} beside it"
        )
        raise RefusedError(
            f"cannot compact {snapshot.fs.display(snapshot.path)} to {' and '.join(names)}",
            why,
            "see `validate()`: what is there is nothing that Hive writes",
        )


def _state_after(snapshot: Snapshot, kind: CompactionKind, names: Collection[str], visibility_txn: int) -> AcidState:
    entries = [*snapshot.listing.entries]
    formats = dict(snapshot.base_formats)
    for name in names:
        entries += [Entry(name, 0, None, True), Entry(f"{name}/bucket_00000", 1, None, False)]
        if kind is CompactionKind.MAJOR and not visibility_txn:
            entries.append(Entry(f"{name}/{METADATA_ACID}", 1, None, False))
            formats[name] = BaseFormat.COMPACTED
    listing = with_entries(snapshot.listing, sorted(entries))
    return select(listing, snapshot.write_ids, _with_committed(snapshot, visibility_txn), formats)


def _with_committed(snapshot: Snapshot, visibility_txn: int) -> ValidTxns | None:
    """Return the transaction list as it will be once the compaction's own transaction is committed."""
    txns = snapshot.txns
    if txns is None or not visibility_txn:
        return txns
    on_disk = {verdict.directory.visibility_txn for verdict in snapshot.state.verdicts if verdict.directory}
    unseen = {txn for txn in on_disk if txns.high_watermark < txn < visibility_txn}
    still_open = tuple(sorted({*txns.open, *unseen} - {visibility_txn}))
    return replace(
        txns,
        high_watermark=max(txns.high_watermark, visibility_txn),
        min_open=min(still_open, default=MAXL),
        open=still_open,
    )
