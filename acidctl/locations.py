"""Many locations of transactional tables, with the verbs that the command line has for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from acidctl.acid.writeids import ValidWriteIds
from acidctl.api import DAY, Location, compact_options, resolver_of, storage_of, validate_options
from acidctl.base.arguments import as_path, as_texts
from acidctl.base.deadline import Duration, as_seconds
from acidctl.base.errors import AcidctlError
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.run import Engine
from acidctl.location.find import find as find_places
from acidctl.location.snapshot_resolver import SnapshotSpec, open_warehouse
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.overview.location_status import LocationStatus
from acidctl.rows.scan.table_scan import ArrowRows
from acidctl.validation.findings import Depth
from acidctl.verbs.clean import clean
from acidctl.verbs.compact import compact
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.events import Events
from acidctl.verbs.maintain_options import CleanOptions, NightlyOptions, PurgeOptions, RestoreOptions
from acidctl.verbs.nightly import Part, Step, nightly
from acidctl.verbs.policy import Policies
from acidctl.verbs.purge import purge
from acidctl.verbs.reading.inspect import Inspected, InspectOptions, inspect
from acidctl.verbs.reading.validate import ValidateOptions, validate
from acidctl.verbs.restore import restore
from acidctl.verbs.selection import Selection

SCHEMA = pa.schema(
    [
        ("location", pa.string()),
        ("table", pa.string()),
        ("bytes", pa.int64()),
        ("deltas", pa.int64()),
        ("score", pa.int64()),
        ("verdict", pa.string()),
        ("compaction", pa.string()),
        ("gain", pa.float64()),
        ("freeBytes", pa.int64()),
        ("soonBytes", pa.int64()),
        ("laterBytes", pa.int64()),
        ("abortedBytes", pa.int64()),
        ("trashBytes", pa.int64()),
        ("problem", pa.string()),
    ]
)
"""Columns of :meth:`acidctl.overview.location_status.LocationStatus.record`. Sizes are bytes; `gain` is what every
full read saves for each byte that a compaction rewrites once."""

_ROWS = 100
"""In a batch."""


def find(
    *urls: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    metastore: str | Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    snapshot: str | ValidWriteIds | SnapshotSpec | None = None,
    assume_committed: Duration | None = None,
) -> Locations:
    """Return the locations at or below paths, and of the tables that names like ``hive:db.*`` mean.

    Args and errors are those of :class:`acidctl.Location`; one write-id list is good for one table. `exclude` are names
    of tables, ``db.tmp_*``, that are left out where such a name means several. Nothing is looked at yet.
    """
    resolver = resolver_of(snapshot, assume_committed, open_warehouse(metastore, as_texts(exclude, "exclude")))
    return Locations(Selection(tuple(map(as_path, urls)), storage_of(storage_options), resolver))


class Locations(ArrowRows):
    """Locations that every loop and every verb looks for again.

    A verb does what the command of its name does, without a question: calling it is consent. It yields an outcome for
    each location; one that failed has its `error`, and does not stop the others. As rows for Arrow, pandas and polars
    there is one for each location, with its size, what is due, and what a cleaning can free.
    """

    def __init__(self, selection: Selection) -> None:
        self._where = selection

    def __repr__(self) -> str:
        return f"<acidctl locations at {self._where.shown}>"

    def __iter__(self) -> Iterator[Location]:
        """Yield each location."""
        selection = self._where
        for found in find_places(selection.places, selection.storage, selection.resolver, looks=False):
            yield Location.of(found, selection.storage)

    def compact(self, options: CompactOptions | str = "auto", engine: Engine | None = None) -> Iterator[Outcome]:
        """Compact them; options and engine are those of :meth:`acidctl.Location.compact`.

        Raises:
            RefusedError: nobody said which write ids are committed, or a path itself is not known to be transactional.
        """
        chosen = compact_options(options)
        return self._done(lambda where, _, events: compact(where, chosen, events, engine or LocalEngine(1)), chosen)

    def clean(self, options: CleanOptions | None = None) -> Iterator[Outcome]:
        """Remove what is obsolete or aborted; the plans come first, then what was removed."""
        return self._done(clean, options or CleanOptions())

    def restore(self, options: RestoreOptions | None = None) -> Iterator[Outcome]:
        """Bring back what a cleaning moved to the trash; raises NotFoundError if there is nothing."""
        return self._done(restore, options or RestoreOptions())

    def purge(self, options: PurgeOptions | None = None) -> Iterator[Outcome]:
        """Delete what cleanings moved to the trash; raises NotFoundError for a run that no trash holds."""
        return self._done(purge, options or PurgeOptions())

    def _done(self, verb: Callable[..., Iterator[Outcome]], options: Any) -> Iterator[Outcome]:
        events = Events()
        yield from verb(self._now(), options, events)
        yield from _failures(events)

    def validate(self, options: ValidateOptions | Depth | str = "listing", **more: Any) -> Iterator[Outcome]:
        """Check them; yields the report of each, a :class:`acidctl.validation.report.Report`.

        Args:
            options, more: as for :meth:`acidctl.Location.validate`.

        Raises:
            UsageProblem: an option cannot be used.
        """
        return self._done(validate, validate_options(options, more))

    def nightly(
        self, options: NightlyOptions | None = None, policies: Policies | None = None, engine: Engine | None = None
    ) -> Iterator[Step]:
        """Compact what is due, clean what is obsolete and purge what is old.

        Args:
            policies: what is wanted of some tables.
            engine: where compactions run; without one in this process.

        Raises:
            RefusedError: as :meth:`compact`.
            ConflictError: another run works with the same folder.
        """
        events, run_id = Events(), ""
        wanted = options or NightlyOptions()
        for step in nightly(self._now(), wanted, events, engine or LocalEngine(1), policies=policies):
            run_id = step.run
            yield step
        for one in _failures(events):
            yield Step(location=one.location, result=one.result, error=one.error, part=Part.COMPACT, of=one, run=run_id)

    def status(self, older_than: Duration = DAY) -> Iterator[LocationStatus]:
        """Yield what each location holds, costs its readers and needs.

        Args:
            older_than: the retention that a cleaning would have.

        Raises:
            AcidctlError: a location cannot be listed, or its snapshot is not known; as rows, such a location has this
                as its `problem`.
        """
        options = InspectOptions(older_than=as_seconds(older_than, "older_than"))
        for _, result in self._inspected(options):
            if isinstance(result, AcidctlError):
                raise result
            yield result.status

    def _inspected(self, options: InspectOptions) -> Iterator[tuple[TableLocation, Inspected | AcidctlError]]:
        """Yield each location with what was found out; at the end raises the error of a place that hid some."""
        events = Events()
        yield from inspect(self._now(), options, events)
        for _, error in events.errors:
            raise error

    @property
    def schema(self) -> pa.Schema:
        """See :data:`SCHEMA`."""
        return SCHEMA

    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield one row for each location.

        Raises:
            AcidctlError: a place, or a directory above locations, cannot be listed.
        """
        rows: list[dict[str, Any]] = []
        record: dict[str, Any]
        for found, result in islice(self._inspected(InspectOptions()), limit):
            if isinstance(result, AcidctlError):
                table = found.hive.full_name if found.hive else found.fs.display(found.location.table_path)
                record = {"location": found.shown, "table": table, "problem": str(result)}
            else:
                record = result.status.record()
            rows.append({name: record.get(name) for name in SCHEMA.names})
            if len(rows) == _ROWS:
                yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    def _now(self) -> Selection:
        return replace(self._where, resolver=self._where.resolver.refreshed())


def _failures(events: Events) -> Iterator[Outcome]:
    """Yield what failed besides the outcomes: a directory that cannot be listed, a place with nothing to look at."""
    errors: list[tuple[str, AcidctlError]] = events.errors
    for location, error in errors:
        yield Outcome(location=location, result=Result.FAILED, error=error)
