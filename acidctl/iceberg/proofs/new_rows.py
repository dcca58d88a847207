"""The proof of a catch-up: what it adds is compared, so that the cost follows the change.

Files never change.  So both tables have the same rows if they show the same keys, if the values under keys that were
copied before were equal then, and if those under the new keys are equal now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

from acidctl.base.errors import VerifyError
from acidctl.compaction.proof.checksum import RowProof
from acidctl.iceberg.copy import CopyPlan, PlannedFile
from acidctl.iceberg.difference import TargetFile, opened
from acidctl.iceberg.keys import KeySet, without
from acidctl.iceberg.proofs.digests import Digest, copy_digest, source_digest
from acidctl.iceberg.target import Target, Values
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.visibility import load_deletes, open_sources
from acidctl.rows.scan.scan import Scan
from acidctl.wording import human_count

ScanOf = Callable[..., Scan]
"""Returns a scan of a location of the source; takes further arguments of :class:`Scan`."""

Files = Mapping[Values, Sequence[TargetFile]]


def require_new_rows(
    plan: CopyPlan,
    target: Target,
    files: tuple[Files, Files],
    parts: Iterable[tuple[Snapshot, ScanOf]],
    storage: Mapping[str, str] | None,
) -> str:
    """Require that a catch-up makes the copy equal to its source, if it was equal before.

    Args:
        files: all files of the copy as the next snapshot has them, and the new ones among them.
        parts: the locations of the source.

    Returns:
        What was compared, as the end of a sentence.

    Raises:
        VerifyError: the keys of all rows differ, or the values of the new ones.
    """
    shown, added = files
    require_same_keys(plan, shown)
    rows = sum(proof.rows for proof in plan.source.values())
    wanted: dict[int, list[PlannedFile]] = {}
    for planned in plan.files:
        wanted.setdefault(id(planned.wanted.source.snapshot), []).append(planned)
    here, count = Digest(), 0
    columns = (*target.columns, *target.partition)
    for snapshot, scan in parts:
        sources = open_sources(snapshot)
        deletes = cache(partial(load_deletes, sources, snapshot.write_ids))
        count += scan(columns=[], sources=sources, deletes=deletes).count()
        found = source_digest(
            _scans(partial(scan, row_id=True, deletes=deletes), wanted.get(id(snapshot), ())), columns
        )
        here = here.and_of(found)
    if count != rows:
        raise differs(f"the source has {human_count(count, 'row')}, and the copy would have {rows}")
    if here != copy_digest(target, added, storage, has_keys=True):
        raise differs("values of new rows differ")
    what = "ids" if plan.has_keys else "number"
    return f"all values of {human_count(here.rows, 'new row')} and the {what} of {human_count(rows, 'row')} compared"


def require_same_keys(plan: CopyPlan, files: Files) -> None:
    """Require that the files of the copy show the keys of the source, each as often, in every partition.

    Without keys it is the number of rows.

    Raises:
        VerifyError: they do not.
    """
    copy = {values: sum((file.keys.proof() for file in here), RowProof()) for values, here in files.items()}
    for values in {**plan.source, **copy}:
        there, here = plan.source.get(values, RowProof()), copy.get(values, RowProof())
        if there != here and (plan.has_keys or there.rows != here.rows):
            where = f" in partition {values}" if values else ""
            rows = f"{there.rows} rows there and {here.rows} here" if there.rows != here.rows else "their ids differ"
            raise differs(rows + where)


def _scans(scan: ScanOf, wanted: Iterable[PlannedFile]) -> Iterator[tuple[Scan, KeySet | None]]:
    """Yield the scan of each file that was copied, with the keys of the rows that are new."""
    for planned in wanted:
        source, keys = planned.wanted.source, None
        if planned.wanted.rows != source.keys.runs.rows - len(source.keys.dead):  # the copy has some of its rows
            keys = KeySet([without(planned.wanted.runs, planned.wanted.dead)[0]])
        stripes = planned.wanted.stripes
        only = None if stripes is None else {source.events.file.path: stripes}
        yield scan(sources=[opened(source.events)], only=only), keys


def differs(why: str) -> VerifyError:
    """Return the error for a copy that would not be equal to its source."""
    hint = "nothing was committed; migrate into a new table, and report this"
    return VerifyError("the copy would differ from its source", why, hint)
