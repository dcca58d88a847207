"""The tasks of a rebalance: counting the live rows, and writing the share of a bucket with new ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acidctl.base.errors import ConflictError
from acidctl.compaction.merge.agreement import LiveRows
from acidctl.compaction.merge.event_stream import EventStream, all_live, reopen, stripe_done
from acidctl.compaction.merge.merge import Chunk, StripeRun, merge, sorted_events
from acidctl.compaction.merge.written import write_output
from acidctl.compaction.proof.checksum import RowProof, key_checksum
from acidctl.compaction.proof.values import spread_checksum
from acidctl.compaction.rebalance import Runs, Share
from acidctl.compaction.tasks import BucketResult, BucketTask, CountTask, StripeCopy
from acidctl.orc.read.integer_runs import id_run
from acidctl.rows.read.delete_set import INSERT, Bools, DeleteSet, Longs
from acidctl.rows.read.events import EventFile, Ids, with_ids
from acidctl.rows.read.visibility import live_rows
from acidctl.storage import registry
from acidctl.storage.port import FileSystem


def run_count(task: CountTask) -> BucketResult:
    fs = registry.open_file_system(task.storage)
    live = _live(fs, task)
    counted: list[Runs] = []
    read = 0
    for place, item in enumerate(task.inserts, task.first):
        source = reopen(fs, item)
        with source.open() as events:
            for stripe in range(events.stripes):
                run = id_run(source.tail, stripe) if source.synthetic is None else None
                if run and all_live(run, task.write_ids, live.dead):
                    read += run.count
                    counted.append(Runs.counting(place, stripe, run.first, run.count))
                else:
                    ids = events.ids(stripe)
                    read += len(ids.current)
                    counted.append(Runs.of(place, stripe, ids.take(live.of(source, ids)).keys))
                stripe_done(source, stripe)
    runs = Runs.concat(counted)
    return BucketResult(task.bucket, rows_read=read, rows_dropped=read - int(runs.count.sum()), runs=runs)


def run_spread(task: BucketTask) -> BucketResult:
    """Write rows with new ids; the tasks that counted them have reported the rows that were read and dropped."""
    fs = registry.open_file_system(task.storage)
    dead = _live(fs, task).dead
    expected = RowProof()

    def events() -> Iterator[pa.RecordBatch]:
        nonlocal expected
        for share in task.shares:
            side = _Shared(fs, task, share, dead)
            yield from side.numbered()
            expected += side.proof()

    return BucketResult(task.bucket, write_output(fs, task, 0, events(), lambda: expected))


def _live(fs: FileSystem, task: CountTask | BucketTask) -> LiveRows:
    rows, kills = ([reopen(fs, item) for item in items] for items in (task.inserts, task.kills))
    return LiveRows(task, rows, kills)


class _Shared(EventStream):
    """The rows of a rebalance's share, which get new ids."""

    _checksum = staticmethod(spread_checksum)

    def __init__(self, fs: FileSystem, task: BucketTask, share: Share, dead: DeleteSet) -> None:
        def keep(source: EventFile, ids: Ids) -> Bools:
            live = live_rows(source, ids, task.write_ids, dead)
            own = share.holds(ids.keys)
            return own if live is None else own & live

        inputs = [replace(task.inserts[place], stripes=span) for place, span in sorted(share.spans.items())]
        super().__init__(fs, task, inputs, keep, lambda _: False)
        self._share = share
        self._seen: list[Longs] = [np.empty(0, np.int64)]
        self._left_out: list[Longs] = [np.empty(0, np.int64)]

    def numbered(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with their new ids."""
        share, at = self._share, -self._share.skip
        for ids, rows in _all_in_order(list(self._pieces())):
            count = len(ids.current)
            low, high = (min(max(end - at, 0), count) for end in (0, share.count))
            for part in (slice(low), slice(high, count)):
                self._leave_out(ids.take(part), rows[part])
            if low < high:
                original = ids.keys.original[low:high]
                keys = share.new_keys(original, self._task.bucket, at + low)
                new = Ids(np.full(high - low, INSERT, np.int64), keys, original)
                yield with_ids(new, rows.slice(low, high - low))
            at += count

    def proof(self) -> RowProof:
        """Return the proof of the rows to write, from the ids of the first read: in that order they get new row ids."""
        first, second = (np.concatenate(ids) for ids in (self._seen, self._left_out))
        write_ids, at = np.unique(np.concatenate((first, second)), return_inverse=True)
        counts = np.bincount(at[: len(first)], minlength=len(write_ids)) - np.bincount(
            at[len(first) :], minlength=len(write_ids)
        )
        if counts.min(initial=0) < 0 or counts.sum() != self._share.count:
            raise _changed(int(counts.sum()), self._share.count)
        keys = self._share.new_keys(np.repeat(write_ids, counts), self._task.bucket)
        return RowProof(self._share.count, key_checksum(keys), self._expected.values)

    def _see(self, ids: Ids) -> None:
        self._seen.append(ids.keys.original)

    def _leave_out(self, ids: Ids, rows: pa.Array) -> None:
        self._left_out.append(ids.keys.original)
        if self._task.verify.compares_values:
            self._expected -= RowProof(0, 0, spread_checksum(ids, rows, self._task.row))


def _all_in_order(pieces: Sequence[StripeRun]) -> Iterator[tuple[Ids, pa.Array]]:
    """Yield what :func:`merge` yields, but sort all pieces together if one array can hold them: most overlap."""
    if not pieces:
        return
    try:
        events = sorted_events(Chunk.concat([piece.held or piece.load() for piece in pieces]))
    except pa.ArrowInvalid:
        for item in merge(pieces):
            assert not isinstance(item, StripeCopy)  # none may be copied where rows get other ids
            yield item
        return
    yield events.ids, events.rows


def _changed(found: int, counted: int) -> ConflictError:
    return ConflictError(
        "the files of a rebalance changed while they were read",
        f"{found} rows are where {counted} were counted",
        "nothing was published; run it again",
    )
