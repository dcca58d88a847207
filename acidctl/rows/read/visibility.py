"""The visible rows of a snapshot: loads deletes, judges events by write id, and reports files that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from acidctl.acid.layout import DataFile, Role
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AccessError, AcidctlError, BadDataError, NotFoundError
from acidctl.orc.types import OrcType
from acidctl.rows.foreign.format import Format, footer_rows, text_beside
from acidctl.rows.read.bucket_numbers import is_among
from acidctl.rows.read.delete_set import DELETE, Bools, Bound, DeleteSet, DeleteSetBuilder, valid_mask
from acidctl.rows.read.events import EventFile, Ids, open_event_files

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows, or delete events, that could not be read.

    Attributes:
        path: the file, as a user would type it.
        rows: the number of lost rows by the file's footer; None if the footer cannot be read.
        deletes: whether they are delete events: then deleted rows reappear.
        error: the cause.
    """

    path: str
    rows: int | None
    deletes: bool
    error: AcidctlError


OnLoss = Callable[[Loss], None]
Unreadable = BadDataError, NotFoundError, AccessError


def load_deletes(
    files: Iterable[EventFile],
    write_ids: ValidWriteIds,
    *,
    same_write_id: bool = False,
    buckets: frozenset[int] | None = None,
    rows: Sequence[EventFile] = (),
    see: Callable[[EventFile, Ids], None] | None = None,
    on_loss: OnLoss | None = None,
) -> DeleteSet:
    """Return every key that an event of the snapshot deletes or replaces.

    Args:
        buckets: numbers (:mod:`acidctl.rows.read.bucket_numbers`) of the buckets whose rows will be looked up: keys
            of others are not kept. None for all.
        same_write_id: take only delete events of the write id that inserted the row, as a minor compaction needs them
            (format section 8.2), and no updates and deletes of ACID v1.
        rows: the files of the rows that will be looked up, if they are not among `files`.
        see: called with the events of each stripe, as they are read.
        on_loss: called for files that cannot be read, which then delete nothing; by default that is an error.

    Delete events count in every bucket file (section 4.2: Hive 3 wrote them into any file of tables without buckets).
    Events of write ids that the snapshot does not see delete nothing.
    """
    files = files if rows else list(files)
    moved = any(source.may_hold_moved for source in rows or files)
    builder = DeleteSetBuilder()
    for source in files:
        if not source.is_delete and (same_write_id or not source.may_hold_changes):
            continue
        try:
            for stripe, ids in enumerate(source.stripe_ids()):
                if see:
                    see(source, ids)
                kept = _of_buckets(source, stripe, ids, buckets)
                add_kills(builder, source, kept, write_ids, same_write_id=same_write_id, moved=moved)
        except Unreadable as error:
            if on_loss is None:
                raise with_loss(error, lost_rows(loss_of(source, None, error), None, source)) from error
            # If rows hold updates too, the scan of the rows reports the loss.
            if source.is_delete:
                on_loss(loss_of(source, None, error))
    return builder.build()


def _of_buckets(source: EventFile, stripe: int, ids: Ids, buckets: frozenset[int] | None) -> Ids:
    """Return the events of a stripe in these buckets.

    Raises:
        BadDataError: the events have other buckets than the statistics by which the files were chosen.
    """
    values, keys = ids.keys.bucket, source.ranges[stripe] if buckets is not None else None
    if keys and len(values) and not keys.bucket[0] <= values.min() <= values.max() <= keys.bucket[1]:
        raise BadDataError(
            f"the statistics of {source.shown} are wrong",
            f"they give buckets {keys.bucket[0]} to {keys.bucket[1]} for stripe {stripe}, but it holds others",
            "deletes could be missed: restore the file, or write it again with Hive's own compaction",
        )
    return ids if buckets is None else ids.take(is_among(values, buckets))


def add_kills(
    builder: DeleteSetBuilder,
    source: EventFile,
    ids: Ids,
    write_ids: ValidWriteIds,
    *,
    same_write_id: bool = False,
    moved: bool = False,
) -> None:
    """Add the keys that some events of a file delete or replace.

    Args:
        same_write_id: see :func:`load_deletes`.
        moved: see :meth:`DeleteSetBuilder.add_deletes`.
    """
    kept = visible_events(ids, write_ids)
    wanted = None
    if same_write_id:
        wanted = ids.current == ids.keys.original
    elif not source.is_delete:
        wanted = ids.operation != 0
    if wanted is not None:
        kept = wanted if kept is None else kept & wanted
    ids = ids.take(kept)
    if not source.is_delete:
        builder.add(ids.keys, ids.bound(source.file.statement_id))
    else:
        builder.add_deletes(ids.keys, ids.current, source.file.ends, moved=moved)


def visible_events(ids: Ids, write_ids: ValidWriteIds) -> Bools | None:
    """Return a mask of the events that the snapshot sees by their current write id; None for all."""
    return valid_mask(ids.current, write_ids.high_watermark, write_ids.exceptions)


def dead_rows(source: EventFile, ids: Ids, write_ids: ValidWriteIds, deletes: DeleteSet) -> Bools:
    """Return a mask of the events of a stripe that are rows which the snapshot deleted or updated."""
    dead = deletes.dead(ids.keys, _bound(source, ids, deletes))
    if dead is None:
        return np.zeros(len(ids.current), np.bool_)
    if source.may_hold_changes:
        dead &= ids.operation != DELETE
    visible = visible_events(ids, write_ids)
    return dead if visible is None else dead & visible


def live_rows(source: EventFile, ids: Ids, write_ids: ValidWriteIds, deletes: DeleteSet) -> Bools | None:
    """Return a mask of the events of a stripe that are rows which a reader returns; None for all."""
    live = visible_events(ids, write_ids)
    if source.may_hold_changes:
        rows = ids.operation != DELETE
        live = rows if live is None else live & rows
    dead = deletes.dead(ids.keys, _bound(source, ids, deletes))
    if dead is not None:
        live = ~dead if live is None else live & ~dead
    return None if live is None or live.all() else live


def _bound(source: EventFile, ids: Ids, deletes: DeleteSet) -> Bound | None:
    return None if deletes.is_absolute else ids.bound(source.file.statement_id)


def row_types(sources: Iterable[EventFile]) -> list[OrcType]:
    """Return the row types of the files that hold rows, oldest first."""
    typed = [source for source in sources if not source.is_delete]
    return [source.row_type for source in sorted(typed, key=lambda source: source.file.max_write_id)]


def open_sources(snapshot: Snapshot, on_loss: OnLoss | None = None) -> list[EventFile]:
    """Return the data files of a snapshot; with `on_loss`, without those whose footers cannot be read.

    Row ids of files without ids continue from file to file: those after a lost file are unknown, so they are lost too.
    A text file beside files of other formats is not read, unless a metastore describes its lines.

    Raises:
        BadDataError, NotFoundError: a file cannot be read and there is no `on_loss`.
    """

    def report(file: DataFile, error: AcidctlError) -> None:
        if on_loss is None or not isinstance(error, Unreadable):
            raise error
        rows = None
        with suppress(*Unreadable):  # the footer may be whole, although the rows cannot be numbered
            rows = footer_rows(snapshot, file, full=False)
        on_loss(Loss(snapshot.display(file.path), rows, file.role is Role.DELETE, error))

    opened = open_event_files(snapshot, snapshot.files(), report)
    others = [source for source in opened if not is_undeclared_text(source)]
    if not others:
        return opened
    beside = snapshot.display(others[0].file.path), others[0].format
    for source in filter(is_undeclared_text, opened):
        report(source.file, text_beside(snapshot.display(source.file.path), *beside))
    return others


def is_undeclared_text(source: EventFile) -> bool:
    """Return whether a file is text that no metastore describes."""
    return source.format is Format.TEXT and not source.declared


def loss_of(source: EventFile, stripe: int | None, error: AcidctlError) -> Loss:
    """Return the loss of a stripe, or of the whole file."""
    rows = source.rows if stripe is None else source.tail.stripes[stripe].numberOfRows
    return Loss(source.shown, rows, source.is_delete, error)


def lost_rows(loss: Loss, stripe: int | None, source: EventFile) -> str:
    """Describe the rows of a file that cannot be read in words."""
    what = "delete events" if loss.deletes else "rows"
    if stripe is None:
        return f"its {loss.rows} {what} cannot be read"
    before = sum(source.tail.stripes[i].numberOfRows for i in range(stripe))
    return f"{what} {before + 1} to {before + (loss.rows or 0)} of its {source.rows} cannot be read"


def with_loss(error: AcidctlError, lost: str) -> AcidctlError:
    """Return the error with `lost` added to its reason."""
    return type(error)(error.what, "; ".join(part for part in (error.why, lost) if part), error.hint)


def changed(source: EventFile) -> AcidctlError | None:
    """Return an error if a file changed since it was listed; None if it looks the same, or cannot be checked.

    Hive's files never change, they only disappear. This is one call to the store, so use it only after a read failed
    or if the call is cheap.
    """
    shown, listed = source.shown, source.file.size
    try:
        size = source.fs.stat(source.path).size
    except NotFoundError:
        return NotFoundError(
            f"{shown} has vanished", "it was there when the table was listed", "a cleaner removed it: read once more"
        )
    except AcidctlError:
        return None
    # A file of a streaming writer grows, but its committed part stays the same.
    if size == listed or (source.length is not None and size > listed):
        return None
    return BadDataError(
        f"{shown} was replaced while the table was read", f"it had {listed} bytes, and has {size} now", "read once more"
    )


def refuse_changed(source: EventFile) -> None:
    """Raise the error of :func:`changed` for a file of the local disk, where the check costs no call to a store."""
    if source.fs.is_local:
        problem = changed(source)
        if problem is not None:
            raise problem
