"""What a user gives in place of a path: the name of a table in a metastore, or a line of a list.

Every command loads this module, so it imports almost nothing.
"""

from __future__ import annotations

from typing import Self

from acidctl.base.errors import AcidctlError

HIVE = "hive:"
"""The prefix of a table's name."""


class FromList(str):
    """A name or a path from a list.

    Attributes:
        origin: the list and the line number, for messages.
    """

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, text: str, origin: str) -> Self:
        made = super().__new__(cls, text)
        made.origin = origin
        return made


class FromMetastore(str):
    """The path of a location that a metastore has, which may be empty."""

    __slots__ = ()


def at_its_line(error: AcidctlError, place: str) -> AcidctlError:
    """Prefix an error about a place with the line of the list that the place is from."""
    if isinstance(place, FromList):
        error.what = f"{place.origin}: {error.what}"
    return error


def table_in(name: str) -> str:
    """Return ``db.table`` of a name, or the pattern in its place."""
    return name[len(HIVE) :].partition("/")[0].strip().lower()


def is_hive_name(path: str) -> bool:
    """Return whether an argument names tables of a metastore; otherwise it is a path."""
    return path[: len(HIVE)].lower() == HIVE
