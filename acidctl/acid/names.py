"""The grammar of every directory and file name of a location (format section 1).

Names are parsed into frozen values and compared by their numbers, never as text; the spelling that was listed is
kept in ``name``, because a path is never rebuilt from its numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from acidctl.base.errors import BadDataError

MAXL = 2**63 - 1
MINL = -(2**63)
"""Java's Long.MAX_VALUE and Long.MIN_VALUE; ``base_MINL`` is a base made of original files alone (section 1.2)."""

NO_STATEMENT = -1

ORC_ACID_VERSION = "_orc_acid_version"
METADATA_ACID = "_metadata_acid"
FLUSH_LENGTH_SUFFIX = "_flush_length"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name of a partition whose value is NULL."""


class Kind(StrEnum):
    """The kinds of ACID directory; the value is the name's prefix without its last underscore."""

    BASE = "base"
    DELTA = "delta"
    DELETE_DELTA = "delete_delta"


class AcidNameError(BadDataError):
    """A directory with an ACID prefix whose rest cannot be parsed; Hive throws NumberFormatException on it."""


@dataclass(frozen=True, slots=True)
class AcidDirectory:
    """A parsed ``base_N``, ``delta_A_B`` or ``delete_delta_A_B``.

    Attributes:
        name: as listed.
        min_write_id, max_write_id: inclusive; equal for a base.
        statement_id: ``NO_STATEMENT`` if the name has none.
        visibility_txn: transaction id of the compactor in ``_v``; 0 if the name has none.
    """

    name: str
    kind: Kind
    min_write_id: int
    max_write_id: int
    statement_id: int = NO_STATEMENT
    visibility_txn: int = 0

    @property
    def range(self) -> tuple[int, int]:
        """Return the write ids, both inclusive."""
        return self.min_write_id, self.max_write_id

    @property
    def canonical_name(self) -> str:
        return format_directory(self.kind, self.min_write_id, self.max_write_id, self.statement_id, self.visibility_txn)


@dataclass(frozen=True, slots=True)
class BucketFile:
    """A native ACID file ``bucket_N`` or, of a direct insert, ``bucket_N_ATTEMPT``."""

    name: str
    bucket: int
    attempt: int | None

    @property
    def canonical_name(self) -> str:
        """Return the name that Hive 4 makes of the numbers, by which it opens a file of deletes (section 4.2).

        Returns:
            Empty where a number does not fit in Java's 32 bits: Hive 4 fails then.
        """
        if max(self.bucket, self.attempt or 0) >= 1 << 31:
            return ""
        return format_bucket(self.bucket) + ("" if self.attempt is None else f"_{self.attempt}")


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file without synthetic columns, ``NNNNNN_A`` or ``NNNNNN_A_copy_K``."""

    name: str
    bucket: int
    attempt: int
    copy: int | None


_DIRECTORY = re.compile(r"(?:base_(-?[0-9]+)|(delta|delete_delta)_([0-9]+)_([0-9]+)(?:_([0-9]+))?)(?:_v([0-9]+))?")
_BUCKET = re.compile(r"bucket_([0-9]+)(?:_([0-9]+))?")
_ORIGINAL = re.compile(r"([0-9]+)_([0-9]+)(?:_copy_([0-9]+))?")
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_ESCAPED = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_HIDDEN = re.compile(r"[_.]|-tmp\.(?:base|delta|delete_delta)_")
_UNION = re.compile(r"HIVE_UNION_SUBDIR_[0-9]+")
_DIGITS_OF_64_BITS = 19  # with as many, or with a sign before fewer, a number may be too large
ACID_PREFIXES = ("base_", "delta_", "delete_delta_")


def parse_directory(name: str) -> AcidDirectory | None:
    """Parse the name of a direct child directory of a location.

    Returns:
        None if the name has no ACID prefix: such a directory holds original files (section 5.1).

    Raises:
        AcidNameError: the name has the prefix, but the rest is not a name that Hive writes.
    """
    return _parse_directory(name) if name.startswith(ACID_PREFIXES) else None


def acid_directory(name: str) -> AcidDirectory | None:
    """Parse a name like :func:`parse_directory`, but return None for a name that cannot be parsed."""
    try:
        return parse_directory(name)
    except AcidNameError:
        return None


# Ten thousand partitions of a table have the same few names.
@lru_cache(maxsize=1 << 14)
def _parse_directory(name: str) -> AcidDirectory:
    match = _DIRECTORY.fullmatch(name)
    if match is None:
        raise AcidNameError(
            f"not a name of an ACID directory: {name!r}", "the prefix is Hive's but the numbers are not"
        )
    base, kind, low, high, statement, visibility = match.groups()
    return AcidDirectory(
        name,
        Kind(kind or "base"),
        _number(low or base, name),
        _number(high or base, name),
        NO_STATEMENT if statement is None else _number(statement, name),
        0 if visibility is None else _number(visibility, name),
    )


def _number(text: str, name: str) -> int:
    if len(text) < _DIGITS_OF_64_BITS:
        return int(text)
    value = int(text) if len(text) <= 40 else MAXL + 1  # longer digit strings only cost time
    if not MINL <= value <= MAXL:
        raise AcidNameError(f"not a name of an ACID directory: {name[:80]!r}", "a number exceeds 64 bits")
    return value


def format_directory(
    kind: Kind,
    min_write_id: int,
    max_write_id: int,
    statement_id: int = NO_STATEMENT,
    visibility_txn: int = 0,
) -> str:
    """Return the name as Hive pads it: write and visibility ids to 7 digits, statement ids to 4 (section 1.1)."""
    ids = f"{max_write_id:07d}" if kind is Kind.BASE else f"{min_write_id:07d}_{max_write_id:07d}"
    statement = f"_{statement_id:04d}" if statement_id != NO_STATEMENT else ""
    visibility = f"_v{visibility_txn:07d}" if visibility_txn else ""
    return f"{kind.value}_{ids}{statement}{visibility}"


def other_kind(name: str) -> str:
    """Return the name of the delete delta that belongs to a delta, or the reverse.

    One statement, or one minor compaction, writes both.

    Returns:
        Empty for other names.
    """
    if name.startswith("delete_delta_"):
        return name.removeprefix("delete_")
    return f"delete_{name}" if name.startswith("delta_") else ""


def format_bucket(bucket: int) -> str:
    """Return the name of a native file; compaction output never has an attempt id."""
    return f"bucket_{bucket:05d}"


@lru_cache(maxsize=1 << 14)
def parse_file(name: str) -> BucketFile | OriginalFile | None:
    """Parse the name of a data file; return None for any other name, which Hive treats as bucket -1."""
    if match := _BUCKET.fullmatch(name):
        return BucketFile(name, int(match[1]), int(match[2]) if match[2] is not None else None)
    if match := _ORIGINAL.fullmatch(name):
        return OriginalFile(name, int(match[1]), int(match[2]), int(match[3]) if match[3] is not None else None)
    return None


def is_hidden(name: str) -> bool:
    """Return whether no data listing shows a file or directory (section 1.3), or it is a manifest of Hive 4."""
    return _HIDDEN.match(name) is not None


def manifest_for(name: str) -> str | None:
    """Return the directory that a direct insert is about to fill, from the name of its manifest (section 1.4).

    Returns:
        ``delta_1_1_0`` for ``-tmp.delta_1_1_0``, as Hive 4 writes it, and for ``_tmp.delta_1_1_0``, as Hive 3.1 would;
        None for any other name.
    """
    return name[5:] if name.startswith("_tmp.") or (name.startswith("-tmp.") and is_hidden(name)) else None


def is_visible_path(path: str) -> bool:
    """Return whether no component of a path, relative to its location, is hidden."""
    return not is_hidden(path) and "/_" not in path and "/." not in path


def is_native_data_file(name: str) -> bool:
    """Return whether a name passes Hive's lax filter inside a native directory (section 1.4)."""
    return name.startswith("bucket_") and not name.endswith(FLUSH_LENGTH_SUFFIX)


def parse_partition(name: str) -> tuple[str, str] | None:
    """Return key and value of a partition directory ``k=v``, the value as spelled; None for any other name."""
    match = _PARTITION.fullmatch(name) if "=" in name else None
    return (match[1], match[2]) if match and not is_hidden(name) else None


def unescape(text: str) -> str:
    """Decode a key or value in the name of a partition's directory like Hive's FileUtils.unescapePathName.

    ``%XX`` is the character with that code, not a byte of UTF-8; a ``%`` without two hex digits stays.
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def partition_name(key: str, value: str) -> str:
    """Return ``key=value`` as Hive escapes the directory of a partition; :func:`unescape` decodes both."""
    return "=".join(_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text) for text in (key, value))


def is_union_subdirectory(name: str) -> bool:
    """Return whether Hive leaves the result of one leg of a UNION ALL in this directory (section 1.4)."""
    return _UNION.fullmatch(name) is not None


def is_staging(name: str) -> bool:
    """Return whether a name is scratch of a writer or a compactor, or acidctl's own (sections 1.4, 8.6)."""
    return name.startswith(("_tmp", ".hive-staging", ".acidctl")) or manifest_for(name) is not None
