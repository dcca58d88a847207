"""The options and the outcome of `acidctl migrate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acidctl.outcome import Details, Outcome, Remark, Result
from acidctl.verbs.engine import EngineOptions
from acidctl.verbs.options import REQUIRED, Kind, option
from acidctl.wording import human_bytes, human_count


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(EngineOptions):
    """The options of `acidctl migrate`."""

    engine: str = option("local", "--engine", choices=("spark", "local"), help="Spark, or this process without Java.")
    to: str = option(
        REQUIRED,
        "--to",
        metavar="TARGET",
        help="The Iceberg table: iceberg:CATALOG/db.table, hive:db.table or a directory; {table} is the name of the "
        "Hive table.",
    )
    catch_up: bool = option(False, "--catch-up", help="Bring a copy that was made before up to date.")
    every: float | None = option(
        None, "--every", kind=Kind.DURATION, help="With --catch-up: do it this often, until Ctrl-C or SIGTERM."
    )
    drop_column: tuple[str, ...] = option(
        (), "--drop-column", kind=Kind.LIST, help="Leave out this column. Repeatable."
    )
    format: str = option(
        "auto",
        "--format",
        choices=("auto", "orc", "parquet"),
        help="Format of the data files; auto says why in the plan.",
    )
    target_location: str | None = option(
        None, "--target-location", metavar="URL", help="Directory of the new table. Default: the catalog's choice."
    )
    catalog_option: tuple[tuple[str, str], ...] = option(
        (), "--catalog-option", kind=Kind.PAIRS, help="A setting of PyIceberg's catalog. Repeatable."
    )
    cut_over: bool = option(
        False,
        "--cut-over",
        typed=True,
        help="Catch up, then give the name of the Hive table to the copy, while writers wait.",
    )
    back: bool = option(
        False, "--back", typed=True, help="Give its name back to the Hive table, and to the copy its own."
    )
    window: float = option(
        60.0,
        "--window",
        kind=Kind.SECONDS,
        help="Cut over only if the last catch-up and the wait for statements take at most this long each.",
    )
    discard_snapshots: bool = option(
        False, "--discard-snapshots", typed=True, help="With --back: give up what was written to the Iceberg table."
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be copied, then stop.")
    proof: str = option(
        "new",
        "--proof",
        choices=("full", "new", "none"),
        typed=True,
        help="What is compared before the commit. full: all rows of both tables, also if nothing is new; new: "
        "values of new rows and ids of all, if the copy was compared before and has the same columns, else all rows; "
        "none: nothing.",
    )
    prove: str | None = option(
        None,
        "--prove",
        choices=("spark", "trino"),
        help="Copy nothing: print SQL for this engine, which compares the sums of both tables with those that acidctl "
        "reads of the Hive table.",
    )
    deadline: float | None = option(
        None, "--deadline", kind=Kind.DURATION, help="With a pattern: begin no further table after this long, e.g. 6h."
    )
    jobs: int | None = option(None, "--jobs", kind=Kind.COUNT, help="Files at a time of --engine local; by default 4.")


_NO_ORC = "DuckDB, polars, Snowflake and BigQuery read no Iceberg table with ORC files; --format parquet is for them"
_LOST = "not copied: ROW__IDs and earlier states; properties, grants, constraints and statistics of the table"
_MOST_COLUMNS = 20
"""The most columns of a plan that are all shown."""


@dataclass(frozen=True, kw_only=True)
class Migrated(Outcome):
    """The copy of a table: planned, written, or up to date already.

    Attributes:
        target: the Iceberg table, as the user named it.
        is_first: there was no copy before.
        rows, deleted: rows that the copy gets, and rows of the copy that are gone.
        dead: rows of the Hive table's files that deletes have removed, and that the copy does not show.
        files, bytes: to copy, or copied.
        format: of the data files; empty if only names change.
        why: the reason for the format if it was chosen now, or what is wrong with it.
        encoded: columns that are encoded again, with the reason.
        columns: the columns of the copy with Iceberg's types.
        hive_types: the columns of the Hive table with its types, also those that are left out.
        column_notes: what is special about a column, in words.
        notes: changes of columns, and what was seen on the way, in words.
        snapshot: the id of the new snapshot; None if there is none.
        proof: how the rows of both were compared; empty if they were not.
        statements: SQL by which an engine compares them.
        names: who has which name, after a cut-over or the way back; empty if no name changes.
    """

    target: str
    is_first: bool = False
    rows: int = 0
    deleted: int = 0
    dead: int = 0
    files: int = 0
    bytes: int = 0
    format: str = ""
    why: str = ""
    encoded: Mapping[str, str]
    columns: Mapping[str, str]
    hive_types: Mapping[str, str] = field(default_factory=dict)
    column_notes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    snapshot: int | None = None
    proof: str = ""
    statements: str = ""
    names: str = ""

    @property
    def heading(self) -> str:
        return "to copy" if self.result is Result.PLANNED else super().heading

    def line(self) -> str:
        if self.result is Result.POSTPONED:
            return super().line()
        if self.names:
            return f"{self.location}: {self.names}"
        proof = f"; {self.proof}" if self.proof else ""
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: {self.target} has the same rows already{proof}"
        amounts = [human_count(self.rows, "new row")] * bool(self.rows or not self.deleted)
        amounts += [human_count(self.deleted, "row") + " less"] * bool(self.deleted)
        amounts += [human_count(self.dead, "dead row") + " left out"] * bool(self.dead)
        planned = " (planned)" if self.result is Result.PLANNED else ""
        size = f"{human_count(self.files, 'file')}, {human_bytes(self.bytes)}"
        return f"{self.location}: copy to {self.target}{planned}: {', '.join(amounts)} ({size}){proof}"

    def details(self, *, every: bool) -> Details | None:
        if self.result is not Result.PLANNED or not self.columns:
            return None
        columns = ("column", "hive", "iceberg", "note")
        rows = [
            (name, kind, self.columns.get(name, "-"), self.column_notes.get(name, ""))
            for name, kind in self.hive_types.items()
        ]
        if every or len(rows) <= _MOST_COLUMNS:
            return Details(columns, tuple(rows))
        some = [row for row in rows if row[-1]]
        rest = human_count(len(rows) - len(some), "column") + " without a note"
        return Details(columns, (*some, (rest, "", "", "")), is_folded=True)

    def remarks(self) -> Iterator[Remark]:
        return map(Remark, self._notes)

    @property
    def _notes(self) -> list[str]:
        """The remarks; a plan has those about columns in its table."""
        about = self.column_notes.items() if self.result is Result.WRITTEN else ()
        is_plan = self.is_first and self.result is Result.PLANNED
        return [
            *[self.why] * bool(self.why),
            *[_NO_ORC] * (self.is_first and self.format == "orc"),
            *(f"column {name}: {text}" for name, text in about),
            *self.notes,
            *[_LOST] * is_plan,
        ]

    def amounts(self) -> Mapping[str, int]:
        rows = {"inserted": self.rows, "deleted": self.deleted}
        rows |= {"dead": self.dead} if self.dead else {}
        return {**rows, "files": self.files, "bytes": self.bytes}

    def bytes_by_use(self) -> Mapping[str, int]:
        return {"written": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        return {
            "verb": "migrate",
            "target": self.target,
            "format": self.format or None,
            "snapshotId": self.snapshot,
            "filesCopied": self.files,
            "bytes": self.bytes,
            "rowsAdded": self.rows,
            "rowsDead": self.dead,
            "positionDeletes": self.deleted,
            "columnsEncoded": dict(self.encoded),
            "columns": dict(self.columns),
            "hiveTypes": dict(self.hive_types),
            "columnNotes": dict(self.column_notes),
            "notes": self._notes,
            "proof": self.proof or None,
            **({"statements": self.statements} if self.statements else {}),
            "names": self.names or None,
        }
