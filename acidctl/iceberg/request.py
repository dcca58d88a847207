"""One copy from request to proof: the columns, the plan, the files, the snapshot, and the comparison of both tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from hashlib import sha256
from itertools import chain

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError, UsageProblem, VerifyError
from acidctl.base.nearest import did_you_mean
from acidctl.iceberg.catalogs.open_target import OpenedTarget
from acidctl.iceberg.column_changes import ColumnChange, changed_fields, column_changes, require_same
from acidctl.iceberg.copy import (
    CopyPlan,
    NewFiles,
    Partition,
    copied_files,
    plan_copy,
    rows_have_keys,
    write_copy,
    written_files,
)
from acidctl.iceberg.difference import SourceFile, TargetFile
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.file_tasks import AUTO, CopyFormat, Engine
from acidctl.iceberg.orphans import remove_orphans
from acidctl.iceberg.proofs.all_rows import SourceRows, require_same_rows
from acidctl.iceberg.proofs.digests import plain_rows
from acidctl.iceberg.proofs.new_rows import ScanOf, require_new_rows
from acidctl.iceberg.proofs.places import Places, has_other_values
from acidctl.iceberg.proofs.statements import EngineSums
from acidctl.iceberg.target import (
    DROPPED,
    FORMAT,
    PROOF,
    SOURCE,
    SOURCE_ID,
    WRITE_IDS,
    CopiedFile,
    Target,
    Values,
    values_of,
)
from acidctl.location.change.work_log import Fact, LogEntry, log_done
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType, hive_type, row_of
from acidctl.outcome import Result
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.visibility import open_sources, row_types
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table
from acidctl.storage.port import FileSystemSpec, base_name
from acidctl.storage.registry import open_location
from acidctl.wording import human_count

FULL, NEW, NONE = "full", "new", "none"


class CopyExists(UsageProblem):
    """A first copy was asked for, and there is one with rows."""


class CopyRequest:
    """A copy of a table.

    Args:
        dropped: names of columns that are left out.
        asked: the format of the data files: orc, parquet, or auto.

    Attributes:
        target: None before it is created.
        changes: of its columns, by which it gets those that the Hive table has now.
    """

    def __init__(
        self,
        table: Table,
        opened: OpenedTarget,
        dropped: Sequence[str],
        storage: Mapping[str, str] | None,
        asked: str = AUTO,
    ) -> None:
        self._table, self._opened, self._storage = table, opened, storage
        self.target = opened.find()
        self._remarks: tuple[str, ...] = ()
        hive = table.found[0].hive
        self._source = table.path, ":".join(map(str, hive.made)) if hive else ""
        self._snapshots: Sequence[Snapshot] = table.snapshots_at(None)
        self._row = self._row_type()
        self._dropped = self._left_out(dropped)
        self._format = self._of_copy(asked)
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
        row = table_row_type(None, row_types(source for one in self._snapshots for source in open_sources(one)))
        if not row.names and self.target:  # no file says the columns any more
            return row_of((field.name, field.stored) for field in self.target.columns)
        return row

    def _left_out(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that are left out: those that the copy was made without, if it exists.

        Raises:
            UsageProblem: the table has no such column, or no others, or the copy was made without other ones.
        """
        for name in names:
            if name.lower() not in map(str.lower, self._row.names):
                raise UsageProblem(f"the table has no column {name}", "", did_you_mean(name, self._row.names))
        dropped = tuple(sorted({name.lower() for name in names}))
        if len(dropped) == len(self._row.names) > 0:
            raise UsageProblem("no column would be left", "a data file needs one", "leave out fewer by --drop-column")
        if self.target and self.target.source[0]:
            if dropped and dropped != self.target.dropped:
                kept = f"without {', '.join(self.target.dropped)}" if self.target.dropped else "with all columns"
                hint = "leave out --drop-column, or migrate into a new table"
                raise UsageProblem(f"the copy was made {kept}", "", hint)
            dropped = self.target.dropped
        return dropped

    def _of_copy(self, asked: str) -> str:
        """Return the wanted format: that of the copy, if it has one; without rows another one can be asked for.

        Raises:
            UsageProblem: the copy has another one.
        """
        target = self.target
        if not (target and target.source[0] and target.format) or (target.is_empty and asked != AUTO):
            return asked
        if asked not in (AUTO, target.format):
            hint = "leave out --format, or migrate into a new table"
            raise UsageProblem(f"the files of the copy are {target.format}", "", hint)
        return target.format

    @property
    def source(self) -> str:
        """Return the path of the Hive table."""
        return self._source[0]

    @property
    def stores(self) -> list[FileSystemSpec]:
        """Return the store of each location of the Hive table."""
        return [found.fs.spec for found in self._table.found]

    @property
    def columns(self) -> dict[str, str]:
        """Return Iceberg's type of each column."""
        return {field.name: field.type_name for field in (*self._fields, *self._keys)}

    @property
    def hive_types(self) -> dict[str, str]:
        """Return Hive's type of each column, also of those that are left out; partition columns come last."""
        keys = ((key.name, key.type) for key in self._table.partition_of(self._table.found[0]))
        return {name.lower(): hive_type(kind) for name, kind in (*self._row.fields(), *keys)}

    def column_notes(self, encoded: Mapping[str, str]) -> dict[str, str]:
        """Return what is special about a column in the copy, in words.

        Args:
            encoded: the columns that are encoded again, with the reason.
        """
        notes = {name: ["left out"] for name in self._dropped}
        for field in self._fields:
            is_time = any(inner.kind.startswith("timestamp") for inner in field.walk())
            why = [f"encoded again: {encoded[field.name]}"] if field.name in encoded else []
            notes[field.name] = [*why, *["nanoseconds are cut to microseconds"] * is_time]
        return {name: "; ".join(texts) for name, texts in notes.items() if texts}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the changes of columns, and what was seen on the way, in words."""
        return (*(change.words for change in self.changes), *self._remarks)

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
            CopyExists, NotFoundError, RefusedError: see above.
        """
        target = self.target
        if target is None:
            if is_again:
                raise NotFoundError(
                    "the copy to catch up with was not made yet",
                    "the Iceberg table does not exist",
                    "make it first: leave out --catch-up, --prove and --cut-over",
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
            raise CopyExists("the copy exists already", "", "give --catch-up to bring it up to date")

    def plan(self) -> CopyPlan:
        """Compare both tables; see :func:`acidctl.iceberg.copy.plan_copy`."""
        target = self.target
        if target and target.seen[0] == self._seen and not self.changes:
            return CopyPlan(format=CopyFormat(target.format))
        copied = copied_files(target, self._storage) if target else {}
        fields = iter(changed_fields(self._fields, target.columns) if target else self._fields)
        into = [next(fields) if is_wanted else None for is_wanted in self._wanted]
        names = {change.new.name: change.old.name if change.old else None for change in self.changes}
        numbered = ((at, name.lower()) for at, name in enumerate(self._row.names))
        changed = {at: names[name] for at, name in numbered if name in names and names[name] != name}
        lists = [ValidWriteIds.parse(text) for text in (target.write_ids or "").split(";") if text] if target else []
        marks = target.seen[1] if target else ""
        self._require_no_older(lists, marks)
        others = partial(self._has_others, self._places.unknown(marks) if copied else ())
        parts = self._partitions()
        return plan_copy(parts, self._row, into, copied, changed, has_others=others, lists=lists, asked=self._format)

    def _has_others(
        self, unknown: Collection[Values], values: Values, sources: Sequence[SourceFile], copied: Sequence[TargetFile]
    ) -> bool:
        """Return whether files of a partition have other values than those of the copy.

        Args:
            unknown: the partitions that may have been replaced.
        """
        target = self.target
        if values not in unknown or target is None or column_changes(self._fields, target.columns):
            return False  # with other columns it is asked again as soon as the copy has them
        scans = {id(snapshot): scan for snapshot, scan in self._parts()}
        has_keys = rows_have_keys(self._snapshots)
        return has_other_values(target, values, (sources, copied), scans, self._storage, has_keys=has_keys)

    def _require_no_older(self, then: Sequence[ValidWriteIds], marks: str) -> None:
        """Refuse a snapshot that lacks write ids which the copy shows: a catch-up would take it back.

        Args:
            then: the lists that the copy shows; a list that was assumed is that of one location, and need not be the
                same in the next run.
            marks: of the locations at the last copy.

        Raises:
            RefusedError: see above.
        """
        lost_of = cache(then[0].first_lost) if len(then) == 1 else None  # partitions have one list in a metastore
        for part in self._partitions():
            if lost_of and part.snapshot.assumed is None:
                lost = lost_of(part.snapshot.write_ids)
            else:
                lost = self._places.hidden_write_id(part, marks)
            if lost is not None:
                raise RefusedError(
                    "the copy is newer than this snapshot",
                    f"it shows write id {lost}, which does not count as committed in {part.snapshot.shown}",
                    "use a newer snapshot; or roll the copy back to an earlier snapshot in Iceberg, then catch up",
                )

    def _partitions(self) -> Iterator[Partition]:
        for found, snapshot in zip(self._table.found, self._snapshots, strict=True):
            values = {column.name.lower(): column.value for column in self._table.partition_of(found)}
            yield Partition(snapshot, values_of(self._keys, values))

    def carry_out(
        self,
        plan: CopyPlan,
        jobs: int,
        on_bytes: Callable[[int], None],
        *,
        proof: str,
        engine: Engine | None = None,
    ) -> tuple[int | None, str]:
        """Write the files of a plan, compare the rows, and commit.

        Args:
            jobs, on_bytes, engine: see :func:`acidctl.iceberg.copy.write_copy`.
            proof: ``full`` compares all rows, ``new`` the new ones and the ids of all, if the copy was proven before
                and its columns are the same, ``none`` nothing. If something differs nothing is committed.

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
            if plan.files or self._format != AUTO:  # without rows a catch-up decides
                self._format = properties[FORMAT] = plan.format
            self.target = self._opened.create(self._fields, self._keys, properties)
            if (*self.target.columns, *self.target.partition) != (*self._fields, *self._keys):
                plan = self.plan()  # PyIceberg gave other ids
        target = self.target
        self._require_apart(target.location)
        if self.changes:
            target.change_columns(self.changes)
            plan = self.plan()  # new columns have ids now
        if plan.files and target.format != plan.format:
            target.choose_format(plan.format)
        is_new = proof == NEW and target.is_proven
        if plan.is_empty:
            return target.snapshot_id, self.prove() if proof != NONE and plan.copied else ""
        ids = ";".join(dict.fromkeys(str(snapshot.write_ids) for snapshot in self._snapshots))
        before = list(target.files())
        with NewFiles(target.location, self._storage) as new:
            write_copy(plan, target, new, jobs, on_bytes, engine=engine)
            files = written_files(plan, new, self._storage)
            words, done, source = "", NONE, None
            if is_new:
                words = require_new_rows(plan, target, files, self._parts(), self._storage)
                done = f"new since snapshot {target.snapshot_id}"
            elif proof != NONE:
                source, done = self._source_rows(target), FULL
                words = _all_compared(source)

            def check(staged: Target) -> None:
                if source:
                    self._remarks = require_same_rows(source, staged, files[0], self._storage)
                new.may_be_shown = True

            seen = self._seen, self._places.marks
            snapshot = target.commit(new.files, new.deletes, {WRITE_IDS: ids, PROOF: done}, seen, check)
        if proof != NONE:
            self._require_listed(before, new)
        self._remove_orphans(new)
        return snapshot, words

    def _remove_orphans(self, new: NewFiles) -> None:
        """Remove what killed runs left; what fails is left to the next run."""
        names = {base_name(url) for url in (*(one.url for one in new.files), *(one.url for one in new.deletes))}
        with suppress(AcidctlError):
            target = self._opened.find()
            count = remove_orphans(new.fs, new.folder, names, target.files_of_all_snapshots) if target else 0
            if count:
                files = human_count(count, "file")
                self._remarks += (f"removed {files} that a run before left, and that no snapshot lists",)

    def must_prove(self, proof: str) -> bool:
        """Return whether all rows are compared although nothing is new: they were not yet, or it is asked for."""
        target = self.target
        return proof == FULL or (proof == NEW and target is not None and not target.is_empty and not target.is_proven)

    def prove(self) -> str:
        """Compare all rows of both tables, and note it in the copy; return what was compared.

        Raises:
            VerifyError: they differ.
        """
        assert self.target is not None
        source, files = self._source_rows(self.target), copied_files(self.target, self._storage)
        self._remarks = require_same_rows(source, self.target, files, self._storage)
        self.target.remember_proof()
        return _all_compared(source)

    def log(self, facts: Mapping[str, Fact], tell: Callable[[str], None]) -> None:
        """Log the copy in the directory of the Hive table.

        Args:
            tell: called with a sentence if the log cannot be written.
        """
        source, first = self._snapshots[0].source.kind, self._table.found[0]
        entry = LogEntry("migrate", Result.WRITTEN.value, source=source, facts=facts)
        log_done(first.fs, first.location.table_path, entry, tell)

    def statements(self, engine: str, names: tuple[str, str]) -> str:
        """Return SQL for an engine that compares both tables with what acidctl reads of the source.

        Args:
            names: of the Hive table and of the copy, as the user has them.
        """
        assert self.target is not None
        fields = (*self.target.columns, *self.target.partition)
        padded = {name.lower() for name, kind in self._row.fields() if kind.kind == "char"}
        sums = EngineSums(engine, fields, padded)
        for _, scan in self._parts():
            for _, columns, _ in plain_rows(scan(), fields):
                sums.add(columns)
        return "\n".join(sums.statement(*pair) for pair in zip(names, ("source", "copy"), strict=True))

    def note_seen(self) -> None:
        """Note that the copy shows all rows of these files, so that the next run need not read their ids."""
        if self.target and not self.target.is_empty and self.target.seen[0] != self._seen:
            self.target.remember((self._seen, self._places.marks))

    @cached_property
    def _places(self) -> Places:
        return Places(self._partitions())

    @cached_property
    def _seen(self) -> str:
        """Return a digest of everything that decides which rows the source shows; files never change."""
        digest = sha256()
        for part in self._partitions():
            digest.update(repr((part.values, str(part.snapshot.write_ids))).encode())
            times = {entry.path: entry.modified for entry in part.snapshot.listing.entries}
            for file in part.snapshot.files():
                length = part.snapshot.logical_length(file)
                digest.update(repr((file.path, file.size, times[file.path], length)).encode())
        return digest.hexdigest()

    def _source_rows(self, target: Target) -> SourceRows:
        has_keys = rows_have_keys(self._snapshots)
        return SourceRows.read((scan(row_id=has_keys) for _, scan in self._parts()), target, has_keys=has_keys)

    def _require_listed(self, before: Iterable[CopiedFile], new: NewFiles) -> None:
        """Require that the catalog lists the files of before and the new ones, each with the files of its deletes.

        Raises:
            VerifyError: it does not.
        """
        deletes: dict[str, list[str]] = {}
        for file in new.deletes:
            deletes.setdefault(file.of, []).append(file.url)
        known = chain(before, (CopiedFile(file.url, file.values, ()) for file in new.files))
        expected = Counter(
            replace(file, delete_urls=tuple(sorted((*file.delete_urls, *deletes.get(file.url, ()))))) for file in known
        )
        again = self._opened.find()
        if again is None or Counter(again.files()) != expected:
            hint = "roll it back in Iceberg, and report this"
            raise VerifyError("the new snapshot of the copy is wrong", "it does not list what was written", hint)

    def _parts(self) -> Iterator[tuple[Snapshot, ScanOf]]:
        """Yield the locations of the source, each with a function that scans the columns of the copy."""
        names = [name for name, is_wanted in zip(self._row.names, self._wanted, strict=True) if is_wanted]
        for found, snapshot in zip(self._table.found, self._snapshots, strict=True):
            keys = self._table.partition_of(found)
            columns = [*names, *(key.name for key in keys)]
            yield snapshot, partial(Scan, snapshot, columns=columns, partition=keys, row_type=self._row)


def _all_compared(source: SourceRows) -> str:
    return f"all values of {human_count(source.digest.rows, 'row')} compared"
