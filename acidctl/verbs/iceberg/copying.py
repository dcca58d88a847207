"""One copy of a table, from its plan to its log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.errors import RefusedError
from acidctl.location.arguments import is_hive_name
from acidctl.outcome import Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.iceberg.options import Migrated, MigrateOptions
from acidctl.verbs.reading.cat import table_of
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.iceberg.file_tasks import Engine
    from acidctl.iceberg.request import CopyRequest
    from acidctl.verbs.selection import Selection

_JOBS = 4


def copy_table(
    selection: Selection,
    options: MigrateOptions,
    events: Events,
    *,
    asks: bool = True,
    locks: bool = True,
    check: Callable[[CopyRequest], None] = lambda _: None,
    most: float = math.inf,
) -> Iterator[Migrated]:
    """Yield the plan of a copy if it is a dry run or has to be confirmed, then what was copied.

    Args:
        asks: ask before anything is copied, if `events` shows plans.
        locks: keep Hive's cleaner away from a table of the metastore meanwhile.
        check: called with each request before it is planned.
        most: bytes to copy.

    Raises:
        UsageProblem: the target cannot be used in this way.
        RefusedError: nobody says which write ids are committed, a column or a file cannot be copied, or it was not
            confirmed; or there is more to copy than `most`.
        ConflictError: somebody else changed the copy meanwhile.
        VerifyError: the rows would differ, and nothing was committed.
        EnvironmentProblem: PyIceberg is not installed.
    """
    options.check("--jobs", options.jobs)
    # No lock is held while the user decides.
    waits = options.dry_run or (asks and events.shows_plans) or bool(options.prove)
    looking = replace(selection, resolver=selection.resolver.refreshed()) if waits else selection
    request = _request(looking, options, locks=locks and not waits)
    check(request)
    place = selection.places[0]
    shown = request.source if not is_hive_name(place) else place
    plan, is_first = request.plan(), request.target is None

    def outcome(result: Result, snapshot: int | None = None, proof: str = "") -> Migrated:
        return Migrated(
            location=shown,
            result=result,
            target=options.to,
            is_first=is_first,
            rows=plan.rows,
            deleted=plan.deleted,
            dead=plan.dead,
            files=len(plan.files),
            bytes=plan.bytes,
            format=str(plan.format),
            why=plan.why,
            encoded=plan.encoded,
            columns=request.columns,
            hive_types=request.hive_types,
            column_notes=request.column_notes(plan.encoded),
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
            request = _request(selection, options, locks=locks)
            check(request)
            plan = request.plan()
            if (now := outcome(Result.PLANNED)) != planned:
                events.note(f"the table has changed since the plan: {now.line()}")
    if is_done():
        if not options.dry_run:
            request.note_seen()
        proves = not options.dry_run and request.must_prove(options.proof)
        yield outcome(Result.NOTHING_TO_DO, proof=request.prove() if proves else "")
        return
    if plan.bytes > most:
        what, why = f"{shown} would be locked for too long", f"{human_bytes(plan.bytes)} are still to be copied"
        raise RefusedError(what, why, "run it again when less is written, or with a longer --window")
    with events.progress("copying", plan.bytes, is_bytes=True) as progress, _engine(options, request, events) as engine:
        jobs = options.jobs or _JOBS
        snapshot, proof = request.carry_out(plan, jobs, progress.advance, proof=options.proof, engine=engine)
    done = outcome(Result.WRITTEN, snapshot, proof)
    facts = {"target": options.to, "snapshotId": snapshot, "proof": proof or None}
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
    metastore = selection.resolver.require_warehouse(options.to).metastore if is_hive_name(options.to) else None
    settings = dict(options.catalog_option)
    opened = open_target(options.to, settings, options.target_location, selection.storage, metastore)
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
