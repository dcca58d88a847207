"""The check of the footer of one data file, in a worker process, because the file may be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

from acidctl.acid.layout import DataFile, Role
from acidctl.acid.names import AcidDirectory, Kind, parse_directory
from acidctl.acid.sidefiles import flush_lengths, parse_orc_acid_version
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.base.worker_process import Beat
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.codecs import UnsupportedCodec
from acidctl.orc.tail import KEY_INDEX, Tail, read_tail
from acidctl.orc.types import ACID_COLUMNS, OrcType, hive_type, is_acid
from acidctl.rows.convert.matching import is_numbered
from acidctl.rows.foreign.format import Format, TableFile, read_any_tail
from acidctl.rows.read.bucket_numbers import is_misplaced
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.storage.registry import open_file_system
from acidctl.validation.checks.files import V13, V24, V25, V36
from acidctl.validation.checks.row_facts import acid_v1
from acidctl.validation.findings import ERROR, FOOTERS, INFO, WARNING, Finding, Rule, Severity, Unchecked
from acidctl.wording import human_count

_KINDS = ("int", "bigint", "int", "bigint", "bigint")
_MOST_TEXT = 200


@lru_cache(maxsize=8)
def opened(spec: FileSystemSpec) -> FileSystem:
    """Return the file system of a spec, connected once in each process."""
    return open_file_system(spec)


def severity_of_index(role: Role) -> Severity | None:
    """Return the severity of a key index that does not fit: no reader uses that of delete events."""
    return INFO if role is Role.DELETE else None


@dataclass(frozen=True, slots=True)
class TailFacts:
    """The facts that the footer of a file shows.

    Attributes:
        path: relative to the location.
        rows: None if the footer cannot be read.
        stripes: (bytes, rows) of each.
        length: the logical length; None for the whole file.
        is_acid: it has the six ACID columns.
        acid_version: ``hive.acid.version``; None if missing or unusable.
        has_changes: updates or deletes are among its events, by the statistics of the operation; None without these.
        stats: inserts, updates and deletes by ``hive.acid.stats``; None if missing or unusable.
    """

    path: str
    rows: int | None = None
    stripes: tuple[tuple[int, int], ...] = ()
    length: int | None = None
    format: Format = Format.ORC
    is_acid: bool = False
    acid_version: int | None = None
    has_key_index: bool = False
    has_changes: bool | None = False
    stride: int = 0
    stats: tuple[int, int, int] | None = None
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def directory(self) -> str:
        """Return the name of the directory that the file is in."""
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class TailTask:
    """The task to check the footer of one file.

    Attributes:
        path: absolute.
        is_full: the table is full ACID: every file is ORC.
        is_insert_only: the table is insert-only: no column is an id, whatever its name.
        has_other_columns: it is insert-only, and no file in it may have ids.
        is_compacted: it is in a base that a compaction made, or in a ``_v`` directory.
        is_deep: the rows are checked, too, and show more than statistics.
    """

    storage: FileSystemSpec
    file: DataFile
    path: str
    is_full: bool
    is_insert_only: bool
    has_other_columns: bool
    is_compacted: bool
    is_deep: bool = False
    weight: ClassVar[int] = 0
    """Footers are small."""

    def run(self, _beat: Beat) -> TailFacts:
        """Return the facts. Raises NotFoundError, AccessError or StorageError if the file cannot be opened."""
        return _FooterCheck(self, opened(self.storage)).facts()


@dataclass(frozen=True, slots=True)
class MarkerTask:
    """The task to read an ``_orc_acid_version``.

    Attributes:
        path: absolute.
    """

    storage: FileSystemSpec
    path: str
    weight: ClassVar[int] = 0

    def run(self, _beat: Beat) -> int:
        """Return the version. Raises BadDataError, NotFoundError, AccessError or StorageError."""
        fs = opened(self.storage)
        content = fs.read_bytes(self.path, 0, 16)
        shown = fs.display(self.path)
        version = parse_orc_acid_version(content, shown)
        if len(content) > 1:
            # Hive reads the first byte only, but no writer adds anything (section 3.3).
            raise BadDataError(f"cannot use {shown}", f"it begins with {content!r}, not the one byte {version} alone")
        return version


V21 = Rule(
    "V21", ERROR, FOOTERS, "The bucket in an event is not the bucket of its file's name.",
    "Hive looks for deletes of bucket N in files of bucket N only: it ignores this one, or refuses to read the table.",
    "To apply such deletes: `acidctl compact --major` with --apply-all-deletes. To keep what Hive shows: "
    "`INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive.", "2",
)  # fmt: skip
V30 = Rule(
    "V30", ERROR, FOOTERS, "hive.acid.key.index is missing, or does not fit the stripes.",
    "Hive takes the ranges of its splits from it: deletes are skipped, or queries fail, and Hive up to 3.1 takes a "
    "file without it for one without ids. Of delete events no reader uses it, and Trino writes others.",
    "Run `acidctl repair`.", "13.3",
)  # fmt: skip
V31 = Rule(
    "V31", ERROR, FOOTERS, "hive.acid.stats or the statistics of the id columns are missing, or do not fit the rows.",
    "Readers leave out stripes and count rows by them; where they count too few delete events, Hive 3 fails or shows "
    "deleted rows.",
    "Run `acidctl compact --major`, which rewrites them.", "3.2",
)  # fmt: skip
V32 = Rule(
    "V32", WARNING, FOOTERS, "hive.acid.version is missing, or differs from _orc_acid_version.",
    "Tools that cross-check take the file for one of another version.",
    "Nothing, if the rows are right.", "3.3",
)  # fmt: skip
V38 = Rule(
    "V38", WARNING, FOOTERS, "The columns of a file are called _colN.",
    "Readers match them by position only.",
    "Run `acidctl compact --major`: it gives the columns their names.", "3.1",
)  # fmt: skip
V39 = Rule(
    "V39", ERROR, FOOTERS, "An ACID file has ids but no struct of the table's columns, or inserted rows without one.",
    "There is nothing to read: queries fail, or return NULL in every column.",
    "Restore the file.", "3.1",
)  # fmt: skip


class _FooterCheck:
    def __init__(self, task: TailTask, fs: FileSystem) -> None:
        self._task = task
        self._file = task.file
        self._fs = fs
        self._findings: list[Finding] = []
        self._unchecked: list[Unchecked] = []
        self._is_side_bad = False

    def facts(self) -> TailFacts:
        try:
            length = self._logical_length()
            if length == 0 or not self._file.size:
                return self._made(rows=0)  # the check of the listing reports it
            table_file = self._tail(ByteSource(self._fs, self._task.path, length))
        except UnsupportedCodec as error:
            self._unchecked.append(Unchecked(self._file.path, error))
            return self._made()
        except BadDataError as error:
            if not self._is_side_bad:
                self._add(V24, _reason(error, self._task.path))
            return self._made()
        return self._of_tail(table_file, length)

    def _add(
        self,
        rule: Rule,
        message: str,
        severity: Severity | None = None,
        **evidence: int | str | list[int] | list[str],
    ) -> None:
        self._findings.append(rule.finding(self._file.path, message, dict(evidence), severity))

    def _made(self, rows: int | None = None) -> TailFacts:
        return TailFacts(self._file.path, rows, findings=tuple(self._findings), unchecked=tuple(self._unchecked))

    # --- the side file (section 12) ---

    def _logical_length(self) -> int | None:
        side = self._file.flush_length_path
        if side is None:
            return None
        content = read_small(self._fs, self._task.path.removesuffix(self._file.path) + side, MOST_LENGTHS)
        lengths = flush_lengths(content)
        finding = V36.finding
        self._is_side_bad = True
        if not lengths or lengths[-1] < 0:
            if content:  # the check of the listing reports an empty file
                text = f"it says {lengths[-1]}" if lengths else f"it holds {len(content)} bytes, no complete length"
                self._findings.append(finding(side, text, {"bytes": len(content)}))
            raise BadDataError(f"cannot use {side}")
        if any(later < earlier for earlier, later in pairwise(lengths)):
            self._findings.append(finding(side, "its lengths do not ascend", {"lengths": list(lengths[-8:])}, WARNING))
        if lengths[-1] > self._file.size:
            text = f"{lengths[-1]:,} bytes were committed, {self._file.size:,} are there"
            self._findings.append(finding(side, text, {"committed": lengths[-1], "bytes": self._file.size}))
            raise BadDataError(f"cannot use {side}")
        self._is_side_bad = False
        return lengths[-1]

    # --- the footer ---

    def _tail(self, source: ByteSource) -> TableFile:
        table_file = TableFile(Format.ORC, read_tail(source)) if self._task.is_full else read_any_tail(source)
        # Both are parsed on first use, and may be damaged.
        _ = table_file.tail.type_tree, table_file.tail.metadata
        return table_file

    def _of_tail(self, table_file: TableFile, length: int | None) -> TailFacts:
        tail = table_file.tail
        if tail.type_tree.kind != "struct":
            self._add(V25, f"it holds single values of type {_clipped(hive_type(tail.type_tree))}, not rows")
            return self._made()
        if tail.encrypted:
            shown = self._fs.display(self._task.path)
            problem = BadDataError(f"the rows of {shown} cannot be checked", "it has encrypted columns")
            self._unchecked.append(Unchecked(self._file.path, problem))
        may_have_ids = table_file.format is Format.ORC and not self._task.is_insert_only
        is_acid = may_have_ids and tail.is_acid
        version = stats = None
        row = tail.type_tree
        if is_acid:
            row = tail.type_tree.children[-1]
            version = self._version(tail)
            self._acid_schema(tail.type_tree)
            self._key_index(tail, is_old=version is None)
            stats = self._stats(tail, is_old=version is None)
            if not self._task.is_deep and is_misplaced(self._file, tail):
                self._add(V21, f"events are of another bucket than the file's, {self._file.bucket}")
        else:
            self._raw_schema(tail.type_tree, may_have_ids=may_have_ids)
        self._columns(row)
        return TailFacts(
            self._file.path,
            tail.rows if not self._unchecked else None,
            tuple((stripe.indexLength + stripe.dataLength, stripe.numberOfRows) for stripe in tail.stripes),
            length,
            table_file.format,
            is_acid,
            version,
            KEY_INDEX in tail.user_metadata,
            _has_changes(tail, stats) if is_acid else False,
            tail.stride,
            stats,
            tuple(self._findings),
            tuple(self._unchecked),
        )

    def _version(self, tail: Tail) -> int | None:
        try:
            return tail.acid_version
        except BadDataError as error:
            self._add(V32, error.why)
            return None

    def _acid_schema(self, tree: OrcType) -> None:
        if tree.children[-1].kind != "struct":
            self._add(V39, f"the column row is of type {tree.children[-1].kind}")
        kinds = tuple(child.kind for child in tree.children[:5])
        if kinds != _KINDS:
            wrong = [f"{n} is {k}" for n, k, want in zip(ACID_COLUMNS, kinds, _KINDS, strict=False) if k != want]
            self._add(V25, f"{', '.join(wrong)}", columns=list(kinds))
        elif self._file.role is Role.ORIGINAL:
            self._add(V25, "an original file with the six ACID columns: it belongs in a delta or a base", WARNING)
        elif not self._file.native_name:
            in_base = self._file.directory is not None and self._file.directory.kind is Kind.BASE
            effect = "Hive reads it in a base, and nowhere else" if in_base else "Hive does not read it"
            self._add(V25, f"an ACID file whose name is not bucket_N: {effect}", WARNING)

    def _raw_schema(self, tree: OrcType, *, may_have_ids: bool) -> None:
        if self._task.has_other_columns and is_acid(tree):
            self._add(V25, "it has ids of rows, but the table is insert-only: Hive fails on it")
            return
        names = tuple(name.lower() for name in tree.names)
        if may_have_ids and names[:5] == tuple(name.lower() for name in ACID_COLUMNS[:5]):
            self._add(V39, f"it has the ids, but no row: {_clipped(hive_type(tree))}")
            return
        if self._file.native_name or self._file.role is Role.DELETE:
            self._add(V25, f"its columns are {_clipped(hive_type(tree))}, not the six of an ACID file")
        elif self._task.is_full and self._is_never_raw():
            self._add(V25, "a file without ids in a directory that a compaction or a stream wrote")

    def _is_never_raw(self) -> bool:
        """Return whether a compaction or a stream made its directory: Hive expects ids in every file there."""
        directory = self._file.directory
        if directory is None:
            return False
        is_wide = directory.kind is not Kind.BASE and directory.min_write_id != directory.max_write_id
        return is_wide or self._task.is_compacted

    def _if_missing(self) -> Severity:
        """Return the severity of missing metadata that Hive 4's query-based compaction never writes or needs."""
        return INFO if _is_compacted_by_hive_4(self._file.directory) else WARNING

    def _columns(self, row: OrcType) -> None:
        if row.kind != "struct" or self._file.role is Role.DELETE:
            return
        if row.names and is_numbered(row):
            last = f" to {row.names[-1]}" if len(row.names) > 1 else ""
            self._add(V38, f"its columns have no names of their own: {row.names[0]}{last}")

    def _key_index(self, tail: Tail, *, is_old: bool) -> None:
        raw = tail.user_metadata.get(KEY_INDEX)
        if raw is None:
            if tail.rows:
                self._add(V30, "it is missing", self._if_missing())
            return
        try:
            entries = tail.key_index() or []
        except BadDataError as error:
            self._add(V30, error.why)
            return
        if raw and not raw.endswith(b";"):
            self._add(V30, "its last entry has no closing semicolon")
        stripes = len(tail.stripes)
        if len(entries) != stripes:
            # Hive 2 loses the entry of the last stripe in most files that it writes (section 3.4).
            severity = WARNING if is_old and len(entries) == stripes - 1 else severity_of_index(self._file.role)
            text = f"it has {human_count(len(entries), 'entry', 'entries')} for {human_count(stripes, 'stripe')}"
            self._add(V30, text, severity, entries=len(entries), stripes=stripes)

    def _stats(self, tail: Tail, *, is_old: bool) -> tuple[int, int, int] | None:
        try:
            stats = tail.acid_stats()
        except BadDataError as error:
            self._add(V31, error.why)
            return None
        if stats is None:
            self._add(V31, "hive.acid.stats is missing", self._if_missing())
        elif sum(stats) != tail.rows:
            # Hive 2 gives the inserts of an UPDATE the statistics of its deletes.
            text = f"hive.acid.stats counts {sum(stats):,} events, the stripes {tail.rows:,} rows"
            self._add(V31, text, WARNING if is_old else None, stats=list(stats), rows=tail.rows)
        return stats


def _is_compacted_by_hive_4(directory: AcidDirectory | None) -> bool:
    return directory is not None and directory.visibility_txn > 0


def _has_changes(tail: Tail, stats: tuple[int, int, int] | None) -> bool | None:
    """Return whether the operation's statistics show changes; they mean nothing without a row index (section 3.4).

    ``hive.acid.stats`` is the second choice: Hive 2 gives the inserts of an UPDATE the counts of its deletes.
    """
    statistics = tail.column_statistics(1)
    if statistics is not None and tail.stride and statistics.HasField("intStatistics"):
        return statistics.intStatistics.maximum > 0
    if not tail.rows:
        return False
    return None if stats is None else sum(stats[1:]) > 0


def _reason(error: AcidctlError, path: str) -> str:
    """Return what is wrong, without the path, which the finding has."""
    what = " ".join(error.what.replace(path, "it").split())
    return _clipped(f"{what}: {error.why}" if error.why else what)


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."


def across_tails(files: dict[str, TailFacts], markers: dict[str, int | None]) -> Iterator[Finding]:
    """Yield findings from all footers together: versions, and whether this is ACID v1.

    Args:
        files: by path.
        markers: the version in ``_orc_acid_version`` by directory; None if it is unusable.
    """
    old = []
    missing: dict[str, int] = {}
    for path, facts in files.items():
        directory = facts.directory
        is_of_hive_4 = _is_compacted_by_hive_4(parse_directory(directory))
        if not facts.is_acid:
            continue
        if facts.has_changes and facts.acid_version is None and not directory.startswith("delete_delta_"):
            old.append(path)
        if directory not in markers:
            if facts.acid_version is not None and not is_of_hive_4:  # the check of the listing reports those
                missing.setdefault(directory, facts.acid_version)
            continue
        marker = markers[directory]
        if marker is None:
            continue
        if facts.acid_version is None and not any(f.rule == "V32" for f in facts.findings):
            # Files that Hive 4 concatenates do not have this key, nor those that Hive writes without rows.
            severity = INFO if is_of_hive_4 or facts.rows == 0 else None
            yield V32.finding(path, f"it is missing, _orc_acid_version says {marker}", severity=severity)
        elif facts.acid_version is not None and facts.acid_version != marker:
            yield V32.finding(path, f"it is {facts.acid_version}, _orc_acid_version says {marker}")
    if not markers:
        for directory, version in missing.items():
            text = f"it has no _orc_acid_version, its files are of version {version}"
            yield V13.finding(directory, text, severity=WARNING)
    yield from acid_v1(old)
