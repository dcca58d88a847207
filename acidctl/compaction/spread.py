"""A rebalance: all live rows get new ids and are spread evenly over buckets, as Hive 4 does it.

What may be done, and how: every row gets another ROW__ID, so that whoever updates or deletes must be kept away, and
nothing that names rows by their old ids may be left above the result.
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
from acidctl.compaction.merge.differing import refuse_differing
from acidctl.compaction.merge.row_type import output_row_type
from acidctl.compaction.output_settings import Writing, calendar_of, inputs_of
from acidctl.compaction.rebalance.order import SORTABLE, SortColumn
from acidctl.compaction.rebalance.runs import Runs
from acidctl.compaction.rebalance.shares import shares_of, sorted_shares
from acidctl.compaction.tasks import BucketTask, CountTask, FileTask
from acidctl.errors import RefusedError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType
from acidctl.orc.write.bloom import bloom_ids
from acidctl.rows.read.bucket_numbers import BucketNumbers, Kills
from acidctl.rows.read.events import EventFile

_COUNTED = 256 << 20
"""Stored bytes of which one task of a rebalance counts the rows: it reads only their ids."""
_AT_ONCE = 64 << 20
_FEWEST = 100_000
"""Rows of so many stored bytes, or so many rows, are what a task of a rebalance has in memory."""


_MOST_OF_BUCKET = 128 << 20
_MOST_SORTED = 50_000_000
"""Sorted, a bucket's inputs are in memory, and of all rows what they are sorted by."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """What is asked for.

    Attributes:
        buckets: 0 for as many as there are.
        order: what all rows are sorted by.
    """

    buckets: int = 0
    order: tuple[SortColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a rebalance: how its buckets are written, once all rows are counted.

    Attributes:
        buckets: that are asked for.
        like: a task that has all inputs, and no share.
        kills: for each of its inputs, the files whose events may delete its rows.
        most: rows that a task has read at once.
        order: what all rows are sorted by.
    """

    buckets: int
    like: BucketTask
    kills: tuple[Kills, ...]
    most: int
    order: tuple[SortColumn, ...] = ()

    def tasks_for(self, runs: Runs) -> list[BucketTask]:
        """A task for each bucket that gets rows."""
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
            own = tuple(
                replace(share, spans={places[file]: span for file, span in share.spans.items()}) for share in shares
            )
            inserts = tuple(self.like.inserts[file] for file in files)
            weight = self.like.weight * rows // total
            whole = replace(self.like, bucket=bucket, shares=own, inserts=inserts, weight=weight, rows=rows)
            tasks.append(replace(whole, **_killing([self.kills[file] for file in files])))
        return tasks


def planned_spread(
    snapshot: Snapshot, sources: Sequence[EventFile], attempts: str, writing: Writing, wanted: Rebalance
) -> tuple[Spread, list[CountTask]]:
    """How a rebalance is written, and what counts its rows first.

    Raises:
        RefusedError: its buckets are too many, or it is to sort what cannot be sorted here.
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
        own = inserts[part]
        counted = {"weight": sum(one.file.size for one in own), "rows": sum(one.rows for one in own)}
        files = {"inserts": like.inserts[part], "first": places[0]} | _killing(kills[part])
        tasks.append(CountTask(**shared | counted | files, write_ids=like.write_ids))
    shown = f"cannot rebalance {snapshot.fs.display(snapshot.path)}"
    buckets = wanted.buckets or _buckets_of(snapshot)
    if min(buckets, rows) > MAX_BUCKET + 1:
        raise RefusedError(
            f"{shown} over {buckets} buckets", f"a ROW__ID has room for {MAX_BUCKET + 1}", "give fewer `buckets`"
        )
    odd = [row.names[one.position] for one in wanted.order if not _is_sortable(row, one)]
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
    """The arguments of a task for the deletes that may hit its files; `kills` has one part for each file."""
    listed = list(kills)
    files = {source.path: source for one in listed for source in one.files}
    return {
        "kills": inputs_of(list(files.values())),
        "kills_of": frozenset[int]().union(*(one.buckets or () for one in listed)),
    }


def refuse_twin_base(snapshot: Snapshot) -> None:
    """Refuse a result with the write id of the base that it is made from: of two compacted ones Hive's readers take
    whichever comes first in a hash table, and who reads rows by one of them would delete others by the other.

    Raises:
        RefusedError: nothing lies above the base.
    """
    base = snapshot.state.base
    if base and base.compacted and not snapshot.state.deltas:
        raise RefusedError(
            f"cannot rebalance {snapshot.fs.display(snapshot.path)}",
            f"{base.name} is all there is, and Hive could not tell the result from it: its write id is the same",
            "write something to it first: any insert, update or delete gives it another write id",
        )


def _is_sortable(row: OrcType, column: SortColumn) -> bool:
    return column.position >= len(row.children) or row.children[column.position].kind in SORTABLE


def _buckets_of(snapshot: Snapshot) -> int:
    """How many buckets there are, counted as Hive does for a rebalance: by all files that are called after one."""
    names = (entry.path.rpartition("/")[2] for entry in snapshot.listing.entries if is_visible_path(entry.path))
    found = {parsed.bucket for name in names if isinstance(parsed := parse_file(name), BucketFile)}
    return len(found) or max(1, len({file.bucket for file in snapshot.files()}))


def deletes_above(verdicts: Iterable[Verdict], write_id: int) -> list[str]:
    """Names of what may delete rows, or update them, in write ids above: it has the ids that rows had before."""
    found = [one.directory for one in verdicts if one.directory and one.state is not State.ABORTED]
    return sorted(one.name for one in found if one.kind is Kind.DELETE_DELTA and one.max_write_id > write_id)


def refuse_without_lock(found: Found, lists: SnapshotLists, *, is_of_user: bool) -> None:
    """Refuse a rebalance wherever it could not be had alone: deletes name rows by the ids that it gives anew.

    Args:
        is_of_user: its transaction was given, and not opened for it.

    Raises:
        RefusedError: no metastore of Hive 4 knows the table, or Hive would refuse it, too.
    """
    what, table = f"cannot rebalance {found.shown}", found.hive
    if table is None or lists.warehouse is None or not lists.asks_metastore or is_of_user:
        raise RefusedError(
            what,
            "every row gets another ROW__ID, which takes a lock of Hive's against all who update or delete",
            "name it as `hive:db.table`, by the metastore alone; or use `major`, which keeps all ids",
        )
    if not lists.warehouse.metastore.features.txn_types:
        raise RefusedError(what, "rebalances came with Hive 4, and this metastore is older", "use `major`")
    if table.buckets > 0:
        columns = ", ".join(table.bucket_columns)
        raise RefusedError(
            what, f"its rows are clustered by {columns}, and would not be any more", "Hive refuses it, too: use `major`"
        )


def refuse_old_ids(snapshot: Snapshot, found: Found, lists: SnapshotLists) -> None:
    """Refuse a rebalance below what may name rows by the ids that they have now, and is not part of it.

    Raises:
        RefusedError: a write id is open, or what deletes rows lies above the last one.
    """
    assert found.hive
    assert lists.warehouse
    write_ids, _ = lists.warehouse.lists(found.hive)
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
