"""The proof of all rows: PyIceberg, which did not write the files, reads the copy, and acidctl the source.

PyIceberg reads each file once, for the digest of its rows and the sums of its columns.  acidctl's own reader takes its
place in the digest where PyIceberg 0.12 cannot judge a column, and for large files, which it reads column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acidctl.base.errors import VerifyError
from acidctl.compaction.proof.values import column_checksum
from acidctl.iceberg.difference import TargetFile
from acidctl.iceberg.fields import Field
from acidctl.iceberg.keys import KeySet
from acidctl.iceberg.proofs.columns_read import ColumnSums
from acidctl.iceberg.proofs.digests import Digest, copy_digest, source_digest
from acidctl.iceberg.proofs.new_rows import differs
from acidctl.iceberg.target import Target, Values
from acidctl.rows.scan.scan import Scan


@dataclass(frozen=True, slots=True)
class SourceRows:
    """All rows of the Hive table.

    Attributes:
        has_keys: the digest is that of rows under their keys.
    """

    digest: Digest
    sums: ColumnSums
    has_keys: bool

    @classmethod
    def read(cls, scans: Iterable[Scan], target: Target, *, has_keys: bool) -> SourceRows:
        """Read them.

        Args:
            scans: of the columns of the copy, with ROW__ID as first column if `has_keys`.
        """
        sums = ColumnSums(target.columns, target.partition)
        every: Iterable[tuple[Scan, KeySet | None]] = ((scan, None) for scan in scans)
        return cls(source_digest(every, (*target.columns, *target.partition), sums), sums, has_keys)


@dataclass(slots=True)
class _Read:
    """Sums and a digest of the rows that PyIceberg has read.

    Attributes:
        digest: of the files of which it has read all columns at once.
        rows: of each of these files, by their paths.
        error: the fault that stopped it; then the other attributes are empty.
    """

    sums: ColumnSums
    digest: Digest = field(default_factory=Digest)
    rows: dict[str, int] = field(default_factory=dict)
    error: str = ""


def require_same_rows(
    source: SourceRows,
    target: Target,
    files: Mapping[Values, Sequence[TargetFile]],
    storage: Mapping[str, str] | None,
) -> tuple[str, ...]:
    """Require that a copy has the rows of its source, also as PyIceberg reads it.

    Args:
        target: with the snapshot to read, which need not be committed.
        files: of this snapshot.

    Returns:
        A sentence for each column that PyIceberg could not judge.

    Raises:
        VerifyError: rows differ; a column that only PyIceberg reads otherwise is named.
    """
    sums, has_keys = source.sums, source.has_keys
    every = (*target.columns, *target.partition)
    judged = [one for one in every if one.name in sums.values and one.name not in sums.unfit]
    notes = [f"PyIceberg cannot judge column {name}: {why}" for name, why in sums.unfit.items()]
    read = _by_pyiceberg(target, every, judged, files, has_keys=has_keys)
    if read.error:
        notes.append(f"PyIceberg cannot read the copy: {read.error}")
    rest = {values: [one for one in here if one.url not in read.rows] for values, here in files.items()}
    found = read.digest.and_of(copy_digest(target, rest, storage, has_keys=has_keys))
    is_same = found == source.digest
    if not is_same:
        own = copy_digest(target, files, storage, has_keys=has_keys) if read.rows else found
        if own.rows != source.digest.rows:
            raise differs(f"{source.digest.rows} rows there and {own.rows} here")
        if own != source.digest:
            raise differs("values differ, or their ids" if has_keys else "values differ")
    hint = "nothing was committed; migrate into a new table, and report this"
    for one in () if read.error else judged:
        name = one.name
        if sums.nulls[name] != read.sums.nulls[name]:
            why = f"it finds {read.sums.nulls[name]} NULLs, and the source has {sums.nulls[name]}"
        elif sums.values[name] != read.sums.values[name]:
            why = "the checksums of all values differ"
        else:
            continue
        raise VerifyError(f"PyIceberg reads other values in column {name} of the copy", why, hint)
    if not is_same:
        raise VerifyError("PyIceberg reads other rows in the copy", "values are in other rows, or rows in others", hint)
    return tuple(notes)


def _by_pyiceberg(
    target: Target,
    every: Sequence[Field],
    judged: Sequence[Field],
    files: Mapping[Values, Sequence[TargetFile]],
    *,
    has_keys: bool,
) -> _Read:
    read, names = _Read(ColumnSums(judged)), [one.name for one in judged]
    places = {one.name: at for at, one in enumerate(every)}
    keys = {one.url: one.keys.shown()[0] for here in files.values() for one in here}
    try:
        for url, batch in target.read(names) if names else ():
            columns = {name: batch.column(name) for name in names if name in batch.schema.names}
            if len(columns) == len(every):
                start = read.rows.get(url, 0)
                read.rows[url] = end = start + batch.num_rows
                some = keys[url].slices(start, end).keys() if has_keys and url in keys else None
                if some is not None and len(some) < batch.num_rows:
                    some = None  # no digest is the same as that of rows which the copy must not show
                sums = read.digest.add(columns, batch.num_rows, some)
            else:
                sums = [column_checksum(column, places[name]) for name, column in columns.items()]
            read.sums.add(columns, sums)
    except Exception as error:  # noqa: BLE001 - it may be a fault of the reader: it has several
        return _Read(ColumnSums(judged), error=f"{type(error).__name__}: {error}")
    return read
