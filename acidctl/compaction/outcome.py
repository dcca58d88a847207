"""What a location will be once a planned result is in it: readers must then read the result in place of its inputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import Entry, with_entries
from acidctl.acid.names import MAXL, METADATA_ACID
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, select
from acidctl.acid.writeids import ValidTxns
from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of


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
