"""The plan of a compaction: which files go into which output, or why there is nothing to do (format section 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.doubts import doubtful, layout_problems, live_writers, only_by_doubt
from acidctl.acid.layout import NO_BUCKET, DataFile, Role, below_all, crossing
from acidctl.acid.listing import TableType
from acidctl.acid.names import MINL, Kind, format_directory, manifest_for
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import State
from acidctl.compaction.concat.insert_only import concat_tasks
from acidctl.compaction.merge.differing import refuse_differing
from acidctl.compaction.merge.row_type import output_row_type
from acidctl.compaction.outcome import require_read
from acidctl.compaction.output_settings import Writing, calendar_of, inputs_of
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.segments import FINEST, cut
from acidctl.compaction.split import StripeGroup, split
from acidctl.compaction.spread import Rebalance, Spread, planned_spread, refuse_twin_base
from acidctl.compaction.table_type import type_of
from acidctl.compaction.tasks import ATTEMPTS, BucketTask, ConcatTask, CountTask
from acidctl.errors import BadDataError, ConflictError, RefusedError
from acidctl.location.snapshot import Snapshot, seen_below
from acidctl.orc.types import OrcType
from acidctl.orc.write.bloom import bloom_ids
from acidctl.rows.read.bucket_numbers import BucketNumbers, Kills
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.read.lost_rows import find_lost_rows
from acidctl.wording import lost_events, some_of, text_of


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The inputs, outputs and tasks of one location's compaction, as a value that can be printed.

    Attributes:
        inputs: names of the directories and originals that it reads, in read order.
        insert_name, delete_name: names of the output directories; only a minor compaction has the second.
        staging: absolute path of the hidden directory to which everything is written first.
        spread: set for a rebalance, which is a major compaction to everybody who reads its result.
        rows, delete_events: number of events that it reads; those of delete deltas count only as the latter.
        input_bytes: size of all files that it reads, delete deltas included.
    """

    snapshot: Snapshot
    kind: CompactionKind
    inputs: tuple[str, ...]
    insert_name: str
    delete_name: str | None
    staging: str
    min_write_id: int
    max_write_id: int
    visibility_txn: int
    acid_version: int
    tasks: tuple[BucketTask | ConcatTask | CountTask, ...]
    rows: int = 0
    delete_events: int = 0
    input_bytes: int = 0
    spread: Spread | None = None

    def __repr__(self) -> str:
        outputs = " and ".join(self.output_names)
        return (
            f"<{self.asked} compaction of {self.shown}: {len(self.inputs):,} inputs, {self.rows:,} rows -> {outputs}>"
        )

    def _repr_html_(self) -> str:
        from acidctl.notebook import html_table  # noqa: PLC0415 - only for notebooks

        rows = [(name, "read") for name in self.inputs] + [(name, "written") for name in self.output_names]
        return html_table(repr(self), ("name", ""), rows, 50)

    @property
    def asked(self) -> str:
        """Return the name that users have for it: its type, or ``rebalance``."""
        return "rebalance" if self.spread else self.kind.value

    @property
    def buckets(self) -> int:
        """Return the most files of rows that the result can have."""
        return self.spread.buckets if self.spread else len({task.bucket for task in self.tasks if task.rows})

    @property
    def shown(self) -> str:
        """Return the location, as a user would type it."""
        return self.snapshot.fs.display(self.snapshot.path)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the directories that may appear."""
        return tuple(name for name in (self.insert_name, self.delete_name) if name)

    @property
    def cut_buckets(self) -> dict[int, BucketTask]:
        """Return the buckets that are written in segments, each with one of its tasks."""
        return {task.bucket: task for task in self.tasks if isinstance(task, BucketTask) and task.segment is not None}

    @property
    def verify(self) -> Verify:
        """Return how far the result is proven; rows without ids are compared at least by bytes."""
        levels = {task.verify for task in self.tasks}
        if any(isinstance(task, ConcatTask) for task in self.tasks) and levels == {Verify.KEYS}:
            return Verify.BYTES
        return min(levels, key=list(Verify).index, default=Verify.KEYS)

    @property
    def input_paths(self) -> frozenset[str]:
        """Return the absolute paths of all files that it reads."""
        return frozenset(source.path for task in self.tasks for source in task.sources)


def below_straddlers(snapshot: Snapshot) -> Snapshot:
    """Lower the high watermark of a snapshot if a directory lies across the last write id of a compaction.

    Raises:
        RefusedError: there is nothing to compact below that directory.
    """
    while snapshot.state.deltas:
        directories = [verdict.directory for verdict in snapshot.state.verdicts if verdict.directory]
        last = max(delta.directory.max_write_id for delta in snapshot.state.deltas if delta.directory)
        limit, across = below_all(directories, last)
        if limit == last:
            return snapshot
        wide = across[-1]
        snapshot = seen_below(snapshot, limit, reason(Code.COMPACTED_BELOW, by=(wide.name,), ids=(limit, last)))
        if not snapshot.state.deltas:
            raise RefusedError(
                f"cannot compact {snapshot.fs.display(snapshot.path)} up to write id {last}",
                f"{wide.name} begins at or below write id {last} and ends above it, so its rows would be there twice",
                f"give a newer `write_ids`, in which {wide.max_write_id} is below the first open write id",
            )
    return snapshot


def nothing_to_do(snapshot: Snapshot, kind: CompactionKind) -> Reason | None:
    """Return why a compaction of this type would change nothing; None if there is work (format section 8)."""
    state = snapshot.state
    deltas = len(state.deltas)
    if kind is CompactionKind.MAJOR:
        if state.originals or deltas + bool(state.base) > 1:
            return None
        if not deltas and not state.base:
            return reason(Code.NO_DATA)
        return reason(Code.NOTHING_TO_MERGE, how="single" if deltas else "base")
    if deltas < 2:
        return reason(Code.NOTHING_TO_MERGE, how="few")
    kinds = {verdict.directory.kind for verdict in state.deltas if verdict.directory}
    if deltas == 2 and len(kinds) == 2:
        return reason(Code.NOTHING_TO_MERGE, how="each-kind")
    return None


def plan_compaction(
    snapshot: Snapshot,
    kind: CompactionKind,
    staging_name: str,
    writing: Writing | None = None,
    visibility_txn: int = 0,
    *,
    table_type: TableType | None = None,
    rebalance: Rebalance | None = None,
) -> CompactionPlan:
    """Plan one location.

    Args:
        snapshot: taken with the compactor's write-id list (section 7.3).
        staging_name: an unused hidden name, ``_tmp_<uuid>``.
        visibility_txn: id of the compaction's own transaction; 0 without a metastore.
        table_type: the type of the table, if it is known; by default the files show it.
        rebalance: makes a major compaction give all rows new ids.

    Raises:
        HistoryError, BadDataError, ConflictError: the directories of the location cannot be compacted.
        RefusedError: the type of the table cannot be determined; or it is insert-only text; or there is nothing to
            compact below a directory that lies across the last write id.
    """
    snapshot = below_straddlers(snapshot)
    _refuse_lost_rows(snapshot)
    state = snapshot.state
    snapshot.require_history()
    files = snapshot.files()
    if kind is CompactionKind.MINOR:
        deltas = {verdict.name for verdict in state.deltas}
        files = [file for file in files if file.directory and file.directory.name in deltas]
    sources = open_event_files(snapshot, files)
    insert_only = type_of(snapshot, sources, table_type) is TableType.INSERT_ONLY
    if insert_only:
        _refuse_of_insert_only(snapshot, kind, is_rebalance=rebalance is not None)
    else:
        _refuse_odd_names(snapshot, files)
    highest = state.deltas or ((state.base,) if state.base else ())  # a base alone can only be rebalanced
    ids = [v.directory for v in highest if v.directory]
    low = min((d.min_write_id for d in ids), default=MINL)
    high = max((d.max_write_id for d in ids), default=MINL)
    name_of = partial(format_directory, visibility_txn=visibility_txn)
    delete_name = None
    inputs = [v.name for v in state.deltas]
    if kind is CompactionKind.MAJOR:
        # No base lies above every delta, since such deltas are obsolete. Without deltas the originals become base_MINL.
        insert_name = name_of(Kind.BASE, high, high)
        originals = sorted({entry.path.partition("/")[0] for entry in state.originals})
        inputs = [*originals, *([state.base.name] if state.base else ()), *inputs]
    else:
        insert_name = name_of(Kind.DELTA, low, high)
        delete_name = None if insert_only else name_of(Kind.DELETE_DELTA, low, high)
    names = tuple(name for name in (insert_name, delete_name) if name)
    if visibility_txn or not rebalance:  # else it is planned again, with another name
        _refuse_existing(snapshot, names)
        require_read(snapshot, kind, names, inputs, visibility_txn)
    if kind is CompactionKind.MINOR:
        _refuse_crossing(snapshot, low, high)
    staging = snapshot.absolute(staging_name)
    attempts = f"{staging}/{ATTEMPTS}"
    tasks: Sequence[BucketTask | ConcatTask | CountTask]
    spread: Spread | None = None
    version = 0 if insert_only or any(_is_v1(source) for source in sources) else 2
    if rebalance:
        version = 2  # every event becomes an insert
        refuse_twin_base(snapshot)
        spread, tasks = planned_spread(snapshot, sources, attempts, writing or Writing(), rebalance)
    elif insert_only:
        tasks = concat_tasks(snapshot, kind, sources, attempts, writing or Writing())
    else:
        tasks = _tasks(snapshot, kind, sources, attempts, writing or Writing(), acid_version=version)
    events = [sum(s.rows for s in sources if (s.file.role is Role.DELETE) is is_delete) for is_delete in (False, True)]
    return CompactionPlan(
        snapshot,
        kind,
        tuple(inputs),
        insert_name,
        delete_name,
        staging,
        low,
        high,
        visibility_txn,
        version,
        tuple(tasks),
        rows=events[0],
        delete_events=events[1],
        input_bytes=sum(source.file.size for source in sources),
        spread=spread,
    )


def _refuse_crossing(snapshot: Snapshot, low: int, high: int) -> None:
    """Refuse a delta beside the result of a compaction with an open transaction: once committed, both would be read."""
    taken = snapshot.state.current_names
    others = (v.directory for v in snapshot.state.verdicts if v.name not in taken and v.state is not State.ABORTED)
    if other := crossing(filter(None, others), low, high):
        raise RefusedError(
            f"cannot compact write ids {low} to {high} of {snapshot.fs.display(snapshot.path)} to a delta",
            f"{other.name} ends among them, and once it is read its rows would be there twice",
            "wait until its transaction has ended, and give a newer `valid_txns`; or use `major`",
        )


def _is_v1(source: EventFile) -> bool:
    """Say if an insert delta or base has updates or deletes among its events (format section 4.1)."""
    is_delete = source.file.role is Role.DELETE
    return not is_delete and source.may_hold_changes and source.tail.acid_version is None


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
            "give `valid_txns`, or `assume_committed` when no compaction and no writer is at work",
        )
    # With a list of write ids the rows of open writers are left out one by one; without one only the age of their
    # directories counts, and a writer that just began has no directory.
    is_assumed = snapshot.assumed is not None and snapshot.assumed.of_write_ids
    signs = live_writers(listing, state, now) if is_assumed or snapshot.write_ids.is_everything else []
    if is_assumed:  # a manifest already ends what counts as committed
        signs = [sign for sign in signs if not manifest_for(sign)]
    if signs and not force:
        raise RefusedError(
            f"a writer seems to be at work in {shown}",
            f"there is {', '.join(signs[:3])}",
            "wait until it has ended, give `write_ids`, or `force` when you know that it is dead",
        )


def _refuse_lost_rows(snapshot: Snapshot) -> None:
    """Raise BadDataError if an empty result hides rows from readers: after a compaction they could not come back."""
    for lost in find_lost_rows(snapshot):
        if lost.result.is_read:
            raise BadDataError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"{lost_events(lost.rows, lost.deletes, lost.result.name)} (V43)",
                "run `repair('empty-result')`, which brings that back, or says why it cannot",
            )


def _refuse_of_insert_only(snapshot: Snapshot, kind: CompactionKind, *, is_rebalance: bool) -> None:
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


def _refuse_odd_names(snapshot: Snapshot, files: Sequence[DataFile]) -> None:
    for file in files:
        if file.bucket == NO_BUCKET and file.size:
            raise BadDataError(
                f"cannot compact {snapshot.display(file.path)}",
                "its name tells no bucket, so its rows have no ROW__ID; Hive's compactor fails on it too",
                "rename it by Hive's pattern, for example 000000_0_copy_9, or remove it if it is not data",
            )


def _refuse_existing(snapshot: Snapshot, names: Sequence[str]) -> None:
    existing = {verdict.name: verdict for verdict in snapshot.state.verdicts}
    for name in names:
        if name in existing:
            raise ConflictError(
                f"{snapshot.display(name)} exists already",
                f"it is {existing[name].state.value}: {text_of(existing[name].reason)}",
                "see `state()`; clean it first if it is not current",
            )


def _tasks(
    snapshot: Snapshot,
    kind: CompactionKind,
    sources: Sequence[EventFile],
    attempts: str,
    writing: Writing,
    *,
    acid_version: int,
) -> list[BucketTask]:
    inserts = [source for source in sources if source.file.role is not Role.DELETE]
    deletes = [source for source in sources if source.file.role is Role.DELETE]
    by_age = sorted(inserts, key=lambda source: source.file.max_write_id)
    types = [source.row_type for source in by_age or deletes]
    row = output_row_type(snapshot, types) if types else OrcType("struct")
    refuse_differing(snapshot, inserts, row, writing.reader)
    settings = writing.settings_for(by_age[-1] if by_age else None, kind)
    bloom_ids(settings.bloom_columns, row)
    kills = [source for source in sources if source.is_delete or source.may_hold_changes]
    least = writing.task_bytes or FINEST
    inserts_of, deletes_of = _by_bucket(inserts), _by_bucket(deletes if kind is CompactionKind.MINOR else ())
    buckets = sorted({source.file.bucket for source in sources})
    kills_of = [Kills(tuple(kills) if bucket in inserts_of else ()) for bucket in buckets]
    if kills and len(buckets) > 1:
        kills_of = BucketNumbers(sources).kills_of([inserts_of[bucket] for bucket in buckets], kills)
    tasks = []
    for bucket, killing in zip(buckets, kills_of, strict=True):
        rows, events = inserts_of[bucket], deletes_of[bucket]
        if not rows and not events:
            continue
        whole = BucketTask(
            storage=snapshot.fs.spec,
            bucket=bucket,
            attempts=attempts,
            row=row,
            settings=settings,
            calendar=calendar_of(rows),
            weight=sum(source.file.size for source in (*rows, *events)),
            rows=sum(source.rows for source in (*rows, *events)),
            may_copy=not writing.overrides,
            verify=writing.verify,
            reader=writing.reader,
            applies_all=writing.apply_all_deletes,
            kind=kind,
            inserts=inputs_of(rows),
            deletes=inputs_of(events),
            kills=inputs_of(killing.files),
            kills_of=killing.buckets,
            write_ids=snapshot.write_ids,
            acid_version=acid_version,
            pieces=_pieces(rows, least),
        )
        tasks += cut(whole, writing.task_bytes) if writing.task_bytes else [whole]
    return tasks


def _by_bucket(sources: Iterable[EventFile]) -> defaultdict[int, list[EventFile]]:
    by_bucket = defaultdict[int, list[EventFile]](list)
    for source in sources:
        by_bucket[source.file.bucket].append(source)
    return by_bucket


def _pieces(files: Sequence[EventFile], least: int) -> tuple[StripeGroup, ...]:
    """Return the groups of stripes into which a bucket can be cut; none if it is small, or its keys interleave."""
    pieces = split(files, least) if sum(file.file.size for file in files) > least else []
    return tuple(pieces) if len(pieces) > 1 else ()


def require_atomic(plan: CompactionPlan, yields_both: bool, offline: bool) -> None:
    """Refuse a minor compaction with both kinds of delta while the table may be read: no order of its renames is safe.

    Between the two renames either deleted rows reappear or live rows vanish (section 8.6).

    Raises:
        RefusedError: neither `offline` nor a visibility transaction prevents that.
    """
    if plan.kind is CompactionKind.MINOR and yields_both and not offline and not plan.visibility_txn:
        raise RefusedError(
            f"a minor compaction of {plan.shown} would write both {plan.insert_name} and {plan.delete_name}",
            "they appear one after the other, and a reader between the two would see wrong rows",
            "use `major`, which appears at once, or `offline` when nothing reads the table meanwhile",
        )
