"""Small files that others left in a table: read within bounds, whatever their size is said to be."""

from __future__ import annotations

from acidctl.errors import BadDataError
from acidctl.storage.port import FileSystem

MOST_METADATA = 1 << 20
"""The most bytes of a metadata file: ``_metadata_acid`` has 48, ``_orc_acid_version`` one."""

MOST_LENGTHS = 64 << 20
"""The most bytes of a side file with lengths, which has 8 for each commit of a streaming writer."""


def read_small(fs: FileSystem, path: str, most: int, size: int | None = None) -> bytes:
    """Read a whole file that is small in every real table.

    Args:
        most: the most bytes it may have.
        size: the size from a listing, which saves a request.

    Raises:
        BadDataError: the file is larger.
        NotFoundError, AccessError, StorageError: the file cannot be read.
    """
    data = b"" if size is not None and size > most else fs.read_bytes(path, 0, most + 1 if size is None else size)
    if max(len(data), size or 0) > most:
        raise BadDataError(
            f"cannot use {fs.display(path)}",
            f"it is a bomb, or larger than any file of its name is: {most:,} bytes",
            "look at it, and at who wrote it; then move it away",
        )
    return data
