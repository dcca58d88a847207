"""Recognizes tables of other formats, and other stores, by files at their top; they are never entered.

Hive's ACID tables have neighbours in every warehouse. Some contain directories called ``base_5`` or ``delta_1_1``, but
acidctl must not read, rewrite or remove anything in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Set
from contextlib import suppress

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import acid_directory, is_hidden
from acidctl.base.errors import AccessError, AcidctlError, NotFoundError, StorageError
from acidctl.storage.port import FileSystem, base_name, join, parent_of

_ICEBERG = re.compile(r".*\.metadata\.json(\.gz)?|version-hint\.text", re.DOTALL)
_HBASE = re.compile(r"hbase\.(version|id)|\.tabledesc|\.tableinfo\.[0-9]+|\.regioninfo", re.DOTALL)

_RULES: tuple[tuple[str, Callable[[Set[str]], bool]], ...] = (
    ("a Delta Lake table", lambda names: "_delta_log" in names),
    ("a Hudi table", lambda names: bool({".hoodie", ".hoodie_partition_metadata"} & names)),
    ("the output of a Spark stream", lambda names: "_spark_metadata" in names),
    ("a Paimon table", lambda names: {"schema", "snapshot", "manifest"} <= names),
    ("a Kudu server's data", lambda names: "instance" in names and bool({"wals", "tablet-meta"} & names)),
    ("a Kudu server's data", lambda names: "block_manager_instance" in names),
    ("HBase's data", lambda names: any(_HBASE.fullmatch(name) for name in names)),
    ("a replication dump of Hive", lambda names: "_dumpmetadata" in names),
)

_ASIDE = re.compile(
    r"\.Trash|\.snapshot|\.acidctl-(trash|backup)|\.hive-staging.*|_impala_insert_staging"
    r"|_tmp\..+|_tmp_[0-9a-f]{8}-[0-9a-f-]+",
    re.DOTALL,
)
"""Directories with former or future content of tables: trashes, snapshots of HDFS, staging directories."""

_FLAT = ("s3", "gs", "abfs")
_FLAT_MARKS = ("_delta_log", ".hoodie", "_spark_metadata", "_dumpmetadata", "metadata", "_metadata")
"""Names that are looked up one by one in stores without directories."""


def other_format(fs: FileSystem, path: str, listing: Listing) -> str:
    """Return what a directory is if it is not Hive's, with an article; else empty.

    Args:
        listing: its own children, hidden ones included. A child ``metadata`` costs one more listing, and a file
            ``_metadata`` one more read.
    """
    names = {entry.path.partition("/")[0] for entry in listing.entries}
    for what, is_it in _RULES:
        if is_it(names):
            return what
    if "metadata" in names and _holds_iceberg(fs, join(path, "metadata")):
        return "an Iceberg table"
    if "_metadata" in names:
        with suppress(AcidctlError):  # a directory, or not readable
            # The manifest of an export is JSON; a `_metadata` beside Parquet files is a common footer.
            if fs.read_bytes(join(path, "_metadata"), 0, 1) == b"{":
                return "an export of Hive"
    return ""


def other_format_within(fs: FileSystem, path: str, tree: Listing) -> tuple[str, str] | None:
    """Return the relative path of a table of another format inside a location, and what it is; else None.

    Args:
        tree: everything in the location.
    """
    # A fast check of all names: a directory can match only if the whole tree does.
    names = {entry.path.rpartition("/")[2] for entry in tree.entries}
    if not (names & {"metadata", "_metadata"} or any(is_it(names) for _, is_it in _RULES)):
        return None
    below: dict[str, list[Entry]] = {}
    for entry in tree.entries:
        directory, _, name = entry.path.rpartition("/")
        if directory and not any(map(is_hidden, directory.split("/"))):
            below.setdefault(directory, []).append(entry._replace(path=name))
    for directory, entries in below.items():
        if what := other_format(fs, join(path, directory), Listing(directory, tuple(entries))):
            return directory, what
    return None


def is_aside(name: str) -> bool:
    """Return whether a directory of that name holds deleted, saved or staged files."""
    return _ASIDE.fullmatch(name) is not None


class FormatDetector:
    """Recognizes what directories lie in; caches the directories above several of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._acid: dict[tuple[str, str], bool] = {}

    def of(self, fs: FileSystem, path: str) -> tuple[str, str] | None:
        """Return the directory at or above a path that keeps it from being a table of its own, and what that is.

        A walk checks each directory on its way down; a path that the user gives was not checked above.

        Args:
            fs: a store that may list directories above the path; those that may not be listed are ignored.

        Returns:
            A path and what it is, with an article; None if there is no such directory.

        Raises:
            StorageError: a directory above cannot be listed.
        """
        for above in _and_above(_as_linked(fs, path)):
            if is_aside(base_name(above)):
                return above, "for what was deleted or saved, or is being written"
            try:
                what = "" if above == path else self._what_is(fs, above)
            except StorageError as error:
                raise type(error)(f"cannot tell what {fs.display(path)} lies in", str(error), error.hint) from error
            if what:
                return above, what
        return None

    def _what_is(self, fs: FileSystem, path: str) -> str:
        key = (fs.url, path)
        if key not in self._known:
            try:
                if fs.spec.protocol in _FLAT:  # a bucket may hold millions of objects
                    marks = (name for name in _FLAT_MARKS if fs.exists(join(path, name)))
                    listing = Listing(path, tuple(Entry(name, 0, None, True) for name in marks))
                else:
                    listing = self._listed(fs, path)
                self._known[key] = other_format(fs, path, listing)
            except (AccessError, NotFoundError):  # other failures do not prove that nothing is there
                self._known[key] = ""
        return self._known[key]

    def holds_acid(self, fs: FileSystem, path: str) -> bool:
        """Return whether ACID directories lie directly in a directory; False if it cannot be listed."""
        key = (fs.url, path)
        if key not in self._acid:
            self._acid[key] = False
            with suppress(AcidctlError):
                self._listed(fs, path)
        return self._acid[key]

    def _listed(self, fs: FileSystem, path: str) -> Listing:
        listing = fs.list_dir(path)
        self._acid[fs.url, path] = any(acid_directory(entry.path) for entry in listing.entries if entry.is_dir)
        return listing


def _and_above(path: str) -> Iterator[str]:
    yield path
    while (parent := parent_of(path)) != path:
        yield (path := parent)


def _as_linked(fs: FileSystem, path: str) -> str:
    """Resolve symbolic links: the directories above a link are not those above its target."""
    local = fs.local_path(path)
    try:
        return path if local is None else os.path.realpath(local)
    except ValueError:  # an invalid path, which its listing reports
        return path


def _holds_iceberg(fs: FileSystem, metadata: str) -> bool:
    try:
        entries = fs.list_dir(metadata).entries
    except AcidctlError:  # not a directory, or not readable: its next listing reports that
        return False
    return any(_ICEBERG.fullmatch(entry.path) for entry in entries)
