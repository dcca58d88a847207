"""The plan of a compaction: which files go into which output, or why there is nothing to do (format section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import Role
from acidctl.acid.listing import TableType
from acidctl.acid.names import MINL, Kind, format_directory
from acidctl.base.errors import RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan_tasks import Spread, open_questions, plan_tasks
from acidctl.compaction.proof.checksum import Verify
from acidctl.compaction.refusals import (
    refuse_crossing,
    refuse_existing,
    refuse_odd_names,
    refuse_of_insert_only,
    refuse_twin_base,
    require_read,
    type_of,
)
from acidctl.compaction.tasks import ATTEMPTS, BucketTask, ConcatTask, CountTask
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.events import EventFile, open_event_files


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
        questions: what decides if it is refused, and is known only when rows are read.
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
    questions: tuple[str, ...] = ()

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
        return self.snapshot.shown

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


def open_inputs(
    snapshot: Snapshot, kind: CompactionKind, known: TableType | None = None
) -> tuple[list[EventFile], TableType]:
    """Read the footers of the files that a compaction reads; return these files, in read order, and the table's type.

    Args:
        known: the type according to the user or a metastore; by default the files show it.

    Raises:
        HistoryError: readers of the snapshot need history that a compaction destroyed.
        BadDataError: a file cannot be read, or has no bucket in its name.
        RefusedError: the type of the table cannot be determined, or is not `known`.
    """
    snapshot.require_history()
    files = snapshot.files()
    if kind is CompactionKind.MINOR:
        deltas = {verdict.name for verdict in snapshot.state.deltas}
        files = [file for file in files if file.directory and file.directory.name in deltas]
    sources = open_event_files(snapshot, files)
    table_type = type_of(snapshot, sources, known)
    if table_type is TableType.FULL_ACID:
        refuse_odd_names(snapshot, files)
    return sources, table_type


def plan_compaction(
    snapshot: Snapshot,
    sources: Sequence[EventFile],
    table_type: TableType,
    kind: CompactionKind,
    *,
    staging_name: str,
    writing: Writing,
    visibility_txn: int = 0,
    rebalance: int | None = None,
) -> CompactionPlan:
    """Plan one location from its snapshot and the footers of its files.

    Args:
        snapshot: taken with the compactor's write-id list (section 7.3); no directory lies across its last write id.
        sources, table_type: see :func:`open_inputs`.
        staging_name: an unused hidden name, ``_tmp_<uuid>``.
        visibility_txn: id of the compaction's own transaction; 0 without a metastore.
        rebalance: makes a major compaction give all rows new ids, spread over this many buckets; 0 keeps their number.

    Raises:
        BadDataError, ConflictError: the directories of the location cannot be compacted.
        RefusedError: it is insert-only text, or the result would change what readers see.
    """
    state, insert_only = snapshot.state, table_type is TableType.INSERT_ONLY
    if insert_only:
        refuse_of_insert_only(snapshot, kind, is_rebalance=rebalance is not None)
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
    if visibility_txn or rebalance is None:  # else it is planned again, with another name
        names = tuple(name for name in (insert_name, delete_name) if name)
        refuse_existing(snapshot, names)
        require_read(snapshot, kind, names, inputs, visibility_txn)
    if kind is CompactionKind.MINOR:
        refuse_crossing(snapshot, low, high)
    if rebalance is not None:
        refuse_twin_base(snapshot)
    staging = snapshot.absolute(staging_name)
    # Every event of a rebalance becomes an insert.
    is_v1 = rebalance is None and (insert_only or any(map(_is_v1, sources)))
    version = 0 if is_v1 else 2
    spread, tasks = plan_tasks(
        snapshot, kind, sources, f"{staging}/{ATTEMPTS}", writing,
        insert_only=insert_only, acid_version=version, rebalance=rebalance,
    )  # fmt: skip
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
        questions=() if insert_only else tuple(open_questions(kind, sources, writing)),
    )


def _is_v1(source: EventFile) -> bool:
    """Say if an insert delta or base has updates or deletes among its events (format section 4.1)."""
    is_delete = source.file.role is Role.DELETE
    return not is_delete and source.may_hold_changes and source.tail.acid_version is None


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
            "use --major, which appears at once, or --offline when nothing reads the table meanwhile",
        )
