"""Find what the copy of an insert-only table lacks, by directories: its rows have no ids that a compaction keeps.

Directories never change.  One whose write ids were all committed when the copy was last brought up to date holds rows
that the copy has, whatever compacted them since.  Any other one is copied, and replaces the rows of its write ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from acidctl.acid.names import Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.iceberg.difference import Difference, SourceFile, TargetFile, Wanted
from acidctl.location.snapshot import Snapshot


@dataclass(slots=True)
class _Unit:
    """Directories whose write ids overlap.

    Attributes:
        low, high: the write ids; 0 is that of files without a directory.
        is_new: one of them was committed since the copy was last brought up to date.
    """

    low: int
    high: int
    is_new: bool
    files: list[SourceFile] = field(default_factory=list)
    targets: list[TargetFile] = field(default_factory=list)


def by_directories(
    snapshots: Iterable[Snapshot],
    sources: Sequence[SourceFile],
    targets: Sequence[TargetFile],
    copied: Sequence[ValidWriteIds],
    has_others: Callable[[Sequence[SourceFile], Sequence[TargetFile]], bool],
) -> Difference:
    """Compare the directories of one partition of an insert-only table with the files of the copy.

    Args:
        snapshots: the locations that are this partition.
        copied: the write-id lists by which the copy was last brought up to date.
        has_others: tells whether files of the source have other rows than as many of the copy.
    """
    shown = [one for one in targets if len(one.keys.dead) < one.keys.runs.rows]
    last = max((int(one.keys.runs.write_id[0]) for one in shown), default=0)
    # Without a metastore each location has a list of its own, which has no gaps and ends with the last directory.
    units = _units(snapshots, copied[0] if len(copied) == 1 else ValidWriteIds(last))
    for source in sources:
        directory = source.events.file.directory
        _unit_of(units, directory.max_write_id if directory else 0).files.append(source)
    gone = []
    for target in shown:
        write_id = int(target.keys.runs.write_id[0])
        covering = [unit for unit in units if unit.low <= write_id <= unit.high]
        if covering:
            covering[0].targets.append(target)
        else:  # the rows were removed without another directory, as by dropping the partition
            gone.append((target.url, target.shown))
    wanted: list[Wanted] = []
    for unit in units:
        rows = [sum(one.keys.proof().rows for one in side) for side in (unit.files, unit.targets)]
        if unit.is_new or rows[0] != rows[1] or has_others(unit.files, unit.targets):
            gone += [(target.url, target.shown) for target in unit.targets]
            wanted += [Wanted(one, None, one.keys.runs, one.keys.dead) for one in unit.files if one.keys.proof().rows]
    return Difference(tuple(wanted), tuple(gone))


def _units(snapshots: Iterable[Snapshot], then: ValidWriteIds) -> list[_Unit]:
    units: list[_Unit] = []
    ranges = ((low, high, one.write_ids) for one in snapshots for low, high in _ranges(one))
    for low, high, now in sorted(ranges, key=lambda item: item[:2]):
        is_new = _has_new(low, high, now, then)
        if units and low <= units[-1].high:
            units[-1].high = max(units[-1].high, high)
            units[-1].is_new |= is_new
        else:
            units.append(_Unit(low, high, is_new))
    return units


def _ranges(snapshot: Snapshot) -> Iterator[tuple[int, int]]:
    """Yield the write ids of each current directory; a base stands for all below it, even if it has no file."""
    state = snapshot.state
    if state.originals:
        yield 0, 0
    for directory in (verdict.directory for verdict in (state.base, *state.deltas) if verdict):
        if directory:
            yield 0 if directory.kind is Kind.BASE else directory.min_write_id, directory.max_write_id


def _has_new(low: int, high: int, now: ValidWriteIds, then: ValidWriteIds) -> bool:
    """Return whether a write id from `low` to `high` is committed now and was not then; aborted ones stay so."""
    first, last = max(low, then.high_watermark + 1), min(high, now.high_watermark)
    if first <= last and len(now.exceptions_in(first, last)) <= last - first:
        return True
    return any(low <= write_id <= high and now.is_valid(write_id) for write_id in then.open)


def _unit_of(units: Sequence[_Unit], write_id: int) -> _Unit:
    return next(unit for unit in units if unit.low <= write_id <= unit.high)
