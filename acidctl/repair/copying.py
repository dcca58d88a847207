"""A new file beside the old one, and a copy of the old one: both are written, then read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain

from acidctl.errors import ConflictError, VerifyError
from acidctl.repair.plan import Made
from acidctl.storage.port import FileSystem, narrowest, parent_of

_CHUNK = 8 << 20


def stage(fs: FileSystem, old: str, kept: str, new: str, made: Made) -> None:
    """Write `new` as `made` says, and all of `old` to `kept`; read both again.

    Args:
        old: absolute, as `kept` and `new` are; not looked at unless `made` replaces it.

    Raises:
        VerifyError: what was written cannot be read back.
        ConflictError: the old file was changed or cut short meanwhile.
    """
    if not made.replaces:
        fs.write_bytes(new, made.end)
        _require_content(fs, new, hashlib.sha256(made.end).hexdigest())
        _give_as_beside(fs, old, new)
        return
    _write(fs, kept, _chunks(fs, old, fs.stat(old).size))
    _write(fs, new, chain(_chunks(fs, old, made.prefix), (made.end,)))
    if access := fs.access(old):
        for path in (kept, new):
            fs.set_access(path, access)


def _write(fs: FileSystem, path: str, content: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    with fs.open_output(path, private=True) as output:
        for chunk in content:
            output.write(chunk)
            digest.update(chunk)
    _require_content(fs, path, digest.hexdigest())


def _require_content(fs: FileSystem, path: str, digest: str) -> None:
    found = hashlib.sha256()
    for chunk in _chunks(fs, path, fs.stat(path).size):
        found.update(chunk)
    if found.hexdigest() != digest:
        what, why = f"{fs.display(path)} cannot be read back as it was written", f"its SHA-256 is {found.hexdigest()}"
        raise VerifyError(what, why, "look at the storage")


def _give_as_beside(fs: FileSystem, path: str, new: str) -> None:
    """Grant a file that is to be put at a path what the files that lie there grant."""
    place = fs.access(parent_of(path))
    if place is not None:
        names = [entry.path for entry in fs.list_dir(parent_of(path)).entries if not entry.is_dir]
        beside = fs.access_below(parent_of(path))
        fs.set_access(new, narrowest([beside[name] for name in names if name in beside], place, is_dir=False))


def _chunks(fs: FileSystem, path: str, size: int) -> Iterator[bytes]:
    for at in range(0, size, _CHUNK):
        chunk = fs.read_bytes(path, at, min(_CHUNK, size - at))
        if len(chunk) != min(_CHUNK, size - at):
            raise ConflictError(f"{fs.display(path)} became shorter", "it was cut while it was read", "plan again")
        yield chunk
