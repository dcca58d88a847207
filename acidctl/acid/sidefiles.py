"""The small files beside the data: ``_metadata_acid``, ``_orc_acid_version``, ``bucket_N_flush_length``."""

from __future__ import annotations

import json
import struct
from enum import StrEnum

from acidctl.base.errors import BadDataError

METADATA_ACID_COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
ORC_ACID_VERSION_2 = b"2"


class BaseFormat(StrEnum):
    """``dataFormat`` of ``_metadata_acid`` (section 1.4)."""

    COMPACTED = "compacted"
    TRUNCATED = "truncated"
    DROPPED = "dropped"

    @property
    def is_empty(self) -> bool:
        """Return whether such a base has no data: Hive 4 marks a truncation or a dropped partition with it."""
        return self is not BaseFormat.COMPACTED


def parse_metadata_acid(content: bytes, path: str) -> BaseFormat:
    """Return the kind of base that a ``_metadata_acid`` marks.

    Raises:
        BadDataError: it is not JSON, or has an unknown file version or format; Hive refuses it, too.
    """
    why = ""
    try:
        data = json.loads(content)
        if not isinstance(data, dict):
            why = "it is not a JSON object"
        elif data.get("thisFileVersion") != "0":
            why = f"thisFileVersion is {data.get('thisFileVersion')!r}, known is '0'"
        elif data.get("dataFormat") not in {form.value for form in BaseFormat}:
            why = f"dataFormat is {data.get('dataFormat')!r}, known are 'compacted', 'truncated' and 'dropped'"
        else:
            return BaseFormat(data["dataFormat"])
    except (ValueError, RecursionError) as error:
        why = f"it is not JSON ({error})"
    raise BadDataError(f"cannot use {path}", why, "restore the file: it decides whether the base is a compaction")


def parse_orc_acid_version(content: bytes, path: str) -> int:
    """Return the version in ``_orc_acid_version``: its first byte, an ASCII digit (section 3.3).

    Raises:
        BadDataError: it is empty, or not a digit.
    """
    if not content[:1].isdigit():
        raise BadDataError(f"cannot use {path}", f"its first byte is {content[:1]!r}, not a digit")
    return int(content[:1])


def flush_lengths(content: bytes) -> tuple[int, ...]:
    """Return every complete length in a ``_flush_length``: big-endian longs (section 12)."""
    complete = len(content) // 8
    return struct.unpack(f">{complete}q", content[: complete * 8])


def parse_flush_length(content: bytes, path: str) -> int:
    """Return the logical length in bytes: the last complete one.

    Raises:
        BadDataError: there is none, or it is negative.
    """
    lengths = flush_lengths(content)
    if not lengths:
        raise BadDataError(
            f"cannot use {path}",
            f"it holds {len(content)} bytes and no complete length",
            "the writer may just be starting, or died; Hive refuses to read this file too",
        )
    if lengths[-1] < 0:
        raise BadDataError(f"cannot use {path}", f"its last length is {lengths[-1]}")
    return lengths[-1]
