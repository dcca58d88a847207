"""Repair of a missing or torn marker `_orc_acid_version`, if the files of the directory are certainly of version 2.

Version 2 shows in two ways (format sections 2, 3.2 and 4.2): a footer declares it, or every event has the operation of
its directory and an encoded bucket. Files of Hive 2 have plain bucket numbers and need no marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from acidctl.acid.layout import data_files_of
from acidctl.acid.listing import Entry
from acidctl.acid.names import ORC_ACID_VERSION, AcidDirectory, BucketFile, Kind, parse_file
from acidctl.acid.sidefiles import ORC_ACID_VERSION_2, parse_orc_acid_version
from acidctl.base.errors import BadDataError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail
from acidctl.repair.plan import Fix, Made, RepairKind, Scope, Suspect, directories, stripe_ids, unsafe
from acidctl.rows.read.bucket_numbers import versions_of
from acidctl.wording import human_count

_V1_HINT = "run `acidctl compact --major`: what it writes is of version 2, with the marker"


class _WrittenByHive2(BadDataError):
    """Files have plain bucket numbers: no marker belongs beside them."""


def suspects(snapshot: Snapshot, scope: Scope) -> Iterator[Suspect]:
    """Yield every ACID directory: it may be a native one without a usable marker."""
    # A table that Hive 2 wrote has no markers and needs none; if any directory has one, a missing one is reported.
    expected = any(
        entry.path == f"{directory.name}/{ORC_ACID_VERSION}"
        for directory, entries in directories(snapshot)
        for entry in entries
    )
    for directory, entries in directories(snapshot):
        yield directory.name, partial(_look, snapshot, directory, entries, scope, expected=expected)


def _look(
    snapshot: Snapshot, directory: AcidDirectory, entries: list[Entry], scope: Scope, *, expected: bool
) -> Fix | None:
    name = directory.name
    path = f"{name}/{ORC_ACID_VERSION}"
    if not any(isinstance(parse_file(entry.path.removeprefix(f"{name}/")), BucketFile) for entry in entries):
        return None  # raw files, or nothing: no marker says anything about them
    present = next((entry for entry in entries if entry.path == path), None)
    problem = f"{ORC_ACID_VERSION} is missing"
    if present is not None:
        content = snapshot.fs.read_bytes(snapshot.absolute(path), 0, 16)
        try:
            version = parse_orc_acid_version(content, path)
        except BadDataError:
            problem = f"{ORC_ACID_VERSION} is empty" if not content else f"{ORC_ACID_VERSION} holds {content!r}"
        else:
            if version == 2:
                return None
            why = f"its {ORC_ACID_VERSION} says {version}: what wrote it may have meant that"
            raise unsafe(why, "find out what wrote the directory")
    scope.require_dead(entries, f"{problem}, but ")
    try:
        evidence = _evidence(snapshot, directory, entries)
    except _WrittenByHive2:
        if expected:
            raise
        return None
    except BadDataError as error:
        raise unsafe(f"{problem}, but {error.why or error.what}", error.hint) from error
    return Fix(
        RepairKind.VERSION_FILE,
        name,
        f"{problem}; {evidence}",
        f"write {ORC_ACID_VERSION} with the byte 2",
        len(ORC_ACID_VERSION_2),
        (present,) if present else (),
        (Made(path, 0, ORC_ACID_VERSION_2, replaces=present is not None),),
    )


def _evidence(snapshot: Snapshot, directory: AcidDirectory, entries: list[Entry]) -> str:
    """Say what shows that a directory is of version 2; raise BadDataError if nothing does, or it is of another."""
    declared = shown = 0
    for file in data_files_of(directory, entries):
        length = snapshot.logical_length(file)
        length = file.size if length is None else length
        if not length:
            continue  # nothing committed
        path = snapshot.absolute(file.path)
        tail = read_tail(ByteSource(snapshot.fs, path, length))
        if not tail.is_acid:
            raise unsafe(f"{file.path} has no ACID columns", "find out what wrote the file")
        if tail.acid_version not in (None, 2):
            raise unsafe(f"{file.path} says it is of version {tail.acid_version}", _V1_HINT)
        declared += tail.acid_version == 2
        shown += _rows_show_it(snapshot, path, file.path, tail, directory)
    if declared:
        return f"the footer of {human_count(declared, 'file')} says version 2"
    if shown:
        return f"the ids in {human_count(shown, 'file')} are of version 2"
    raise unsafe("no file in it has rows: nothing shows which version wrote it")


def _rows_show_it(snapshot: Snapshot, path: str, name: str, tail: Tail, directory: AcidDirectory) -> bool:
    """Say if there are rows, all of version 2; raise BadDataError or _WrittenByHive2 if a row is not."""
    wanted = 2 if directory.kind is Kind.DELETE_DELTA else 0
    for ids in stripe_ids(snapshot.fs, path, tail):
        # A delete event has the bucket of its row, which Hive 2 may have written: then only the footer is proof.
        if tail.acid_version is None and (versions_of(ids.keys.bucket) != 1).any():
            raise _WrittenByHive2("", f"{name} has plain bucket numbers: Hive 2 wrote it, without a marker", _V1_HINT)
        if (ids.operation != wanted).any():
            raise unsafe(f"{name} holds updates or deletes among inserts: ACID version 1", _V1_HINT)
    return tail.rows > 0
