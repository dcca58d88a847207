"""The names that a user gives: paths, tables of a metastore (``hive:db.table``), lines of a list, and the metastore.

Every command loads this module, so it imports almost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

from acidctl.base.arguments import require_type
from acidctl.base.errors import AcidctlError, EnvironmentProblem, NotFoundError, UsageProblem

if TYPE_CHECKING:
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.settings import MetastoreSettings

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
    """The path of a location that a metastore has, which may be empty.

    Attributes:
        table: the path of its table's directory, if it is a partition.
    """

    __slots__ = ("table",)
    table: str

    def __new__(cls, path: str, table: str = "") -> Self:
        made = super().__new__(cls, path)
        made.table = table
        return made


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


_FORM = "write hive:db.table, hive:db.table/key=value, hive:db.* or hive:*.*"


class HiveName(NamedTuple):
    """A parsed name of one table, of several, or of partitions.

    Attributes:
        database, table: patterns with ``*`` and ``?`` if several are meant.
        partition: values by key, perhaps not of all keys; empty for all partitions.
    """

    database: str
    table: str
    partition: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> HiveName:
        """Parse ``hive:db.table/key=value``.

        Raises:
            UsageProblem: the text is not such a name.
            NotFoundError: what follows the table is not a partition.
        """
        name, _, partition = text[len(HIVE) :].partition("/")
        database, dot, table = name.strip().lower().partition(".")
        if not dot or not database or not table or "." in table:
            raise UsageProblem(f"not the name of a table: {text}", "", _FORM)
        return cls(database, table, partition_values(partition))

    @property
    def is_pattern(self) -> bool:
        """Return whether the name may mean several tables."""
        return any(mark in self.database + self.table for mark in "*?[")

    @property
    def whole_table(self) -> str:
        """Return ``db.table``; empty if several tables, or partitions, are meant."""
        return "" if self.is_pattern or self.partition else f"{self.database}.{self.table}"


def partition_values(text: str) -> dict[str, str]:
    """Return the values of a partition specification, ``day=2026-11-20/hour=1``, unescaped as Hive does it.

    Raises:
        NotFoundError: a part of the text is not ``key=value``.
    """
    from acidctl.acid.names import parse_partition, unescape  # noqa: PLC0415 - every command loads this module

    wanted: dict[str, str] = {}
    for part in filter(None, text.split("/")):
        parsed = parse_partition(part)
        if parsed is None:
            raise NotFoundError(f"{part} is not a partition", "", "write key=value, as Hive names its directory")
        wanted[parsed[0]] = unescape(parsed[1])
    return wanted


NONE = "none"
"""The address that turns the metastore off."""

VARIABLES = ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR")


def open_metastore(metastore: str | Mapping[str, str] | None) -> Metastore | None:
    """Return the metastore to use; None if none is configured, or if it is turned off.

    Args:
        metastore: its address, or several separated by commas; settings by their names; ``none``; or None for the
            address in ``hive-site.xml``.

    Raises:
        EnvironmentProblem: the package thrift is not installed.
        UsageProblem: a setting cannot be used.
    """
    require_type(metastore, (str, Mapping), "metastore", "give its address, thrift://host:9083, or a dict of settings")
    given = {"uris": metastore} if isinstance(metastore, str) else dict(metastore or {})
    if given.get("uris") == NONE:
        return None
    if not given.get("uris") and not any(os.environ.get(name) for name in VARIABLES):
        return None
    from acidctl.metastore.settings import find_settings  # noqa: PLC0415 - with XML: only for a metastore

    settings = find_settings(given)
    return client_of(settings) if settings else None


def client_of(settings: MetastoreSettings) -> Metastore:
    """Return the client of a metastore; it connects at the first call.

    Raises:
        EnvironmentProblem: the package thrift is not installed.
    """
    try:
        from acidctl.metastore.client import Metastore  # noqa: PLC0415 - with thrift, which is optional
    except ModuleNotFoundError as error:
        if error.name != "thrift":
            raise
        raise EnvironmentProblem(
            f"the metastore {settings.shown} cannot be asked",
            "the package thrift is not installed",
            "pip install 'acidctl[metastore]'; with --metastore none paths are worked on without it",
        ) from error
    return Metastore(settings)
