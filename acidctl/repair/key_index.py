"""Repair of `hive.acid.key.index`: it is rebuilt from the rows (format sections 3.2 and 13.3).

All bytes before the footer (header, stripes, stripe statistics) stay as they are. The footer changes only in this
entry of the user metadata, and the postscript only in the footer's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from acidctl.acid.layout import DataFile
from acidctl.acid.listing import Entry
from acidctl.base.errors import BadDataError, VerifyError
from acidctl.location.snapshot import Snapshot
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.codecs import encode_section
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import KEY_INDEX, RecordKey, Tail, as_text, key_index_of, read_tail
from acidctl.orc.types import ACID_COLUMNS
from acidctl.repair.plan import Fix, Made, RepairKind, Scope, Suspect, native_files, unsafe
from acidctl.storage.port import FileSystem
from acidctl.wording import human_count

_KEY_COLUMNS = ACID_COLUMNS[1:4]


def suspects(snapshot: Snapshot, scope: Scope) -> Iterator[Suspect]:
    """Yield every native file: its index may be missing, or differ from the keys of the rows."""
    for file, entry in native_files(snapshot, scope):
        yield file.path, partial(_look, snapshot, file, entry)


def _look(snapshot: Snapshot, file: DataFile, entry: Entry) -> Fix | None:
    fs, path = snapshot.fs, snapshot.absolute(file.path)
    length = snapshot.logical_length(file)
    if length == 0:
        return None  # a streaming writer has committed nothing
    tail = read_tail(ByteSource(fs, path, file.size if length is None else length))
    if not tail.is_acid:
        return None
    _ = tail.metadata  # parsed on first use, which raises if it is damaged
    keys = _last_keys(fs, path, tail)
    problem = wrong(tail, keys)
    if not problem:
        return None
    if length is not None:
        why = f"{problem}, but a streaming writer's side file says how much of the file counts"
        raise unsafe(why, "run `acidctl repair` again once that file is cut")
    start, end = with_index(tail, key_index_of(keys))
    return Fix(
        RepairKind.KEY_INDEX,
        file.path,
        f"{KEY_INDEX}: {problem}",
        f"rebuild it from the rows of {human_count(len(keys), 'stripe')}, which stay byte for byte",
        start + len(end),
        (entry,),
        (Made(file.path, start, end, replaces=True),),
        check=check,
    )


def _last_keys(fs: FileSystem, path: str, tail: Tail) -> list[RecordKey | None]:
    """Return the key of the last row of every stripe, None for a stripe without rows.

    Raises:
        BadDataError: a stripe cannot be read, or its last row has no key.
    """
    keys: list[RecordKey | None] = []
    with open_orc(fs, path, tail.file_length, tail) as orc:
        for stripe in range(orc.stripe_count):
            batch = orc.read_stripe(stripe, list(_KEY_COLUMNS))
            if not batch.num_rows:
                keys.append(None)
                continue
            parts = [batch.column(name)[-1].as_py() for name in _KEY_COLUMNS]
            if None in parts:
                raise BadDataError(
                    f"stripe {stripe} of {fs.display(path)} has no last key",
                    f"{_KEY_COLUMNS[parts.index(None)]} of its last row is NULL",
                    "restore the file",
                )
            keys.append(RecordKey(*parts))
    return keys


def wrong(tail: Tail, keys: Sequence[RecordKey | None]) -> str:
    """Say what is wrong with a file's index, given the last keys of its stripes; empty if it is right."""
    raw = tail.user_metadata.get(KEY_INDEX)
    if raw == key_index_of(keys) or (raw is None and not tail.rows):
        return ""
    if raw is None:
        return "it is missing"
    try:
        entries = tail.key_index() or []
    except BadDataError as error:
        return error.why
    if len(entries) != len(keys):
        return f"it has {human_count(len(entries), 'entry', 'entries')} for {human_count(len(keys), 'stripe')}"
    for stripe, (entry, key) in enumerate(zip(entries, keys, strict=True)):
        if entry != key:
            return f"stripe {stripe} ends with {_shown(key)}, it says {_shown(entry)}"
    return "its entries are not spelled as Hive spells them"


def _shown(key: RecordKey | None) -> str:
    return "nothing" if key is None else "(" + ", ".join(map(str, key)) + ")"


def with_index(tail: Tail, index: bytes) -> tuple[int, bytes]:
    """Return where the footer begins, and the footer, postscript and last byte with another index."""
    footer = _without_index(tail.footer)
    footer.metadata.add(name=KEY_INDEX, value=index)
    section = encode_section(footer.SerializeToString(), tail.compression, tail.block_size)
    postscript = _without_length(tail.postscript)
    postscript.footerLength = len(section)
    raw = postscript.SerializeToString()
    return tail.metadata_start + tail.postscript.metadataLength, section + raw + bytes((len(raw),))


def check(fs: FileSystem, old: str, new: str) -> None:
    """Compare the new file with the old one, and its index with its rows.

    Raises:
        VerifyError: they differ.
        BadDataError: a file cannot be read.
    """
    before, after = read_tail(ByteSource(fs, old)), read_tail(ByteSource(fs, new))
    same = (
        _without_index(before.footer) == _without_index(after.footer)
        and before.metadata == after.metadata
        and _without_length(before.postscript) == _without_length(after.postscript)
    )
    if not same:
        raise VerifyError(f"the new tail of {fs.display(old)} differs from the old one", "", "please report it")
    if wrong(after, _last_keys(fs, new, after)):
        raise VerifyError(f"the new index of {fs.display(old)} does not fit its rows", "", "please report it")


def _without_index(footer: pb.Footer) -> pb.Footer:
    copy = pb.Footer()
    copy.CopyFrom(footer)
    items = [item for item in footer.metadata if as_text(item.name) != KEY_INDEX]
    del copy.metadata[:]
    copy.metadata.extend(items)
    return copy


def _without_length(postscript: pb.PostScript) -> pb.PostScript:
    copy = pb.PostScript()
    copy.CopyFrom(postscript)
    copy.ClearField("footerLength")
    return copy
