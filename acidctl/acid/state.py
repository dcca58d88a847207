"""Snapshot selection: computes the state of a location from a listing and a snapshot (format section 6).

The result does not depend on the listing's order. Every verdict carries its :class:`Reason`; nothing else in
acidctl decides what is current, obsolete or aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from acidctl.acid.listing import Entry, Listing, TableType
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
    parse_file,
    parse_partition,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.writeids import Range, ValidTxns, ValidWriteIds


class State(StrEnum):
    """The verdict on one child of a location."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"


class EntryKind(StrEnum):
    """The kinds of children of a location."""

    BASE = "base"
    DELTA = "delta"
    DELETE_DELTA = "delete_delta"
    ORIGINAL = "original"
    STAGING = "staging"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One direct child of the location, with its kind and its state."""

    name: str
    kind: EntryKind
    state: State
    reason: Reason
    directory: AcidDirectory | None = None
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class AcidState:
    """The state of one location, as a reader of one snapshot sees it.

    Attributes:
        base: the chosen base, or None.
        deltas: current deltas and delete deltas in the order Hive reads them.
        originals: original files to read, sorted by path (section 5.1: their row ids depend on this order), including
            files of length 0; empty if there is a base.
        verdicts: every direct child, ordered for display: bases, deltas, originals, the rest.
        history_problem: set if the snapshot needs history that a compaction destroyed (section 6.2): there is no
            base that it may use, and the oldest is compacted. Hive refuses to read it.
        notes: what was assumed.
    """

    location: str
    base: Verdict | None
    deltas: tuple[Verdict, ...]
    originals: tuple[Entry, ...]
    verdicts: tuple[Verdict, ...]
    history_problem: Reason | None = None
    notes: tuple[Reason, ...] = ()

    def __repr__(self) -> str:
        base = self.base.name if self.base else "no base"
        return f"<state of {self.location}: {base}, {len(self.deltas):,} deltas, {len(self.verdicts):,} entries>"

    def in_state(self, state: State) -> tuple[Verdict, ...]:
        """Return the verdicts of one state, in display order."""
        return tuple(verdict for verdict in self.verdicts if verdict.state is state)

    @property
    def removable(self) -> tuple[Verdict, ...]:
        """Return the obsolete and aborted children, in display order."""
        return tuple(verdict for verdict in self.verdicts if verdict.state in (State.OBSOLETE, State.ABORTED))

    @property
    def current_names(self) -> frozenset[str]:
        return frozenset(verdict.name for verdict in self.in_state(State.CURRENT))

    @property
    def max_write_id(self) -> int:
        """Return the highest write id of the base and the current deltas; 0 if there is none."""
        ids = [v.directory.max_write_id for v in (self.base, *self.deltas) if v and v.directory]
        return max([0, *ids])


_ENTRY_KINDS = {kind: EntryKind(kind.value) for kind in Kind}


@dataclass(slots=True)
class _Selection:
    """The verdicts by name while the rules run; each name gets exactly one."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    formats: Mapping[str, BaseFormat]
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def set(self, directory: AcidDirectory, state: State, why: Reason) -> None:
        self.verdicts[directory.name] = Verdict(
            directory.name, _ENTRY_KINDS[directory.kind], state, why, directory, self.is_compacted(directory)
        )

    def is_compacted(self, directory: AcidDirectory) -> bool:
        return directory.visibility_txn > 0 or self.formats.get(directory.name) is BaseFormat.COMPACTED

    def is_usable(self, directory: AcidDirectory) -> bool:
        """Return whether its visibility transaction is committed; set the verdict if it is not (section 6.1)."""
        txn = directory.visibility_txn
        if not txn or self.txns is None or self.txns.is_valid(txn):
            return True
        if self.txns.is_aborted(txn):
            self.set(directory, State.ABORTED, reason(Code.VISIBILITY_ABORTED, ids=(txn,)))
        else:
            how = "above" if txn > self.txns.high_watermark else "open"
            self.set(directory, State.IGNORED, reason(Code.VISIBILITY_OPEN, ids=(txn,), how=how))
        return False


def select(
    listing: Listing,
    write_ids: ValidWriteIds | None = None,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
    *,
    without: frozenset[str] = frozenset(),
) -> AcidState:
    """Decide what Hive's getAcidState decides for one location.

    Args:
        listing: everything below the location; directories need not be listed if a file below them is.
        write_ids: the snapshot's write ids; None counts everything on disk as committed.
        txns: decides which ``_v`` directories are visible; None counts every one as committed.
        base_formats: the content of ``_metadata_acid`` by the name of the base that holds it.
        without: names to ignore as if they did not exist; see :mod:`acidctl.acid.time_travel`.
    """
    selection = _Selection(write_ids or ValidWriteIds(), txns, base_formats or {})
    children = _children(listing)
    directories: list[AcidDirectory] = []
    originals: list[str] = []
    for name, is_dir in children.items():
        parsed = _classify(name, is_dir, selection)
        if parsed is not None and name in without:
            selection.set(parsed, State.IGNORED, reason(Code.LEFT_OUT))
        elif parsed is not None:
            directories.append(parsed)
        elif name not in selection.verdicts:
            originals.append(name)

    bases = [d for d in directories if d.kind is Kind.BASE]
    best, problem = _choose_base(bases, selection)
    deltas = _choose_deltas([d for d in directories if d.kind is not Kind.BASE], best, selection)
    reads_originals = listing.table_type is not TableType.INSERT_ONLY
    files = _original_files(listing, frozenset(originals)) if reads_originals and originals else ()
    how = "before" if directories else "alone"
    _judge_originals(originals, best, selection, _strays(files, directories), how, reads_originals=reads_originals)

    verdicts = selection.verdicts
    return AcidState(
        location=listing.location,
        base=verdicts[best.name] if best else None,
        deltas=tuple(verdicts[d.name] for d in deltas),
        originals=() if best else files,
        verdicts=tuple(sorted(verdicts.values(), key=_display_order)),
        history_problem=problem,
        notes=_notes(selection, directories, write_ids is None),
    )


@dataclass(frozen=True, slots=True)
class Lists:
    """They decide, together with the listing, which state a location has; see :func:`select`."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    base_formats: Mapping[str, BaseFormat]

    def select(self, listing: Listing, *, without: frozenset[str] = frozenset()) -> AcidState:
        """Return the state of a listing; see :func:`select`."""
        return select(listing, self.write_ids, self.txns, self.base_formats, without=without)

    def for_cleaner(self) -> Lists:
        """Return the cleaner's lists (section 10), ending at the high watermark and below the oldest open transaction.

        A query of that open transaction does not see what was committed after it began. Without given lists, the
        reader's lists serve the cleaner as well.
        """
        txns = self.txns
        if txns is None and self.write_ids.is_everything:
            return self
        if txns is not None:
            oldest = min((txns.min_open, *txns.open[:1]))
            txns = replace(txns, high_watermark=min(txns.high_watermark, oldest - 1))
        return replace(self, write_ids=self.write_ids.for_cleaner(), txns=txns)


def _children(listing: Listing) -> dict[str, bool]:
    """Return the direct children, sorted by name, and whether they are directories."""
    children: dict[str, bool] = {}
    for entry in listing.entries:
        name, slash, _ = entry.path.partition("/")
        children[name] = children.get(name, False) or bool(slash) or entry.is_dir
    return dict(sorted(children.items()))


def _classify(name: str, is_dir: bool, selection: _Selection) -> AcidDirectory | None:
    """Return the parsed ACID directory; else None, with a verdict already set unless it is an original."""
    verdicts = selection.verdicts
    if is_hidden(name):
        kind = EntryKind.STAGING if is_staging(name) else EntryKind.OTHER
        verdicts[name] = Verdict(name, kind, State.IGNORED, reason(Code.HIDDEN, name=name))
        return None
    if not is_dir:
        return None
    if parse_partition(name):
        verdicts[name] = Verdict(name, EntryKind.OTHER, State.IGNORED, reason(Code.PARTITION))
        return None
    try:
        parsed = parse_directory(name)
        if parsed and parsed.kind is Kind.BASE and parsed.max_write_id < 0 and parsed.max_write_id != MINL:
            raise AcidNameError(name, f"no write id is {parsed.max_write_id}")
        return parsed
    except AcidNameError as error:
        kind = EntryKind(name[: name.index("_", 7 if name.startswith("delete_") else 0)])
        verdicts[name] = Verdict(name, kind, State.IGNORED, reason(Code.UNPARSEABLE, why=error.why))
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
            superseded = reason(Code.SUPERSEDED_BY_BASE, by=(best.name,), how="base")
            selection.set(base, State.OBSOLETE, superseded)
        elif refusal:
            selection.set(base, State.IGNORED, refusal)
    if best:
        selection.set(
            best, State.CURRENT, reason(Code.IS_READ, usable=len(valid), how="newest" if len(valid) > 1 else "base")
        )
        return best, None
    return None, _history_problem(usable, selection)


def _is_aborted_overwrite(base: AcidDirectory, selection: _Selection) -> bool:
    if selection.is_compacted(base) or not selection.write_ids.is_aborted(base.max_write_id):
        return False
    selection.set(base, State.ABORTED, reason(Code.WRITE_ID_ABORTED, ids=(base.max_write_id,)))
    return True


def _base_refusal(base: AcidDirectory, selection: _Selection) -> Reason | None:
    """Return why this snapshot may not use a base; None if it may."""
    ids, wid = selection.write_ids, base.max_write_id
    if wid == MINL:
        return None  # made of original files alone: valid for every snapshot (section 1.2)
    if wid > ids.high_watermark:
        return reason(Code.ABOVE_HIGH_WATERMARK, ids=(wid,), high_watermark=ids.high_watermark)
    if selection.is_compacted(base):
        if ids.is_valid_base(wid):
            return None
        return reason(Code.OPEN_BELOW_BASE, ids=(ids.min_open,), base=wid)
    if ids.is_valid(wid):
        return None
    return reason(Code.WRITE_ID_OPEN, ids=(wid,))


def _history_problem(usable: list[AcidDirectory], selection: _Selection) -> Reason | None:
    oldest = min(usable, key=lambda b: (b.max_write_id, not selection.is_compacted(b)), default=None)
    if oldest is None or not selection.is_compacted(oldest):
        return None
    ids = selection.write_ids
    return reason(Code.NOT_ENOUGH_HISTORY, by=(oldest.name,), ids=ids.exceptions[:1], high_watermark=ids.high_watermark)


def with_reasons(state: AcidState, reasons: Iterable[Reason]) -> AcidState:
    """Give each ignored directory the reason that names it, if one does."""
    by_name = {name: why for why in reasons for name in why.by}
    verdicts = (
        replace(verdict, reason=by_name[verdict.name])
        if verdict.state is State.IGNORED and verdict.name in by_name
        else verdict
        for verdict in state.verdicts
    )
    return replace(state, verdicts=tuple(verdicts))


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
    twins: dict[tuple[Kind, tuple[int, int], int], AcidDirectory] = {}  # the first directory taken for each
    for delta in working:
        if delta.max_write_id > current:
            if selection.write_ids.range_valid(current + 1, delta.max_write_id) is Range.NONE:
                # Hive skips such a delta silently; it must not be cleaned, either.
                selection.set(delta, State.IGNORED, reason(Code.ADDS_NOTHING, above=current))
                continue
            current, last_statement, covering = delta.max_write_id, delta.statement_id, delta
        elif delta.max_write_id == current and last_statement != NO_STATEMENT:
            pass  # a further statement of the same write id, or its delete delta
        elif previous and _same_range(delta, previous) and not _recompacted_by(delta, taken):
            pass  # the delete delta's twin, neither with a statement id
        else:
            covered_by = _recompacted_by(delta, taken)
            if covering and not covered_by:  # by the directory of its own kind, if the range has two
                covered_by = twins.get((delta.kind, covering.range, covering.statement_id), covering)
            selection.set(delta, State.OBSOLETE, _superseded(delta, best, covered_by))
            continue
        taken.append(delta)
        twins.setdefault((delta.kind, delta.range, delta.statement_id), delta)
        previous = delta
        selection.set(delta, State.CURRENT, _current_reason(delta, selection))
    return taken


def _has_valid_ids(delta: AcidDirectory, selection: _Selection) -> bool:
    ids, low, high = selection.write_ids, delta.min_write_id, delta.max_write_id
    state = State.IGNORED
    if low > high:
        why = reason(Code.UNPARSEABLE, ids=(low, high))
    elif ids.range_aborted(low, high) is Range.ALL:
        state, why = State.ABORTED, reason(Code.WRITE_ID_ABORTED, ids=(low, high))
    elif ids.range_valid(low, high) is not Range.NONE:
        return True
    elif high > ids.high_watermark:
        why = reason(Code.ABOVE_HIGH_WATERMARK, ids=(high,), high_watermark=ids.high_watermark)
    else:
        why = reason(Code.WRITE_ID_OPEN, ids=(low, high))
    selection.set(delta, state, why)
    return False


def _merge_order(delta: AcidDirectory) -> tuple[int, int, int, bool, int, str]:
    """Return a sort key: wider ranges first, then statements; a delete delta before its twin, as in Hive.

    If directories differ only in their visibility id, the latest compaction counts, so it comes first; Hive itself
    reads both and returns rows twice (section 6.3 note e), Impala behaves like acidctl.
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
    return (one.range, one.statement_id) == (other.range, other.statement_id)


def _recompacted_by(delta: AcidDirectory, taken: list[AcidDirectory]) -> AcidDirectory | None:
    """Return the twin of the same kind and range that was already taken with a later visibility id."""
    later = (other for other in reversed(taken[-2:]) if delta.visibility_txn < other.visibility_txn)
    return next((other for other in later if _same_range(delta, other) and delta.kind is other.kind), None)


def _superseded(delta: AcidDirectory, best: AcidDirectory | None, covering: AcidDirectory | None) -> Reason:
    if best and delta.max_write_id <= best.max_write_id:
        return reason(Code.SUPERSEDED_BY_BASE, by=(best.name,), how="delta")
    if covering:
        return reason(Code.SUPERSEDED_BY_DELTA, by=(covering.name,))
    return reason(Code.SUPERSEDED_BY_BASE, how="zero")  # write id 0 is before every delta


_COMMITTED = reason(Code.IS_READ, how="committed")


def _current_reason(delta: AcidDirectory, selection: _Selection) -> Reason:
    ids, low, high = selection.write_ids, delta.min_write_id, delta.max_write_id
    if ids.range_valid(low, high) is Range.SOME:
        return reason(Code.PARTLY_COMMITTED, ids=ids.exceptions_in(low, high))
    return _COMMITTED


# --- originals (section 5.1) and the rest -----------------------------------------------------------------------------


def _judge_originals(
    names: list[str],
    best: AcidDirectory | None,
    selection: _Selection,
    strays: Mapping[str, str],
    how: str,
    *,
    reads_originals: bool,
) -> None:
    state, why = State.CURRENT, reason(Code.ORIGINAL, how=how)
    if not reads_originals:  # hive.mm.allow.originals is false by default (section 11)
        state, why = State.IGNORED, reason(Code.BESIDE_DIRECTORIES)
    elif best:
        state, why = State.OBSOLETE, reason(Code.SUPERSEDED_BY_BASE, by=(best.name,), how="original")
    for name in names:
        own_why = why
        if name in strays:
            own_why = reason(
                Code.ORIGINAL_WITHOUT_BUCKET, by=why.by, path=strays[name], how="beside" if why.by else "read"
            )
        selection.verdicts[name] = Verdict(name, EntryKind.ORIGINAL, state, own_why)


def _strays(files: Iterable[Entry], directories: Iterable[AcidDirectory]) -> dict[str, str]:
    """Find children beside ACID directories that are, or hold, a file without a bucket number in its name.

    Returns:
        The first such file of each child, by the child's name. Hive fails on it in ACID tables, unless it is empty.
    """
    strays: dict[str, str] = {}
    for entry in files if directories else ():
        if entry.size and parse_file(entry.path.rpartition("/")[2]) is None:
            strays.setdefault(entry.path.partition("/")[0], entry.path)
    return strays


def _original_files(listing: Listing, names: frozenset[str]) -> tuple[Entry, ...]:
    files = [
        entry
        for entry in listing.entries
        if not entry.is_dir
        and entry.path.partition("/")[0] in names
        and is_visible_path(entry.path)
        # An ACID directory deeper down belongs to another, nested table (section 5.1).
        and not any(part.startswith(ACID_PREFIXES) for part in entry.path.split("/")[1:-1])
    ]
    return tuple(sorted(files, key=lambda entry: entry.path))


_KIND_ORDER = {"base": 0, "delta": 1, "delete_delta": 1, "original": 2, "other": 3, "staging": 4}


def _display_order(verdict: Verdict) -> tuple[int, int, int, int, str]:
    d = verdict.directory
    ids = (d.min_write_id, -d.max_write_id, d.statement_id) if d else (0, 0, 0)
    return (_KIND_ORDER[verdict.kind], *ids, verdict.name)


def _notes(selection: _Selection, directories: list[AcidDirectory], everything: bool) -> tuple[Reason, ...]:
    notes = []
    if everything:
        notes.append(reason(Code.ASSUMED_COMMITTED, how="write-ids"))
    if selection.txns is None and any(directory.visibility_txn for directory in directories):
        notes.append(reason(Code.ASSUMED_COMMITTED, how="transactions"))
    return tuple(notes)


def base_metadata(listing: Listing) -> list[Entry]:
    """Return the ``_metadata_acid`` files whose content :func:`select` needs.

    Bases with a visibility id are compacted by their name; their metadata need not be read (section 6.2).
    """
    return [
        entry
        for entry in listing.entries
        if entry.path.startswith("base_") and entry.path.partition("/")[2] == METADATA_ACID and "_v" not in entry.path
    ]
