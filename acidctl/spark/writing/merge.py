"""DELETE, UPDATE and MERGE by the rows of a DataFrame: tasks find and write the rows, this process commits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acidctl.acid.names import Kind, format_directory
from acidctl.base import parallel
from acidctl.base.errors import BadDataError
from acidctl.base.packed import Packed
from acidctl.location.table_location import TableLocation
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable
from acidctl.rows.read.events import open_event_files
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.table import shared_by
from acidctl.spark.splits import LocationPlan, facts_of, tasks_of
from acidctl.spark.writing.merge_tasks import (
    Changed,
    MergeTask,
    Missing,
    SourceShare,
    TablePart,
    mask_of,
    packed,
    unpacked,
)
from acidctl.spark.writing.share import Attempt, InsertTask
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.writing.merge import MergeRule
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.routes import Routes
from acidctl.writing.targets import snapshot_of, target_locations
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write

_PART_BYTES = 64 << 20
_MOST_PARTS = 2048


@dataclass(frozen=True, slots=True)
class MergeJobs:
    """Run the tasks of :mod:`acidctl.spark.writing.merge_tasks` somewhere, and return the results that count.

    Attributes:
        source: has every share of the source written.
        change: has every part of the table changed.
        insert: has the rows inserted that were not found.
    """

    source: Callable[[MergeTask], Iterable[SourceShare]]
    change: Callable[[MergeTask, Sequence[TablePart]], Iterable[Changed]]
    insert: Callable[[MergeTask, Sequence[Missing]], Iterable[Attempt]]


class FrameMerge(Write):
    """One DELETE, UPDATE or MERGE.

    Args:
        names: the columns of the rows; all of them are the key of a DELETE.
        key: columns that identify a row; None for a DELETE.
        operation, order, inserts: see :class:`acidctl.writing.merge.Merge`.

    Raises:
        UsageProblem: a column is missing, unknown, given twice, or cannot be a key.
    """

    def __init__(
        self,
        metastore: Metastore,
        table: HiveTable,
        schema: pa.Schema,
        jobs: MergeJobs,
        key: Sequence[str] | None = None,
        *,
        operation: str = "",
        order: str = "",
        inserts: bool = True,
    ) -> None:
        kind = Operation.DELETE if key is None else Operation.UPDATE
        super().__init__(metastore, table, Statement(kind, is_dynamic=bool(table.partition_keys)))
        self._jobs, self._inserts, self._names = jobs, inserts, tuple(schema.names)
        self._given = [name.lower() for name in schema.names]
        self._rule: MergeRule | None = None
        self._routes = Routes(table, self.row, {})
        if key is None:
            KeyFilter.of(table, schema.empty_table())
        else:
            lower = tuple(dict.fromkeys(map(str.lower, key)))
            self._rule = MergeRule(self._routes, lower, operation.lower(), order.lower())
            self._rule.check(table, self._given)

    def stage(self, transaction: Seen) -> list[StagedFile]:
        """Have the rows found and written, and take the files of the attempts that count."""
        fs, room = self.places.room()
        new_files = self.new_files(transaction)
        insert = InsertTask(self._routes, self.constraints, new_files, delegated(fs.spec), room, names=self._names)
        if self._rule:
            self.constraints.require_columns(self._given)
        task = MergeTask(insert, self._rule)
        shares = list(self._jobs.source(task))
        if not shares:
            return []
        task = replace(task, shares=tuple(replace(share, partitions=None) for share in shares))
        parts = self._parts(transaction, _partitions(self.table, shares))
        attempts, found = list[Attempt](), {share.path: np.zeros(-(-share.rows // 8), np.uint8) for share in shares}
        for changed in self._jobs.change(task, parts) if parts else ():
            attempts.append(changed.attempt)
            self.updated += changed.updated
            for path, mask in changed.found.items():
                now = unpacked(mask)
                if (now & found[path]).any():
                    what = "the table has several rows of a key of the DataFrame"
                    raise BadDataError(what, "a merge would not know which of them to replace", _UNIQUE)
                found[path] |= now
        if self._rule and self._inserts:
            rest = [share for share in task.shares if not mask_of(found[share.path], share.rows).all()]
            missing = [Missing(share, packed(found[share.path])) for share in rest]
            task = replace(task, insert=replace(insert, first=len(parts)))
            attempts += self._jobs.insert(task, missing) if missing else ()
        files = list(_numbered(pair for attempt in attempts for pair in attempt.with_paths()))
        self.places.adopt(files, new_files.of_statement(0)[1])
        return [file for _, file in files]

    def _parts(self, transaction: Seen, where: KeyFilter | None) -> list[TablePart]:
        """Return the parts of the table that may have rows with the keys."""
        found = target_locations(self.metastore, self.table, transaction, where, storage=self.storage)
        names = dict[str, str]()

        def plans() -> Iterator[LocationPlan]:
            for name, plan in parallel.results(_plan, found):
                names[plan.snapshot.shown] = name
                yield plan

        held = Packed(plans(), lambda plan: shared_by(plan.snapshot))
        size, everything = _PART_BYTES, dict.fromkeys(range(len(held)), lambda _, __: True)
        while len(tasks := tasks_of(held, everything, size)) > _MOST_PARTS:
            size *= 2
        return [
            TablePart(number, tuple((names[split.snapshot.shown], split) for split in splits))
            for number, splits in enumerate(tasks)
        ]


_UNIQUE = "nothing was changed; choose a key that is unique"


def _plan(found: tuple[str, TableLocation, Sequence[PartitionColumn]]) -> tuple[str, LocationPlan]:
    name, location, partition = found
    snapshot = snapshot_of(location)
    return name, LocationPlan(
        snapshot, tuple(partition), tuple(map(facts_of, open_event_files(snapshot, snapshot.files())))
    )


def _partitions(table: HiveTable, shares: Sequence[SourceShare]) -> KeyFilter | None:
    """Return the values of partition keys that rows with the keys may have; None for any."""
    values = [share.partitions for share in shares if share.partitions is not None]
    return KeyFilter.of(table, pa.concat_tables(values)) if len(values) == len(shares) else None


def _numbered(files: Iterable[tuple[str, StagedFile]]) -> Iterator[tuple[str, StagedFile]]:
    """Give files of the same name directories of their own: several parts have deletes of one bucket of a location."""
    taken = Counter[tuple[str, str, str]]()
    for path, file in files:
        name = file.location, file.directory, file.name
        if file.is_delete and taken[name]:
            write_id = int(file.directory.split("_")[2])
            directory = format_directory(Kind.DELETE_DELTA, write_id, write_id, taken[name])
            yield path, replace(file, directory=directory)
        else:
            yield path, file
        taken[name] += 1
