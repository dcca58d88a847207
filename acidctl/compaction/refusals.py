"""Refusals of locations that cannot be compacted without changing what readers see, now or later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.layout import NO_BUCKET, DataFile, Role, crossing, union_folder_of
from acidctl.acid.listing import Entry, TableType, with_entries
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, MAXL, METADATA_ACID, Kind, manifest_for
from acidctl.acid.reasons import Code
from acidctl.acid.sidefiles import BaseFormat, parse_flush_length
from acidctl.acid.state import AcidState, State, Verdict
from acidctl.acid.unfinished import doubtful, live_writers, only_by_doubt
from acidctl.acid.writeids import ValidTxns
from acidctl.base.errors import BadDataError, ConflictError, RefusedError
from acidctl.compaction.due import refuse_layout
from acidctl.location.snapshot import Snapshot
from acidctl.orc.read.wide_timestamps import SWITCH
from acidctl.orc.types import OrcType, row_type_of
from acidctl.rows.convert.matching import is_numbered
from acidctl.rows.foreign.foreign_reader import text_extension
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.lost_rows import find_lost_rows
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.wording import lost_events, some_of, text_of


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
    listing, state, shown = snapshot.listing, snapshot.state, snapshot.shown
    hidden = only_by_doubt(listing, state, snapshot.lists)
    if hidden and not force:
        doubts = doubtful(listing, state, snapshot.lists)
        raise RefusedError(
            f"cannot compact {shown}",
            "; ".join(
                f"{name} hides {len(hidden)} others, but {text_of(why)}" for name, why in list(doubts.items())[:3]
            )
            or f"whether what hides {min(hidden)} is committed is not known",
            "give --snapshot with Hive's transactions, or --assume-committed if no compaction and no writer runs",
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
            "wait until it has ended, give --snapshot, or --force when you know that it is dead",
        )


def refuse_lost_rows(snapshot: Snapshot) -> None:
    """Raise BadDataError if an empty result hides rows from readers: after a compaction they could not come back."""
    for lost in find_lost_rows(snapshot):
        if lost.result.is_read:
            raise BadDataError(
                f"cannot compact {snapshot.shown}",
                f"{lost_events(lost.rows, lost.deletes, lost.result.name)} (V43)",
                "run `acidctl repair`, which brings that back, or says why it cannot",
            )


def refuse_of_insert_only(snapshot: Snapshot, kind: CompactionKind, *, is_rebalance: bool) -> None:
    """Raise RefusedError for a rebalance, and for a first base that would hide files beside the deltas.

    Hive reads such files only if ``hive.mm.allow.originals`` is set; it is off by default.
    """
    if is_rebalance:
        raise RefusedError(
            f"cannot rebalance {snapshot.shown}",
            "its table is insert-only, whose rows have no ROW__IDs",
            "use --major, as Hive itself does then",
        )
    beside = [v.name for v in snapshot.state.verdicts if v.reason.code is Code.BESIDE_DIRECTORIES]
    if beside and snapshot.state.base is None and kind is CompactionKind.MAJOR:
        raise RefusedError(
            f"cannot compact {snapshot.shown}",
            f"the first base would hide {some_of(beside)} without including it: Hive reads it only if"
            " hive.mm.allow.originals is set",
            "load it with LOAD DATA, or move it away; or use --minor, which hides nothing",
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
                "see `acidctl ls`; clean it first if it is not current",
            )


def refuse_crossing(snapshot: Snapshot, low: int, high: int) -> None:
    """Refuse a delta beside the result of a compaction with an open transaction: once committed, both would be read."""
    taken = snapshot.state.current_names
    others = (v.directory for v in snapshot.state.verdicts if v.name not in taken and v.state is not State.ABORTED)
    if other := crossing(filter(None, others), low, high):
        raise RefusedError(
            f"cannot compact write ids {low} to {high} of {snapshot.shown} to a delta",
            f"{other.name} ends among them, and once it is read its rows would be there twice",
            "wait until its transaction has ended, and give a newer --snapshot; or use --major",
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
    native = next((source for source in sources if source.synthetic is None), None)
    if native is not None or snapshot.listing.shows_full_acid:
        if known is TableType.INSERT_ONLY:
            raise RefusedError(
                f"cannot compact {snapshot.shown} as an insert-only table",
                f"{native.shown} has ACID columns" if native else "it has bucket files",
                "it is a full-ACID table: leave --table-type out",
            )
        return TableType.FULL_ACID
    other = next((source for source in sources if source.format is not Format.ORC), None)
    if other is not None and known is TableType.FULL_ACID:
        raise RefusedError(
            f"cannot compact {snapshot.shown} as a full-ACID table",
            f"{other.shown} is {other.format}, and full-ACID tables are ORC",
            "it is an insert-only table: leave --table-type out",
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
        f"cannot compact {snapshot.shown}",
        "none of its files has ACID columns: it is an insert-only table, or a full-ACID one with loaded files alone",
        "say which: --table-type insert-only or --table-type full-acid",
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
            f"cannot compact {snapshot.shown} to {' and '.join(names)}",
            why,
            "see `acidctl validate`: what is there is nothing that Hive writes",
        )


def _state_after(snapshot: Snapshot, kind: CompactionKind, names: Collection[str], visibility_txn: int) -> AcidState:
    entries = [*snapshot.listing.entries]
    formats = dict(snapshot.base_formats)
    for name in names:
        entries += [Entry(name, 0, None, True), Entry(f"{name}/bucket_00000", 1, None, False)]
        if kind is CompactionKind.MAJOR and not visibility_txn:
            entries.append(Entry(f"{name}/{METADATA_ACID}", 1, None, False))
            formats[name] = BaseFormat.COMPACTED
    lists = replace(snapshot.lists, txns=_with_committed(snapshot, visibility_txn), base_formats=formats)
    return lists.select(with_entries(snapshot.listing, sorted(entries)))


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


def refuse_twin_base(snapshot: Snapshot) -> None:
    """Refuse a result with the same write id as the base from which it is made.

    Of two such bases Hive's readers choose the one that comes first in a hash table, so a client could read row ids
    from one of them and delete other rows in the other.

    Raises:
        RefusedError: no delta lies above the base.
    """
    base = snapshot.state.base
    if base and base.compacted and not snapshot.state.deltas:
        raise RefusedError(
            f"cannot rebalance {snapshot.shown}",
            f"{base.name} is all there is, and Hive could not tell the result from it: its write id is the same",
            "write something to it first: any insert, update or delete gives it another write id",
        )


def deletes_above(verdicts: Iterable[Verdict], write_id: int) -> list[str]:
    """Return the names of delete deltas with later write ids: their events have the ids that rows had before."""
    directories = [v.directory for v in verdicts if v.directory and v.state is not State.ABORTED]
    return sorted(d.name for d in directories if d.kind is Kind.DELETE_DELTA and d.max_write_id > write_id)


def require_plain_lines(snapshot: Snapshot, sources: Sequence[EventFile]) -> None:
    """Refuse text files that cannot be concatenated.

    Raises:
        RefusedError: no metastore describes their lines, some lines are not rows, or a file is compressed.
    """
    what, hint = f"cannot compact {snapshot.shown}", "let Hive compact it"
    layout = snapshot.declared.text if snapshot.declared else None
    if layout is None:
        raise RefusedError(
            what,
            f"{sources[0].shown} is text",
            "which of its lines are rows is known to the metastore alone: give --metastore, or let Hive compact it",
        )
    if layout.header or layout.footer:
        lines = f"{layout.header} at the top and {layout.footer} at the end"
        raise RefusedError(what, f"some lines of each of its files are no rows: {lines}", hint)
    for source in sources:
        if extension := text_extension(source.path):
            why = f"{source.shown} is compressed text ({extension})"
            raise RefusedError(what, why, f"acidctl puts plain text together; {hint}")


def one_format(snapshot: Snapshot, sources: Sequence[EventFile]) -> Format:
    """Return the format of all files; raise RefusedError if they have several."""
    examples: dict[Format, EventFile] = {}
    for source in sources:
        examples.setdefault(source.format, source)
    if len(examples) > 1:
        listed = [f"{source.shown} is {format_}" for format_, source in examples.items()]
        raise RefusedError(
            f"cannot compact {snapshot.shown}",
            ", ".join(listed),
            "one file cannot hold both; let Hive compact it, which knows the format of each partition",
        )
    return sources[0].format


def require_known_widths(snapshot: Snapshot, types: Sequence[OrcType], row: OrcType) -> None:
    """Refuse Parquet files of different types unless the table has the result's type: Hive converts each file."""
    columns = snapshot.table.columns if snapshot.table else ()
    result, table = dict(_leaves(row)), dict(_leaves(row_type_of(columns)))
    for name, kind in (leaf for row_type in dict.fromkeys(types) for leaf in _leaves(row_type)):
        if result.get(name, kind) not in (kind, table.get(name)):
            raise RefusedError(
                f"cannot compact {snapshot.shown}",
                f"column {name} is {kind} in one Parquet file and {result[name]} in the newest, and the table"
                f" {f'has {table[name]}' if name in table else 'is unknown'}: Hive may convert the two differently",
                "name the table as its metastore has it, `hive:db.table`, or let Hive compact it",
            )


def _leaves(node: OrcType, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and kind of each column without children; in a list or map its position is the name."""
    if not node.children:
        yield name, node.kind
    for part, child in zip(node.names or map(str, range(len(node.children))), node.children, strict=True):
        yield from _leaves(child, f"{name}.{part.lower()}".lstrip("."))


_DAY = 86_400_000


def refuse_differing(snapshot: Snapshot, sources: Iterable[EventFile], row: OrcType, reader: Hive | None) -> None:
    """Refuse files that Hive reads differently from acidctl: the Hive of `reader`, or any Hive if it is unknown.

    Args:
        sources: the files of the rows.
        row: the columns of the result.
        reader: the Hive that reads the table; acidctl reads as Hive 4 does, except for old dates.

    Raises:
        RefusedError: the columns of a file have other names than those of the result, by which Hive 3 matches them, or
            no names beside files with names; or Hive 3 does not read a file in a folder of a UNION ALL, or all of one
            with a flush length;
            or Hive 4 moves old dates of a C++ writer; or the result would store other numbers for old dates, which
            Hive 3 reads without a calendar.
    """
    sources = list(sources)
    in_union = (source for source in sources if source.file.directory and union_folder_of(source.file.path))
    if reader is not Hive.HIVE4 and (source := next(in_union, None)):
        raise _differing(source, "lies in a folder of a UNION ALL", "Hive 4 reads it, and Hive 3 does not", reader)
    sources = [source for source in sources if source.format is Format.ORC]
    if reader is not Hive.HIVE4 and (source := _numbered_beside_named(snapshot, sources)):
        raise _differing(source, "numbers its columns, and other files name them",
                         "Hive 3 goes by places in the one and by names in the others", reader)  # fmt: skip
    is_moved = not all(source.is_hybrid for source in sources if source.rows)
    sides = {entry.path for entry in snapshot.listing.entries if entry.path.endswith(FLUSH_LENGTH_SUFFIX)}
    for source in sources:
        if reader is not Hive.HIVE4:
            if renamed := next(_renamed(source.row_type, row), None):
                raise _differing(source, f"calls a column {renamed[0]} that the result calls {renamed[1]}",
                                 "Hive 3 goes by names, and Hive 4 by places", reader)  # fmt: skip
            if _is_shortened(snapshot, source, sides):
                raise _differing(source, "has a flush length that is not its size",
                                 "Hive 3 then reads less of the delta than Hive 4", reader)  # fmt: skip
            if is_moved and source.is_hybrid and _has_old_dates(source):
                raise _differing(source, "has dates before 15 October 1582 by another calendar than other files",
                                 "their numbers would change, and Hive 3 ignores calendars", reader)  # fmt: skip
        is_unnamed = source.tail.calendar is None and not source.is_hybrid
        if reader is not Hive.HIVE3 and is_unnamed and _has_old_dates(source):
            raise _differing(source, "has dates before 15 October 1582, and names no calendar",
                             "Hive 4 takes them for Julian dates, and Hive 3 does not", reader)  # fmt: skip


def _differing(source: EventFile, what: str, why: str, reader: Hive | None) -> RefusedError:
    hint = "let Hive compact it"
    if reader is None:
        hint = f"say which Hive reads the table, --for hive3 or --for hive4; or {hint}"
    return RefusedError(f"{source.shown} {what}", why, hint)


def _renamed(own: OrcType, target: OrcType) -> Iterator[tuple[str, str]]:
    """Yield pairs of different column names; there are none in a file with Hive's numbered columns (``_col0``)."""
    if is_numbered(own):
        return
    yield from ((one, other) for one, other in zip(own.names, target.names, strict=False) if one != other)


def _numbered_beside_named(snapshot: Snapshot, sources: Iterable[EventFile]) -> EventFile | None:
    """Return a file with numbered columns beside files with names that may not be those of the table.

    In a file with names Hive 3 shows NULL for a column that was renamed, and would do so for all rows of the result.
    """
    table = {name for name, _ in snapshot.table.columns} if snapshot.table else set()
    wide = [source for source in sources if source.row_type.names]
    numbered = [source for source in wide if is_numbered(source.row_type)]
    named = [source for source in wide if not is_numbered(source.row_type)]
    is_known = table and all(table.issuperset(source.row_type.names) for source in named)
    return numbered[0] if numbered and named and not is_known else None


def _is_shortened(snapshot: Snapshot, source: EventFile, sides: Set[str]) -> bool:
    directory = source.file.directory
    if directory is None or directory.kind is not Kind.DELTA:
        return False
    side = source.file.path + FLUSH_LENGTH_SUFFIX
    if side not in sides:
        return False
    path = snapshot.absolute(side)
    length = parse_flush_length(read_small(snapshot.fs, path, MOST_LENGTHS), path)
    is_wide = directory.min_write_id != directory.max_write_id
    return length != source.file.size and not (is_wide and length == 0)  # both Hives read nothing then


def _has_old_dates(source: EventFile) -> bool:
    """Say if a file has dates before the change of calendars in 1582."""
    for column in source.tail.footer.statistics:
        if column.HasField("dateStatistics") and column.dateStatistics.HasField("minimum"):
            if column.dateStatistics.minimum < SWITCH:
                return True
        elif column.HasField("timestampStatistics"):
            times = column.timestampStatistics
            least = min((getattr(times, name) for name in ("minimum", "minimumUtc") if times.HasField(name)), default=0)
            if least < (SWITCH + 1) * _DAY:  # in some time zone
                return True
    return False
