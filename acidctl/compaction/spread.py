"""The plan of a rebalance: all live rows get new ids and are spread evenly over buckets, as Hive 4 does it.

Every row gets another ROW__ID, so updates and deletes must be locked out, and no delete event with old ids may lie
above the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, groupby
from typing import Any

from acidctl.acid.bucket import MAX_BUCKET
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import Role
from acidctl.acid.names import BucketFile, Kind, is_visible_path, parse_file
from acidctl.acid.state import State, Verdict
from acidctl.base.errors import RefusedError
from acidctl.compaction.merge.agreement import refuse_differing
from acidctl.compaction.merge.row_type import output_row_type
from acidctl.compaction.output_settings import Writing, calendar_of, inputs_of
from acidctl.compaction.rebalance.order import SORTABLE, SortColumn
from acidctl.compaction.rebalance.shares import Runs, shares_of, sorted_shares
from acidctl.compaction.tasks import BucketTask, CountTask, FileTask
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.orc.types import OrcType
from acidctl.orc.write.bloom import bloom_ids
from acidctl.rows.read.bucket_numbers import BucketNumbers, Kills
from acidctl.rows.read.events import EventFile

_COUNTED = 256 << 20
"""Stored bytes of files whose rows one task of a rebalance counts; it reads only their ids."""
_AT_ONCE = 64 << 20
_FEWEST = 100_000
"""A task of a rebalance has rows of this many stored bytes in memory, or this many rows if those are more."""

_MOST_OF_BUCKET = 128 << 20
_MOST_SORTED = 50_000_000
"""A task that sorts has a bucket's inputs in memory, and the sort columns of all rows."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The options of a rebalance.

    Attributes:
        buckets: 0 keeps the present number.
        order: the columns by which all rows are sorted.
    """

    buckets: int = 0
    order: tuple[SortColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """The plan by which a rebalance writes its buckets once all rows are counted.

    Attributes:
        buckets: the requested number of buckets.
        like: a task with all inputs, without a share.
        kills: for each input, the files with events that may delete its rows.
        most: the most rows that a task has in memory.
        order: the columns by which all rows are sorted.
    """

    buckets: int
    like: BucketTask
    kills: tuple[Kills, ...]
    most: int
    order: tuple[SortColumn, ...] = ()

    def tasks_for(self, runs: Runs) -> list[BucketTask]:
        """Return a task for each bucket that gets rows."""
        if self.order:
            return [
                replace(self.like, bucket=bucket, sorted_share=share, rows=share.count)
                for bucket, share in enumerate(sorted_shares(runs, self.buckets, self.order))
            ]
        tasks, total = [], int(runs.count.sum())
        for bucket, shares in enumerate(shares_of(runs, self.buckets, self.most)):
            rows = sum(share.count for share in shares)
            files = sorted({file for share in shares for file in share.spans})
            places = {file: place for place, file in enumerate(files)}
            renumbered = tuple(
                replace(share, spans={places[file]: span for file, span in share.spans.items()}) for share in shares
            )
            inserts = tuple(self.like.inserts[file] for file in files)
            weight = self.like.weight * rows // total
            whole = replace(self.like, bucket=bucket, shares=renumbered, inserts=inserts, weight=weight, rows=rows)
            tasks.append(replace(whole, **_killing([self.kills[file] for file in files])))
        return tasks


def planned_spread(
    snapshot: Snapshot, sources: Sequence[EventFile], attempts: str, writing: Writing, wanted: Rebalance
) -> tuple[Spread, list[CountTask]]:
    """Return the plan of a rebalance, and the tasks that count its rows first.

    Raises:
        RefusedError: there are too many buckets, or acidctl cannot sort by these columns or this many rows.
    """
    inserts = [source for source in sources if source.file.role is not Role.DELETE]
    by_age = sorted(inserts, key=lambda source: source.file.max_write_id)
    row = output_row_type(snapshot, [source.row_type for source in by_age]) if by_age else OrcType("struct")
    refuse_differing(snapshot, inserts, row, writing.reader)
    settings = writing.settings_for(by_age[-1] if by_age else None, CompactionKind.MAJOR)
    bloom_ids(settings.bloom_columns, row)
    size, rows = sum(source.file.size for source in inserts), sum(source.rows for source in inserts)
    killing = [source for source in sources if source.is_delete or source.may_hold_changes]
    kills = [Kills(())] * len(inserts)
    if killing:
        kills = BucketNumbers(sources).kills_of([(source,) for source in inserts], killing)
    like = BucketTask(
        storage=snapshot.fs.spec,
        bucket=0,
        attempts=attempts,
        row=row,
        settings=settings,
        calendar=calendar_of(inserts),
        weight=size,
        rows=rows,
        may_copy=False,
        verify=writing.verify,
        reader=writing.reader,
        applies_all=writing.apply_all_deletes,
        kind=CompactionKind.MAJOR,
        inserts=inputs_of(inserts),
        deletes=(),
        kills=inputs_of(killing),
        write_ids=snapshot.write_ids,
        acid_version=2,
    )
    shared = {field.name: getattr(like, field.name) for field in fields(FileTask)}
    tasks = []
    ends = list(accumulate(source.file.size for source in inserts))
    for _, group in groupby(
        range(len(inserts)), key=lambda place: (ends[place] - inserts[place].file.size) // _COUNTED
    ):
        places = list(group)
        part = slice(places[0], places[-1] + 1)
        counted = {"weight": sum(s.file.size for s in inserts[part]), "rows": sum(s.rows for s in inserts[part])}
        files = {"inserts": like.inserts[part], "first": places[0]} | _killing(kills[part])
        tasks.append(CountTask(**shared | counted | files, write_ids=like.write_ids))
    shown = f"cannot rebalance {snapshot.fs.display(snapshot.path)}"
    buckets = wanted.buckets or _buckets_of(snapshot)
    if min(buckets, rows) > MAX_BUCKET + 1:
        raise RefusedError(
            f"{shown} over {buckets} buckets", f"a ROW__ID has room for {MAX_BUCKET + 1}", "give fewer `buckets`"
        )
    stored = (column.position for column in wanted.order if column.position < len(row.children))
    odd = [row.names[position] for position in stored if row.children[position].kind not in SORTABLE]
    if odd:
        raise RefusedError(shown, f"acidctl does not sort by columns of the type of {odd[0]}", "sort by others")
    if wanted.order and (rows > _MOST_SORTED or size > _MOST_OF_BUCKET * buckets):
        raise RefusedError(
            shown,
            f"rows are sorted in memory: at most {_MOST_SORTED:,}, and {_MOST_OF_BUCKET >> 20} MiB of inputs a bucket",
            "give more `buckets`, leave `order_by` out, or let Hive's own workers do it",
        )
    return Spread(buckets, like, tuple(kills), max(_FEWEST, rows * _AT_ONCE // max(size, 1)), wanted.order), tasks


def _killing(kills: Iterable[Kills]) -> dict[str, Any]:
    listed = list(kills)
    files = {source.path: source for kill in listed for source in kill.files}
    return {
        "kills": inputs_of(list(files.values())),
        "kills_of": frozenset[int]().union(*(kill.buckets or () for kill in listed)),
    }


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
            f"cannot rebalance {snapshot.fs.display(snapshot.path)}",
            f"{base.name} is all there is, and Hive could not tell the result from it: its write id is the same",
            "write something to it first: any insert, update or delete gives it another write id",
        )


def _buckets_of(snapshot: Snapshot) -> int:
    """Return the number of buckets as Hive counts it for a rebalance: by all files with a bucket in their name."""
    names = (entry.path.rpartition("/")[2] for entry in snapshot.listing.entries if is_visible_path(entry.path))
    buckets = {parsed.bucket for name in names if isinstance(parsed := parse_file(name), BucketFile)}
    return len(buckets) or max(1, len({file.bucket for file in snapshot.files()}))


def deletes_above(verdicts: Iterable[Verdict], write_id: int) -> list[str]:
    """Return the names of delete deltas with later write ids: their events have the ids that rows had before."""
    directories = [v.directory for v in verdicts if v.directory and v.state is not State.ABORTED]
    return sorted(d.name for d in directories if d.kind is Kind.DELETE_DELTA and d.max_write_id > write_id)


def refuse_without_lock(found: TableLocation, *, is_of_user: bool) -> None:
    """Refuse a rebalance that cannot lock the table: deletes refer to rows by the ids that it replaces.

    Args:
        is_of_user: the user gave its transaction, so no lock was taken with it.

    Raises:
        RefusedError: the table is not in a metastore of Hive 4, or Hive would refuse it as well.
    """
    what, table = f"cannot rebalance {found.shown}", found.hive
    if table is None or found.resolver.warehouse is None or not found.resolver.asks_metastore or is_of_user:
        raise RefusedError(
            what,
            "every row gets another ROW__ID, which takes a lock of Hive's against all who update or delete",
            "name it as `hive:db.table`, by the metastore alone; or use `major`, which keeps all ids",
        )
    if not found.resolver.warehouse.metastore.features.txn_types:
        raise RefusedError(what, "rebalances came with Hive 4, and this metastore is older", "use `major`")
    if table.buckets > 0:
        columns = ", ".join(table.bucket_columns)
        raise RefusedError(
            what, f"its rows are clustered by {columns}, and would not be any more", "Hive refuses it, too: use `major`"
        )


def refuse_old_ids(snapshot: Snapshot, found: TableLocation) -> None:
    """Refuse a rebalance if a delete event outside of it may refer to rows by their present ids.

    Raises:
        RefusedError: a write id is open, or a delete delta lies above the last write id.
    """
    assert found.hive
    assert found.resolver.warehouse
    write_ids, _ = found.resolver.warehouse.lists(found.hive)
    last = snapshot.write_ids.high_watermark
    later = deletes_above(snapshot.state.verdicts, last)
    if write_ids.open:
        why = f"write id {write_ids.open[0]} of its table is open, and all up to the last one must be part of it"
    elif later:
        why = f"{later[0]} is above write id {last}, and names rows by the ids that they have now"
    else:
        return
    raise RefusedError(
        f"cannot rebalance {found.shown}", why, "wait until its transaction has ended; `txns` tells what is open"
    )
