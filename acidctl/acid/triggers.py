"""Whether a compaction is worth it: the initiator's thresholds (format section 9), and the bytes that it saves.

Everything is computed from one listing; no file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import DataFile, Role, current_files, data_bytes_of
from acidctl.acid.listing import Listing
from acidctl.acid.names import Kind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState
from acidctl.acid.unfinished import layout_problems
from acidctl.base.errors import UsageProblem


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hive's settings with Hive's defaults; each comparison is strict (``>``).

    Attributes:
        delta_count: ``hive.compactor.delta.num.threshold``, directories.
        delta_ratio: ``hive.compactor.delta.pct.threshold``, bytes of deltas over bytes of the base.
    """

    delta_count: int = 10
    delta_ratio: float = 0.1

    def with_known(self, properties: Mapping[str, str]) -> Thresholds:
        """Return the thresholds with a table's own properties; unusable values are ignored, as in Hive."""
        result = self
        for key, text in properties.items():
            if key.startswith("compactorthreshold."):
                with suppress(UsageProblem):
                    result = result.with_properties({key: text})
        return result

    def with_properties(self, properties: Mapping[str, str]) -> Thresholds:
        """Return the thresholds with the table properties ``compactorthreshold.<key>``.

        Hive's threshold for aborted transactions is accepted, and decides nothing: they are not counted.

        Raises:
            UsageProblem: a value is not a number, or a key is unknown.
        """
        keys = {
            "hive.compactor.delta.num.threshold": ("delta_count", int),
            "hive.compactor.delta.pct.threshold": ("delta_ratio", float),
            "hive.compactor.abortedtxn.threshold": ("", int),
        }
        result = self
        for key, text in properties.items():
            known = keys.get(key.removeprefix("compactorthreshold."))
            if known is None:
                if key.startswith(("compactorthreshold.", "hive.compactor.")):
                    raise UsageProblem(f"no threshold is called {key}", f"known are {', '.join(keys)}")
                continue
            name, convert = known
            try:
                value = convert(text)
            except ValueError:
                raise UsageProblem(f"cannot use the property {key}={text}", "its value is not a number") from None
            result = replace(result, **{name: value}) if name else result
        return result


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one location that the thresholds apply to.

    Attributes:
        base_bytes: data bytes of the current base, or of the original files without a base.
        delta_bytes: data bytes of all current deltas and delete deltas.
        deltas: number of current delta and delete delta directories.
    """

    base_bytes: int
    delta_bytes: int
    deltas: int


def figures_of(listing: Listing, state: AcidState) -> Figures:
    """Return the figures of one location: data files only, hidden ones excluded."""
    children, kind = listing.files_by_child, listing.table_type
    base_bytes = sum(entry.size for entry in state.originals)
    if state.base and state.base.directory:
        base_bytes = data_bytes_of(children.get(state.base.name, ()), kind)
    delta_bytes = sum(data_bytes_of(children.get(delta.name, ()), kind) for delta in state.deltas if delta.directory)
    return Figures(base_bytes, delta_bytes, len(state.deltas))


@dataclass(frozen=True, slots=True)
class Decision:
    """The compaction that the initiator would request.

    Attributes:
        kind: None for no compaction.
        reason: the comparison that decided, with its figures.
    """

    kind: CompactionKind | None
    reason: Reason


NO_AUTO = ("no_auto_compaction", "NO_AUTO_COMPACTION")
"""Hive accepts this property in lower and upper case."""


def is_auto_off(properties: Mapping[str, str]) -> bool:
    """Return whether ``no_auto_compaction`` is set."""
    return any(properties.get(key, "").lower() == "true" for key in NO_AUTO)


def decide(figures: Figures, thresholds: Thresholds | None = None) -> Decision:
    """Return the type of compaction that a location needs, tested in Hive's order."""
    limits = thresholds or Thresholds()
    no_base = figures.base_bytes == 0
    ratio = None if no_base else figures.delta_bytes / figures.base_bytes
    if ratio is not None and ratio > limits.delta_ratio:
        return Decision(CompactionKind.MAJOR, reason(Code.MANY_DELTA_BYTES, ratio=ratio, most=limits.delta_ratio))
    if figures.deltas <= limits.delta_count:
        kind, code, how = None, Code.FEW_DELTAS, None
    elif no_base:
        kind, code, how = CompactionKind.MAJOR, Code.MANY_DELTAS, "no-base"
    else:
        kind, code, how = CompactionKind.MINOR, Code.MANY_DELTAS, "base"
    limit, most = limits.delta_count, limits.delta_ratio
    why = reason(code, deltas=figures.deltas, limit=limit, ratio=ratio, most=most, how=how)
    return Decision(kind, why)


# --- what a location costs its readers ------------------------------------------------------------------------------
#
# A reader pays for every directory that it lists and every file that it opens, and it holds the keys of the deletes
# while it reads rows. To compare locations, all costs are in bytes: a file costs OPEN_BYTES beyond its own size, as in
# Spark's planner (spark.sql.files.openCostInBytes), and so does a directory; no compaction can save the cost of one
# directory and one file per bucket. Delete events are read again for every file of rows, because the readers of
# different files do not share them.

OPEN_BYTES = 4 << 20
"""The cost of opening a directory or a file: Spark's ``spark.sql.files.openCostInBytes``."""

BYTES_A_SECOND = 100 << 20
"""The assumed speed of one reader: opening a file then takes 40 ms."""

SMALL_FILE = 16_000_000
"""Data files with fewer bytes are small: Hive's ``hive.merge.smallfiles.avgsize``."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The cost of reading one location, and what a compaction saves.

    Attributes:
        directories: directories that a reader lists; the original files count as one.
        files: data files that it opens.
        small_files: files with fewer bytes than :data:`SMALL_FILE`.
        bytes: total size of the files.
        delete_files: paths of the files with delete events, relative to the location.
        delete_bytes: total size of those.
        cost: bytes that a full read costs beyond what no compaction can save.
        kind: the compaction that saves most for every byte it rewrites; None if none saves anything.
        rewritten: bytes that it reads and writes.
        saved: the part of the cost that it saves.
        least: the least that a full read takes, in the same bytes.
        files_after: data files that a reader opens after the compaction.
    """

    directories: int
    files: int
    small_files: int
    bytes: int
    delete_files: tuple[str, ...]
    delete_bytes: int
    cost: int
    kind: CompactionKind | None
    rewritten: int
    saved: int
    least: int = 0
    files_after: int = 0

    @property
    def score(self) -> int:
        """Return how much of a full read is of use, from 0 to 100; 100 only if nothing is wasted."""
        whole = self.least + self.cost
        return 100 if not self.cost else min(99, 100 * self.least // whole)

    @property
    def seconds(self) -> float:
        """Return the estimated time of a full read by one reader."""
        return (self.least + self.cost) / BYTES_A_SECOND

    @property
    def seconds_after(self) -> float:
        """Return the estimated time of a full read after the compaction."""
        return (self.least + self.cost - self.saved) / BYTES_A_SECOND

    @property
    def gain(self) -> float:
        """Return the bytes saved at every full read for each byte that is rewritten once."""
        return self.saved / self.rewritten if self.rewritten else 0.0

    def __add__(self, other: Advice) -> Advice:
        """Return the sums over two locations, from which their score and seconds follow."""
        return Advice(
            directories=self.directories + other.directories,
            files=self.files + other.files,
            small_files=self.small_files + other.small_files,
            bytes=self.bytes + other.bytes,
            delete_files=(),
            delete_bytes=self.delete_bytes + other.delete_bytes,
            cost=self.cost + other.cost,
            kind=CompactionKind.MAJOR if CompactionKind.MAJOR in (self.kind, other.kind) else self.kind or other.kind,
            rewritten=self.rewritten + other.rewritten,
            saved=self.saved + other.saved,
            least=self.least + other.least,
            files_after=self.files_after + other.files_after,
        )


NO_COST = Advice(0, 0, 0, 0, (), 0, 0, None, 0, 0)
"""The empty sum."""


def advise(listing: Listing, state: AcidState, *, is_sound: bool | None = None) -> Advice:
    """Return the figures of a location without a history problem; no compaction if its layout forbids it.

    Args:
        is_sound: its layout has no problems; None looks for them.
    """
    files = current_files(state, listing)
    buckets = len({file.bucket for file in files if file.role is not Role.DELETE})
    cost = _cost(files, buckets)
    major = cost, _bytes(files)
    deltas = [file for file in files if file.directory and file.directory.kind is not Kind.BASE]
    merged = _merged(files, deltas)
    minor = cost - _cost(merged, buckets), _bytes(deltas)
    # If both gain the same, the major compaction leaves no deletes to hold in memory.
    kind, (saved, rewritten) = max(
        ((CompactionKind.MINOR, minor), (CompactionKind.MAJOR, major)),
        key=lambda choice: (choice[1][0] / max(1, choice[1][1]), choice[0] is CompactionKind.MAJOR),
    )
    if saved > 0 and not (is_sound if is_sound is not None else not layout_problems(listing, state)):
        saved = 0
    deletes = [file for file in files if file.role is Role.DELETE]
    after = len(files) if saved <= 0 else buckets if kind is CompactionKind.MAJOR else len(merged)
    return Advice(
        directories=_directories(files),
        files=len(files),
        small_files=sum(file.size < SMALL_FILE for file in files),
        bytes=_bytes(files),
        delete_files=tuple(file.path for file in deletes),
        delete_bytes=_bytes(deletes),
        cost=cost,
        kind=kind if saved > 0 else None,
        rewritten=rewritten if saved > 0 else 0,
        saved=max(0, saved),
        least=_bytes(files) - _bytes(deletes) + OPEN_BYTES * (1 + buckets) if files else 0,
        files_after=after,
    )


def _merged(files: Sequence[DataFile], deltas: Sequence[DataFile]) -> list[DataFile]:
    """Return the files after a minor compaction: one delta and one delete delta, with a file for each bucket."""
    merged: dict[tuple[Role, int], DataFile] = {}
    directories = {file.role: file.directory for file in deltas}
    for file in deltas:
        first = merged.get((file.role, file.bucket))
        size = file.size + (first.size if first else 0)
        merged[file.role, file.bucket] = DataFile(file.path, size, file.role, directories[file.role], file.bucket, True)
    replaced = set(map(id, deltas))
    return [file for file in files if id(file) not in replaced] + list(merged.values())


def _cost(files: Sequence[DataFile], buckets: int) -> int:
    rows = sum(file.role is not Role.DELETE for file in files)
    opened = max(0, _directories(files) - 1) + max(0, len(files) - buckets)
    return opened * OPEN_BYTES + rows * _bytes([file for file in files if file.role is Role.DELETE])


def _directories(files: Sequence[DataFile]) -> int:
    return len({file.directory.name if file.directory else "" for file in files})


def _bytes(files: Sequence[DataFile]) -> int:
    return sum(file.size for file in files)
