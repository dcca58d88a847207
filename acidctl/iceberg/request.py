"""One copy from request to proof: the columns, the plan, the files, the snapshot, and the comparison of both tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem, VerifyError
from acidctl.base.nearest import did_you_mean
from acidctl.iceberg.catalogs.open_target import OpenedTarget
from acidctl.iceberg.column_changes import ColumnChange, changed_fields, column_changes, require_same
from acidctl.iceberg.copy import CopyPlan, NewFiles, Partition, copied_files, plan_copy, write_copy
from acidctl.iceberg.difference import TargetFile
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.proof import copy_digest, source_digest
from acidctl.iceberg.target import DROPPED, SOURCE, SOURCE_ID, Target, Values, values_of
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.visibility import open_sources, row_types
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table
from acidctl.storage.port import join
from acidctl.storage.registry import open_location
from acidctl.wording import human_count


class CopyRequest:
    """A copy of a table.

    Args:
        dropped: names of columns that are left out.

    Attributes:
        target: None before it is created.
        changes: of its columns, by which it gets those that the Hive table has now.
    """

    def __init__(
        self, table: Table, opened: OpenedTarget, dropped: Sequence[str], storage: Mapping[str, str] | None
    ) -> None:
        self._table, self._opened, self._storage = table, opened, storage
        self.target = opened.find()
        hive = table.found[0].hive
        self._source = table.path, ":".join(map(str, hive.made)) if hive else ""
        self._snapshots: Sequence[Snapshot] = table.snapshots_at(None)
        self._row = self._row_type()
        self._dropped = self._left_out(dropped)
        self._wanted = [name.lower() not in self._dropped for name in self._row.names]
        keys = [(column.name, column.type) for column in table.partition_of(table.found[0])]
        kept = [pair for pair, is_wanted in zip(self._row.fields(), self._wanted, strict=True) if is_wanted]
        fields = fields_for(row_of([*kept, *keys]))
        self._fields, self._keys = fields[: len(kept)], fields[len(kept) :]
        if opened.location is not None:
            self._require_apart(opened.location)
        self.changes: tuple[ColumnChange, ...] = ()
        if self.target:
            self.changes = column_changes(self._fields, self.target.columns)
            require_same(self._keys, self.target.partition)

    def _require_apart(self, location: str) -> None:
        """Refuse a target in the directories of the source, or around them.

        Raises:
            RefusedError: see above.
        """
        fs, path = open_location(location, self._storage)
        for found in self._table.found:
            own = found.location.table_path
            if fs.url == found.fs.url and (f"{own}/".startswith(f"{path}/") or f"{path}/".startswith(f"{own}/")):
                why = f"it is at, in or around {found.shown}, which belongs to Hive"
                raise RefusedError(f"will not write to {location}", why, "name a directory beside the table")

    def _row_type(self) -> OrcType:
        declared = self._snapshots[0].declared
        if declared and declared.columns:
            return table_row_type(declared, ())
        return table_row_type(None, row_types(source for one in self._snapshots for source in open_sources(one)))

    def _left_out(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that are left out: those that the copy was made without, if it exists.

        Raises:
            UsageProblem: the table has no such column, or the copy has it.
        """
        for name in names:
            if name.lower() not in map(str.lower, self._row.names):
                raise UsageProblem(f"the table has no column {name}", "", did_you_mean(name, self._row.names))
        dropped = tuple(sorted({name.lower() for name in names}))
        if self.target and self.target.source[0]:
            if dropped and dropped != self.target.dropped:
                kept = ", ".join(self.target.dropped) or "no column"
                raise UsageProblem(f"the copy was made without {kept}", "", "give no --drop-column, or the same")
            dropped = self.target.dropped
        return dropped

    @property
    def columns(self) -> dict[str, str]:
        """Return Iceberg's type of each column."""
        return {field.name: field.type_name for field in (*self._fields, *self._keys)}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the changes of columns, and what Iceberg does not keep, in words."""
        changes = tuple(change.words for change in self.changes)
        times = [
            field.name for field in self._fields if any(inner.kind.startswith("timestamp") for inner in field.walk())
        ]
        if not times:
            return changes
        return (*changes, f"Iceberg's readers cut the nanoseconds of {', '.join(times)} to microseconds")

    @property
    def path(self) -> str:
        """Return the source, as the copy names it."""
        return self._table.path

    @property
    def made(self) -> tuple[int, int]:
        """Return when the Hive table was made, and its id; both change if it is dropped and made again."""
        hive = self._table.found[0].hive
        return hive.made if hive else (0, 0)

    @property
    def can_rename(self) -> bool:
        """Return whether all stores of the source can move a directory in one step."""
        return all(found.fs.can_rename for found in self._table.found)

    def require_state(self, *, is_again: bool) -> None:
        """Refuse a first copy into a table that has rows, and a catch-up of one that does not exist or is not ours.

        Raises:
            UsageProblem, NotFoundError, RefusedError: see above.
        """
        target = self.target
        if target is None:
            if is_again:
                raise NotFoundError(
                    "there is no copy to catch up with",
                    "the Iceberg table does not exist",
                    "make it first: leave out --catch-up and --cut-over",
                )
            return
        name, id_ = target.source
        if (name, id_) != self._source:
            why = f"it is a copy of {name}" if name else "acidctl did not make it"
            if name == self._table.path:
                why = f"it is a copy of another table {name}, which was dropped since"
            raise RefusedError("will not write to this Iceberg table", why, "name another target")
        if target.is_empty:
            return
        if target.write_ids is None:
            why = "its newest snapshot is not by acidctl: somebody wrote to the copy"
            raise RefusedError("will not write to this Iceberg table", why, "migrate into a new table")
        if not is_again:
            raise UsageProblem("the copy exists already", "", "give --catch-up to bring it up to date")

    def plan(self) -> CopyPlan:
        """Compare both tables; see :func:`acidctl.iceberg.copy.plan_copy`."""
        target = self.target
        if target and target.seen == self._seen and not self.changes:
            return CopyPlan()
        copied = copied_files(target, self._storage) if target else {}
        fields = iter(changed_fields(self._fields, target.columns) if target else self._fields)
        into = [next(fields) if is_wanted else None for is_wanted in self._wanted]
        names = {change.new.name for change in self.changes if change.old is None}
        added = [at for at, name in enumerate(self._row.names) if name.lower() in names]
        return plan_copy(self._partitions(), self._row, into, copied, added)

    def _partitions(self) -> Iterator[Partition]:
        for found, snapshot in zip(self._table.found, self._snapshots, strict=True):
            values = {column.name.lower(): column.value for column in self._table.partition_of(found)}
            yield Partition(snapshot, values_of(self._keys, values))

    def carry_out(
        self, plan: CopyPlan, jobs: int, on_bytes: Callable[[int], None], *, proves: bool
    ) -> tuple[int | None, str]:
        """Write the files of a plan, compare all rows, and commit.

        Args:
            proves: compare the rows; nothing is committed if they differ.

        Returns:
            The id of the newest snapshot, None for a table without rows; how rows were compared, as the end of a
            sentence.

        Raises:
            ConflictError: somebody else made the table, or a snapshot, meanwhile.
            VerifyError: the rows differ.
            StorageError: nobody knows whether it was committed; what is said of other errors leaves nothing behind.
        """
        if self.target is None:
            properties = {SOURCE: self._source[0], SOURCE_ID: self._source[1], DROPPED: json.dumps(self._dropped)}
            self.target = self._opened.create(self._fields, self._keys, properties)
            if (*self.target.columns, *self.target.partition) != (*self._fields, *self._keys):
                plan = self.plan()  # PyIceberg gave other ids
        target = self.target
        self._require_apart(target.location)
        if self.changes:
            target.change_columns(self.changes)
            plan = self.plan()  # new columns have ids now
        if plan.is_empty:
            return target.snapshot_id, self._compared(target, plan.copied) if proves and plan.copied else ""
        fs, path = open_location(target.location, self._storage)
        ids = ";".join(dict.fromkeys(str(snapshot.write_ids) for snapshot in self._snapshots))
        with NewFiles(fs, join(path, "data")) as new:
            write_copy(plan, target, new, jobs, on_bytes)
            expected = plan.shown_with(new.files)
            proof = self._compared(target, expected) if proves else ""
            new.may_be_shown = True
            snapshot = target.commit(new.files, new.deletes, ids, self._seen)
        if proves:
            self._require_listed(expected)
        return snapshot, proof

    def note_seen(self) -> None:
        """Note that the copy shows all rows of these files, so that the next run need not read their ids."""
        if self.target and self.target.seen != self._seen:
            self.target.remember(self._seen)

    @cached_property
    def _seen(self) -> str:
        """Return a digest of everything that decides which rows the source shows; files never change."""
        digest = sha256()
        for part in self._partitions():
            digest.update(repr((part.values, str(part.snapshot.write_ids))).encode())
            for file in part.snapshot.files():
                digest.update(repr((file.path, file.size, part.snapshot.logical_length(file))).encode())
        return digest.hexdigest()

    def _compared(self, target: Target, files: Mapping[Values, Sequence[TargetFile]]) -> str:
        """Compare the rows of the source with those of files of the copy; return how, as the end of a sentence.

        Raises:
            VerifyError: they differ.
        """
        there = copy_digest(target, files, self._storage)
        here = source_digest(self._scans(), (*target.columns, *target.partition))
        if here != there:
            why = f"{here.rows} rows there and {there.rows} here" if here.rows != there.rows else "values differ"
            hint = "nothing was committed; migrate into a new table, and report this"
            raise VerifyError("the copy would differ from its source", why, hint)
        return f"all values of {human_count(there.rows, 'row')} compared"

    def _require_listed(self, expected: Mapping[Values, Sequence[TargetFile]]) -> None:
        """Require that the catalog lists the compared files, in their partitions and with their deleted rows.

        Raises:
            VerifyError: it does not.
        """
        again = self._opened.find()
        listed = copied_files(again, self._storage) if again else {}

        def form(files: Mapping[Values, Sequence[TargetFile]]) -> list[tuple[str, Values, bytes]]:
            return sorted((one.url, values, one.keys.dead.tobytes()) for values, some in files.items() for one in some)

        if form(listed) != form(expected):
            hint = "roll it back in Iceberg, and report this"
            raise VerifyError("the new snapshot of the copy is wrong", "it does not list what was written", hint)

    def _scans(self) -> Iterator[Scan]:
        names = [name for name, is_wanted in zip(self._row.names, self._wanted, strict=True) if is_wanted]
        for found, snapshot in zip(self._table.found, self._snapshots, strict=True):
            keys = self._table.partition_of(found)
            yield Scan(snapshot, [*names, *(key.name for key in keys)], partition=keys, row_type=self._row)
