"""A new file beside the old one, and a copy of the old one: written in one pass, then read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from acidctl.errors import ConflictError, VerifyError
from acidctl.repair.plan import Made
from acidctl.storage.access import narrowest
from acidctl.storage.port import FileSystem, parent_of

_CHUNK = 8 << 20


def stage(fs: FileSystem, old: str, kept: str, new: str, made: Made) -> None:
    """Write `new` as `made` says, and all of `old` to `kept`; read both again.

    Args:
        old: absolute, as `kept` and `new` are; not looked at unless `made` replaces it.

    Raises:
        VerifyError: what was written cannot be read back.
        ConflictError: the old file was changed or cut short meanwhile.
    """
    before = after = None
    if made.replaces:
        before, after = _copy(fs, old, kept, new, made)
        if access := fs.access(old):
            for path in (kept, new):
                fs.set_access(path, access)
        if (digest := _digest(fs, kept)) != before:
            raise _unlike(fs, kept, digest)
    else:
        fs.write_bytes(new, made.end)
        _give_as_beside(fs, old, new)
        after = hashlib.sha256(made.end).hexdigest()
    if (digest := _digest(fs, new)) != after:
        raise _unlike(fs, new, digest)


def _give_as_beside(fs: FileSystem, path: str, new: str) -> None:
    """What is to be put at a path gets what the files that lie there grant."""
    place = fs.access(parent_of(path))
    if place is not None:
        names = [entry.path for entry in fs.list_dir(parent_of(path)).entries if not entry.is_dir]
        beside = fs.access_below(parent_of(path))
        fs.set_access(new, narrowest([beside[name] for name in names if name in beside], place, is_dir=False))


def _copy(fs: FileSystem, old: str, kept: str, new: str, made: Made) -> tuple[str, str]:
    """The digests of what should be in `kept` and in `new`."""
    size = fs.stat(old).size
    if size < made.prefix:
        raise ConflictError(f"{fs.display(old)} became shorter", f"it is {size} bytes long", "plan again")
    whole = hashlib.sha256()
    cut = None
    left = made.prefix
    with fs.open_output(kept, private=True) as backup, fs.open_output(new, private=True) as output:
        for chunk in _chunks(fs, old, size):
            view = memoryview(chunk)
            backup.write(view)
            output.write(view[:left])
            whole.update(view[:left])
            if left <= len(view) and cut is None:
                cut = whole.copy()
            whole.update(view[left:])
            left -= min(left, len(view))
        cut = cut or whole.copy()
        cut.update(made.end)
        output.write(made.end)
    return whole.hexdigest(), cut.hexdigest()


def _digest(fs: FileSystem, path: str) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(fs, path, fs.stat(path).size):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(fs: FileSystem, path: str, size: int) -> Iterator[bytes]:
    for at in range(0, size, _CHUNK):
        chunk = fs.read_bytes(path, at, min(_CHUNK, size - at))
        if len(chunk) != min(_CHUNK, size - at):
            raise ConflictError(f"{fs.display(path)} became shorter", "it was cut while it was read", "plan again")
        yield chunk


def _unlike(fs: FileSystem, path: str, digest: str) -> VerifyError:
    return VerifyError(
        f"{fs.display(path)} cannot be read back as it was written", f"its SHA-256 is {digest}", "look at the storage"
    )
