"""Recognizes the small files that acidctl, Hive and Hadoop write beside the data, by their whole content.

A proof leaves these files out. Neither a name nor the first bytes prove that a file holds no rows, so each is parsed to
its last byte, and whatever differs from what its writer writes may hold rows.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import pairwise

from acidctl.acid.listing import Entry
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, METADATA_ACID, ORC_ACID_VERSION, acid_directory
from acidctl.acid.sidefiles import ORC_ACID_VERSION_2, BaseFormat, flush_lengths
from acidctl.base.errors import AcidctlError
from acidctl.cleaning.trash import TRASH
from acidctl.location.change.journal import MANIFEST
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import OWNER, Owner
from acidctl.location.change.publication import INTENT
from acidctl.location.change.work_log import MOST_LOG_BYTES, LogEntry
from acidctl.location.walk import is_log
from acidctl.repair.backup import BACKUP
from acidctl.storage.port import FileSystem, base_name, join
from acidctl.storage.ranged import MOST_LENGTHS, MOST_METADATA, read_small

_CHECKSUM, _CHECKSUM_START, _MOST_PER_SUM, _BLOCK = ".crc", b"crc\0", 1 << 20, 1 << 20
_VERSIONS = (ORC_ACID_VERSION_2, bytes(4))
"""Hive 2 writes the number 0 in four bytes, into the location itself."""

_OWNER_KEYS = frozenset(field.name for field in fields(Owner))
_RUN_KEYS = (
    frozenset(("version", "names", "bytes", "content", "states", "writeIds", "validTxns")),
    frozenset(("version", "kinds", "paths", "bytes", "steps")),
)
_NOTE_KEYS: Mapping[str, tuple[frozenset[str], ...]] = {
    MANIFEST: _RUN_KEYS,
    "restored.json": _RUN_KEYS,
    "purged.json": _RUN_KEYS,
    "undo.json": (frozenset(),),
    "done.json": (frozenset(),),
    INTENT: (frozenset(("names",)), frozenset(("copies",))),
}
"""The keys that acidctl's files in its hidden directories may have."""

_METADATA = frozenset(
    json.dumps(dict(pairs), separators=(",", ":")).encode()
    for form in BaseFormat
    for pairs in (
        (("thisFileVersion", "0"), ("dataFormat", form.value)),
        (("dataFormat", form.value), ("thisFileVersion", "0")),
    )
)
"""Hive writes a map, whose order is not fixed."""


def is_small_file(fs: FileSystem, location: str, entry: Entry, sizes: Mapping[str, int]) -> bool:
    """Return whether a file is, to its last byte, what acidctl, Hive or Hadoop writes under its name.

    Args:
        sizes: of all files of the location, by their relative paths.

    Returns:
        False also for a file that cannot be read.
    """
    try:
        if checked := _checked_by(entry.path):
            return checked in sizes and _is_checksum(fs, location, entry, checked, sizes[checked])
        is_right, most = _check_of(entry.path, sizes)
        return is_right is not None and is_right(read_small(fs, join(location, entry.path), most, entry.size))
    except AcidctlError:
        return False


def _checked_by(path: str) -> str:
    """Return the path of the file whose Hadoop checksums a file has by its name; empty for other names."""
    folder, slash, name = path.rpartition("/")
    is_checksum = name.startswith(".") and name.endswith(_CHECKSUM)
    return f"{folder}{slash}{name[1 : -len(_CHECKSUM)]}" if is_checksum else ""


def _check_of(path: str, sizes: Mapping[str, int]) -> tuple[Callable[[bytes], bool], int] | tuple[None, int]:
    """Return the check of the content of a small file of this name, and the most bytes that it may have."""
    folder, slash, name = path.rpartition("/")
    if name.endswith(FLUSH_LENGTH_SUFFIX):
        size = sizes.get(path.removesuffix(FLUSH_LENGTH_SUFFIX))
        return (None, 0) if size is None else (lambda data: _is_flush_length(data, size), MOST_LENGTHS)
    if name == ORC_ACID_VERSION:
        return _VERSIONS.__contains__, MOST_METADATA
    if not slash and is_log(path):
        return _is_log, 2 * MOST_LOG_BYTES
    if not slash and path == LOCK:
        return lambda data: _is_owner(data, {"id"}), MOST_METADATA
    if name == METADATA_ACID and acid_directory(base_name(folder)) is not None:
        return _METADATA.__contains__, MOST_METADATA
    parts = folder.split("/")
    is_own = parts[0] in (TRASH, BACKUP) and len(parts) <= 2
    if is_own or (parts[0].startswith((LOCK, "_tmp_")) and len(parts) == 1):
        if name == OWNER:
            return lambda data: _is_owner(data, set()), MOST_METADATA
        if name in _NOTE_KEYS:
            return lambda data: _is_note(data, _NOTE_KEYS[name]), MOST_LENGTHS
    return None, 0


def _is_flush_length(data: bytes, size: int) -> bool:
    """Return whether data are lengths of a growing file, none above its size."""
    lengths = flush_lengths(data)
    return len(data) == 8 * len(lengths) and all(a <= b for a, b in pairwise((0, *lengths, size)))


def _is_owner(data: bytes, more: set[str]) -> bool:
    return Owner.from_bytes(data) is not None and _is_note(data, (_OWNER_KEYS | more,))


def _is_note(data: bytes, allowed: tuple[frozenset[str], ...]) -> bool:
    """Return whether data are one JSON object as acidctl writes it, with keys of one of the sets alone."""
    try:
        record = json.loads(data)
        is_canonical = data in (json.dumps(record).encode(), json.dumps(record, indent=1).encode())
    except (ValueError, RecursionError):
        return False
    return is_canonical and isinstance(record, dict) and any(record.keys() <= keys for keys in allowed)


def _is_log(data: bytes) -> bool:
    lines = data.decode("latin-1").split("\n")
    entries = map(LogEntry.of, lines[:-2])
    return lines[-2:] == ["", ""] and all(
        entry and entry.line() == line for entry, line in zip(entries, lines, strict=False)
    )


def _is_checksum(fs: FileSystem, location: str, entry: Entry, checked: str, size: int) -> bool:
    """Return whether a file has Hadoop's checksums of another: ``crc``, the bytes of each piece, the CRC-32 of each."""
    most = len(_CHECKSUM_START) + 4 + 4 * size
    data = read_small(fs, join(location, entry.path), most, entry.size)
    step = int.from_bytes(data[4:8], "big")
    if not data.startswith(_CHECKSUM_START) or not 0 < step <= _MOST_PER_SUM or len(data) != 8 + 4 * -(-size // step):
        return False
    at = 8
    with fs.open_input(join(location, checked)) as file:
        while block := file.read(max(1, _BLOCK // step) * step):
            pieces = (block[start : start + step] for start in range(0, len(block), step))
            sums = b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
            if data[at : at + len(sums)] != sums:
                return False
            at += len(sums)
    return at == len(data)
