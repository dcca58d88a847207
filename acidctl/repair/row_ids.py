"""The ids of the rows in an ACID file, for repairs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from acidctl.base.errors import BadDataError
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import RecordKey, Tail
from acidctl.orc.types import ACID_COLUMNS
from acidctl.rows.read.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage.port import FileSystem

KEY_COLUMNS = ACID_COLUMNS[1:4]


def last_keys(fs: FileSystem, path: str, tail: Tail) -> list[RecordKey | None]:
    """Return the key of the last row of every stripe, None for a stripe without rows.

    Raises:
        BadDataError: a stripe cannot be read, or its last row has no key.
    """
    keys: list[RecordKey | None] = []
    with open_orc(fs, path, tail.file_length, tail) as orc:
        for stripe in range(orc.stripe_count):
            batch = orc.read_stripe(stripe, list(KEY_COLUMNS))
            if not batch.num_rows:
                keys.append(None)
                continue
            parts = [batch.column(name)[-1].as_py() for name in KEY_COLUMNS]
            if None in parts:
                raise BadDataError(
                    f"stripe {stripe} of {fs.display(path)} has no last key",
                    f"{KEY_COLUMNS[parts.index(None)]} of its last row is NULL",
                    "restore the file",
                )
            keys.append(RecordKey(*parts))
    return keys


def stripe_ids(fs: FileSystem, path: str, tail: Tail) -> Iterator[Ids]:
    """Yield the ids of one stripe after another.

    Raises:
        BadDataError: a stripe cannot be read, or one of its rows lacks an id.
    """
    with open_orc(fs, path, tail.file_length, tail) as orc:
        for stripe in range(orc.stripe_count):
            yield read_ids(orc.read_stripe(stripe, ID_COLUMNS), fs.display(path))


def events_digest(fs: FileSystem, path: str, tail: Tail) -> tuple[int, bytes]:
    """Return the number of events and a digest of their ids in order, equal for files that hold the same events.

    Two events with the same operation, key and write id are the same event: ids are given once (format section 4).
    """
    digests = [hashlib.sha256() for _ in ID_COLUMNS]
    count = 0
    for ids in stripe_ids(fs, path, tail):
        columns = (ids.operation, ids.keys.original, ids.keys.bucket, ids.keys.row_id, ids.current)
        for digest, column in zip(digests, columns, strict=True):
            digest.update(np.ascontiguousarray(column).data)
        count += len(ids.current)
    return count, b"".join(digest.digest() for digest in digests)
