"""What cleaning may do with an entry, and what must come first, in words.

The answers are those of the planner of cleanings (format section 10), handed in; here they are only explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from acidctl.acid.doubts import doubtful, half_finished, unmarked_bases
from acidctl.acid.idruns import IdRun, IdStatus, count_of, id_list_runs, of_status, spans
from acidctl.acid.listing import Listing
from acidctl.acid.names import MINL, AcidDirectory, Kind
from acidctl.acid.state import AcidState, EntryKind, State, Verdict
from acidctl.acid.writeids import ValidTxns, ValidWriteIds


class MayClean(StrEnum):
    """Whether cleaning may take an entry."""

    YES = "yes"
    KEPT_BACK = "kept-back"
    NO = "no"


@dataclass(frozen=True, slots=True)
class CleaningAnswer:
    """What the planner of cleanings said of a location.

    Attributes:
        removable: names that it would remove.
        kept_back: names that are obsolete or aborted but stay, with its reason.
        refusal, hint: why it makes no plan at all, and what to do; empty when there is a plan.
        unfinished: staging directories of a publication that was interrupted half-way.
        waiting: names that are too young, with its reason.
        leftovers: what it says of staging directories where those were asked for; empty for what may go.
    """

    removable: frozenset[str] = frozenset()
    kept_back: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    hint: str = ""
    unfinished: frozenset[str] = frozenset()
    waiting: Mapping[str, str] = field(default_factory=dict)
    leftovers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that proofs are made from: a location, its state in one snapshot, and the cleaning's answer."""

    listing: Listing
    state: AcidState
    write_ids: ValidWriteIds
    txns: ValidTxns | None
    cleaning: CleaningAnswer
    _by_name: dict[str, Verdict] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {verdict.name: verdict for verdict in self.state.verdicts})

    def verdict(self, name: str) -> Verdict | None:
        """The verdict on one child of the location; None for a name that is not there."""
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True)
class Doubts:
    """What :mod:`acidctl.acid.doubts` says of a location: because of it the planner keeps entries back.

    Attributes:
        unproven: current directories that may not be finished, with the reason.
        halves: obsolete deltas that only one half of a minor compaction hides, with that half.
        unmarked: aborted bases that Hive 2 may have compacted.
    """

    unproven: Mapping[str, str]
    halves: Mapping[str, str]
    unmarked: set[str]

    @classmethod
    def of(cls, evidence: Evidence) -> Doubts:
        """Those of one location."""
        listing, state = evidence.listing, evidence.state
        return cls(
            doubtful(listing, state, evidence.write_ids, evidence.txns),
            half_finished(state),
            unmarked_bases(listing, state),
        )


def blocking_ids(directory: AcidDirectory, evidence: Evidence) -> tuple[IdRun, ...]:
    """The open write ids at or below a compacted base."""
    ids = evidence.write_ids
    below = tuple(id_ for id_ in ids.open if id_ <= directory.max_write_id)
    # A list may name its smallest open id without listing it (section 7.2).
    return id_list_runs(below or (ids.min_open,), IdStatus.OPEN)


def id_noun(runs: tuple[IdRun, ...]) -> str:
    return "id" if count_of(runs) == 1 else "ids"


def may_clean(verdict: Verdict, evidence: Evidence, doubts: Doubts) -> tuple[MayClean, str]:
    answer = evidence.cleaning
    if evidence.state.history_problem and verdict.kind not in (EntryKind.STAGING, EntryKind.OTHER):
        return MayClean.NO, "no: nothing is cleaned by a snapshot that is refused"
    if verdict.state is State.CURRENT:
        return MayClean.NO, "no: readers of this snapshot read it"
    if verdict.name in answer.leftovers:
        against = answer.leftovers[verdict.name]
        return MayClean.NO, "no: only `acidctl clean --leftovers` takes it" + (f", but {against}" if against else "")
    if verdict.kind in (EntryKind.STAGING, EntryKind.OTHER):
        return MayClean.NO, "no: cleaning takes nothing of its kind"
    if verdict.state is State.IGNORED:
        return MayClean.NO, "no: it is neither obsolete nor aborted"
    if answer.refusal:
        return MayClean.NO, f"no: nothing here may be cleaned: {answer.refusal}"
    if verdict.name in answer.removable:
        why = "no reader returns its rows" if verdict.state is State.ABORTED else "new readers do not need it"
        return MayClean.YES, f"yes: {why}"
    if verdict.name in answer.waiting:
        return MayClean.KEPT_BACK, f"kept back: {answer.waiting[verdict.name]}"
    return MayClean.KEPT_BACK, f"kept back: {_kept_back(verdict, evidence, doubts)}"


def _kept_back(verdict: Verdict, evidence: Evidence, doubts: Doubts) -> str:
    """The planner's reason; of several doubts in the location that on what takes this one's place."""
    reason = evidence.cleaning.kept_back.get(verdict.name, "the plan leaves it out")
    unproven = doubts.unproven
    mine = [f"{name}: {unproven[name]}" for name in verdict.reason.by if name in unproven]
    return mine[0] if mine and mine[0] in reason else reason


def next_step(verdict: Verdict, runs: tuple[IdRun, ...], evidence: Evidence, doubts: Doubts) -> str:
    answer, name = evidence.cleaning, verdict.name
    if verdict.kind is EntryKind.STAGING:
        return _next_of_staging(name, answer)
    if verdict.state is State.CURRENT:
        return answer.hint if evidence.state.history_problem else _next_of_current(verdict, runs)
    if verdict.state is State.IGNORED:
        return _next_of_ignored(verdict, runs, evidence)
    if answer.refusal:
        return answer.hint
    if name in answer.waiting:
        return _next_of_waiting(answer.waiting[name], "`acidctl clean`")
    if name in answer.kept_back:
        return _next_of_kept_back(verdict, evidence, doubts)
    if verdict.state is State.ABORTED:
        return "`acidctl clean` takes it at any time"
    return f"`acidctl clean` takes it; let {_old_readers(verdict, evidence)} end first"


def _next_of_staging(name: str, answer: CleaningAnswer) -> str:
    if name in answer.unfinished:
        return "run `acidctl compact`: it finishes the publication that was interrupted"
    if name in answer.waiting:
        return _next_of_waiting(answer.waiting[name], "`acidctl clean --leftovers`")
    if answer.leftovers.get(name) == "":
        return "`acidctl clean --leftovers` takes it"
    return leftover(name)[1]


def _next_of_waiting(reason: str, command: str) -> str:
    if "gives no time" in reason:
        return f"{command} takes it with --older-than 0 --unsafe-retention: when nothing reads or writes the table"
    return f"{command} takes it then"


def _next_of_kept_back(verdict: Verdict, evidence: Evidence, doubts: Doubts) -> str:
    name = verdict.name
    if name in doubts.unmarked:
        return "see whether other directories hold its rows; then remove it by hand"
    if name in doubts.halves:
        return f"the missing twin of {doubts.halves[name]} first: see what became of the minor compaction that wrote it"
    if "Hive puts it" in evidence.cleaning.kept_back[name]:
        return "see whose file that is, and move it away"
    why, parts = _kept_back(verdict, evidence, doubts), []
    if "is committed is not known" in why or "_v directories" in why:
        parts.append("give --valid-txns, or --assume-committed when no compaction is at work")
    if "its queries" in why:
        parts.append("wait until that transaction has ended, and give a newer --valid-txns")
    elif "high watermark" in why:
        parts.append("give a newer --write-ids")
    if "writer" in why or "INSERT OVERWRITE" in why:
        parts.append("wait until the writer has ended, or give --write-ids")
    return "; ".join(parts)


def _old_readers(verdict: Verdict, evidence: Evidence) -> str:
    """Those queries that may still read an obsolete entry."""
    by = evidence.verdict(verdict.reason.by[0]) if verdict.reason.by else None
    directory = by.directory if by else None
    if by is None or directory is None:
        return "queries that began earlier"
    if directory.visibility_txn:
        return f"queries that began before transaction {directory.visibility_txn} was committed"
    if directory.kind is Kind.BASE and by.compacted and directory.max_write_id != MINL:
        wid = directory.max_write_id
        return f"queries that began before {by.name} was there, or while a write id up to {wid} was open,"
    return f"queries that began before {by.name} was there"


def _next_of_current(verdict: Verdict, runs: tuple[IdRun, ...]) -> str:
    undecided = of_status(runs, IdStatus.OPEN, IdStatus.ABOVE)
    if verdict.kind in (EntryKind.DELTA, EntryKind.DELETE_DELTA):
        if undecided:
            return f"write {id_noun(undecided)} {spans(undecided)} must be committed or aborted, then a compaction"
        if aborted := of_status(runs, IdStatus.ABORTED):
            verb = "is" if count_of(aborted) == 1 else "are"
            return f"a major compaction first: write {id_noun(aborted)} {spans(aborted)} {verb} aborted inside"
        return "a compaction first: it writes these events to a wider delta or a base"
    if verdict.kind is EntryKind.BASE:
        return "a major compaction first: its newer base takes the place of this one"
    return "a major compaction first: no base holds these rows yet"


def _next_of_ignored(verdict: Verdict, runs: tuple[IdRun, ...], evidence: Evidence) -> str:
    code, directory = verdict.reason.code, verdict.directory
    if code == "visibility-open" and directory:
        return f"transaction {directory.visibility_txn} must be committed (then it is read) or aborted"
    if code == "open-below-base" and directory:
        blocking = blocking_ids(directory, evidence)
        return f"write {id_noun(blocking)} {spans(blocking)} must be committed or aborted"
    if code == "unparseable":
        return "Hive fails on this name: see what wrote it, and rename or move it by hand"
    if code == "partition":
        return f"it is a location of its own: run `acidctl why` on {verdict.name}"
    if code == "hidden":
        return ""
    waiting = of_status(runs, IdStatus.OPEN)
    parts = [f"write {id_noun(waiting)} {spans(waiting)} must be committed or aborted"] if waiting else []
    if above := of_status(runs, IdStatus.ABOVE):
        parts.append(f"a newer snapshot, with a high watermark of {above[-1].last} or more: this one ends before it")
    if not parts and directory:
        # Hive drops it without a word: a committed id it has lies below what is read, the others are aborted.
        parts.append(f"a base or a wider delta that reaches write id {directory.max_write_id} first")
    return "; ".join(parts)


def leftover(name: str) -> tuple[str, str]:
    """What a hidden directory of a writer is, and what clears it (sections 1.4 and 8.6)."""
    if name == ".acidctl-trash":
        return "what earlier cleaning runs took away", "`acidctl purge` deletes it, `acidctl restore` brings it back"
    if name == ".acidctl-backup":
        return (
            "what earlier repairs replaced",
            "`acidctl repair forget` deletes it, `acidctl repair undo` brings it back",
        )
    if name == ".acidctl-lock":
        return (
            "the lock of a run of acidctl that changes the location",
            "it goes when that run ends; the next one takes it over when its process has died on the same machine, and "
            "`--break-lock` removes that of another machine",
        )
    if name.startswith(".acidctl-lock-"):
        return "the claim of a run that removes a stale lock", "it goes at once; `acidctl clean --leftovers` if not"
    if name.startswith(".hive-staging"):
        return (
            "the staging of a query of Hive's, at work or dead",
            "when no query of that time runs, remove it by hand",
        )
    if name.startswith("_tmp."):
        return (
            f"the manifest of a direct insert into {name.removeprefix('_tmp.')}, at work or dead",
            "the insert removes it; when none is at work, remove it by hand",
        )
    if name.startswith("_tmp_"):
        return (
            "the staging of a compaction, at work or dead",
            "the next `acidctl compact` removes what a dead one of this machine left; Hive's, and those of other "
            "machines, are removed by hand when no compaction is at work",
        )
    return "scratch of a writer, at work or dead", "when no writer is at work, remove it by hand"
