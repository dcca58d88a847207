"""The proof of a verdict: what decided it, with the ids and names, and what must happen before cleaning may take it.

Nothing is decided here. Verdicts are those of :func:`acidctl.acid.state.select`; whether cleaning may take an entry
is what its planner answered; :mod:`acidctl.acid.evidence` has that in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from acidctl.acid.evidence import Doubts, Evidence, MayClean, blocking_ids, id_noun, leftover, may_clean, next_step
from acidctl.acid.idruns import (
    IdRun,
    IdStatus,
    count_of,
    id_list_runs,
    of_status,
    span,
    spans,
    txn_status,
    write_id_runs,
)
from acidctl.acid.layout import files_by_child
from acidctl.acid.listing import Entry
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind, parse_partition
from acidctl.acid.state import EntryKind, Reason, State, Verdict
from acidctl.acid.writeids import ValidWriteIds


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a proof.

    Attributes:
        topic: what it is about: what, write-ids, transaction, verdict, readers or content; for programs.
        text: a sentence without a full stop.
        names: entries it speaks of.
        ids: the write ids (transactions, where the topic is that) it rests on; a run once, by its first and last id.
    """

    topic: str
    text: str
    names: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """Why one child of a location has its verdict.

    Attributes:
        write_ids: of its range, as runs; empty where it has none.
        txn: of its name's ``_v``, with what the snapshot knows of it; None where the name has none.
        cleaning: whether and why cleaning may take it.
        next: what must happen before cleaning may take it, or what takes it; empty where nothing ever does.
    """

    name: str
    kind: EntryKind
    state: State
    reason: Reason
    steps: tuple[Step, ...]
    may_clean: MayClean
    cleaning: str
    next: str = ""
    write_ids: tuple[IdRun, ...] = ()
    txn: tuple[int, IdStatus] | None = None


def prove_all(evidence: Evidence) -> tuple[Proof, ...]:
    """A proof for every child of the location, in the order of its verdicts."""
    doubts, children = Doubts.of(evidence), files_by_child(evidence.listing)
    proofs = []
    for verdict in evidence.state.verdicts:
        steps, runs, txn = _steps(verdict, evidence)
        if verdict.kind is EntryKind.STAGING and verdict.name in children:  # some are listed without what is below
            steps.append(Step("content", _content(children[verdict.name])))
        allowed, cleaning = may_clean(verdict, evidence, doubts)
        then = next_step(verdict, runs, evidence, doubts)
        name, kind, reason = verdict.name, verdict.kind, verdict.reason
        proofs.append(Proof(name, kind, verdict.state, reason, tuple(steps), allowed, cleaning, then, runs, txn))
    return tuple(proofs)


def explain_history(evidence: Evidence) -> tuple[Step, ...]:
    """Why the snapshot is refused for "not enough history", and which one would not be; empty when it is read."""
    problem = evidence.state.history_problem
    if problem is None:
        return ()
    ids = evidence.write_ids
    known = f"this snapshot has the high watermark {ids.high_watermark}, " + ", ".join(
        f"{status.value}: {spans(id_list_runs(which, status)) or 'none'}"
        for which, status in ((ids.open, IdStatus.OPEN), (ids.aborted, IdStatus.ABORTED))
    )
    steps = [Step("verdict", problem.text, problem.by, problem.ids), Step("snapshot", known, ids=ids.open)]
    bases = [v for v in evidence.state.verdicts if v.kind is EntryKind.BASE]
    steps += [Step("base", f"{base.name}: {why_not_chosen(base, evidence)}", (base.name,)) for base in bases]
    for name in problem.by:
        oldest = evidence.verdict(name)
        if oldest and oldest.directory:
            steps.append(Step("readers", f"{name} can be read by {_able(oldest, oldest.directory)}", (name,)))
    return tuple(steps)


def why_not_chosen(base: Verdict, evidence: Evidence) -> str:
    """Of a base that the snapshot does not read: the reason with the ids."""
    best, directory = evidence.state.base, base.directory
    if directory is None:
        return base.reason.text
    if best and best.directory and base.state is State.OBSOLETE:
        if directory.max_write_id == best.directory.max_write_id:
            return f"{best.name} is read, {_tie(base, best, best.directory)}"
        mine = "originals alone" if directory.max_write_id == MINL else f"write id {directory.max_write_id}"
        return f"{best.name} is read, which reaches write id {best.directory.max_write_id}; this one {mine}"
    if base.reason.code == "open-below-base":
        blocking = blocking_ids(directory, evidence)
        verb = "is" if count_of(blocking) == 1 else "are"
        return (
            f"write {id_noun(blocking)} {spans(blocking)} {verb} open, and a compaction up to "
            f"{directory.max_write_id} destroyed the history that a reader without it needs"
        )
    return base.reason.text


# --- one entry ---------------------------------------------------------------------------------------------------


def _steps(verdict: Verdict, evidence: Evidence) -> tuple[list[Step], tuple[IdRun, ...], tuple[int, IdStatus] | None]:
    directory = verdict.directory
    runs: tuple[IdRun, ...] = ()
    txn = None
    steps = [Step("what", _what(verdict))]
    if directory and directory.min_write_id <= directory.max_write_id:
        runs = _runs(verdict, directory, evidence.write_ids)
        if runs:
            steps.append(_ids_step(runs, evidence.write_ids))
    if directory and directory.visibility_txn:
        txn = (directory.visibility_txn, txn_status(evidence.txns, directory.visibility_txn))
        steps.append(Step("transaction", _txn_text(*txn), ids=(directory.visibility_txn,)))
    steps.append(_verdict_step(verdict, runs, evidence))
    if directory and directory.kind is Kind.BASE and verdict.state is State.IGNORED:
        steps.append(Step("readers", f"can be read by {_able(verdict, directory)}"))
    return steps, runs, txn


def _content(files: list[Entry]) -> str:
    """Of a leftover: how much it holds, and when it changed last, which tells whether somebody is at work."""
    text = f"{len(files):,} {'file' if len(files) == 1 else 'files'}, {sum(entry.size for entry in files):,} bytes"
    times = [entry.modified for entry in files if entry.modified is not None]
    return text + (f", last changed {datetime.fromtimestamp(max(times), UTC):%Y-%m-%d %H:%M:%S} UTC" if times else "")


def _what(verdict: Verdict) -> str:
    directory = verdict.directory
    if directory is None:
        texts = {
            EntryKind.ORIGINAL: "rows that were there before the table was ACID",
            EntryKind.STAGING: leftover(verdict.name)[0],
        }
        if parse_partition(verdict.name):
            return "a partition"
        return texts.get(verdict.kind, "no directory of Hive's ACID layout")
    if directory.kind is Kind.BASE:
        if directory.max_write_id == MINL:
            return "a base made of original files alone"
        if verdict.compacted:
            return f"a base: all rows up to write id {directory.max_write_id}, by a compaction"
        return (
            f"a base without the mark of a compaction: an INSERT OVERWRITE of write id {directory.max_write_id}, or a "
            "compaction of Hive 2"
        )
    noun = "inserted" if directory.kind is Kind.DELTA else "deleted"
    text = f"what write {_ids_noun(directory)} {span(directory.min_write_id, directory.max_write_id)} {noun}"
    if directory.statement_id != NO_STATEMENT:
        text += f", statement {directory.statement_id}"
    return text + (", by a compaction" if verdict.compacted else "")


def _ids_noun(directory: AcidDirectory) -> str:
    return "id" if directory.min_write_id == directory.max_write_id else "ids"


def _runs(verdict: Verdict, directory: AcidDirectory, ids: ValidWriteIds) -> tuple[IdRun, ...]:
    """Of a compacted base all from the first on, as it holds them; of any other directory those of its name."""
    if directory.max_write_id < 0:
        return ()
    low = min(1, directory.max_write_id) if verdict.compacted and directory.kind is Kind.BASE else None
    return write_id_runs(ids, directory.min_write_id if low is None else low, directory.max_write_id)


def _ids_step(runs: tuple[IdRun, ...], ids: ValidWriteIds) -> Step:
    if ids.is_everything:
        text = f"{span(runs[0].first, runs[-1].last)}, counted as committed: no list of write ids was given"
    else:
        by_status = {status: of_status(runs, status) for status in IdStatus}
        text = "; ".join(f"{status.value}: {spans(found)}" for status, found in by_status.items() if found)
    blocked = of_status(runs, IdStatus.OPEN, IdStatus.ABORTED, IdStatus.ABOVE)
    return Step("write-ids", text, ids=_ends(blocked))


def _ends(runs: tuple[IdRun, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(id_ for run in runs for id_ in (run.first, run.last)))


def _txn_text(txn: int, status: IdStatus) -> str:
    texts = {
        IdStatus.COMMITTED: "is committed",
        IdStatus.OPEN: "is open: its compaction is at work, or died a short while ago",
        IdStatus.ABORTED: "is aborted: its compaction failed",
        IdStatus.ABOVE: "is above the transactions this snapshot knows",
        IdStatus.UNKNOWN: "counts as committed: no list of transactions was given",
    }
    return f"transaction {txn} {texts[status]}"


def _verdict_step(verdict: Verdict, runs: tuple[IdRun, ...], evidence: Evidence) -> Step:
    reason, state = verdict.reason, evidence.state
    text = reason.text
    if verdict.kind is EntryKind.BASE and verdict.state in (State.OBSOLETE, State.IGNORED):
        text = why_not_chosen(verdict, evidence)
    elif verdict.state is State.OBSOLETE and reason.by:
        text = f"{_with_range(reason.by[0], evidence)} {_holds(verdict, evidence.verdict(reason.by[0]))}"
    elif verdict.state is State.CURRENT and reason.code == "partly-committed":
        text = f"read, less the rows of {_uncommitted(runs)}"
    elif verdict.state is State.CURRENT and reason.code == "committed":
        text = _read_text(verdict, evidence)
    elif reason.code == "chosen-base" and verdict.directory and verdict.directory.max_write_id != MINL:
        text = f"{text}: of those that this snapshot may use none reaches beyond {verdict.directory.max_write_id}"
    if verdict.state is State.CURRENT and state.history_problem:
        text += "; but Hive refuses this snapshot: not enough history"
    return Step("verdict", text, reason.by, reason.ids)


def _read_text(verdict: Verdict, evidence: Evidence) -> str:
    """Of a delta whose write ids are all committed."""
    delta, base = verdict.directory, evidence.state.base
    if delta is None:
        return verdict.reason.text
    if base and base.directory and base.directory.max_write_id >= delta.min_write_id:
        shared = span(delta.min_write_id, base.directory.max_write_id)
        noun = "id" if delta.min_write_id == base.directory.max_write_id else "ids"
        return f"it is read whole, as it reaches beyond {base.name}; but that has write {noun} {shared} too (rule V9)"
    one = delta.min_write_id == delta.max_write_id
    counts = ("counts" if one else "count") + " as" if evidence.write_ids.is_everything else "is" if one else "are"
    ids = f"write {_ids_noun(delta)} {span(delta.min_write_id, delta.max_write_id)}"
    return f"{ids} {counts} committed, and no base or wider delta that is read holds {'it' if one else 'them'}"


def _holds(verdict: Verdict, by: Verdict | None) -> str:
    directory = verdict.directory
    what = "its rows"
    if directory:
        what = f"write {_ids_noun(directory)} {span(directory.min_write_id, directory.max_write_id)}"
    # An INSERT OVERWRITE holds nothing of what was there before it.
    replaced = by is not None and by.kind is EntryKind.BASE and not by.compacted
    return f"takes the place of {what}" if replaced else f"holds {what}, and is read in its place"


def _with_range(name: str, evidence: Evidence) -> str:
    """A name with what it covers: ``base_0000005 (all up to write id 5)``."""
    verdict = evidence.verdict(name)
    directory = verdict.directory if verdict else None
    if verdict is None or directory is None or directory.max_write_id == MINL:
        return name
    txn = f", transaction {directory.visibility_txn}" if directory.visibility_txn else ""
    if directory.kind is Kind.BASE:
        return f"{name} (all up to write id {directory.max_write_id}{txn})"
    ids = f"write {_ids_noun(directory)} {span(directory.min_write_id, directory.max_write_id)}"
    return f"{name} ({ids}{txn})"


def _uncommitted(runs: tuple[IdRun, ...]) -> str:
    found = [of_status(runs, status) for status in (IdStatus.OPEN, IdStatus.ABORTED, IdStatus.ABOVE)]
    parts = [f"write {id_noun(some)} {spans(some)} ({some[0].status.value})" for some in found if some]
    return ", ".join(parts) or "write ids that are not committed"


def _tie(base: Verdict, best: Verdict, directory: AcidDirectory) -> str:
    """Why one of two bases of one write id is read."""
    if best.compacted and not base.compacted:
        return f"as of two bases up to {directory.max_write_id} a compaction comes before an INSERT OVERWRITE"
    return f"the later compaction of two up to {directory.max_write_id}"


def _able(verdict: Verdict, directory: AcidDirectory) -> str:
    """Which snapshots may read a base (section 6.2)."""
    wid = directory.max_write_id
    if wid == MINL:
        text = "every snapshot"
    elif verdict.compacted:
        text = f"a snapshot with a high watermark of {wid} or more, and no open write id up to {wid}"
    else:
        text = f"a snapshot in which write id {wid} is committed"
    if directory.visibility_txn:
        text += f", that knows transaction {directory.visibility_txn} as committed"
    return text
