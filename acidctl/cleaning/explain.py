"""Proofs of verdicts: what decided each, with the ids and names, and what must happen before cleaning may take it.

Nothing is decided here. Verdicts are those of :func:`acidctl.acid.state.select`; whether cleaning may take an entry
is what its planner answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MINL, AcidDirectory, Kind, manifest_for, parse_partition
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind, State, Verdict
from acidctl.acid.writeids import (
    IdRun,
    IdStatus,
    ValidTxns,
    ValidWriteIds,
    id_list_runs,
    of_status,
    txn_status,
    write_id_runs,
)
from acidctl.cleaning.leftovers import what_is_hidden
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.errors import HistoryError, RefusedError
from acidctl.location.change.publication import half_published
from acidctl.location.snapshot import Snapshot
from acidctl.one_line import one_line


class Topic(StrEnum):
    """What a step of a proof is about."""

    WHAT = "what"
    WRITE_IDS = "write-ids"
    TRANSACTION = "transaction"
    VERDICT = "verdict"
    READERS = "readers"
    CONTENT = "content"
    SNAPSHOT = "snapshot"
    BASE = "base"


class MayClean(StrEnum):
    """Whether cleaning may take an entry."""

    YES = "yes"
    KEPT_BACK = "kept-back"
    NO = "no"


@dataclass(frozen=True, slots=True)
class CleaningAnswer:
    """What the planner of cleanings said of a location.

    Attributes:
        removable: names that it would remove, leftovers among them.
        kept_back: names that are obsolete, aborted or leftovers but stay, with its reason.
        waiting: names that are too young, with its reason.
        refusal: why it makes no plan at all; None when there is a plan.
        hint: what to do about the refusal.
        unfinished: staging directories of a publication that was interrupted half-way.
    """

    removable: frozenset[str] = frozenset()
    kept_back: Mapping[str, Reason] = field(default_factory=dict)
    waiting: Mapping[str, Reason] = field(default_factory=dict)
    refusal: Reason | None = None
    hint: str = ""
    unfinished: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ProofInputs:
    """All that proofs are made from: a location, its state in one snapshot, and the cleaning's answer."""

    listing: Listing
    state: AcidState
    write_ids: ValidWriteIds
    txns: ValidTxns | None
    cleaning: CleaningAnswer

    @cached_property
    def by_name(self) -> Mapping[str, Verdict]:
        """The verdicts on the children of the location."""
        return {verdict.name: verdict for verdict in self.state.verdicts}


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One step of a proof.

    Attributes:
        names: entries it speaks of.
        ids: the write ids (transactions, where the topic is that) it rests on; a run once, by its first and last id.
    """

    topic: Topic
    reason: Reason
    names: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictProof:
    """Why one child of a location has its verdict.

    Attributes:
        write_ids: of its range, as runs; empty where it has none.
        txn: of its name's ``_v``, with what the snapshot knows of it; None where the name has none.
        may_clean, cleaning: whether and why cleaning may take it.
        next: what must happen before cleaning may take it, or what takes it; empty where nothing ever does.
    """

    __repr__ = one_line

    verdict: Verdict
    steps: tuple[ProofStep, ...]
    may_clean: MayClean
    cleaning: Reason
    next: tuple[Reason, ...] = ()
    write_ids: tuple[IdRun, ...] = ()
    txn: tuple[int, IdStatus] | None = None

    @property
    def name(self) -> str:
        return self.verdict.name

    @property
    def is_hidden(self) -> bool:
        """Whether it is none of the table's data."""
        return self.verdict.reason.code is Code.HIDDEN


def proof_inputs(snapshot: Snapshot) -> ProofInputs:
    """What proofs of a location are made from; what may be cleaned is asked of the planner of cleanings."""
    unfinished = frozenset(staging for staging, _ in half_published(snapshot))
    try:
        plan = plan_cleaning(snapshot, Policy(leftovers=True))
    except (HistoryError, RefusedError) as error:
        refusal = reason(Code.REFUSED, why=str(error))
        answer = CleaningAnswer(refusal=refusal, hint=error.hint, unfinished=unfinished)
    else:
        waiting = {one.name: one.reason for one in plan.waiting}
        answer = CleaningAnswer(frozenset(plan.names), dict(plan.kept_back), waiting, unfinished=unfinished)
    return ProofInputs(snapshot.listing, snapshot.state, snapshot.write_ids, snapshot.txns, answer)


def prove_all(evidence: ProofInputs) -> tuple[VerdictProof, ...]:
    """A proof for every child of the location, in the order of its verdicts."""
    children = evidence.listing.files_by_child
    return tuple(_proof(verdict, evidence, children) for verdict in evidence.state.verdicts)


def explain_history(evidence: ProofInputs) -> tuple[ProofStep, ...]:
    """Why the snapshot is refused for "not enough history", and which one would not be; empty when it is read."""
    problem, ids = evidence.state.history_problem, evidence.write_ids
    if problem is None:
        return ()
    opened, aborted = id_list_runs(ids.open, IdStatus.OPEN), id_list_runs(ids.aborted, IdStatus.ABORTED)
    known = reason(Code.LISTS, high_watermark=ids.high_watermark, open=opened, aborted=aborted)
    steps = [ProofStep(Topic.VERDICT, problem, problem.by, problem.ids), ProofStep(Topic.SNAPSHOT, known, ids=ids.open)]
    bases = (verdict for verdict in evidence.state.verdicts if verdict.kind is EntryKind.BASE)
    steps += [ProofStep(Topic.BASE, why_not_chosen(base, evidence), (base.name,)) for base in bases]
    for name in problem.by:
        oldest = evidence.by_name.get(name)
        if oldest and oldest.directory:
            steps.append(ProofStep(Topic.READERS, _readable_by(oldest, oldest.directory, (name,)), (name,)))
    return tuple(steps)


def why_not_chosen(base: Verdict, evidence: ProofInputs) -> Reason:
    """Of a base that the snapshot does not read: the reason with the ids."""
    best, directory = evidence.state.base, base.directory
    if directory and best and best.directory and base.state is State.OBSOLETE:
        by, reach = (best.name,), best.directory.max_write_id
        if directory.max_write_id != reach:
            return reason(Code.NOT_CHOSEN, by=by, mine=directory.max_write_id, reach=reach)
        code = Code.OTHER_OF_SAME_END if best.compacted and not base.compacted else Code.LATER_BASE
        return reason(code, by=by, ids=(reach,))
    if directory and base.reason.code is Code.OPEN_BELOW_BASE:
        runs = _blocking(directory, evidence)
        return reason(Code.OPEN_BELOW_BASE, ids=base.reason.ids, base=directory.max_write_id, runs=runs)
    return base.reason


def _blocking(directory: AcidDirectory, evidence: ProofInputs) -> tuple[IdRun, ...]:
    """The open write ids at or below a compacted base."""
    ids = evidence.write_ids
    below = tuple(id_ for id_ in ids.open if id_ <= directory.max_write_id)
    # A list may name its smallest open id without listing it (section 7.2).
    return id_list_runs(below or (ids.min_open,), IdStatus.OPEN)


# --- one entry ---------------------------------------------------------------------------------------------------


def _proof(verdict: Verdict, evidence: ProofInputs, children: Mapping[str, list[Entry]]) -> VerdictProof:
    directory = verdict.directory
    runs = _runs(verdict, evidence.write_ids)
    txn = None
    steps = [ProofStep(Topic.WHAT, _what(verdict))]
    if runs:
        blocked = of_status(runs, IdStatus.OPEN, IdStatus.ABORTED, IdStatus.ABOVE)
        ends = tuple(dict.fromkeys(id_ for run in blocked for id_ in (run.first, run.last)))
        known = reason(Code.WRITE_IDS, runs=runs, is_everything=evidence.write_ids.is_everything)
        steps.append(ProofStep(Topic.WRITE_IDS, known, ids=ends))
    if directory and directory.visibility_txn:
        txn = (directory.visibility_txn, txn_status(evidence.txns, directory.visibility_txn))
        step = reason(Code.TRANSACTION, ids=txn[:1], status=txn[1])
        steps.append(ProofStep(Topic.TRANSACTION, step, ids=txn[:1]))
    decided = _decided(verdict, runs, evidence)
    if verdict.state is State.CURRENT and evidence.state.history_problem:
        decided = reason(Code.READ_BUT_REFUSED, decided)
    steps.append(ProofStep(Topic.VERDICT, decided, verdict.reason.by, verdict.reason.ids))
    if directory and directory.kind is Kind.BASE and verdict.state is State.IGNORED:
        steps.append(ProofStep(Topic.READERS, _readable_by(verdict, directory)))
    if verdict.kind is EntryKind.STAGING and verdict.name in children:  # some are listed without what is below
        steps.append(ProofStep(Topic.CONTENT, _content(children[verdict.name])))
    may, cleaning = _may_clean(verdict, evidence)
    then = tuple(_next(verdict, runs, evidence))
    return VerdictProof(verdict, tuple(steps), may, cleaning, then, runs, txn)


def _runs(verdict: Verdict, ids: ValidWriteIds) -> tuple[IdRun, ...]:
    """Of a compacted base all from the first on, as it holds them; of any other directory those of its name."""
    directory = verdict.directory
    if directory is None or directory.max_write_id < max(0, directory.min_write_id):
        return ()
    low = directory.min_write_id
    if verdict.compacted and directory.kind is Kind.BASE:
        low = min(1, directory.max_write_id)
    return write_id_runs(ids, low, directory.max_write_id)


def _content(files: list[Entry]) -> Reason:
    """Of a leftover: how much it holds, and when it changed last, which tells whether somebody is at work."""
    newest = max((entry.modified for entry in files if entry.modified is not None), default=None)
    return reason(Code.CONTENT, files=len(files), bytes=sum(entry.size for entry in files), newest=newest)


def _what(verdict: Verdict) -> Reason:
    directory = verdict.directory
    if directory is None:
        if verdict.kind is EntryKind.STAGING:
            return reason(what_is_hidden(verdict.name), target=manifest_for(verdict.name))
        if parse_partition(verdict.name):
            return reason(Code.PARTITION)
        if verdict.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
            return reason(Code.NOT_ACID)
        return reason(Code.PRE_ACID_ROWS if verdict.kind is EntryKind.ORIGINAL else Code.NOT_ACID)
    if directory.kind is not Kind.BASE:
        return reason(Code.EVENTS, directory=directory, compacted=verdict.compacted)
    if directory.max_write_id == MINL:
        return reason(Code.BASE_OF_ORIGINALS)
    return reason(Code.COMPACTED_BASE if verdict.compacted else Code.UNMARKED, ids=(directory.max_write_id,))


def _decided(verdict: Verdict, runs: tuple[IdRun, ...], evidence: ProofInputs) -> Reason:
    """The reason of the verdict, with more of what it rests on."""
    why, directory, state = verdict.reason, verdict.directory, verdict.state
    if verdict.kind is EntryKind.BASE and state in (State.OBSOLETE, State.IGNORED):
        return why_not_chosen(verdict, evidence)
    if state is State.OBSOLETE and why.by and why.code is not Code.ORIGINAL_WITHOUT_BUCKET:
        by = evidence.by_name.get(why.by[0])
        replaced = by is not None and by.kind is EntryKind.BASE and not by.compacted
        return reason(Code.HELD_BY, by=why.by, directory=directory, wide=by and by.directory, replaced=replaced)
    if state is State.CURRENT and why.code is Code.PARTLY_COMMITTED:
        return reason(Code.PARTLY_COMMITTED, ids=why.ids, runs=runs)
    if state is State.CURRENT and why.code is Code.COMMITTED and directory:
        base = evidence.state.base
        if base and base.directory and base.directory.max_write_id >= directory.min_write_id:
            return reason(Code.STRADDLES, by=(base.name,), ids=(directory.min_write_id, base.directory.max_write_id))
        return reason(Code.HELD_BY_NO_OTHER, directory=directory, is_everything=evidence.write_ids.is_everything)
    if why.code is Code.CHOSEN_BASE and directory and directory.max_write_id != MINL:
        return reason(Code.CHOSEN_BASE, usable=why.value("usable"), reach=directory.max_write_id)
    return why


def _readable_by(verdict: Verdict, directory: AcidDirectory, by: tuple[str, ...] = ()) -> Reason:
    """Which snapshots may read a base (section 6.2)."""
    txn = directory.visibility_txn
    return reason(Code.READABLE_BY, by=by, write_id=directory.max_write_id, compacted=verdict.compacted, txn=txn)


# --- what cleaning may do, and what must come first --------------------------------------------------------------


def _may_clean(verdict: Verdict, evidence: ProofInputs) -> tuple[MayClean, Reason]:
    answer, name = evidence.cleaning, verdict.name
    against = answer.waiting.get(name) or answer.kept_back.get(name)
    if verdict.kind in (EntryKind.STAGING, EntryKind.OTHER):
        if against or name in answer.removable:
            return MayClean.NO, reason(Code.ONLY_AS_LEFTOVER, *([against] if against else ()))
        return MayClean.NO, reason(Code.OTHER_KIND)
    if evidence.state.history_problem:
        return MayClean.NO, reason(Code.SNAPSHOT_REFUSED)
    if verdict.state is State.CURRENT:
        return MayClean.NO, reason(Code.IS_READ)
    if verdict.state is State.IGNORED:
        return MayClean.NO, reason(Code.NEITHER_OBSOLETE_NOR_ABORTED)
    if answer.refusal:
        return MayClean.NO, answer.refusal
    if name in answer.removable:
        return MayClean.YES, reason(Code.NO_READER_RETURNS if verdict.state is State.ABORTED else Code.NOT_NEEDED)
    return MayClean.KEPT_BACK, answer.waiting.get(name) or _kept_back(verdict, answer)


def _kept_back(verdict: Verdict, answer: CleaningAnswer) -> Reason:
    """The planner's reason; of several doubts in the location that on what takes this one's place."""
    why = answer.kept_back.get(verdict.name) or reason(Code.NOT_PLANNED)
    mine = [part for name in verdict.reason.by for part in why.parts if name in part.by]
    return reason(why.code, mine[0]) if mine else why


def _next(verdict: Verdict, runs: tuple[IdRun, ...], evidence: ProofInputs) -> Iterator[Reason]:
    answer, name = evidence.cleaning, verdict.name
    told = [reason(Code.AS_TOLD, hint=answer.hint)] if answer.hint else []
    if verdict.kind is EntryKind.STAGING:
        yield _next_of_staging(name, answer)
    elif verdict.state is State.CURRENT:
        yield from told if evidence.state.history_problem else [_next_of_current(verdict, runs)]
    elif verdict.state is State.IGNORED:
        yield from _next_of_ignored(verdict, runs, evidence)
    elif answer.refusal:
        yield from told
    elif name in answer.waiting:
        yield _when_old(answer.waiting[name], leftovers=False)
    elif name in answer.kept_back:
        yield from _next_of_kept_back(_kept_back(verdict, answer))
    elif verdict.state is State.ABORTED:
        yield reason(Code.CLEAN)
    else:
        yield _after_queries(verdict, evidence)


def _next_of_staging(name: str, answer: CleaningAnswer) -> Reason:
    if name in answer.unfinished:
        return reason(Code.FINISH_PUBLICATION)
    if name in answer.waiting:
        return _when_old(answer.waiting[name], leftovers=True)
    if name in answer.removable:
        return reason(Code.CLEAN, leftovers=True)
    return reason(Code(f"clear-{what_is_hidden(name)}"))


def _when_old(waiting: Reason, *, leftovers: bool) -> Reason:
    code = Code.CLEAN_BY_FORCE if waiting.code is Code.AGE_UNKNOWN else Code.CLEAN_THEN
    return reason(code, leftovers=leftovers)


_REMEDIES = {
    Code.UNMARKED_BASE: (Code.SEEK_ROWS,),
    Code.STRANGE_PATH: (Code.MOVE_STRANGER,),
    Code.TRANSACTION_UNKNOWN: (Code.GIVE_TRANSACTIONS,),
    Code.ONLY_BY_TRANSACTIONS: (Code.GIVE_TRANSACTIONS,),
    Code.INSERT_OVERWRITE_UNKNOWN: (Code.GIVE_TRANSACTIONS, Code.WAIT_FOR_WRITER),
    Code.OLD_QUERIES: (Code.WAIT_FOR_TRANSACTION,),
    Code.READER_HOLDS: (Code.WAIT_FOR_TRANSACTION,),
    Code.HIVE_COMPACTS: (Code.WAIT_FOR_HIVE,),
    Code.NO_CLEANUP: (Code.ALLOW_CLEANUP,),
    Code.ABOVE_CLEANER: (Code.GIVE_WRITE_IDS,),
    Code.WRITER_BESIDE: (Code.WAIT_FOR_WRITER,),
    Code.OPEN_STREAM: (Code.WAIT_FOR_WRITER,),
}


def _next_of_kept_back(why: Reason) -> Iterator[Reason]:
    if why.code is Code.HALF_A_MINOR:
        yield reason(Code.FIND_MISSING_TWIN, by=why.by)
    elif why.code is Code.LOST_ROWS:
        yield reason(Code.BRING_ROWS_BACK, by=why.by)
    codes = dict.fromkeys(code for one in (why, *why.parts) for code in _REMEDIES.get(one.code, ()))
    yield from map(reason, codes)


def _after_queries(verdict: Verdict, evidence: ProofInputs) -> Reason:
    """Cleaning takes an obsolete entry, when those queries have ended that may still read it."""
    by = evidence.by_name.get(verdict.reason.by[0]) if verdict.reason.by else None
    directory = by.directory if by else None
    if by is None or directory is None:
        return reason(Code.CLEAN_AFTER_QUERIES)
    merged = directory.kind is Kind.BASE and by.compacted and directory.max_write_id != MINL
    reach = directory.max_write_id if merged else None
    return reason(Code.CLEAN_AFTER_QUERIES, by=(by.name,), txn=directory.visibility_txn, reach=reach)


def _next_of_current(verdict: Verdict, runs: tuple[IdRun, ...]) -> Reason:
    if verdict.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
        return reason(Code.MOVE_STRANGER)
    if verdict.kind not in (EntryKind.DELTA, EntryKind.DELETE_DELTA):
        return reason(Code.COMPACT_NEWER_BASE if verdict.kind is EntryKind.BASE else Code.COMPACT_ORIGINALS)
    if undecided := of_status(runs, IdStatus.OPEN, IdStatus.ABOVE):
        return reason(Code.DECIDE_THEN_COMPACT, runs=undecided)
    if aborted := of_status(runs, IdStatus.ABORTED):
        return reason(Code.COMPACT_ABORTED, runs=aborted)
    return reason(Code.COMPACT_EVENTS)


def _next_of_ignored(verdict: Verdict, runs: tuple[IdRun, ...], evidence: ProofInputs) -> Iterator[Reason]:
    code, directory = verdict.reason.code, verdict.directory
    if code is Code.UNPARSEABLE:
        yield reason(Code.RENAME)
    elif code is Code.PARTITION:
        yield reason(Code.EXPLAIN_PARTITION, by=(verdict.name,))
    elif directory and code is Code.VISIBILITY_OPEN:
        yield reason(Code.DECIDE_TRANSACTION, ids=(directory.visibility_txn,))
    elif directory and code is Code.OPEN_BELOW_BASE:
        yield reason(Code.DECIDE_WRITE_IDS, runs=_blocking(directory, evidence))
    elif directory:
        waiting, above = of_status(runs, IdStatus.OPEN), of_status(runs, IdStatus.ABOVE)
        if waiting:
            yield reason(Code.DECIDE_WRITE_IDS, runs=waiting)
        if above:
            yield reason(Code.NEWER_SNAPSHOT, ids=(above[-1].last,))
        if not waiting and not above:
            # Hive drops it without a word: a committed id it has lies below what is read, the others are aborted.
            yield reason(Code.NEEDS_WIDER, ids=(directory.max_write_id,))
