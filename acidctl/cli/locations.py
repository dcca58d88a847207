"""From the paths a user gives to snapshots of locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.writeids import Form, ValidTxns, ValidWriteIds
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location
from acidctl.storage.snapshot import Snapshot, take_snapshot
from acidctl.storage.walk import Location, find_locations


@dataclass(frozen=True, slots=True)
class SnapshotLists:
    """The lists a user gave; None where none was given."""

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None

    @classmethod
    def parse(cls, write_ids: str | None, txns: str | None, form: str) -> SnapshotLists:
        """Raises WriteIdListError."""
        return cls(
            None if write_ids is None else ValidWriteIds.parse(write_ids, Form(form)),
            None if txns is None else ValidTxns.parse(txns),
        )

    def for_compactor(self) -> ValidWriteIds:
        """The compactor's list: from the given one, or everything on disk."""
        return (self.write_ids or ValidWriteIds()).for_compactor()


@dataclass(frozen=True, slots=True)
class Found:
    """A location that a user's path led to.

    Attributes:
        is_given: the path itself is the location, not a tree that holds it.
    """

    fs: FileSystem
    location: Location
    is_given: bool

    @property
    def shown(self) -> str:
        return self.fs.display(self.location.path)

    def snapshot(self, lists: SnapshotLists, *, compactor: bool = False) -> Snapshot:
        """List it and select its state."""
        write_ids = lists.for_compactor() if compactor else lists.write_ids
        return take_snapshot(self.fs, self.location.path, write_ids, lists.txns)


def find(paths: Sequence[str], storage: Mapping[str, str]) -> Iterator[Found]:
    """Every location at or below the given paths, in their order.

    Raises:
        NotFoundError, AccessError, StorageError: a path cannot be listed.
    """
    for path in paths:
        fs, root = open_location(path, storage)
        for location, _ in find_locations(fs, root):
            yield Found(fs, location, location.path == root)
