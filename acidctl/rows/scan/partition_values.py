"""Values of partition columns, parsed from the names of directories."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

import numpy as np

from acidctl.acid.names import DEFAULT_PARTITION
from acidctl.base.errors import BadDataError
from acidctl.orc.types import OrcType, hive_type, parse_type

PartitionValue = bool | int | float | str | Decimal | datetime.date | datetime.datetime | np.datetime64 | None
"""``np.datetime64`` is a timestamp with nanoseconds."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_ANY_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?)?", re.ASCII
)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|NaN|[+-]?Infinity", re.ASCII)


def partition_type(values: Sequence[str]) -> OrcType:
    """Return ``bigint`` or ``date`` if all values but NULL have that form, else ``string``.

    A number with leading zeros or a plus sign is text, because a number would lose them.
    """
    present = {value for value in values if value != DEFAULT_PARTITION}
    if present and all(_INTEGER.fullmatch(value) and -(1 << 63) <= int(value) < 1 << 63 for value in present):
        return OrcType("bigint")
    return OrcType("date" if present and all(_is_date(value) for value in present) else "string")


def declared_type(text: str) -> OrcType:
    """Return the type of a partition column in the metastore; ``string`` for a type that no partition can have."""
    try:
        parsed = parse_type(text)
    except BadDataError:
        return OrcType("string")
    is_usable = not parsed.children and parsed.kind not in ("binary", "timestamp with local time zone")
    return parsed if is_usable else OrcType("string")


def typed(value: str, kind: OrcType, name: str = "") -> PartitionValue:
    """Parse a partition's value from the name of its directory; bytes that are not UTF-8 become U+FFFD.

    Args:
        name: of the column, for the error.

    Raises:
        BadDataError: the text is not a valid value of the type.
    """
    if value == DEFAULT_PARTITION:
        return None
    try:
        return _READERS.get(kind.kind, _text)(value, kind)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise BadDataError(
            f"the partition {name}={value} has no value of its type",
            f"{name} is of type {hive_type(kind)} in the metastore",
            "rename the partition, or change the type of its column",
        ) from error


def _text(value: str, kind: OrcType) -> str:
    text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if kind.kind == "char":
        return text[: kind.max_length].rstrip(" ")
    return text[: kind.max_length] if kind.kind == "varchar" else text


def _integer(value: str, kind: OrcType) -> int:
    number = int(value) if _ANY_INTEGER.fullmatch(value) else None
    half = 1 << (_BITS[kind.kind] - 1)
    if number is None or not -half <= number < half:
        raise ValueError(value)
    return number


def _decimal(value: str, kind: OrcType) -> Decimal:
    with localcontext(prec=80):
        number = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    if not number.is_finite() or abs(number) >= Decimal(10) ** (kind.precision - kind.scale):
        raise ValueError(value)
    return number


def _float(value: str, kind: OrcType) -> float:  # noqa: ARG001 - one of several
    if not _NUMBER.fullmatch(value):
        raise ValueError(value)
    return float(value)


def _timestamp(value: str, kind: OrcType) -> datetime.datetime | np.datetime64:  # noqa: ARG001 - one of several
    parts = _TIMESTAMP.fullmatch(value)
    if parts is None:
        raise ValueError(value)
    moment = datetime.datetime.fromisoformat(f"{parts[1]} {parts[2] or '00:00:00'}")
    nanos = int((parts[3] or "").ljust(9, "0"))
    if nanos % 1000:
        if not 1678 <= moment.year < 2262:  # NumPy would wrap it around
            raise ValueError(value)
        return np.datetime64(moment, "ns") + np.timedelta64(nanos, "ns")
    return moment.replace(microsecond=nanos // 1000)


_READERS: dict[str, Callable[[str, OrcType], PartitionValue]] = {
    **dict.fromkeys(_BITS, _integer),
    "boolean": lambda value, _: ("false", "true").index(value.lower()) == 1,
    "decimal": _decimal,
    "float": _float,
    "double": _float,
    "date": lambda value, _: datetime.date.fromisoformat(value),
    "timestamp": _timestamp,
}


def _is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True
