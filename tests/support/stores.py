"""What the tests of the stores share."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.storage.port import FileSystem, join, parent_of


@dataclass(frozen=True)
class Store:
    """A file system and an existing, empty directory in it."""

    kind: str
    fs: FileSystem
    root: str

    @property
    def has_directories(self) -> bool:
        return self.kind not in ("s3", "objects")


def fill(store: Store, *paths: str, data: bytes = b"data") -> None:
    """Write files, with the directories they need."""
    for path in paths:
        full = join(store.root, path)
        store.fs.make_dirs(parent_of(full))
        store.fs.write_bytes(full, data)


def paths(store: Store, path: str = "") -> list[str]:
    """Everything below the test's directory, or a directory in it."""
    return [entry.path for entry in store.fs.list_tree(join(store.root, path) if path else store.root).entries]
