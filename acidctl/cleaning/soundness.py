"""Whether the files of a directory are what the names say: what others are removed for must be readable itself."""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.acid.layout import DataFile, data_files_of, is_full_acid
from acidctl.acid.listing import Entry
from acidctl.acid.names import METADATA_ACID, ORC_ACID_VERSION, AcidDirectory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.location.snapshot import Snapshot

_LOOKED_INTO = 16
"""Of the files of one directory, so many from its beginning to its end."""


class Contents:
    """Looks into the directories of one location, each at most once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._is_full_acid = snapshot, is_full_acid(snapshot.listing)
        self._known: dict[str, Reason | None] = {}

    def fault(self, directory: AcidDirectory, entries: Iterable[Entry]) -> Reason | None:
        """Why readers cannot read a directory of a full-ACID table; None when all seems well.

        What has a small file of Hive's writers beside its data is taken for theirs without a look.

        Args:
            entries: everything in it, paths relative to the location.
        """
        if not self._is_full_acid:  # of the others nobody but the metastore knows the format
            return None
        if directory.name not in self._known:
            self._known[directory.name] = self._first_fault(directory, [entry for entry in entries if not entry.is_dir])
        return self._known[directory.name]

    def _first_fault(self, directory: AcidDirectory, entries: list[Entry]) -> Reason | None:
        marks = (f"{directory.name}/{ORC_ACID_VERSION}", f"{directory.name}/{METADATA_ACID}")
        if any(entry.path in marks and entry.size for entry in entries):
            return None
        files = data_files_of(directory, entries)
        faults = (self._fault_of(file, directory) for file in files[:: max(1, len(files) // _LOOKED_INTO)] if file.size)
        return next(filter(None, faults), None)

    def _fault_of(self, file: DataFile, directory: AcidDirectory) -> Reason | None:
        # Most directories are known by their small files: what reads ORC is loaded for the others alone.
        from acidctl.orc.byte_source import ByteSource  # noqa: PLC0415 - most locations need no tail for it
        from acidctl.orc.tail import read_tail  # noqa: PLC0415 - ORC's messages

        snapshot = self._snapshot
        try:
            length = snapshot.logical_length(file)
            if length == 0:  # nothing was committed: readers do not open it
                return None
            tail = read_tail(ByteSource(snapshot.fs, snapshot.absolute(file.path), length))
        except NotFoundError:  # gone since it was listed: whoever lists again sees it
            return None
        except BadDataError as error:
            return _not_readable(directory, file, "bad-data", error.why or error.what)
        except AcidctlError as error:
            return _not_readable(directory, file, "error", error.what)
        return _not_readable(directory, file, "not-acid") if file.native_name and not tail.is_acid else None


def _not_readable(directory: AcidDirectory, file: DataFile, fault: str, why: str = "") -> Reason:
    return reason(Code.NOT_READABLE, by=(directory.name,), how=fault, path=file.path, why=why)
