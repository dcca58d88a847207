"""Detects a listing that lacks directories which its lists need, because a cleaner ran in between.

Lists are taken first, a location is listed later. If a compaction ended in between, a cleaner may have removed what it
replaced, while the older lists do not see its result: the rest looks complete. Newer lists, taken after the listing,
show it: as long as a result counts for no reader, nothing that it replaces is removed.

This module also detects a metastore that is older than the files. A writer gets its write id before it makes a
directory, and a compactor its transaction before it puts the id into a name. So if a listing holds an id above every id
that the metastore, queried later, has ever allocated, the metastore was restored or replaced.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.acid.listing import Listing
from acidctl.acid.names import AcidDirectory, Kind, acid_directory
from acidctl.acid.writeids import ValidTxns, ValidWriteIds


def unseen_results(listing: Listing, write_ids: ValidWriteIds, txns: ValidTxns) -> tuple[AcidDirectory, ...]:
    """Return the directories that may be results of compactions which the lists do not see."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    directories = (acid_directory(name) for name in names)
    return tuple(
        directory
        for directory in directories
        if directory
        and (directory.visibility_txn or directory.kind is Kind.BASE)
        and not txns.is_aborted(directory.visibility_txn)
        and not _is_seen(directory, write_ids, txns)
    )


def is_overtaken(unseen: Iterable[AcidDirectory], write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    """Return whether lists that were taken after the listing see directories that the older lists did not."""
    return any(_is_seen(directory, write_ids, txns) for directory in unseen)


def named_above(listing: Listing, write_id: int, txn: int) -> tuple[AcidDirectory, ...]:
    """Return the directories whose names hold a write id, or a transaction id, above these."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    directories = (acid_directory(name) for name in names)
    return tuple(d for d in directories if d and (d.max_write_id > write_id or d.visibility_txn > txn))


def _is_seen(directory: AcidDirectory, write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    if directory.visibility_txn and not txns.is_valid(directory.visibility_txn):
        return False
    return directory.kind is not Kind.BASE or write_ids.is_valid_base(directory.max_write_id)
