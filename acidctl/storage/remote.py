"""Share the code of all stores behind a network, with a cache of the ends of their files.

ORC and Parquet keep their footers at the end: many ends are fetched at the same time.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import Self

from acidctl.acid.listing import Entry, Listing
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.storage import os_errors
from acidctl.storage.pace import pace_of
from acidctl.storage.port import FileSystem, FileSystemSpec

END = 16 * 1024
"""Bytes of the end of a file; nearly every footer fits into them."""

_KEPT = 2048
_LISTINGS = 64

_Key = tuple[str, int, float, int]


class TailCache:
    """The ends of files that one file system object has read, by path, size and time of change.

    Sizes and times are from the latest listing, or the latest `stat` of the file itself: a file that was written again
    since has another key.
    """

    def __init__(self, fetch: Callable[[str, int, int | None], bytes]) -> None:
        self._lock = threading.Lock()
        self._listings: deque[tuple[Listing, bool]] = deque(maxlen=_LISTINGS)
        self._looks: OrderedDict[str, Entry] = OrderedDict()
        self._fetch = fetch
        # The third argument, the time of change, is only part of the key.
        self._end = lru_cache(maxsize=_KEPT)(lambda path, size, _, length: self._fetch(path, size - length, length))

    def listed(self, listing: Listing, *, whole: bool) -> Listing:
        """Remember the sizes and times of a listing, replacing those of an older listing of that directory.

        Args:
            whole: the listing is of the whole tree, not only of the children.
        """
        with self._lock:
            self._looks.clear()
            below = _prefix(listing)
            for old in [old for old in self._listings if _prefix(old[0]).startswith(below)]:
                self._listings.remove(old)
            self._listings.appendleft((listing, whole))
        return listing

    def looked(self, path: str, entry: Entry) -> Entry:
        """Remember size and time of one file."""
        with self._lock:
            self._looks[path] = entry
            if len(self._looks) > _KEPT:
                self._looks.popitem(last=False)
        return entry

    def forget(self) -> None:
        """Forget everything, because something was changed."""
        with self._lock:
            self._listings.clear()
            self._looks.clear()
            self._end.cache_clear()

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """Return a range of a file, from memory if it is an end that was read before."""
        key = self._key(path, offset, length)
        return self._fetch(path, offset, length) if key is None else self._end(*key)

    def _key(self, path: str, offset: int, length: int | None) -> _Key | None:
        if not length or length > END or offset < 0:
            return None
        with self._lock:
            entry = self._looks.get(path) or self._in_listings(path)
        if entry is None or entry.is_dir or entry.modified is None or offset + length != entry.size:
            return None
        return path, entry.size, entry.modified, length

    def _in_listings(self, path: str) -> Entry | None:
        for listing, whole in self._listings:
            prefix = _prefix(listing)
            if not path.startswith(prefix):
                continue
            name = path[len(prefix) :]
            at = bisect_left(listing.entries, name, key=attrgetter("path"))
            if at < len(listing.entries) and listing.entries[at].path == name:
                return listing.entries[at]
            if whole or "/" not in name:  # it was removed since an older listing
                return None
        return None


def _prefix(listing: Listing) -> str:
    return listing.location.rstrip("/") + "/"


class RemoteStore(ABC):
    """The part of :class:`acidctl.storage.port.FileSystem` that needs only :meth:`stat` and :meth:`_read`."""

    def __init__(self, spec: FileSystemSpec) -> None:
        self.spec = spec
        self.url = f"{spec.protocol}://{spec.authority}"
        self.is_local = self.can_copy = False
        self._tails = TailCache(self._read)
        self._pace = pace_of(spec)

    @abstractmethod
    def stat(self, path: str) -> Entry: ...

    @abstractmethod
    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        """Read a range as :meth:`read_bytes` does, but from the store, not from memory."""

    def display(self, path: str) -> str:
        return self.url + path

    def local_path(self, path: str) -> str | None:  # noqa: ARG002 - nothing here is on the disk
        return None

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._tails.read(path, offset, length)

    def copy(self, source: str, target: str) -> None:  # noqa: ARG002 - the default of stores without copies
        raise os_errors.cannot_copy(self.display(source))

    def _require_free(self, path: str) -> None:
        if self.exists(path):
            raise os_errors.already_exists("create", self.display(path))

    def _holds(self, path: str, data: bytes) -> bool:
        """Return whether a file holds this content; False if the store cannot tell."""
        try:
            return self.read_bytes(path) == data
        except AcidctlError:
            return False

    def __reduce__(self) -> tuple[type[Self], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)


def fetch_tails(fs: FileSystem, files: Iterable[tuple[str, int]]) -> None:
    """Read the ends of files in parallel, so that reading them one by one afterwards takes no request.

    Errors are ignored: they recur, and are reported, when the file is read.

    Args:
        files: paths and sizes, at most some hundreds at a time.
    """
    wanted = [(path, size) for path, size in files if size]
    if len(wanted) < 2 or fs.is_local:
        return

    def fetch(item: tuple[str, int]) -> None:
        path, size = item
        with suppress(AcidctlError):
            fs.read_bytes(path, max(0, size - END), min(END, size))

    for _ in parallel.results(fetch, wanted):
        pass
