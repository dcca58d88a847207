"""Copy a table to Iceberg, keep the copy up to date, and prove that both have the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import RefusedError
from acidctl.location.arguments import is_hive_name
from acidctl.outcome import Outcome, Remark, Result
from acidctl.verbs.engine import EngineOptions
from acidctl.verbs.events import Events, Question
from acidctl.verbs.options import REQUIRED, Kind, option
from acidctl.verbs.reading.cat import table_of
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.iceberg.file_tasks import Engine
    from acidctl.rows.scan.table import Table
    from acidctl.verbs.selection import Selection

_JOBS = 4


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(EngineOptions):
    """The options of `acidctl migrate`."""

    engine: str = option("local", "--engine", choices=("spark", "local"), help="Spark, or this process without Java.")
    to: str = option(
        REQUIRED, "--to", metavar="TARGET", help="The Iceberg table: iceberg:CATALOG/db.table, or a directory."
    )
    catch_up: bool = option(False, "--catch-up", help="Bring a copy that was made before up to date.")
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
    dry_run: bool = option(False, "-n", "--dry-run", help="Show what would be copied, then stop.")
    proof: bool = option(
        True, "--proof/--no-proof", typed=True, help="Compare all rows of both tables before the commit (default)."
    )
    jobs: int | None = option(None, "--jobs", kind=Kind.COUNT, help="Files at a time of --engine local; by default 4.")


@dataclass(frozen=True, kw_only=True)
class Migrated(Outcome):
    """The copy of a table: planned, written, or up to date already.

    Attributes:
        target: the Iceberg table, as the user named it.
        rows, deleted: rows that the copy gets, and rows of the copy that are gone.
        files, bytes: to copy, or copied.
        format, why: of the data files, and the reason if it was chosen now.
        encoded: columns that are encoded again, with the reason.
        columns: the columns of the copy with Iceberg's types.
        notes: changes of columns, and what Iceberg does not keep, in words.
        snapshot: the id of the new snapshot; None if there is none.
        proof: how the rows of both were compared; empty if they were not.
    """

    target: str
    rows: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0
    format: str
    why: str = ""
    encoded: Mapping[str, str]
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()
    snapshot: int | None = None
    proof: str = ""

    @property
    def heading(self) -> str:
        return "to copy" if self.result is Result.PLANNED else super().heading

    def line(self) -> str:
        proof = f"; {self.proof}" if self.proof else ""
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: {self.target} has the same rows already{proof}"
        amounts = [human_count(self.rows, "new row")] * bool(self.rows or not self.deleted)
        amounts += [human_count(self.deleted, "row") + " less"] * bool(self.deleted)
        planned = " (planned)" if self.result is Result.PLANNED else ""
        size = f"{human_count(self.files, 'file')}, {human_bytes(self.bytes)}"
        return f"{self.location}: copy to {self.target}{planned}: {', '.join(amounts)} ({size}){proof}"

    def remarks(self) -> Iterator[Remark]:
        if self.why:
            yield Remark(self.why)
        for name, why in self.encoded.items():
            yield Remark(f"column {name} is encoded again: {why}")
        for text in self.notes:
            yield Remark(text)

    def amounts(self) -> Mapping[str, int]:
        return {"inserted": self.rows, "deleted": self.deleted, "files": self.files}

    def bytes_by_use(self) -> Mapping[str, int]:
        return {"written": self.bytes}

    def facts(self) -> Mapping[str, Any]:
        return {
            "verb": "migrate",
            "target": self.target,
            "format": self.format,
            "snapshotId": self.snapshot,
            "filesCopied": self.files,
            "bytesCopied": self.bytes,
            "rowsAdded": self.rows,
            "positionDeletes": self.deleted,
            "columnsEncoded": dict(self.encoded),
            "columns": dict(self.columns),
            "proof": self.proof or None,
        }


def migrate(selection: Selection, options: MigrateOptions, events: Events) -> Iterator[Migrated]:
    """Yield the plan of a copy if it is a dry run or has to be confirmed, then what was copied.

    Raises:
        UsageProblem: the target cannot be used in this way.
        RefusedError: nobody says which write ids are committed, a column or a file cannot be copied, or it was not
            confirmed.
        ConflictError: somebody else changed the copy meanwhile.
        VerifyError: the rows would differ, and nothing was committed.
        EnvironmentProblem: PyIceberg is not installed.
    """
    from acidctl.iceberg.catalogs.open_target import open_target

    options.check("--jobs", options.jobs)
    place = selection.places[0]
    if is_hive_name(place):
        selection.resolver.require_warehouse(place).read_lock = True  # no cleaner takes files away meanwhile
    table = table_of(selection)
    if not selection.resolver.decides:
        raise RefusedError(
            "migrate must be told which write ids are committed",
            "no list of Hive's was given",
            "name the table in its metastore, hive:db.t; or give --snapshot, or --assume-committed 1h if all that is "
            "older is committed",
        )
    opened = open_target(options.to, dict(options.catalog_option), options.target_location, selection.storage)
    from acidctl.iceberg.request import CopyRequest  # it needs PyIceberg, which open_target() has asked for

    request = CopyRequest(table, opened, options.drop_column, selection.storage, options.format)
    shown = table.path if not is_hive_name(place) else place
    request.require_state(is_again=options.catch_up)
    plan = request.plan()

    def outcome(result: Result, snapshot: int | None = None, proof: str = "") -> Migrated:
        return Migrated(
            location=shown,
            result=result,
            target=options.to,
            rows=plan.rows,
            deleted=plan.deleted,
            files=len(plan.files),
            bytes=plan.bytes,
            format=str(plan.format),
            why=plan.why,
            encoded=plan.encoded,
            columns=request.columns,
            notes=request.notes,
            snapshot=snapshot,
            proof=proof,
        )

    if plan.is_empty and request.target is not None and not request.changes:
        if not options.dry_run:
            request.note_seen()
        yield outcome(Result.NOTHING_TO_DO)
        return
    if options.dry_run or events.shows_plans:
        yield outcome(Result.PLANNED)
        if options.dry_run:
            return
        what = f"{human_count(plan.rows, 'row')} of {shown} to {options.to}"
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", (shown,)))
    with events.progress("copying", plan.bytes, is_bytes=True) as progress, _engine(options, table, events) as engine:
        snapshot, proof = request.carry_out(
            plan, options.jobs or _JOBS, progress.advance, proves=options.proof, engine=engine
        )
    yield outcome(Result.WRITTEN, snapshot, proof)


@contextmanager
def _engine(options: MigrateOptions, table: Table, events: Events) -> Iterator[Engine | None]:
    """Give what writes the files; None for this process."""
    if options.is_local:
        yield None
        return
    from acidctl.spark.copy_engine import spark_copies

    stores = [found.fs.spec for found in table.found]
    with spark_copies(options.spark(f"acidctl-migrate-{table.path.rpartition('/')[2]}", stores), events.note) as engine:
        yield engine
