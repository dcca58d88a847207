"""Whether a listing may lack what its lists need.

Lists are taken first, a location is listed later. Did a compaction end in between, a cleaner may have removed what it
replaced, while the lists, which are older, do not see its result: what is left looks like all there is. Newer lists,
taken after the listing, tell: as long as a result counts for nobody, nothing that it replaces is removed.

This module also detects a metastore that is older than the files. A writer gets its write id before it makes a
directory, and a compactor its transaction before it puts the id into a name. So if a listing holds an id above every id
that the metastore, asked later, has ever given, the metastore was restored or replaced since.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.acid.listing import Listing
from acidctl.acid.names import AcidDirectory, Kind, acid_directory
from acidctl.acid.writeids import ValidTxns, ValidWriteIds


def unseen_results(listing: Listing, write_ids: ValidWriteIds, txns: ValidTxns) -> tuple[AcidDirectory, ...]:
    """The directories that may be of compactions which the lists do not see, and which need not have failed."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    found = (acid_directory(name) for name in names)
    return tuple(
        one
        for one in found
        if one
        and (one.visibility_txn or one.kind is Kind.BASE)
        and not txns.is_aborted(one.visibility_txn)
        and not _is_seen(one, write_ids, txns)
    )


def is_overtaken(unseen: Iterable[AcidDirectory], write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    """Whether lists that were taken after the listing see what those before it did not."""
    return any(_is_seen(one, write_ids, txns) for one in unseen)


def named_above(listing: Listing, write_id: int, txn: int) -> tuple[AcidDirectory, ...]:
    """The directories whose names hold a write id, or a transaction id, above these."""
    names = (entry.path for entry in listing.entries if entry.is_dir and "/" not in entry.path)
    found = (acid_directory(name) for name in names)
    return tuple(one for one in found if one and (one.max_write_id > write_id or one.visibility_txn > txn))


def _is_seen(directory: AcidDirectory, write_ids: ValidWriteIds, txns: ValidTxns) -> bool:
    if directory.visibility_txn and not txns.is_valid(directory.visibility_txn):
        return False
    return directory.kind is not Kind.BASE or write_ids.is_valid_base(directory.max_write_id)
