"""One repair at a time works on a location."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from acidctl.errors import AcidctlError, ConflictError, NotFoundError
from acidctl.storage.owner import Owner
from acidctl.storage.port import FileSystem, join

BACKUP = ".acidctl-backup"
LOCK = "lock.json"


@contextmanager
def locked(fs: FileSystem, location: str, *, force: bool = False) -> Iterator[str]:
    """Hold a location's lock; the directory of its backups.

    The lock appears whole, by a rename that fails where one is; it names its owner, so that a dead one's can be taken.

    Args:
        force: take it from whoever holds it.

    Raises:
        ConflictError: somebody who may be alive holds it.
    """
    root = join(location, BACKUP)
    mine = join(root, f"_{uuid.uuid4().hex}")
    content = Owner.this().to_bytes()
    try:
        fs.make_dirs(root)
        fs.write_bytes(mine, content)
        _take(fs, root, mine, force=force)
    except BaseException:
        with suppress(AcidctlError):
            fs.remove_tree(mine)
        raise
    try:
        yield root
    finally:
        # It went with the last backup, or somebody took it by force and this is theirs.
        with suppress(NotFoundError):
            if fs.read_bytes(join(root, LOCK)) == content:
                fs.remove_tree(join(root, LOCK))


def _take(fs: FileSystem, root: str, mine: str, *, force: bool) -> None:
    lock = join(root, LOCK)
    for _ in range(2):
        try:
            fs.rename(mine, lock)
            return
        except ConflictError:
            _drop(fs, root, force=force)
        except NotFoundError as error:  # whoever held the lock swept the directory
            raise _busy(fs, root, "another repair") from error
    raise _busy(fs, root, "another repair")


def _drop(fs: FileSystem, root: str, *, force: bool) -> None:
    """Take a dead owner's lock away; nothing when it is gone already."""
    lock = join(root, LOCK)
    try:
        content = fs.read_bytes(lock)
        owner = Owner.from_bytes(content)
        if not force and (owner is None or not owner.is_dead()):
            raise _busy(fs, root, str(owner) if owner else "somebody")
        aside = join(root, f"_{uuid.uuid4().hex}")
        fs.rename(lock, aside)
    except NotFoundError:
        return
    if fs.read_bytes(aside) != content:
        # Somebody else was faster, and this is the lock that they hold now.
        fs.rename(aside, lock)
        raise _busy(fs, root, "another repair")
    fs.remove_tree(aside)


def _busy(fs: FileSystem, root: str, who: str) -> ConflictError:
    return ConflictError(
        f"{fs.display(root.rpartition('/')[0])} is being repaired",
        f"{who} holds {fs.display(join(root, LOCK))}",
        "wait until it is done; give --force when it certainly died",
    )
