"""Proofs of verdicts: what decided each, with ids and names, and what must happen before cleaning may take an entry.

Nothing is decided here: verdicts come from :func:`acidctl.acid.state.select`, and the planner of cleanings decides
whether an entry may be taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind, parse_partition
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind, State, Verdict
from acidctl.acid.writeids import (
    IdRun,
    IdStatus,
    ValidTxns,
    ValidWriteIds,
    count_of,
    id_list_runs,
    of_status,
    txn_status,
    write_id_runs,
)
from acidctl.base.errors import HistoryError, RefusedError
from acidctl.base.printable import one_line
from acidctl.cleaning.leftovers import Action, Advice, hidden_kind
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.location.change.publication import half_published
from acidctl.location.snapshot import STOP_WRITERS, Snapshot
from acidctl.wording import span, spans, status_text, text_of, write_id_range, write_ids_text


class Topic(StrEnum):
    """The subject of a step of a proof."""

    WHAT = "what"
    WRITE_IDS = "write-ids"
    TRANSACTION = "transaction"
    VERDICT = "verdict"
    READERS = "readers"
    CONTENT = "content"
    SNAPSHOT = "snapshot"
    BASE = "base"


class MayClean(StrEnum):
    """The answers to whether a cleaning may take an entry."""

    YES = "yes"
    KEPT_BACK = "kept-back"
    NO = "no"


@dataclass(frozen=True, slots=True)
class CleaningAnswer:
    """The result of planning the cleaning of a location.

    Attributes:
        removable: names that a cleaning would remove, leftovers included.
        kept_back: names that are obsolete, aborted or leftovers but stay, with the reason.
        waiting: names that are too young, with the reason.
        refusal: why no plan can be made; None if there is a plan.
        hint: what to do about the refusal.
        unfinished: staging directories of an interrupted publication.
    """

    removable: frozenset[str] = frozenset()
    kept_back: Mapping[str, Reason] = field(default_factory=dict)
    waiting: Mapping[str, Reason] = field(default_factory=dict)
    refusal: Reason | None = None
    hint: str = ""
    unfinished: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ProofInputs:
    """Everything that proofs are made from: a location, its state in one snapshot, and what cleaning may take."""

    listing: Listing
    state: AcidState
    write_ids: ValidWriteIds
    txns: ValidTxns | None
    cleaning: CleaningAnswer

    @cached_property
    def by_name(self) -> Mapping[str, Verdict]:
        """Map the names of the location's children to their verdicts."""
        return {verdict.name: verdict for verdict in self.state.verdicts}


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One step of a proof.

    Attributes:
        names: the entries that it mentions.
        ids: the write ids (or transactions, by the topic) that it rests on; only the first and last id of a run.
    """

    topic: Topic
    text: str
    names: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictProof:
    """Why one child of a location has its verdict.

    Attributes:
        write_ids: the runs of its range.
        txn: the transaction of its name's ``_v`` and its status; None if the name has none.
        may_clean, cleaning: whether and why cleaning may take it.
        next: what must happen before cleaning may take it, or what takes it; empty if nothing ever does.
    """

    __repr__ = one_line

    verdict: Verdict
    steps: tuple[ProofStep, ...]
    may_clean: MayClean
    cleaning: Reason
    next: tuple[Advice, ...] = ()
    write_ids: tuple[IdRun, ...] = ()
    txn: tuple[int, IdStatus] | None = None

    @property
    def name(self) -> str:
        return self.verdict.name

    @property
    def is_hidden(self) -> bool:
        """Say if it is not part of the table's data."""
        return self.verdict.reason.code is Code.HIDDEN


def proof_inputs(snapshot: Snapshot) -> ProofInputs:
    """Collect what proofs of a location are made from, with a plan of its cleaning."""
    unfinished = frozenset(staging for staging, _ in half_published(snapshot))
    try:
        plan = plan_cleaning(snapshot, Policy(leftovers=True))
    except (HistoryError, RefusedError) as error:
        refusal = reason(Code.REFUSED, how="error", why=str(error))
        answer = CleaningAnswer(refusal=refusal, hint=error.hint, unfinished=unfinished)
    else:
        waiting = {entry.name: entry.reason for entry in plan.waiting}
        answer = CleaningAnswer(frozenset(plan.names), dict(plan.kept_back), waiting, unfinished=unfinished)
    return ProofInputs(snapshot.listing, snapshot.state, snapshot.write_ids, snapshot.txns, answer)


def prove_all(evidence: ProofInputs) -> tuple[VerdictProof, ...]:
    """Prove the verdict of every child of the location, in the order of the verdicts."""
    children = evidence.listing.files_by_child
    return tuple(_proof(verdict, evidence, children) for verdict in evidence.state.verdicts)


def explain_history(evidence: ProofInputs) -> tuple[ProofStep, ...]:
    """Explain why the snapshot lacks history, and which snapshot would not; empty if it can be read."""
    problem, ids = evidence.state.history_problem, evidence.write_ids
    if problem is None:
        return ()
    opened, aborted = id_list_runs(ids.open, IdStatus.OPEN), id_list_runs(ids.aborted, IdStatus.ABORTED)
    listed = f"open: {spans(opened) or 'none'}, aborted: {spans(aborted) or 'none'}"
    watermark = f"this snapshot has the high watermark {ids.high_watermark}, {listed}"
    steps = [ProofStep(Topic.VERDICT, text_of(problem), problem.by, problem.ids)]
    steps.append(ProofStep(Topic.SNAPSHOT, watermark, ids=ids.open))
    bases = (verdict for verdict in evidence.state.verdicts if verdict.kind is EntryKind.BASE)
    steps += [ProofStep(Topic.BASE, f"{base.name}: {decided(base, evidence)}", (base.name,)) for base in bases]
    for name in problem.by:
        oldest = evidence.by_name.get(name)
        if oldest and oldest.directory:
            steps.append(ProofStep(Topic.READERS, f"{name} {_readable_by(oldest, oldest.directory)}", (name,)))
    return tuple(steps)


def _blocking(directory: AcidDirectory, evidence: ProofInputs) -> tuple[IdRun, ...]:
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
        statuses = _statuses(runs, is_everything=evidence.write_ids.is_everything)
        steps.append(ProofStep(Topic.WRITE_IDS, statuses, ids=ends))
    if directory and directory.visibility_txn:
        txn = (directory.visibility_txn, txn_status(evidence.txns, directory.visibility_txn))
        steps.append(ProofStep(Topic.TRANSACTION, f"transaction {txn[0]} {_TRANSACTION[txn[1]]}", ids=txn[:1]))
    steps.append(ProofStep(Topic.VERDICT, decided(verdict, evidence), verdict.reason.by, verdict.reason.ids))
    if directory and directory.kind is Kind.BASE and verdict.state is State.IGNORED:
        steps.append(ProofStep(Topic.READERS, _readable_by(verdict, directory)))
    if verdict.kind is EntryKind.STAGING and verdict.name in children:  # some are listed without their files
        steps.append(ProofStep(Topic.CONTENT, _content(children[verdict.name])))
    may, cleaning = _may_clean(verdict, evidence)
    then = tuple(_next(verdict, runs, evidence))
    return VerdictProof(verdict, tuple(steps), may, cleaning, then, runs, txn)


def _runs(verdict: Verdict, ids: ValidWriteIds) -> tuple[IdRun, ...]:
    """Return the write ids of a directory's name; a compacted base holds all from the first on."""
    directory = verdict.directory
    if directory is None or directory.max_write_id < max(0, directory.min_write_id):
        return ()
    low = directory.min_write_id
    if verdict.compacted and directory.kind is Kind.BASE:
        low = min(1, directory.max_write_id)
    return write_id_runs(ids, low, directory.max_write_id)


def _content(files: list[Entry]) -> str:
    """Say how much a staging directory holds and when it last changed, which shows if a writer is at work."""
    newest = max((entry.modified for entry in files if entry.modified is not None), default=None)
    text = f"{len(files):,} {'file' if len(files) == 1 else 'files'}, {sum(entry.size for entry in files):,} bytes"
    if newest is None:
        return text
    return f"{text}, last changed {datetime.fromtimestamp(newest, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _statuses(runs: tuple[IdRun, ...], *, is_everything: bool) -> str:
    if is_everything:
        return f"{span(runs[0].first, runs[-1].last)}, counted as committed: no list of write ids was given"
    by_status = {status: of_status(runs, status) for status in IdStatus}
    return "; ".join(f"{status_text(status)}: {spans(ids)}" for status, ids in by_status.items() if ids)


_TRANSACTION = {
    IdStatus.COMMITTED: "is committed",
    IdStatus.OPEN: "is open: its compaction is at work, or died a short while ago",
    IdStatus.ABORTED: "is aborted: its compaction failed",
    IdStatus.ABOVE: "is above the transactions this snapshot knows",
    IdStatus.UNKNOWN: "counts as committed: no list of transactions was given",
}


def _what(verdict: Verdict) -> str:
    directory = verdict.directory
    if directory is None:
        if verdict.kind is EntryKind.STAGING:
            return hidden_kind(verdict.name).what
        if parse_partition(verdict.name):
            return text_of(reason(Code.PARTITION))
        if verdict.kind is EntryKind.ORIGINAL and verdict.reason.code is not Code.ORIGINAL_WITHOUT_BUCKET:
            what = "rows that were there before the table was ACID"
            return f"{what}, if it is" if verdict.reason.value("how") == "alone" else what
        return "not a directory of Hive's ACID layout"
    if directory.kind is not Kind.BASE:
        did = "inserted" if directory.kind is Kind.DELTA else "deleted"
        statement = "" if directory.statement_id == NO_STATEMENT else f", statement {directory.statement_id}"
        write_ids = write_id_range(directory.min_write_id, directory.max_write_id)
        return f"what {write_ids} {did}{statement}{', by a compaction' if verdict.compacted else ''}"
    wid = directory.max_write_id
    if wid == MINL:
        return "a base made of original files alone"
    if verdict.compacted:
        return f"a base: all rows up to write id {wid}, by a compaction"
    return f"a base without the mark of a compaction: an INSERT OVERWRITE of write id {wid}, or a compaction of Hive 2"


def decided(verdict: Verdict, evidence: ProofInputs) -> str:
    """Return the reason of a verdict with all the ids that it rests on."""
    why, directory = verdict.reason, verdict.directory
    if why.code is Code.PARTLY_COMMITTED:
        why = reason(why.code, ids=why.ids, runs=_runs(verdict, evidence.write_ids))
    elif directory and why.code is Code.OPEN_BELOW_BASE:
        why = reason(why.code, ids=why.ids, base=directory.max_write_id, runs=_blocking(directory, evidence))
    refused = verdict.state is State.CURRENT and evidence.state.history_problem
    return text_of(why) + ("; but Hive refuses this snapshot: not enough history" if refused else "")


def _readable_by(verdict: Verdict, directory: AcidDirectory) -> str:
    """Say which snapshots may read a base (format section 6.2)."""
    wid, txn = directory.max_write_id, directory.visibility_txn
    text = f"a snapshot in which write id {wid} is committed"
    if wid == MINL:
        text = "every snapshot"
    elif verdict.compacted:
        text = f"a snapshot with a high watermark of {wid} or more, and no open write id up to {wid}"
    return f"can be read by {text}" + (f", that knows transaction {txn} as committed" if txn else "")


# --- what cleaning may do, and what must come first --------------------------------------------------------------


def _may_clean(verdict: Verdict, evidence: ProofInputs) -> tuple[MayClean, Reason]:
    answer, name = evidence.cleaning, verdict.name
    against = answer.waiting.get(name) or answer.kept_back.get(name)
    if verdict.kind in (EntryKind.STAGING, EntryKind.OTHER):
        if against or name in answer.removable:
            return MayClean.NO, reason(Code.ONLY_AS_LEFTOVER, *([against] if against else ()))
        return MayClean.NO, reason(Code.NOT_OBSOLETE, how="kind")
    if evidence.state.history_problem:
        return MayClean.NO, reason(Code.REFUSED, how="snapshot")
    if verdict.state is State.CURRENT:
        return MayClean.NO, reason(Code.IS_READ, how="read")
    if verdict.state is State.IGNORED:
        return MayClean.NO, reason(Code.NOT_OBSOLETE, how="state")
    if answer.refusal:
        return MayClean.NO, answer.refusal
    if name in answer.removable:
        return MayClean.YES, reason(Code.NOT_NEEDED, how=verdict.state.value)
    return MayClean.KEPT_BACK, answer.waiting.get(name) or _kept_back(verdict, answer)


def _kept_back(verdict: Verdict, answer: CleaningAnswer) -> Reason:
    """Return the planner's reason; of several parts only the one about the directory that supersedes this entry."""
    why = answer.kept_back.get(verdict.name) or reason(Code.NOT_PLANNED)
    mine = [part for name in verdict.reason.by for part in why.parts if name in part.by]
    return reason(why.code, mine[0]) if mine else why


def _next(verdict: Verdict, runs: tuple[IdRun, ...], evidence: ProofInputs) -> Iterator[Advice]:
    answer, name = evidence.cleaning, verdict.name
    hints = [Advice(Action.FOLLOW_HINT, answer.hint)] if answer.hint else []
    if verdict.kind is EntryKind.STAGING:
        yield _next_of_staging(name, answer)
    elif verdict.state is State.CURRENT:
        yield from hints if evidence.state.history_problem else [_next_of_current(verdict, runs)]
    elif verdict.state is State.IGNORED:
        yield from _next_of_ignored(verdict, runs, evidence)
    elif answer.refusal:
        yield from hints
    elif name in answer.waiting:
        yield _when_old(answer.waiting[name], "acidctl clean")
    elif name in answer.kept_back:
        yield from _next_of_kept_back(_kept_back(verdict, answer))
    elif verdict.state is State.ABORTED:
        yield Advice(Action.CLEAN, "`acidctl clean` takes it at any time")
    else:
        yield _after_queries(verdict, evidence)


def _next_of_staging(name: str, answer: CleaningAnswer) -> Advice:
    if name in answer.unfinished:
        return Advice(Action.COMPACT, "run `acidctl compact`: it finishes the publication that was interrupted")
    if name in answer.waiting:
        return _when_old(answer.waiting[name], "acidctl clean --leftovers")
    if name in answer.removable:
        return Advice(Action.CLEAN, "`acidctl clean --leftovers` takes it")
    return hidden_kind(name).clears


def _when_old(waiting: Reason, clean: str) -> Advice:
    if waiting.code is Code.AGE_UNKNOWN:
        when = "with --older-than 0 --unsafe-retention: when nothing reads or writes the table"
        return Advice(Action.CLEAN_BY_FORCE, f"`{clean}` takes it {when}")
    return Advice(Action.CLEAN_LATER, f"`{clean}` takes it then")


_DECIDED = "must be committed or aborted"
_MOVE_STRANGER = Advice(Action.BY_HAND, "see whose file that is, and move it away")
_GIVE_TRANSACTIONS = Advice(
    Action.GIVE_LISTS, "give --snapshot with Hive's transactions, or --assume-committed when no compaction is at work"
)
_WAIT_FOR_WRITER = Advice(Action.WAIT, "wait until the writer has ended, or give --snapshot")
_REMEDIES = {
    Code.OVERLAP: Advice(Action.BY_HAND, "see which of the two has the right rows, and move the other away"),
    Code.UNMARKED_BASE: Advice(Action.BY_HAND, "see whether other directories hold its rows; then remove it by hand"),
    Code.STRANGE_PATH: _MOVE_STRANGER,
    Code.TRANSACTION_UNKNOWN: _GIVE_TRANSACTIONS,
    Code.READER_HOLDS: Advice(
        Action.WAIT, "wait until that transaction has ended, as the metastore, or a newer --snapshot, says"
    ),
    Code.HIVE_COMPACTS: Advice(
        Action.WAIT, "wait until that compaction has ended: Hive's own cleaner looks at this, too"
    ),
    Code.NO_CLEANUP: Advice(Action.ALLOW_CLEANUP, "set no_cleanup to false there when nothing needs it any more"),
    Code.ABOVE_CLEANER: Advice(Action.GIVE_LISTS, "give a newer --snapshot"),
    Code.WRITER_AT_WORK: _WAIT_FOR_WRITER,
}


def _next_of_kept_back(why: Reason) -> Iterator[Advice]:
    if why.code is Code.HALF_A_MINOR:
        twin = f"the missing twin of {why.by[0]} first: see what became of the minor compaction that wrote it"
        yield Advice(Action.BY_HAND, twin)
    elif why.code is Code.LOST_ROWS:
        away = f"it takes {why.by[0]} away, so that readers see this again, or says why it cannot"
        yield Advice(Action.REPAIR, f"run `acidctl repair`: {away}")
    elif why.code is Code.ONLY_BY_DOUBT and not why.parts:
        yield _GIVE_TRANSACTIONS
    yield from dict.fromkeys(_REMEDIES[part.code] for part in (why, *why.parts) if part.code in _REMEDIES)
    if any(part.value("how") == "overwrite" for part in why.parts):
        yield _WAIT_FOR_WRITER


def _after_queries(verdict: Verdict, evidence: ProofInputs) -> Advice:
    """Advise to clean an obsolete entry after the queries that may still read it."""
    by = evidence.by_name.get(verdict.reason.by[0]) if verdict.reason.by else None
    directory = by.directory if by else None
    queries = "queries that began earlier"
    if by and directory:
        queries = f"queries that began before {by.name} was there"
        if directory.visibility_txn:
            queries = f"queries that began before transaction {directory.visibility_txn} was committed"
        elif directory.kind is Kind.BASE and by.compacted and directory.max_write_id != MINL:
            queries += f", or while a write id up to {directory.max_write_id} was open,"
    return Advice(Action.CLEAN, f"`acidctl clean` takes it; let {queries} end first")


def _next_of_current(verdict: Verdict, runs: tuple[IdRun, ...]) -> Advice:
    if verdict.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
        return _MOVE_STRANGER
    if verdict.kind is EntryKind.BASE:
        return Advice(Action.COMPACT, "a major compaction first: its newer base takes the place of this one")
    if verdict.kind not in (EntryKind.DELTA, EntryKind.DELETE_DELTA):
        is_alone = verdict.reason.value("how") == "alone"
        why = ", if this is a transactional table" if is_alone else ": no base holds these rows yet"
        return Advice(Action.COMPACT, f"a major compaction first{why}")
    if undecided := of_status(runs, IdStatus.OPEN, IdStatus.ABOVE):
        return Advice(Action.DECIDE, f"{write_ids_text(undecided)} {_DECIDED}, then a compaction")
    if aborted := of_status(runs, IdStatus.ABORTED):
        are = "is" if count_of(aborted) == 1 else "are"
        return Advice(Action.COMPACT, f"a major compaction first: {write_ids_text(aborted)} {are} aborted inside")
    return Advice(Action.COMPACT, "a compaction first: it writes these events to a wider delta or a base")


def _next_of_ignored(verdict: Verdict, runs: tuple[IdRun, ...], evidence: ProofInputs) -> Iterator[Advice]:
    code, directory = verdict.reason.code, verdict.directory
    if code is Code.UNPARSEABLE:
        yield Advice(Action.BY_HAND, "Hive fails on this name: see what wrote it, and rename or move it by hand")
    elif code is Code.ABOVE_GIVEN:
        yield Advice(Action.BY_HAND, STOP_WRITERS)
    elif code is Code.PARTITION:
        yield Advice(Action.LOOK_INSIDE, f"it is a location of its own: run `acidctl why` on {verdict.name}")
    elif directory and code is Code.VISIBILITY_OPEN:
        txn = directory.visibility_txn
        yield Advice(Action.DECIDE, f"transaction {txn} must be committed (then it is read) or aborted")
    elif directory and code is Code.OPEN_BELOW_BASE:
        yield Advice(Action.DECIDE, f"{write_ids_text(_blocking(directory, evidence))} {_DECIDED}")
    elif directory:
        waiting, above = of_status(runs, IdStatus.OPEN), of_status(runs, IdStatus.ABOVE)
        if waiting:
            yield Advice(Action.DECIDE, f"{write_ids_text(waiting)} {_DECIDED}")
        if above:
            newer = f"with a high watermark of {above[-1].last} or more: this one ends before it"
            yield Advice(Action.GIVE_LISTS, f"a newer snapshot, {newer}")
        if not waiting and not above:
            # Hive drops it silently: its committed ids lie below what is read, and the others are aborted.
            wider = f"a base or a wider delta that reaches write id {directory.max_write_id} first"
            yield Advice(Action.COMPACT, wider)
