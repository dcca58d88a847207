"""Layouts that nobody writes by Hive, and what Hive 3.1.3 and 4.0.1 read of each: `tests/data/hive-layouts.json`.

Each line has a table (``acid``, or an insert-only one: ``mm_orc``, ``mm_text``, ``mm_parquet``), the files of one
partition by their paths, and the rows that each Hive prints without a job, or ``error``. Beside those files stands a
sound ``delta_0000001_0000001_0000`` with the row 1, unless there is a file ``-``. Write ids 1 to 5 are committed.
What a file holds is said by a word and the values of its column ``a``:

``ids W a...``      rows with ids, of the write id W           ``dels W w.r...``  deletes of row r of write id w
``rows a...``       rows without ids, in the table's format    ``junk``           some text
``orc``, ``parquet``, ``text a...``  the same in a format      ``empty``, ``dir``, ``link TARGET``
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.acid.listing import TableType
from acidctl.orc.types import OrcType
from support.files.acid_files import delete, insert, struct, write_acid, write_plain

A = struct(a=OrcType("int"))
FORMATS = {"acid": "orc", "mm_orc": "orc", "mm_text": "text", "mm_parquet": "parquet"}
_DATA = Path(__file__).parents[2] / "data" / "hive-layouts.json"


@dataclass(frozen=True)
class LayoutCase:
    """One layout; `hive3` and `hive4` are what they print, sorted."""

    table: str
    name: str
    files: dict[str, str]
    hive3: str
    hive4: str

    @property
    def is_full(self) -> bool:
        return self.table == "acid"

    @property
    def table_type(self) -> TableType:
        return TableType.FULL_ACID if self.is_full else TableType.INSERT_ONLY

    def build(self, location: Path) -> Path:
        """The location with its files."""
        location.mkdir(parents=True, exist_ok=True)
        form, delta = FORMATS[self.table], location / "delta_0000001_0000001_0000"
        if "-" not in self.files:
            _put(
                delta / ("bucket_00000" if self.is_full else "000000_0"), "ids 1 1" if self.is_full else "rows 1", form
            )
        for path, content in self.files.items():
            if path != "-":
                _put(location / path, content, form)
        return location


def layout_cases() -> list[LayoutCase]:
    """All of them."""
    return [LayoutCase(**json.loads(line)) for line in _DATA.read_text().splitlines()]


def _put(path: Path, content: str, form: str) -> None:
    kind, *words = content.split()
    kind = form if kind == "rows" else kind
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "ids":
        write_acid(path, *[insert(int(words[0]), i, {"a": int(a)}) for i, a in enumerate(words[1:])], row=A)
    elif kind == "dels":
        keys = (map(int, word.split(".")) for word in words[1:])
        write_acid(path, *[delete(write_id, row_id, int(words[0])) for write_id, row_id in keys], row=A)
    elif kind == "orc":
        write_plain(path, *[{"a": int(a)} for a in words], row=A)
    elif kind == "parquet":
        pq.write_table(pa.table({"a": pa.array(map(int, words), pa.int32())}), path)
    elif kind == "dir":
        path.mkdir(exist_ok=True)
    elif kind == "link":
        path.symlink_to(words[0])
    else:
        texts = {"text": "".join(f"{a}\n" for a in words), "junk": "# read me\nhello\n", "empty": ""}
        path.write_text(texts[kind])
