"""Read and write Hadoop's delegation tokens: their text form, and the file in which a job gets them."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acidctl.base.errors import UsageProblem
from acidctl.base.printable import printable

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
_MAGIC = b"HDTS"
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Token:
    """A delegation token.

    Attributes:
        identifier: the user, the issuer and the end of its validity.
        password: the secret that proves it.
        service: the server that accepts it; empty if there is only one.
    """

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str = ""
    service: str = ""

    @classmethod
    def of_text(cls, text: str) -> Token:
        """Return the token of Hadoop's URL-safe text.  Raises ValueError if it is none."""
        try:
            source = _Writable(urlsafe_b64decode(text.strip() + "=" * (-len(text.strip()) % 4)))
            token = source.token()
        except IndexError as error:
            raise ValueError("too short") from error
        if not source.is_read:
            raise ValueError("there is more")
        return token

    def as_text(self) -> str:
        """Return Hadoop's URL-safe text."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        return urlsafe_b64encode(b"".join(_vint(len(part)) + part for part in parts)).decode().rstrip("=")


def tokens_of_job(environ: Mapping[str, str]) -> list[Token]:
    """Return the tokens of the file that the environment names; none where it names none.

    Raises UsageProblem if the file cannot be read.
    """
    path = environ.get(VARIABLE)
    if not path:
        return []
    try:
        size = os.stat(path).st_size  # noqa: PTH116 - the error has the path either way
        return list(_tokens(Path(path).read_bytes())) if size <= _MOST_BYTES else []
    except (OSError, ValueError, IndexError) as error:
        why = str(error) if isinstance(error, OSError) else "it is not a file of Hadoop's tokens"
        raise UsageProblem(f"cannot read {printable(path)}", why, f"unset {VARIABLE}, or correct it") from error


def _tokens(data: bytes) -> Iterator[Token]:
    """Return the tokens of a file, in either of its formats."""
    if data[:4] != _MAGIC or data[4:5] not in (b"\0", b"\1"):
        raise ValueError("no magic")
    if data[4] == 0:
        source = _Writable(data[5:])
        for _ in range(source.vint()):
            source.part()  # its name in this file
            yield source.token()
        return
    for number, entry in _fields(_delimited(data[5:])):
        if number != 1:
            continue
        for inner, token in _fields(entry):
            if inner == 2:
                parts = dict(_fields(token))
                yield Token(
                    parts.get(1, b""), parts.get(2, b""), parts.get(3, b"").decode(), parts.get(4, b"").decode()
                )


class _Writable:
    """Hadoop's own way to write numbers and texts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def vint(self) -> int:
        first = self._data[self._at]
        self._at += 1
        if first < 128:
            return first
        size = 256 - first - 112  # of a number that is not negative
        if not 1 <= size <= 8:
            raise ValueError("no length")
        return int.from_bytes(self._bytes(size), "big")

    def part(self) -> bytes:
        return self._bytes(self.vint())

    def token(self) -> Token:
        return Token(self.part(), self.part(), self.part().decode(), self.part().decode())

    @property
    def is_read(self) -> bool:
        return self._at == len(self._data)

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ValueError("too short")
        self._at += size
        return self._data[self._at - size : self._at]


def _vint(number: int) -> bytes:
    if number < 128:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + number.to_bytes(size, "big")


def _delimited(data: bytes) -> bytes:
    size, at = _varint(data, 0)
    if size > len(data) - at:
        raise ValueError("too short")
    return data[at : at + size]


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protobuf message that are texts, bytes or messages: there are no others here."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        if tag & 7 != 2 or size > len(data) - at:
            raise ValueError("no field")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("no number")
