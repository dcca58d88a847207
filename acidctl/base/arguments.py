"""Check the arguments of library calls: an error about a wrong type names the argument."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Mapping
from numbers import Integral, Real

from acidctl.base.errors import UsageProblem

_MOST = 200
"""Characters of a wrong value that are shown."""


def require_type(value: object, kinds: type | tuple[type, ...], name: str, hint: str) -> None:
    """Refuse, by UsageProblem, an argument that is neither None nor of one of some types."""
    if value is not None and not isinstance(value, kinds):
        raise unusable(value, name, hint)


def as_path(url: object) -> str:
    """Return the text of a path or a URL; UsageProblem if it is neither text nor a path."""
    if not isinstance(url, str | bytes | os.PathLike):
        raise UsageProblem(f"not a path: {url!r}", f"its type is {type(url).__name__}", "give text or a pathlib.Path")
    return os.fsdecode(url)


def unusable(value: object, name: str, hint: str) -> UsageProblem:
    """Return the error for an argument of a wrong type, or out of its bounds."""
    shown = f"{value!r}"
    cut = f"{shown[:_MOST]}..." if len(shown) > _MOST else shown
    return UsageProblem(f"{name} cannot be {cut}", f"its type is {type(value).__name__}", hint)


def as_flag(value: object, name: str) -> bool:
    """Return a bool; UsageProblem for anything else, because ``"false"`` and ``{}`` would count as yes and no."""
    if not isinstance(value, bool):
        raise unusable(value, name, "give True or False")
    return value


def as_count(value: object, name: str, least: int, most: int | None) -> int:
    """Return a whole number, numpy's too; UsageProblem for anything else, or out of its bounds."""
    number = _whole(value)
    if number is None or number < least or (most is not None and number > most):
        raise unusable(value, name, f"give a whole number, {least} {'or more' if most is None else f'to {most}'}")
    return number


def as_write_id_or_time(value: object, name: str) -> int | datetime.datetime:
    """Return a write id, or a time in UTC, which is the zone of a time without one; UsageProblem for others.

    Args:
        value: a number or a time, or a text of either: ``"7"``, ``"2026-11-20 12:00"``, ``"2026-11-20T12:00+01:00"``.
    """
    if isinstance(value, str) and not re.fullmatch(r"[-+]?\d+", value.strip()):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise unusable(value, name, "give a write id, or a time as '2026-11-20 12:00', in UTC") from None
    if isinstance(value, datetime.datetime):
        try:
            return value.astimezone(datetime.UTC) if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        except OverflowError:
            raise unusable(value.isoformat(), name, "give a time whose year is 1 to 9999 in UTC") from None
    return as_count(int(value) if isinstance(value, str) else value, name, 0, None)


def as_size(value: object, name: str) -> int:
    """Return the bytes of a number, or of a text as on the command line, ``"512m"``; UsageProblem for others."""
    size = size_in_bytes(value) if isinstance(value, str) else _whole(value)
    if size is None or size < 1:
        raise unusable(value, name, "give bytes, or a text such as '512m' or '2g'")
    return size


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def as_text(value: object, name: str) -> str:
    """Return a text; UsageProblem for anything else."""
    if not isinstance(value, str):
        raise unusable(value, name, "give a text")
    return value


def as_texts(value: object, name: str) -> tuple[str, ...]:
    """Return several texts, or a single one in a tuple; UsageProblem for anything else."""
    items = (value,) if isinstance(value, str) else value
    if isinstance(items, Iterable) and not isinstance(items, Mapping):
        items = tuple(items)
        if all(isinstance(item, str) for item in items):
            return items
    raise unusable(value, name, "give a text, or a list of texts")


def as_pairs(value: object, name: str) -> tuple[tuple[str, str], ...]:
    """Return names with their values, of a dict or of a list of pairs; UsageProblem for anything else."""
    items = value.items() if isinstance(value, Mapping) else value
    if isinstance(items, Iterable) and not isinstance(items, str | bytes):
        pairs = [tuple(item) if isinstance(item, list | tuple) else () for item in items]
        if all(len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str) for pair in pairs):
            return tuple((key, text) for key, text in pairs)
    raise unusable(value, name, "give a dict of texts, or a list of pairs of texts")


def as_columns(value: object, name: str) -> tuple[tuple[str, str], ...]:
    """Return columns with the texts of their values: those of numbers, dates and booleans are as in SQL.

    Raises:
        UsageProblem: a value is None or of another type, or a column, whose case does not count, has two values.
    """
    items = value.items() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping) and (unnamed := [column for column, text in value.items() if text is None]):
        what, why = f"{name} gives {unnamed[0]} no value", "None has no text that Hive would read as NULL"
        raise UsageProblem(what, why, "leave it out; the rows of an insert may be NULL in that column")
    if isinstance(items, Iterable) and not isinstance(items, str | bytes):
        items = [(pair[0], _text_of(pair[1])) if isinstance(pair, tuple) and len(pair) == 2 else pair for pair in items]
    pairs = as_pairs(items, name)
    columns = [column.lower() for column, _ in pairs]
    for column in columns:
        if columns.count(column) > 1:
            why = "a column has one value, and case does not count"
            raise UsageProblem(f"{name} gives {column} twice", why, "give it once")
    return pairs


def _text_of(value: object) -> object:
    from decimal import Decimal  # noqa: PLC0415 - --help compares no values

    if isinstance(value, bool):
        return str(value).lower()
    is_local = not isinstance(value, datetime.datetime) or value.tzinfo is None
    return str(value) if isinstance(value, Real | Decimal | datetime.date) and is_local else value


def size_in_bytes(text: str) -> int | None:
    """Return the bytes of ``512m``, ``2GiB`` or ``1000``, with units of powers of 1024, as in Hadoop; else None."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgtp]?)(?:i?b)?", text.strip().lower())
    if not size or float(size[1]) <= 0:
        return None
    return int(float(size[1]) * 1024 ** " kmgtp".index(size[2] or " "))
