"""Repair of a dead streaming writer's file: it is cut to its last committed length (format section 12).

The file is cut before its side file moves into the backup, so readers see the committed rows at every moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from acidctl.acid.layout import DataFile
from acidctl.acid.listing import Entry
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX
from acidctl.acid.sidefiles import flush_lengths
from acidctl.base.errors import BadDataError, VerifyError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.repair.plan import Fix, Made, RepairKind, Scope, Suspect, directories, native_files, stripe_ids, unsafe
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import MOST_LENGTHS, read_small


def suspects(snapshot: Snapshot, scope: Scope) -> Iterator[Suspect]:
    """Yield every file that has a side file, and every side file that has no data file."""
    sides = {entry.path: entry for _, entries in directories(snapshot) for entry in entries}
    for file, entry in native_files(snapshot, scope):
        if side := sides.get(file.flush_length_path or ""):
            yield file.path, partial(_look, snapshot, file, entry, side, scope)
    for path in sides:
        if path.endswith(FLUSH_LENGTH_SUFFIX) and path.removesuffix(FLUSH_LENGTH_SUFFIX) not in sides:
            yield path, _refuse_alone


def _refuse_alone() -> None:
    hint = "look for the data file; when it is not needed, remove the side file by hand"
    raise unsafe("its data file is missing: there is nothing to cut", hint)


def _look(snapshot: Snapshot, file: DataFile, entry: Entry, side: Entry, scope: Scope) -> Fix:
    scope.require_dead((entry, side))
    fs, path = snapshot.fs, snapshot.absolute(file.path)
    committed = committed_length(read_small(fs, snapshot.absolute(side.path), MOST_LENGTHS))
    if committed > entry.size:
        raise unsafe(
            f"{committed:,} bytes were committed, {entry.size:,} are there: rows are lost, or the store shows an old "
            "length",
            "restore the file; on HDFS `hdfs debug recoverLease` closes a file that a dead writer left open",
        )
    if not committed:
        return Fix(
            RepairKind.FLUSH_LENGTH,
            file.path,
            f"nothing of its {entry.size:,} bytes was ever committed",
            "move it and its side file into the backup",
            entry.size + side.size,
            (entry, side),
            away=(file.path, side.path),
        )
    tail = read_tail(ByteSource(fs, path, committed))
    if not tail.is_acid:
        raise unsafe(f"its first {committed:,} bytes are not an ACID file")
    if committed == entry.size:
        return Fix(
            RepairKind.FLUSH_LENGTH,
            file.path,
            f"its writer died, and left {side.path}; nothing lies beyond the {committed:,} bytes that it says",
            "move the side file into the backup",
            side.size,
            (entry, side),
            away=(side.path,),
            check=check,
        )
    return Fix(
        RepairKind.FLUSH_LENGTH,
        file.path,
        f"{entry.size - committed:,} bytes lie beyond the {committed:,} that were committed"
        f"{_rows_beyond(fs, path, entry.size, tail.rows)}",
        f"cut it to {committed:,} bytes and {tail.rows:,} rows, then move its side file into the backup",
        committed + side.size,
        (entry, side),
        (Made(file.path, committed, b"", replaces=True),),
        away=(side.path,),
        check=check,
    )


def committed_length(content: bytes) -> int:
    """Return the last complete length in a side file.

    Raises:
        BadDataError: it holds no complete length, the last is negative, or the lengths do not ascend.
    """
    lengths = flush_lengths(content)
    if not lengths:
        raise unsafe(
            f"its side file holds {len(content)} bytes and no complete length: what was committed is not known",
            "ask the writer's log what it committed; then cut or move the file by hand",
        )
    if lengths[-1] < 0 or any(later < earlier for earlier, later in pairwise(lengths)):
        shown = ", ".join(map(str, lengths[-4:]))
        raise unsafe(
            f"the lengths in its side file do not ascend ({shown}): which one is right is not known",
            "readers take the last; compact the table when its rows are right",
        )
    return lengths[-1]


def _rows_beyond(fs: FileSystem, path: str, size: int, committed: int) -> str:
    """Say how many rows lie beyond the committed bytes, if the file ends with a footer."""
    try:
        rows = read_tail(ByteSource(fs, path, size)).rows - committed
    except BadDataError:
        return "; they have no footer, so their rows cannot be counted"
    return f"; they hold {rows:,} rows" if rows >= 0 else ""


def check(fs: FileSystem, old: str, new: str) -> None:
    """Read every row of the cut file.

    Raises:
        VerifyError, BadDataError: a row cannot be read.
    """
    tail = read_tail(ByteSource(fs, new))
    rows = sum(len(ids.current) for ids in stripe_ids(fs, new, tail))
    if rows != tail.rows:
        raise VerifyError(f"{fs.display(old)} holds {rows} rows, its footer says {tail.rows}", "", "restore the file")
