"""Whether a location reads the same before and after: a checksum of its rows that no order changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acidctl.acid.names import partition_name
from acidctl.compaction.proof.checksum import add
from acidctl.compaction.proof.values import value_checksum
from acidctl.errors import BadDataError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.orc.types import hive_type, row_of
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.scan.table import Table

VERSION = 1


@dataclass(frozen=True, slots=True)
class RowDigest:
    """The rows of one location.

    Attributes:
        name: of the table and partition, which stay when the directory moves.
        values: 128 bits of all values, row by row, as hexadecimal digits.
        row_ids: the same of the values under their ROW__IDs.
        columns: names and types.
    """

    name: str
    rows: int
    values: str
    row_ids: str
    columns: str

    @property
    def record(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "name": self.name,
            "rows": self.rows,
            "values": self.values,
            "rowIds": self.row_ids,
            "columns": self.columns,
        }

    @classmethod
    def of(cls, said: Any) -> RowDigest:
        """From its JSON form. Raises BadDataError when it is none."""
        try:
            texts = [said[name] for name in ("name", "values", "rowIds", "columns")]
            rows = said["rows"]
            if not (isinstance(rows, int) and all(isinstance(text, str) for text in texts)):
                raise TypeError
            return cls(texts[0], rows, *texts[1:])
        except (KeyError, TypeError) as error:
            raise BadDataError("these are no checksums of rows", "", "give the file that was saved before") from error


@dataclass(frozen=True, slots=True)
class DigestChange:
    """One location, before and after.

    Attributes:
        before, after: None where there is none.
    """

    name: str
    before: RowDigest | None
    after: RowDigest | None

    @property
    def result(self) -> str:
        """``same``; ``row-ids`` where the values are the same under other ROW__IDs; ``differs``, ``gone``, ``new``."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if (self.before.rows, self.before.values) != (self.after.rows, self.after.values):
            return "differs"
        return "same" if self.before.row_ids == self.after.row_ids else "row-ids"


def row_digest(found: Found, lists: SnapshotLists) -> RowDigest:
    """Read all rows of a location, a stripe at a time.

    Raises:
        BadDataError, NotFoundError, HistoryError: it cannot be read whole.
    """
    scan = Table(found.shown, [found.afresh()], lists).scan(row_id=True)
    kinds = list(scan.output_type.fields())[1:]
    row = row_of(kinds)
    count = values = row_ids = 0
    for batch in scan.batches_as_read() if kinds else ():
        rows = pa.StructArray.from_arrays(batch.columns[1:], fields=list(batch.schema)[1:])
        values = add(values, value_checksum(None, rows, row))
        row_ids = add(row_ids, value_checksum(_keys(batch.column(0)), rows, row))
        count += batch.num_rows
    columns = ", ".join(f"{name} {hive_type(kind)}" for name, kind in kinds)
    return RowDigest(digest_name(found), count, f"{values:032x}", f"{row_ids:032x}", columns)


def digest_name(found: Found) -> str:
    """The name of a location that an upgrade keeps."""
    return "/".join([found.location.table, *(partition_name(*one) for one in found.location.partition)])


def _keys(ids: pa.StructArray) -> Keys:
    parts = [np.asarray(ids.field(i).to_numpy(zero_copy_only=False), np.int64) for i in range(3)]
    return Keys(*parts)


def compared(before: Mapping[str, RowDigest], after: Mapping[str, RowDigest]) -> list[DigestChange]:
    """What became of each location, in the order of their names."""
    return [DigestChange(name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
