"""Read the rows of an ORC file, a stripe at a time, as Arrow record batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acidctl.base.errors import BadDataError, EnvironmentProblem, MemoryProblem, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import struct_of
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged, native_read
from acidctl.orc.codecs import MAX_BLOCK
from acidctl.orc.limits import STRIPE_MEMORY, DecodingBudget, LimitError
from acidctl.orc.read import hostile_streams, wide_timestamps
from acidctl.orc.read.hostile_streams import ROWS_SIZE, check_rows, check_stripe, has_lengths, is_small_at_first
from acidctl.orc.read.union_nulls import mark_nulls
from acidctl.orc.read.zones import is_utc
from acidctl.orc.tail import FIRST_READ, Tail, as_text, placed_streams, read_tail
from acidctl.orc.types import ACID_COLUMNS, OrcType, arrow_type, hive_type, restricted
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, FileSystemSpec

if TYPE_CHECKING:
    from acidctl.base.worker_pool import Elsewhere

_READ_WHOLE = 1 << 20
"""Remote stripes of at most this many bytes are fetched in one piece, whichever columns are wanted."""
_SMALL_STRIPE = 64 * 1024  # reading a local stripe of at most this many bytes is as fast at once as in parts
_SMALL_PART = 8
_FIRST_BYTES = 512 * 1024
"""Bytes of a stream that are fetched for the first rows: a compressed chunk of most writers fits, and the native reader
reads this much at once."""
_LOOK_SECONDS, _LET_GO_SECONDS = 0.0005, 1.0
"""Arrow's threads end within milliseconds; after an error their objects may live as long as its traceback."""
_WHOLE_STRIPE_KINDS = frozenset(("uniontype", "map"))
_ROWS_A_BYTE = 520  # no ORC encoding packs more rows into a byte: a run of 130 bytes of booleans takes two bytes
_MAX_ROWS = (1 << 31) - 1
_RATIO = {"none": 1, "zlib": 1032, "snappy": 64, "lz4": 255, "lzo": 255}
"""The most bytes that a compressed byte can stand for; other codecs are bounded by the compression block size."""

# Errors of the native reader after which wide_timestamps succeeds: years out of range, zones with names only Java has.
_TIME_PROBLEMS = ("out of range for nanosecond resolution", "Time zone file")


def open_orc(
    fs: FileSystem, path: str, length: int | None = None, tail: Tail | None = None, *, has_ids: bool = True
) -> OrcFile:
    """Open an ORC file for reading its rows.

    Args:
        length: the logical length (flush length), None for the whole file.
        tail: the tail of this very file, if it was read already.
        has_ids: columns with the six ACID names are the ids of rows; False in an insert-only table, whose columns may
            have any names.

    Raises:
        BadDataError: the file is not ORC, is damaged, or cannot be read by acidctl (encrypted, LZO).
    """
    source = ByteSource(fs, path, length, tail.file_length if tail else None)
    local = source.local_whole()
    if local is not None:
        return OrcFile(tail or read_tail(source), local, has_ids=has_ids)
    # The bytes that hold the tail serve twice: acidctl parses them, and then Arrow.
    end = source.read_end(FIRST_READ)
    return OrcFile(read_tail(source, end), window=ReadAheadFile(source, end), has_ids=has_ids)


def elsewhere_of(source: ByteSource, stripes: int, opens: Callable[..., Any], *values: Any) -> Any:
    """Return the reader of a file in another process, if files are isolated and processes can share the store.

    Args:
        opens: opens the file in that process, from the spec of its store, its path, its size and `values`.
    """
    if not NOTES.isolates or not registry.is_shared(source.fs.spec):
        return None
    from acidctl.base.worker_pool import Elsewhere  # noqa: PLC0415 - with processes: only where files are isolated

    there = partial(opens, source.fs.spec, source.path, source.size, *values)
    return Elsewhere(source.path, there, stripes, forks=source.fs.is_local)


def _opened(spec: FileSystemSpec, path: str, size: int, has_ids: bool) -> OrcFile:
    return open_orc(registry.open_file_system(spec), path, size, has_ids=has_ids)


class OrcFile:
    """An open ORC file; closing it releases the file handle.  Use as a context manager.

    Attributes:
        tail: everything that is known without reading rows.
        is_acid: whether the six ACID columns wrap the rows.
        row_type: the table's columns (the children of ``row`` in an ACID file).
    """

    def __init__(
        self, tail: Tail, local: str | None = None, window: ReadAheadFile | None = None, *, has_ids: bool = True
    ) -> None:
        self.tail = tail
        self._elsewhere: Elsewhere | None = elsewhere_of(tail.source, len(tail.stripes), _opened, has_ids)
        self._local = local
        self._window = window or ReadAheadFile(tail.source)
        self._handle: Any = None
        self._orc: Any = None
        self._work = DecodingBudget(tail.path, tail.file_length)
        _check_readable(tail)
        self.is_acid = tail.is_acid and has_ids
        self.row_type: OrcType = tail.schema.row_type if has_ids else tail.type_tree

    @cached_property
    def schema(self) -> pa.Schema:
        """Return Arrow's schema of the whole file, with ACID columns in canonical spelling."""
        tree = self.tail.type_tree
        names = ACID_COLUMNS if self.is_acid else tree.names
        return pa.schema([pa.field(name, arrow_type(child)) for name, child in zip(names, tree.children, strict=True)])

    @property
    def stripe_count(self) -> int:
        """Return the number of stripes."""
        return len(self.tail.stripes)

    def read_stripe(self, i: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return the rows of stripe `i`, counted from 0.

        Args:
            columns: names of top-level columns, or dotted names of fields inside structs (``row.name``); None for all.
                In an ACID file the six columns have their canonical spelling, or the file's own.

        Returns:
            A batch of the wanted columns in the file's order.  Timestamps are ``timestamp[ns]``; a timestamp column
            with a value in this stripe that nanoseconds of 64 bits cannot hold is a WideTimestamp; a union with NULLs
            in this stripe has one more alternative, see union_nulls.

        Raises:
            BadDataError: the stripe is damaged, or holds a map with a NULL key, which Arrow cannot represent.
            UsageProblem: a column does not exist.
        """
        self._check_rows(i)
        if columns is not None and not columns:
            return pa.RecordBatch.from_struct_array(struct_of((), (), self.tail.stripes[i].numberOfRows))
        if self._elsewhere:
            batch: pa.RecordBatch = self._elsewhere.read_stripe(i, columns)
            return batch
        chosen = None if columns is None else self._choose(columns)
        if self.tail.stripes[i].numberOfRows == 0:
            fields = list(arrow_type(self._tree(chosen)))
            return self._named(pa.RecordBatch.from_pylist([], schema=pa.schema(fields)))
        self._check_size(i, chosen)
        if self._has("map", chosen):
            hostile_streams.check_map_keys(self.tail, i, self._stripe_footer(i), self._tree(chosen))
        self._check_streams(i, chosen)
        with native_read(self.tail.path, i):
            reader = self._native()
            try:
                batch = reader.read_stripe(i, columns=None if chosen is None else list(chosen))
                STRIPE_MEMORY.check(batch.nbytes, f"stripe {i} of {self.tail.path}", ROWS_SIZE)
                self._work.add_part(i, batch.nbytes)
                certain = not self._doubtful(i, batch)
            except pa.ArrowException as error:
                if not any(words in str(error) for words in _TIME_PROBLEMS):
                    raise
                certain = False
        if not certain:
            batch = wide_timestamps.read_stripe(self.tail, i, self._tree(chosen))
        if self._has("uniontype", chosen):
            batch = mark_nulls(self.tail, i, self._stripe_footer(i), batch, self._tree(chosen))
        return self._named(batch)

    def read_first(self, count: int) -> pa.RecordBatch | None:
        """Return the first `count` rows, decoding (and fetching from a remote store) little more than them.

        Returns:
            The first rows of :meth:`read_stripe`; None if that must be called: these rows are not a small part of the
            first stripe, a type needs checks of the whole stripe, or something is wrong with the file.
        """
        if not self.stripe_count or not 0 < count * _SMALL_PART <= self.tail.stripes[0].numberOfRows:
            return None
        if not _WHOLE_STRIPE_KINDS.isdisjoint(self.tail.schema.kinds):
            return None
        # Here columns are read by name, and `a.b` may get the field of a struct, without values.
        if any("." in name for name in self.tail.type_tree.names):
            return None
        self._check_rows(0)
        if self._elsewhere:
            first: pa.RecordBatch | None = self._elsewhere.read_first(count)
            return first
        with nullcontext() if self._local is not None else _let_go(self._window):
            table = self._head(count)
        if table is None or table.num_rows != count:
            return None
        (batch,) = table.combine_chunks().to_batches()
        return None if self._doubtful(0, batch) else self._named(batch)

    def _head(self, count: int) -> pa.Table | None:
        """Return the first rows of the file, None if Arrow cannot read them."""
        from pyarrow import dataset, fs  # noqa: PLC0415 - only for the first rows of a file

        form = dataset.OrcFileFormat()
        try:
            self._fetch_ahead(0, None, _FIRST_BYTES)
            self._check_streams(0, None)
            if not is_small_at_first(self.tail, self._stripe_footer(0), count, self._window.piece, _FIRST_BYTES):
                return None
            if self._local is None:
                fragment = form.make_fragment(pa.PythonFile(self._window, mode="r"))
            else:
                fragment = form.make_fragment(self._local, filesystem=fs.LocalFileSystem())
            # Without threads Arrow would read the whole file before it returns the first rows.
            with native_read(self.tail.path):
                return fragment.head(count, batch_size=count, use_threads=True)
        except (pa.ArrowException, OSError, BadDataError, EnvironmentProblem, MemoryProblem):
            return None

    def close(self) -> None:
        """Close the file, also in another process that reads it."""
        handle, self._handle, self._orc = self._handle, None, None
        if handle is not None:
            handle.close()
        if self._elsewhere:
            self._elsewhere.close()

    def __enter__(self) -> OrcFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _native(self) -> Any:
        if self._orc is None:
            from pyarrow import orc  # noqa: PLC0415 - with Arrow's file systems: only where rows are decoded

            local = self._local
            self._handle = pa.PythonFile(self._window, mode="r") if local is None else pa.OSFile(local)
            self._orc = orc.ORCFile(self._handle)
        return self._orc

    def _choose(self, columns: Sequence[str]) -> dict[str, int]:
        """Return column ids by the name that Arrow has for the column."""
        chosen: dict[str, int] = {}
        for column in columns:
            path = self._own_spelling(column)
            ids = self.tail.schema.column_ids.get(path, [])
            if len(ids) != 1 or ids[0] is None:
                why = "several columns go by this name" if len(ids) > 1 else "there is no such column"
                names = ", ".join(self.schema.names)
                raise UsageProblem(f"cannot read column {column!r} of {self.tail.path}", why, f"columns: {names[:500]}")
            chosen[path] = ids[0]
        return chosen

    def _tree(self, chosen: dict[str, int] | None) -> OrcType:
        tree = self.tail.type_tree if chosen is None else restricted(self.tail.type_tree, set(chosen.values()))
        assert tree is not None
        return tree

    def _has(self, kind: str, chosen: dict[str, int] | None) -> bool:
        return kind in self.tail.schema.kinds and any(node.kind == kind for node in self._tree(chosen).walk())

    def _own_spelling(self, column: str) -> str:
        """Return `column` as the file spells it: some ACID files have the six names in lower case."""
        if not self.is_acid:
            return column
        first, dot, rest = column.partition(".")
        if first in ACID_COLUMNS:
            first = self.tail.type_tree.names[ACID_COLUMNS.index(first)]
        return first + dot + rest

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with ACID columns in canonical spelling."""
        if not self.is_acid:
            return batch
        canonical = dict(zip(self.tail.type_tree.names, ACID_COLUMNS, strict=True))
        names = [canonical[name] for name in batch.schema.names]
        return batch if names == batch.schema.names else batch.rename_columns(names)

    def _doubtful(self, i: int, batch: pa.RecordBatch) -> bool:
        """Return whether Arrow may have misread a timestamp of this batch: written by Java in another zone than UTC."""
        if "timestamp" not in self.tail.schema.kinds or self.tail.footer.writer != 0:
            return False
        if is_utc(as_text(self._stripe_footer(i).writerTimezone)):
            return False
        return any(wide_timestamps.may_be_misread(column) for column in batch.columns)

    def _check_rows(self, i: int) -> None:
        """Refuse more rows than the stripe's bytes can hold: Arrow would take memory for all of them at once."""
        check_rows(self.tail, i)
        stripe = self.tail.stripes[i]
        ratio = _RATIO.get(self.tail.compression, self.tail.block_size)
        most = min(_MAX_ROWS, 1000 + stripe.dataLength * ratio * _ROWS_A_BYTE)
        if stripe.numberOfRows > most and self.tail.type_tree.children:
            raise damaged(self.tail.path, f"stripe {i} claims {stripe.numberOfRows} rows in {stripe.dataLength} bytes")

    def _check_streams(self, i: int, chosen: dict[str, int] | None) -> None:
        if not hostile_streams.KINDS.isdisjoint(self.tail.schema.kinds):
            hostile_streams.check_streams(self.tail, i, self._stripe_footer(i), self._tree(chosen), self._window.piece)

    def _check_size(self, i: int, chosen: dict[str, int] | None) -> None:
        self._work.require()
        try:
            tree = self._tree(chosen)
            is_unknown = has_lengths(tree)
            if is_unknown or self._local is None:
                self._fetch_ahead(i, chosen)
            if is_unknown:
                check_stripe(self.tail, i, self._stripe_footer(i), tree, self._window.piece)
        except LimitError:
            raise
        except BadDataError as error:
            raise BadDataError(f"stripe {i} of {self.tail.path} cannot be read", str(error), error.hint) from error

    def _stripe_footer(self, i: int) -> pb.StripeFooter:
        stripe = self.tail.stripes[i]
        start = stripe.offset + stripe.indexLength + stripe.dataLength
        return self.tail.parse_stripe_footer(i, self._window.piece(start, stripe.footerLength))

    def _fetch_ahead(self, i: int, chosen: dict[str, int] | None, most: int | None = None) -> None:
        """Fetch the bytes of stripe `i` in few large pieces; of a local file only those checked before Arrow reads it.

        Args:
            most: bytes to fetch of each stream, from its beginning; None for all.
        """
        stripe = self.tail.stripes[i]
        start = stripe.offset + stripe.indexLength
        footer_start = start + stripe.dataLength
        end = footer_start + stripe.footerLength
        if self._local is not None:
            # Arrow reads the file by itself; these bytes are for checking its streams.
            self._window.fetch([(start, end)] if end - start <= _SMALL_STRIPE else [(footer_start, end)])
            return
        if end - start <= _READ_WHOLE or (chosen is None and most is None):
            self._window.fetch([(start, end)])
            return
        self._window.fetch([(footer_start, end)])
        wanted = {node.column_id for node in self._tree(chosen).walk()}
        ranges = [(footer_start, end)]
        for stream, at in placed_streams(self._stripe_footer(i), stripe.offset):
            if at >= start and stream.length and stream.column in wanted:
                ranges.append((at, at + (stream.length if most is None else min(stream.length, most))))
        self._window.fetch(ranges)


@contextmanager
def _let_go(window: ReadAheadFile) -> Iterator[None]:
    """Wait until Arrow's threads have dropped `window`: a thread that drops it while Python ends aborts the process."""
    holders = sys.getrefcount(window)
    try:
        yield
    finally:
        latest = time.monotonic() + _LET_GO_SECONDS
        while sys.getrefcount(window) > holders and time.monotonic() < latest:
            time.sleep(_LOOK_SECONDS)


def _check_readable(tail: Tail) -> None:
    """Refuse files that Arrow would read wrong or not at all, with the reason."""
    if tail.encrypted:
        why = "acidctl has no keys and would read masked values"
        raise BadDataError(f"{tail.path} has encrypted columns", why, "decrypt the table with Hive first")
    if tail.type_tree.kind != "struct":
        what = f"{tail.path} holds single values of type {hive_type(tail.type_tree)}, not rows"
        raise BadDataError(what, "a table's file has a struct at its root", "Hive did not write this file for a table")
    if tail.compression != "none" and tail.block_size > MAX_BLOCK:
        raise damaged(tail.path, f"it claims compression blocks of {tail.block_size} bytes, which no chunk can hold")
    if tail.compression == "lzo":
        what, hint = f"{tail.path} is compressed with LZO", "rewrite it with another orc.compress"
        raise BadDataError(what, "acidctl has no LZO codec", hint)
