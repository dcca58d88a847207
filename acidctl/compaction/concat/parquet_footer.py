"""The key-value metadata of Parquet footers, and a sink that changes the footer that Arrow writes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa

from acidctl.base.errors import VerifyError
from acidctl.compaction.proof.sent import SummedSink
from acidctl.orc.varint import encoded

_ZONES: Final = (
    b"writer.time.zone",
    b"writer.zone.conversion.legacy",
    b"org.apache.spark.timeZone",
    b"org.apache.spark.legacyINT96",
)
"""Keys that decide which instant a timestamp is."""

_CALENDARS: Final = (b"writer.date.proleptic", b"org.apache.spark.legacyDateTime")
_SPARK: Final = b"org.apache.spark.version"
_PROGRAMS: Final = (b"writer.model.name", _SPARK)
"""Keys with versions of writers: the newest file's values are kept if the files differ."""

_NOT_KEPT: Final = (b"ARROW:schema", b"pandas")
"""Keys with types of a library that may not have written all files."""

_MAGIC: Final = b"PAR1"
_VERSION: Final = re.compile(rb"(\d+)\.(\d+)")


def meaning(pairs: dict[bytes, bytes], *, timestamps: bool) -> dict[str, str]:
    """Return the key-value metadata that decide the meaning of dates, and of timestamps if there are any."""
    keys = (*_CALENDARS, *_ZONES) if timestamps else _CALENDARS
    deciding = {key.decode(): pairs[key].decode(errors="replace") for key in keys if key in pairs}
    version = _VERSION.match(pairs.get(_SPARK, b""))
    if version:
        # Spark 3.0 changed its calendar, 3.1 that of timestamps of 96 bits.
        release = (int(version[1]), int(version[2]))
        era = "before 3.0" if release < (3, 0) else "3.0" if release < (3, 1) and timestamps else "later"
        deciding[_SPARK.decode()] = era
    return deciding


def merged_metadata(files: Sequence[dict[bytes, bytes]], newest: int) -> dict[bytes, bytes]:
    """Return the key-value metadata in which all files agree, and the newest file's versions of programs."""
    agreed = {
        key: value
        for key, value in files[0].items()
        if key not in _NOT_KEPT and all(other.get(key) == value for other in files)
    }
    return {**agreed, **{key: files[newest][key] for key in _PROGRAMS if key in files[newest]}}


class FooterSink(io.RawIOBase):
    """A sink for Arrow's Parquet writer that changes the writer's name in the footer, for which Arrow has no option.

    For Hive and Impala the name decides if timestamps of 96 bits were moved by a time zone. The offsets in a footer
    refer to data before it, so another name in it changes nothing else.

    Args:
        sink: is not closed.
        created_by: the name; None keeps Arrow's.
    """

    def __init__(self, sink: BinaryIO | SummedSink, created_by: str | None) -> None:
        super().__init__()
        self._sink = sink
        self._created_by = created_by
        self._held: list[bytes] | None = None
        self._size = 0
        self._abandoned = False

    def hold(self) -> None:
        """Collect all further bytes, which are the footer."""
        self._held = []

    def abandon(self) -> None:
        """Ignore all further bytes."""
        self._abandoned = True

    def write(self, data: Any) -> int:
        """Take bytes."""
        view = memoryview(data).cast("B")
        if self._held is not None:
            self._held.append(bytes(view))
        else:
            self._pass(view)
        return len(view)

    def finish(self) -> int:
        """Write the footer and return the length of the file.

        Raises:
            VerifyError: the bytes since :meth:`hold` are not a footer, or do not contain the name where it is expected.
        """
        footer = b"".join(self._held or ())
        self._held = None
        if self._created_by is not None:
            footer = _renamed(footer, self._created_by)
        self._pass(memoryview(footer))
        return self._size

    def tell(self) -> int:
        """Return the position."""
        return self._size + sum(map(len, self._held or ()))

    def writable(self) -> bool:
        return True

    def _pass(self, view: memoryview) -> None:
        self._size += len(view)
        while len(view) and not self._abandoned:
            written = self._sink.write(view)
            view = view[len(view) if written is None else written :]


def _renamed(footer: bytes, created_by: str) -> bytes:
    """Replace the name in a footer: a field of Thrift's compact protocol, preceded by its length."""
    body, length, magic = footer[:-8], footer[-8:-4], footer[-4:]
    own = f"parquet-cpp-arrow version {pa.cpp_version}".encode()
    at = body.rfind(bytes((len(own),)) + own)
    if magic != _MAGIC or int.from_bytes(length, "little") != len(body) or at < 0:
        raise VerifyError("the Parquet library wrote a footer of another shape", "its name is not where it was", "")
    name = created_by.encode()
    body = body[:at] + encoded(len(name)) + name + body[at + 1 + len(own) :]
    return body + len(body).to_bytes(4, "little") + _MAGIC
