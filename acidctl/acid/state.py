"""Snapshot selection: a listing and a snapshot in, the state of the location out (format section 6).

The result does not depend on the listing's order. Every verdict carries its :class:`Reason`; nothing else in
acidctl decides what is current, obsolete or aborted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import (
    ACID_PREFIXES,
    METADATA_ACID,
    MINL,
    NO_STATEMENT,
    AcidDirectory,
    AcidNameError,
    Kind,
    is_hidden,
    is_staging,
    is_visible_path,
    parse_directory,
    parse_partition,
)
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.writeids import Range, ValidTxns, ValidWriteIds
from acidctl.errors import HistoryError


class State(StrEnum):
    """The verdict on one child of a location."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"


class EntryKind(StrEnum):
    """What one child of a location is."""

    BASE = "base"
    DELTA = "delta"
    DELETE_DELTA = "delete_delta"
    ORIGINAL = "original"
    STAGING = "staging"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict was reached.

    Attributes:
        code: stable, for programs.
        text: one sentence, for people.
        by: names of the entries that decide it (what supersedes this one).
        ids: the write ids or transaction ids that decide it.
    """

    code: str
    text: str
    by: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One direct child of the location with what it is and what became of it."""

    name: str
    kind: EntryKind
    state: State
    reason: Reason
    directory: AcidDirectory | None = None
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class AcidState:
    """What a reader of one snapshot sees in one location.

    Attributes:
        base: the chosen base, or None.
        deltas: current deltas and delete deltas in the order Hive reads them.
        originals: original files to read, sorted by path (section 5.1: their row ids hang on this order);
            empty once there is a base. Files of length 0 are among them.
        verdicts: every direct child, ordered for display: bases, deltas, originals, the rest.
        history_problem: set when the snapshot needs history that a compaction destroyed; see `require_history`.
        notes: sentences on what was assumed.
    """

    location: str
    base: Verdict | None
    deltas: tuple[Verdict, ...]
    originals: tuple[Entry, ...]
    verdicts: tuple[Verdict, ...]
    history_problem: Reason | None = None
    notes: tuple[str, ...] = ()

    def in_state(self, state: State) -> tuple[Verdict, ...]:
        """The verdicts of one state, in display order."""
        return tuple(verdict for verdict in self.verdicts if verdict.state is state)

    @property
    def current_names(self) -> frozenset[str]:
        return frozenset(verdict.name for verdict in self.in_state(State.CURRENT))

    @property
    def max_write_id(self) -> int:
        """The highest write id of the base and the current deltas; 0 when there is none."""
        ids = [v.directory.max_write_id for v in (self.base, *self.deltas) if v and v.directory]
        return max([0, *ids])

    def require_history(self) -> None:
        """Refuse to read where Hive refuses.

        Raises:
            HistoryError: there is no base that this snapshot may use and the oldest is compacted (section 6.2).
        """
        if self.history_problem:
            raise HistoryError(
                f"not enough history available in {self.location}",
                self.history_problem.text,
                "use a newer snapshot: a higher high watermark, without the open write ids below the base",
            )


_ENTRY_KINDS = {kind: EntryKind(kind.value) for kind in Kind}


@dataclass(slots=True)
class _Selection:
    """Verdicts by name while the rules run; each name gets exactly one."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    formats: Mapping[str, BaseFormat]
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def set(self, directory: AcidDirectory, state: State, reason: Reason) -> None:
        self.verdicts[directory.name] = Verdict(
            directory.name, _ENTRY_KINDS[directory.kind], state, reason, directory, self.is_compacted(directory)
        )

    def is_compacted(self, directory: AcidDirectory) -> bool:
        return directory.visibility_txn > 0 or self.formats.get(directory.name) is BaseFormat.COMPACTED

    def is_usable(self, directory: AcidDirectory) -> bool:
        """Whether its visibility transaction is committed; gives the verdict when it is not (section 6.1)."""
        txn = directory.visibility_txn
        if not txn or self.txns is None or self.txns.is_valid(txn):
            return True
        if self.txns.is_aborted(txn):
            reason = Reason("visibility-aborted", f"the compaction's transaction {txn} is aborted", ids=(txn,))
            self.set(directory, State.ABORTED, reason)
        else:
            what = "is open" if txn <= self.txns.high_watermark else "is above the transactions this snapshot knows"
            self.set(directory, State.IGNORED, Reason("visibility-open", f"transaction {txn} {what}", ids=(txn,)))
        return False


def select(
    listing: Listing,
    write_ids: ValidWriteIds | None = None,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
    *,
    without: frozenset[str] = frozenset(),
) -> AcidState:
    """What Hive's getAcidState decides for one location.

    Args:
        listing: everything below the location; directories need not be listed when a file below them is.
        write_ids: the snapshot's write ids; None counts everything on disk as committed.
        txns: decides which ``_v`` directories are visible; None counts every one as committed.
        base_formats: the content of ``_metadata_acid`` by the name of the base that holds it.
        without: names that are ignored, as if they were not there; see :mod:`acidctl.acid.past`.
    """
    selection = _Selection(write_ids or ValidWriteIds(), txns, base_formats or {})
    children = _children(listing)
    directories: list[AcidDirectory] = []
    originals: list[str] = []
    for name, is_dir in children.items():
        parsed = _classify(name, is_dir, selection)
        if parsed is not None and name in without:
            selection.set(parsed, State.IGNORED, Reason("left-out", "it holds rows of newer write ids"))
        elif parsed is not None:
            directories.append(parsed)
        elif name not in selection.verdicts:
            originals.append(name)

    bases = [d for d in directories if d.kind is Kind.BASE]
    best, problem = _choose_base(bases, selection)
    deltas = _choose_deltas([d for d in directories if d.kind is not Kind.BASE], best, selection)
    _judge_originals(originals, best, selection)

    verdicts = selection.verdicts
    files = () if best else _original_files(listing, frozenset(originals))
    return AcidState(
        location=listing.location,
        base=verdicts[best.name] if best else None,
        deltas=tuple(verdicts[d.name] for d in deltas),
        originals=files,
        verdicts=tuple(sorted(verdicts.values(), key=_display_order)),
        history_problem=problem,
        notes=_notes(selection, directories, write_ids is None),
    )


def _children(listing: Listing) -> dict[str, bool]:
    """Direct children with whether they are directories, sorted by name."""
    children: dict[str, bool] = {}
    for entry in listing.entries:
        name, slash, _ = entry.path.partition("/")
        children[name] = children.get(name, False) or bool(slash) or entry.is_dir
    return dict(sorted(children.items()))


_OWN = {
    ".acidctl-lock": "the lock of a run of acidctl",
    ".acidctl-trash": "what cleanings of acidctl took away",
    ".acidctl-backup": "what repairs of acidctl replaced",
}
"""What acidctl itself keeps hidden in a location."""


def _classify(name: str, is_dir: bool, selection: _Selection) -> AcidDirectory | None:
    """The parsed ACID directory; else None, with a verdict already given unless it is an original."""
    verdicts = selection.verdicts
    if is_hidden(name):
        kind = EntryKind.STAGING if is_staging(name) else EntryKind.OTHER
        verdicts[name] = Verdict(
            name, kind, State.IGNORED, Reason("hidden", _OWN.get(name, "hidden names are not data"))
        )
        return None
    if not is_dir:
        return None
    if parse_partition(name):
        reason = Reason("partition", "a partition is a location of its own")
        verdicts[name] = Verdict(name, EntryKind.OTHER, State.IGNORED, reason)
        return None
    try:
        parsed = parse_directory(name)
        if parsed and parsed.kind is Kind.BASE and parsed.max_write_id < 0 and parsed.max_write_id != MINL:
            raise AcidNameError(name, f"no write id is {parsed.max_write_id}")
        return parsed
    except AcidNameError as error:
        kind = EntryKind(name[: name.index("_", 7 if name.startswith("delete_") else 0)])
        verdicts[name] = Verdict(name, kind, State.IGNORED, Reason("unparseable", f"{error.why}; Hive fails on it"))
        return None


# --- bases (section 6.2) -------------------------------------------------------------------------------------------


def _choose_base(bases: list[AcidDirectory], selection: _Selection) -> tuple[AcidDirectory | None, Reason | None]:
    usable = [base for base in bases if selection.is_usable(base)]
    candidates = [base for base in usable if not _is_aborted_overwrite(base, selection)]
    valid = [base for base in candidates if _base_refusal(base, selection) is None]
    # On equal write ids a compacted base wins over INSERT OVERWRITE's (HIVE-25777), then the later compaction.
    best = max(
        valid,
        key=lambda b: (b.max_write_id, selection.is_compacted(b), b.visibility_txn, b.name),
        default=None,
    )
    for base in candidates:
        refusal = _base_refusal(base, selection)
        if best is base:
            continue
        below = best is not None and base.max_write_id < best.max_write_id
        if best and (below or (refusal is None and base.max_write_id == best.max_write_id)):
            reason = Reason("superseded-by-base", f"readers use {best.name}", by=(best.name,))
            selection.set(base, State.OBSOLETE, reason)
        elif refusal:
            selection.set(base, State.IGNORED, refusal)
    if best:
        text = f"the newest of {len(valid)} usable bases" if len(valid) > 1 else "the base that readers use"
        selection.set(best, State.CURRENT, Reason("chosen-base", text))
        return best, None
    return None, _history_problem(usable, selection)


def _is_aborted_overwrite(base: AcidDirectory, selection: _Selection) -> bool:
    if selection.is_compacted(base) or not selection.write_ids.is_aborted(base.max_write_id):
        return False
    reason = Reason("write-id-aborted", f"write id {base.max_write_id} is aborted", ids=(base.max_write_id,))
    selection.set(base, State.ABORTED, reason)
    return True


def _base_refusal(base: AcidDirectory, selection: _Selection) -> Reason | None:
    """Why this snapshot may not use a base; None when it may."""
    ids, wid = selection.write_ids, base.max_write_id
    if wid == MINL:
        return None  # made of original files alone: valid for every snapshot (section 1.2)
    if wid > ids.high_watermark:
        return Reason(
            "above-high-watermark", f"write id {wid} is above the high watermark {ids.high_watermark}", ids=(wid,)
        )
    if selection.is_compacted(base):
        if ids.is_valid_base(wid):
            return None
        text = f"write id {ids.min_open} is open and a compaction up to {wid} destroyed its history"
        return Reason("open-below-base", text, ids=(ids.min_open,))
    if ids.is_valid(wid):
        return None
    return Reason("write-id-open", f"write id {wid} is open", ids=(wid,))


def _history_problem(usable: list[AcidDirectory], selection: _Selection) -> Reason | None:
    oldest = min(usable, key=lambda b: (b.max_write_id, not selection.is_compacted(b)), default=None)
    if oldest is None or not selection.is_compacted(oldest):
        return None
    ids = selection.write_ids
    exceptions = ids.exceptions
    first = str(exceptions[0]) if exceptions else "none"
    return Reason(
        "not-enough-history",
        f"the oldest base {oldest.name} is a compaction that this snapshot may not use "
        f"(high watermark {ids.high_watermark}, first uncommitted write id {first})",
        by=(oldest.name,),
        ids=exceptions[:1],
    )


# --- deltas (section 6.3) ------------------------------------------------------------------------------------------


def _choose_deltas(
    deltas: list[AcidDirectory], best: AcidDirectory | None, selection: _Selection
) -> list[AcidDirectory]:
    working = [delta for delta in deltas if selection.is_usable(delta) and _has_valid_ids(delta, selection)]
    working.sort(key=_merge_order)
    current, last_statement = best.max_write_id if best else 0, NO_STATEMENT
    previous: AcidDirectory | None = None
    covering: AcidDirectory | None = None
    taken: list[AcidDirectory] = []
    for delta in working:
        if delta.max_write_id > current:
            if selection.write_ids.range_valid(current + 1, delta.max_write_id) is Range.NONE:
                # Hive drops such a delta silently: it may not be cleaned either.
                text = f"of its write ids none above {current} is committed"
                selection.set(delta, State.IGNORED, Reason("adds-nothing", text))
                continue
            current, last_statement, covering = delta.max_write_id, delta.statement_id, delta
        elif delta.max_write_id == current and last_statement != NO_STATEMENT:
            pass  # a further statement of the same write id, or its delete delta
        elif previous and _same_range(delta, previous) and not _recompacted_by(delta, taken):
            pass  # the delete delta's twin, neither with a statement id
        else:
            reason = _superseded(delta, best, _recompacted_by(delta, taken) or _twin_of(covering, delta, taken))
            selection.set(delta, State.OBSOLETE, reason)
            continue
        taken.append(delta)
        previous = delta
        selection.set(delta, State.CURRENT, _current_reason(delta, selection))
    return taken


def _has_valid_ids(delta: AcidDirectory, selection: _Selection) -> bool:
    ids, low, high = selection.write_ids, delta.min_write_id, delta.max_write_id
    if low > high:
        reason = Reason("unparseable", f"its first write id {low} is above its last {high}")
        selection.set(delta, State.IGNORED, reason)
        return False
    aborted = ids.range_aborted(low, high)
    if aborted is Range.ALL:
        text = f"write id {low} is aborted" if low == high else f"all write ids {low} to {high} are aborted"
        selection.set(delta, State.ABORTED, Reason("write-id-aborted", text, ids=(low, high)))
        return False
    if ids.range_valid(low, high) is not Range.NONE:
        return True
    if high > ids.high_watermark:
        text = f"write id {high} is above the high watermark {ids.high_watermark}"
        selection.set(delta, State.IGNORED, Reason("above-high-watermark", text, ids=(high,)))
    else:
        text = f"write id {low} is open" if low == high else f"no write id of {low} to {high} is committed"
        selection.set(delta, State.IGNORED, Reason("write-id-open", text, ids=(low, high)))
    return False


def _merge_order(delta: AcidDirectory) -> tuple[int, int, int, bool, int, str]:
    """Wider ranges first, then statements; a delete delta before its twin, as the path order of Hive has it.

    Of directories that differ in their visibility id only the latest compaction counts, so it comes first; Hive
    itself takes both and returns rows twice (section 6.3 note e), Impala does as we do.
    """
    return (
        delta.min_write_id,
        -delta.max_write_id,
        delta.statement_id,
        delta.kind is Kind.DELTA,
        -delta.visibility_txn,
        delta.name,
    )


def _same_range(one: AcidDirectory, other: AcidDirectory) -> bool:
    return (one.min_write_id, one.max_write_id, one.statement_id) == (
        other.min_write_id,
        other.max_write_id,
        other.statement_id,
    )


def _recompacted_by(delta: AcidDirectory, taken: list[AcidDirectory]) -> AcidDirectory | None:
    """The twin of the same kind and range that is taken already with a later visibility id."""
    return next(
        (
            other
            for other in reversed(taken[-2:])
            if _same_range(delta, other) and delta.kind is other.kind and delta.visibility_txn < other.visibility_txn
        ),
        None,
    )


def _twin_of(covering: AcidDirectory | None, delta: AcidDirectory, taken: list[AcidDirectory]) -> AcidDirectory | None:
    """Of the two directories of a covering range the one of the same kind, if it is there."""
    twins = (other for other in taken if covering and _same_range(covering, other) and other.kind is delta.kind)
    return next(twins, covering)


def _superseded(delta: AcidDirectory, best: AcidDirectory | None, covering: AcidDirectory | None) -> Reason:
    if best and delta.max_write_id <= best.max_write_id:
        return Reason("superseded-by-base", f"its write ids are in {best.name}", by=(best.name,))
    if covering:
        return Reason("superseded-by-delta", f"its write ids are in {covering.name}", by=(covering.name,))
    return Reason("superseded-by-base", "write id 0 is before every delta")


_COMMITTED = Reason("committed", "committed")


def _current_reason(delta: AcidDirectory, selection: _Selection) -> Reason:
    ids, low, high = selection.write_ids, delta.min_write_id, delta.max_write_id
    if ids.range_valid(low, high) is Range.SOME:
        invalid = tuple(i for i in ids.exceptions if low <= i <= high)
        text = "read, less the rows of write ids that are not committed"
        return Reason("partly-committed", text, ids=invalid)
    return _COMMITTED


# --- originals (section 5.1) and the rest -----------------------------------------------------------------------------


def _judge_originals(names: list[str], best: AcidDirectory | None, selection: _Selection) -> None:
    for name in names:
        if best:
            reason = Reason("superseded-by-base", f"its rows are in {best.name}", by=(best.name,))
            verdict = Verdict(name, EntryKind.ORIGINAL, State.OBSOLETE, reason)
        else:
            reason = Reason("original", "written before the table was ACID, and no base holds its rows yet")
            verdict = Verdict(name, EntryKind.ORIGINAL, State.CURRENT, reason)
        selection.verdicts[name] = verdict


def _original_files(listing: Listing, names: frozenset[str]) -> tuple[Entry, ...]:
    files = [
        entry
        for entry in listing.entries
        if not entry.is_dir
        and entry.path.partition("/")[0] in names
        and is_visible_path(entry.path)
        # Never what lies below an ACID directory of some other, nested table (section 5.1).
        and not any(part.startswith(ACID_PREFIXES) for part in entry.path.split("/")[1:-1])
    ]
    return tuple(sorted(files, key=lambda entry: entry.path))


_KIND_ORDER = {
    EntryKind.BASE: 0,
    EntryKind.DELTA: 1,
    EntryKind.DELETE_DELTA: 1,
    EntryKind.ORIGINAL: 2,
    EntryKind.OTHER: 3,
    EntryKind.STAGING: 4,
}


def _display_order(verdict: Verdict) -> tuple[int, int, int, int, str]:
    directory = verdict.directory
    if directory is None:
        return (_KIND_ORDER[verdict.kind], 0, 0, 0, verdict.name)
    return (
        _KIND_ORDER[verdict.kind],
        directory.min_write_id,
        -directory.max_write_id,
        directory.statement_id,
        verdict.name,
    )


def _notes(selection: _Selection, directories: list[AcidDirectory], everything: bool) -> tuple[str, ...]:
    notes = []
    if everything:
        notes.append("no write-id list was given: every write id on disk counts as committed")
    if selection.txns is None and any(directory.visibility_txn for directory in directories):
        notes.append("no transaction list was given: every _v directory counts as committed")
    return tuple(notes)


def base_metadata(listing: Listing) -> list[Entry]:
    """The ``_metadata_acid`` files whose content :func:`select` needs.

    Bases with a visibility id are compacted by their name; their metadata need not be read (section 6.2).
    """
    files = []
    for entry in listing.entries:
        name, _, rest = entry.path.partition("/")
        if rest == METADATA_ACID and name.startswith("base_") and "_v" not in name:
            files.append(entry)
    return files
