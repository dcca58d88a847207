"""What tests of acidctl ask the judge: expected rows, does Hive read the same, does it accept the files at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.judge.hive import Hive, RowKey, row_key
from support.judge.java_orc import java_orc_complaints
from support.judge.normal import PLAIN, normalise_row
from support.judge.txns import Txns

Answer = list[tuple[tuple[int, int, int, int], dict[str, Any] | None]]
"""((txn, bucket, statement, row), normalised row) in that order of keys: equal for both bucket codecs."""


def answer(rows: Iterable[tuple[Iterable[int], Mapping[str, Any]]], schema: str, form: str = PLAIN) -> Answer:
    """Rows of any source ((txn, bucket column, row id), columns) as a comparable answer; `form` as in `normal.py`."""
    return sorted(((row_key(k), normalise_row(dict(r), schema, form)) for k, r in rows), key=lambda item: item[0])


def hive_answer(
    hive: Hive, table: Path, schema: str, txns: Txns | None = None, *, version: int = 2, buckets: int | None = None
) -> Answer:
    """What Hive reads, as a comparable answer."""
    return answer(hive.rows(table, schema, txns or Txns(), version=version, buckets=buckets), schema)


def difference(got: Answer, want: Answer, limit: int = 3) -> str:
    """Empty when equal; else the first missing, extra and different rows, for an assertion's message."""
    if got == want:
        return ""
    keys_got, keys_want = [k for k, _ in got], [k for k, _ in want]
    lines = [f"{len(got)} rows, expected {len(want)}"]
    lines += [f"missing {row}" for row in want if row[0] not in keys_got][:limit]
    lines += [f"extra {row}" for row in got if row[0] not in keys_want][:limit]
    wanted = dict(want)
    lines += [f"differs {k}: {r} != {wanted[k]}" for k, r in got if k in wanted and r != wanted[k]][:limit]
    lines += [f"ROW__ID more than once: {k}" for k in keys_got if keys_got.count(k) > 1][:limit]
    return "\n".join(lines)


def assert_same(got: Answer, want: Answer, about: str = "") -> None:
    """AssertionError with the first differences."""
    text = difference(got, want)
    assert not text, f"{about}\n{text}"


def assert_hive_reads(
    hive: Hive,
    table: Path,
    schema: str,
    expected: Answer,
    txns: Txns | None = None,
    *,
    version: int = 2,
    buckets: int | None = None,
) -> None:
    """Hive's reader over the location returns exactly these rows. Names with _vNNN need `plain_view` first."""
    got = hive_answer(hive, table, schema, txns, version=version, buckets=buckets)
    assert_same(got, expected, f"Hive reads {table}")


def acid_files(table: Path) -> list[Path]:
    """The bucket files in the location's ACID directories."""
    return sorted(f for f in table.glob("*/bucket_*") if not f.name.endswith("_flush_length") and f.stat().st_size)


def hive_accepts(
    hive: Hive,
    table: Path,
    schema: str | None = None,
    txns: Txns | None = None,
    *,
    version: int = 2,
    files: Iterable[Path] | None = None,
) -> list[str]:
    """Complaints of Hive and Java ORC about a location, none when it is good.

    Every bucket file (or only `files`) is read whole, by seeks and with push-down, and must carry `hive.acid.key.index`
    and `hive.acid.stats`; the location's state must be selectable; with a schema, it must also be
    readable as a table.
    """
    chosen = acid_files(table) if files is None else list(files)
    complaints = java_orc_complaints(hive, chosen)
    try:
        hive.state(table, txns or Txns(), version=version)
        if schema is not None:
            hive.rows(table, schema, txns or Txns(), version=version)
    except Exception as error:  # noqa: BLE001  (whatever Java raised is the complaint)
        causes = [line for line in str(error).splitlines() if line.startswith((":", "Caused by"))]
        complaints.append(f"{table}: {' / '.join(causes) or error!r}")
    return complaints


def plain_view(table: Path, view: Path) -> Path:
    """Links to the location's children without `_vNNN`, which Hive 2.3 cannot parse; of two twins the higher wins."""
    view.mkdir(parents=True)
    best: dict[str, tuple[int, Path]] = {}
    for child in table.iterdir():
        name, _, visibility = child.name.partition("_v") if re.search(r"_v\d+$", child.name) else (child.name, "", "0")
        best[name] = max(best.get(name, (-1, child)), (int(visibility), child))
    for name, (_, child) in best.items():
        (view / name).symlink_to(child.resolve())
    return view


def keys(answer_: Answer) -> list[tuple[int, int, int, int]]:
    """Only the ROW__IDs."""
    return [key for key, _ in answer_]


__all__ = [
    "Answer",
    "RowKey",
    "acid_files",
    "answer",
    "assert_hive_reads",
    "assert_same",
    "difference",
    "hive_accepts",
    "hive_answer",
    "keys",
    "plain_view",
]
