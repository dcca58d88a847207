"""The options of the verbs that change rows."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.base.errors import UsageProblem
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.options import REQUIRED, Kind, Options, group, option


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Options):
    """The options of every verb that changes rows."""

    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be written, then stop.")
    wait: float = option(
        600.0, "--wait", kind=Kind.DURATION, shown="10m", help="Wait this long for the lock of another writer."
    )


@dataclass(frozen=True, kw_only=True)
class InsertOptions(WriteOptions):
    """The options of `acidctl insert`."""

    overwrite: bool = option(
        False,
        "--overwrite",
        typed=True,
        help="Replace all rows of the table, of the partition of --partition, or else of the partitions that get rows.",
    )
    partition: tuple[tuple[str, str], ...] = option(
        (),
        "--partition",
        kind=Kind.COLUMNS,
        metavar="KEY=VALUE",
        help="Insert into this partition; columns of the rows give the values of other keys. Repeatable.",
    )


_WHERE = "Condition in SQL that selects the rows, as `cat --where` takes it"
_WHERE_OR_ALL = f"{_WHERE}; `true` selects all."


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(WriteOptions):
    """The options of `acidctl update`."""

    set: str = option(
        REQUIRED,
        "--set",
        metavar="SQL",
        typed=True,
        help="New values, \"value = 'CC', n = n + 1\", from literals, the row's old values, +, -, * and ||.",
    )
    where: str = option(REQUIRED, "--where", metavar="CONDITION", typed=True, help=_WHERE_OR_ALL)


@dataclass(frozen=True, kw_only=True)
class DeleteOptions(WriteOptions):
    """The options of `acidctl delete`."""

    where: str | None = option(None, "--where", metavar="CONDITION", typed=True, help=_WHERE_OR_ALL)
    keys: str | None = option(
        None,
        "--keys",
        kind=Kind.FILE,
        metavar="FILE",
        typed=True,
        help="Delete the rows whose key is in FILE; its columns go by name, in any format that `insert` reads.",
    )
    key: tuple[str, ...] | None = option(
        None,
        "--key",
        kind=Kind.NAMES,
        metavar="NAMES",
        help="Key columns of the --keys file, separated by commas. Default: all its columns.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.where is not None and self.keys:
            raise UsageProblem("--where and --keys both select rows", "", "give one of them")
        if self.key and not self.keys:
            raise UsageProblem(
                "--key has no effect without --keys", "it names columns of that file", "give --keys, too"
            )


@dataclass(frozen=True, kw_only=True)
class EraseOptions(WriteOptions):
    """The options of `acidctl erase`."""

    where: str = option(REQUIRED, "--where", metavar="CONDITION", typed=True, help=f"{_WHERE}.")
    older_than: float = option(
        86400.0,
        "--older-than",
        kind=Kind.DURATION,
        shown="24h",
        help="Keep files that became obsolete less than this long ago, for running queries.",
    )
    unsafe_retention: bool = option(
        False, "--unsafe-retention", typed=True, help="Allow --older-than below 1h: nothing reads the table."
    )
    tasks: TaskOptions = group(TaskOptions)


@dataclass(frozen=True, kw_only=True)
class TruncateOptions(WriteOptions):
    """The options of `acidctl truncate`."""

    partition: tuple[tuple[str, str], ...] = option(
        (),
        "--partition",
        kind=Kind.COLUMNS,
        metavar="KEY=VALUE",
        help="Truncate only the partitions with this value. Repeatable.",
    )


@dataclass(frozen=True, kw_only=True)
class MergeOptions(WriteOptions):
    """The options of `acidctl merge`."""

    key: tuple[str, ...] = option(
        REQUIRED,
        "--key",
        kind=Kind.NAMES,
        metavar="NAMES",
        help="Columns that identify a row, separated by commas; a NULL in one of them matches nothing.",
    )
    operation_column: str | None = option(
        None,
        "--operation-column",
        metavar="NAME",
        help="Column of FILE with insert, update or delete, or their first letters. Default: no row deletes.",
    )
    order_by: str | None = option(
        None,
        "--order-by",
        metavar="NAME",
        typed=True,
        help="Column that orders the rows of FILE: only the last row of each key counts.",
    )
