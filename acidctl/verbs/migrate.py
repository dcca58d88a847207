"""Copy a table to Iceberg, keep the copy up to date, and prove that both have the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.outcome import Outcome, Remark, Result
from acidctl.verbs.engine import EngineOptions
from acidctl.verbs.events import Events, Question
from acidctl.verbs.options import REQUIRED, Kind, option
from acidctl.verbs.reading.cat import table_of
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.iceberg.file_tasks import Engine
    from acidctl.iceberg.request import CopyRequest
    from acidctl.verbs.selection import Selection

_JOBS = 4

TABLE = "{table}"
"""The part of a target that stands for the name of the Hive table."""


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(EngineOptions):
    """The options of `acidctl migrate`."""

    engine: str = option("local", "--engine", choices=("spark", "local"), help="Spark, or this process without Java.")

    to: str = option(
        REQUIRED,
        "--to",
        metavar="TARGET",
        help="The Iceberg table: iceberg:CATALOG/db.table, or a directory; {table} is the name of the Hive table.",
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
        statements: SQL by which an engine compares them.
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
    statements: str = ""

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
            **({"statements": self.statements} if self.statements else {}),
        }


def migrate(selection: Selection, options: MigrateOptions, events: Events) -> Iterator[Migrated]:
    """Yield the plans of copies if it is a dry run or has to be confirmed, then what was copied.

    If the place is a pattern, ``hive:sales.*``, a table that fails is reported to `events`, and the next one follows.

    Raises:
        UsageProblem: the target cannot be used in this way, or is one table for several.
        AcidctlError: the only table that was named cannot be copied; see :func:`_migrate_table`.
    """
    place = selection.places[0]
    if not is_hive_name(place) or not HiveName.parse(place).is_pattern:
        yield from _migrate_table(selection, options, events)
        return
    if TABLE not in options.to:
        hint = f"write {TABLE} for the name of the table, as in iceberg:prod/sales.{TABLE}_ice"
        raise UsageProblem("--to names one Iceberg table for several", f"{place} is a pattern", hint)
    warehouse = selection.resolver.require_warehouse(place)
    tables = [table.full_name for table in warehouse.tables(HiveName.parse(place))]
    if events.shows_plans and not options.dry_run:
        due: list[str] = []
        for planned in _migrate_each(tables, selection, replace(options, dry_run=True), events):
            due += [planned.location] * (planned.result is Result.PLANNED)
            yield planned
        if not due:
            return
        what = human_count(len(due), "table")
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", tuple(due)))
        tables = [name.removeprefix(HIVE) for name in due]
    yield from _migrate_each(tables, selection, options, events)


def _migrate_each(
    tables: Sequence[str], selection: Selection, options: MigrateOptions, events: Events
) -> Iterator[Migrated]:
    """Yield the outcomes of tables of the metastore, named ``db.table``; without a question."""
    for name in tables:
        target = replace(options, to=options.to.replace(TABLE, name.partition(".")[2]))
        try:
            # Lists and a lock of its own: other tables take their time.
            with closing(selection.resolver.require_warehouse(name).refreshed()) as warehouse:
                resolver = replace(selection.resolver, warehouse=warehouse)
                one = replace(selection, places=(f"{HIVE}{name}",), resolver=resolver)
                yield from _migrate_table(one, target, events, asks=False)
        except AcidctlError as error:
            events.failed(f"{HIVE}{name}", error)


def _migrate_table(
    selection: Selection, options: MigrateOptions, events: Events, *, asks: bool = True
) -> Iterator[Migrated]:
    """Yield the plan of a copy if it is a dry run or has to be confirmed, then what was copied.

    Args:
        asks: ask before anything is copied, if `events` shows plans.

    Raises:
        UsageProblem: the target cannot be used in this way.
        RefusedError: nobody says which write ids are committed, a column or a file cannot be copied, or it was not
            confirmed.
        ConflictError: somebody else changed the copy meanwhile.
        VerifyError: the rows would differ, and nothing was committed.
        EnvironmentProblem: PyIceberg is not installed.
    """
    options.check("--jobs", options.jobs)
    # No lock is held while the user decides.
    waits = options.dry_run or (asks and events.shows_plans) or bool(options.prove)
    looking = replace(selection, resolver=selection.resolver.refreshed()) if waits else selection
    request = _request(looking, options, locks=not waits)
    place = selection.places[0]
    shown = request.source if not is_hive_name(place) else place
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

    def is_done() -> bool:
        return plan.is_empty and request.target is not None and not request.changes

    if options.prove:
        if not is_done():
            raise RefusedError(
                "the copy lacks what the Hive table has now", outcome(Result.PLANNED).line(), "catch up first"
            )
        yield replace(outcome(Result.NOTHING_TO_DO), statements=request.statements(options.prove, (shown, options.to)))
        return
    if waits and not is_done():
        planned = outcome(Result.PLANNED)
        yield planned
        if options.dry_run:
            return
        what = f"{human_count(plan.rows, 'row')} of {shown} to {options.to}"
        events.confirm(Question(f"{what} would be copied", f"Copy {what}?", "nothing was copied", (shown,)))
        if is_hive_name(place):
            request = _request(selection, options, locks=True)
            plan = request.plan()
            if (now := outcome(Result.PLANNED)) != planned:
                events.note(f"the table has changed since the plan: {now.line()}")
    if is_done():
        if not options.dry_run:
            request.note_seen()
        proves = options.proof == "full" and not options.dry_run
        yield outcome(Result.NOTHING_TO_DO, proof=request.prove() if proves else "")
        return
    with events.progress("copying", plan.bytes, is_bytes=True) as progress, _engine(options, request, events) as engine:
        jobs = options.jobs or _JOBS
        snapshot, proof = request.carry_out(plan, jobs, progress.advance, proof=options.proof, engine=engine)
    done = outcome(Result.WRITTEN, snapshot, proof)
    facts = {"target": options.to, "snapshotId": snapshot, "bytes": done.bytes, "proof": proof or None}
    request.log({**facts, **done.amounts()}, events.warn)
    yield done


def _request(selection: Selection, options: MigrateOptions, *, locks: bool) -> CopyRequest:
    """Return what is to be copied, of a table of a metastore under a lock for reading if `locks`."""
    from acidctl.iceberg.catalogs.open_target import open_target

    place = selection.places[0]
    if locks and is_hive_name(place):
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
    request.require_state(is_again=options.catch_up or bool(options.prove))
    return request


@contextmanager
def _engine(options: MigrateOptions, request: CopyRequest, events: Events) -> Iterator[Engine | None]:
    """Give what writes the files; None for this process."""
    if options.is_local:
        yield None
        return
    from acidctl.spark.copy_engine import spark_copies

    name = f"acidctl-migrate-{request.source.rpartition('/')[2]}"
    with spark_copies(options.spark(name, request.stores), events.note) as engine:
        yield engine
