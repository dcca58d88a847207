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
    wait: float = option(600.0, "--wait", help="Wait this long for the lock of another writer.")


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
        help="Insert into this partition; columns of the rows give the values of other keys. Repeatable.",
    )
    once: str | None = option(
        None,
        "--once",
        metavar="KEY",
        typed=True,
        help="Do nothing if a load with this KEY is in the table, as after the first run of a job that is retried.",
    )


@dataclass(frozen=True, kw_only=True)
class StreamOptions(Options):
    """The options of `acidctl stream`."""

    every: float = option(10.0, "--every", help="Commit this long after the first line of an interval.")
    offset_key: str | None = option(
        None,
        "--offset-key",
        metavar="NAME",
        help="Field with a number that rises from line to line; lines up to the last one loaded are passed over. "
        "It is written only if the table has this column.",
    )
    wait: float = option(600.0, "--wait", help="Wait this long for the lock of another writer.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every < 1:
            raise UsageProblem("--every is too short", "each transaction adds a directory", "give 1s or more")


@dataclass(frozen=True, kw_only=True)
class CreateOptions(Options):
    """The options of `acidctl create`."""

    schema: str | None = option(
        None, "--schema", metavar="COLUMNS", help="Columns as in CREATE TABLE: 'id bigint, name string'."
    )
    like: str | None = option(
        None,
        "--like",
        kind=Kind.FILE,
        typed=True,
        help="Take the columns of a Parquet, ORC or Arrow file instead of --schema.",
    )
    partitioned_by: str = option(
        "", "--partitioned-by", metavar="COLUMNS", typed=True, help="Partition keys with their types: 'day date'."
    )
    clustered_by: tuple[str, ...] | None = option(
        None, "--clustered-by", kind=Kind.NAMES, typed=True, help="Columns that choose a row's bucket."
    )
    buckets: int = option(0, "--buckets", kind=Kind.NUMBER, help="Number of buckets of --clustered-by.")
    type: str = option(
        "full",
        "--type",
        choices=("full", "insert_only"),
        help="full: rows can be changed. insert_only: rows are only added or replaced.",
    )
    stored_as: str = option(
        "orc",
        "--stored-as",
        choices=("orc", "parquet", "text"),
        help="Format of the files; full tables are always ORC.",
    )
    directory: str = option(
        "",
        "--location",
        metavar="URL",
        typed=True,
        help="Empty directory for its files. Default: the metastore chooses one in the database's.",
    )
    property: tuple[tuple[str, str], ...] = option(
        (), "--property", kind=Kind.PAIRS, help="Table property, e.g. orc.compress=ZSTD. Repeatable."
    )
    comment: str = option("", "--comment", metavar="TEXT", typed=True, help="Comment of the table.")
    if_not_exists: bool = option(False, "--if-not-exists", help="Do nothing if a table has this name already.")
    dry_run: bool = option(False, "-n", "--dry-run", help="Show the table that would be created, then stop.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schema is not None and self.like:
            raise UsageProblem("--schema and --like both give columns", "", "give one of them")


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
class SelectingOptions(WriteOptions):
    """The options of a verb that takes rows out, selected by a condition or by keys."""

    where: str | None = option(None, "--where", metavar="CONDITION", typed=True, help=f"{_WHERE}.")
    keys: str | None = option(
        None,
        "--keys",
        kind=Kind.FILE,
        typed=True,
        help="Select the rows whose key is in FILE; its columns go by name, in any format that `insert` reads.",
    )
    key: tuple[str, ...] | None = option(
        None,
        "--key",
        kind=Kind.NAMES,
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
class DeleteOptions(SelectingOptions):
    """The options of `acidctl delete`."""

    where: str | None = option(None, "--where", metavar="CONDITION", typed=True, help=_WHERE_OR_ALL)


@dataclass(frozen=True, kw_only=True)
class EraseOptions(SelectingOptions):
    """The options of `acidctl erase`."""

    older_than: float = option(
        86400.0, "--older-than", help="Keep files that became obsolete less than this long ago, for running queries."
    )
    unsafe_retention: bool = option(
        False, "--unsafe-retention", typed=True, help="Allow --older-than below 1h: nothing reads the table."
    )
    tasks: TaskOptions = group(TaskOptions)


@dataclass(frozen=True, kw_only=True)
class TruncateOptions(WriteOptions):
    """The options of `acidctl truncate`."""

    partition: tuple[tuple[str, str], ...] = option(
        (), "--partition", kind=Kind.COLUMNS, help="Truncate only the partitions with this value. Repeatable."
    )


@dataclass(frozen=True, kw_only=True)
class MergeOptions(WriteOptions):
    """The options of `acidctl merge`."""

    key: tuple[str, ...] = option(
        REQUIRED,
        "--key",
        kind=Kind.NAMES,
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
