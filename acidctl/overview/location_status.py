"""The status of one location, by one listing and the rules of compaction, cleaning and publication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import LAST_SECONDS
from acidctl.acid.reasons import Reason
from acidctl.acid.triggers import NO_COST, Advice, advise
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import TRASH, TrashRun
from acidctl.errors import AcidctlError, BadDataError, RefusedError
from acidctl.location.change.publication import half_published
from acidctl.location.change.work_log import logged_at
from acidctl.location.contents import Child, children_of
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import parent_of

if TYPE_CHECKING:  # what it needs is there only where a metastore is used
    from acidctl.hive.waiting import Waiting

DAY_SECONDS = 86400
"""What may go within a day goes soon."""


class Use(StrEnum):
    """What bytes are for."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class DueCompaction:
    """A compaction that the thresholds ask for.

    Attributes:
        gain: bytes that every full read saves for each byte that is rewritten once.
    """

    location: str
    kind: CompactionKind
    gain: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class KeptBack:
    """What readers do not need, and the rules of cleaning keep for one reason."""

    reason: Reason
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class InTheTrash:
    """What earlier cleanings left in the trash of a location, told from names and sizes alone.

    Attributes:
        oldest: when the first of the runs began, seconds since the epoch; None where no name tells.
    """

    runs: int = 0
    bytes: int = 0
    oldest: float | None = None


@dataclass(frozen=True, slots=True)
class LocationStatus:
    """What a location holds, what it costs its readers, and what it needs.

    Attributes:
        root: the directory of its table, with its store.
        table: the name of its table: by the metastore, or its directory.
        uses: bytes by what they are for; `bytes` are all but the trash.
        reading: what it costs its readers; nothing if it cannot be read.
        deltas: how many current deltas and delete deltas there are.
        source: the kind of what says which write ids count.
        due: None where no compaction is.
        free: bytes that a cleaning can free now; `soon` within a day, `later` after that, or nobody knows when.
        aborted: bytes of what was aborted.
        unfinished: staging of publications that were interrupted half-way.
        refused: why it cannot be compacted, or cleaned, as it is.
        waiting: of a table that a metastore knows: what waits for cleaning there; None where nothing does.
        last_done: when acidctl changed it last, seconds since the epoch; None where no log tells.
    """

    location: str
    root: tuple[str, str]
    table: str
    hive_name: str
    uses: Counter[Use]
    reading: Advice
    deltas: int
    source: str
    due: DueCompaction | None
    free: int
    soon: int
    later: int
    aborted: int
    kept_back: tuple[KeptBack, ...]
    unfinished: tuple[str, ...]
    trash: InTheTrash
    refused: tuple[AcidctlError, ...]
    waiting: Waiting | None
    last_done: float | None

    @property
    def bytes(self) -> int:
        """All bytes but those of the trash."""
        return self.uses.total() - self.uses[Use.TRASH]

    @property
    def helped(self) -> bool:
        """Whether a compaction would save reads, although no threshold asks for it."""
        return bool(self.reading.kind and not self.due and not self.refused)


def status_of(found: Found, lists: SnapshotLists, policy: Policy, now: float) -> LocationStatus:
    """Return the status of a location, by one listing.

    Args:
        lists: what was said of the snapshot.
        policy: what a cleaning may take.
        now: seconds since the epoch.

    Raises:
        AcidctlError: it cannot be listed, or its snapshot cannot be told.
    """
    found, lists = found.settled(lists)
    snapshot = found.snapshot(lists, readers=True, settled=False)
    state, children = snapshot.state, children_of(snapshot)
    sizes = {child.verdict.name: child.amount.bytes for child in children}
    uses = _uses(children)
    unfinished = tuple(staging for staging, _ in half_published(snapshot))
    refused: dict[str, AcidctlError] = {}
    due = plan = None
    try:
        snapshot.require_history()
        snapshot.require_agreement()
        plan = plan_cleaning(snapshot, policy, now)
    except AcidctlError as error:
        if not unfinished:  # or else it is refused for just that
            refused[str(error)] = error
    try:
        due = _due(found, lists)
    except (BadDataError, RefusedError) as error:
        refused[str(error)] = error
    soon, later = _waiting_bytes(plan, sizes, now)
    root = _root_of(found)
    hive_name = found.hive.full_name if found.hive else ""
    return LocationStatus(
        location=found.shown,
        root=root,
        table=hive_name or found.fs.display(root[1]),
        hive_name=hive_name,
        uses=uses,
        reading=NO_COST if state.history_problem else advise(snapshot.listing, state),
        deltas=len(state.deltas),
        source=snapshot.source.kind,
        due=due,
        free=plan.bytes if plan else 0,
        soon=soon,
        later=later,
        aborted=uses[Use.ABORTED],
        kept_back=_kept_back(plan, sizes),
        unfinished=unfinished,
        trash=_trash_of(snapshot),
        refused=tuple(refused.values()),
        waiting=_held_up(found, snapshot),
        last_done=logged_at(found.look.log),
    )


def _due(found: Found, lists: SnapshotLists) -> DueCompaction | None:
    """What `acidctl compact --auto` would do there."""
    from acidctl.compaction.plan import below_straddlers  # noqa: PLC0415 - with Arrow: --help has none
    from acidctl.compaction.refusals import refuse_layout  # noqa: PLC0415 - as above
    from acidctl.compaction.request import (  # noqa: PLC0415 - as above
        CompactionRequest,
        as_its_owner_wishes,
        decision_on,
        why_idle,
    )

    request = CompactionRequest()
    if found.hive:
        try:
            request = as_its_owner_wishes(request, found.hive, lists.wishes_of(found.hive))
        except RefusedError:  # nobody compacts it, and Hive does not either
            return None
    snapshot = found.snapshot(lists, compactor=True, settled=False)
    if snapshot.state.history_problem:
        return None
    snapshot = below_straddlers(snapshot)
    refuse_layout(snapshot)
    decision, _ = decision_on(snapshot, request)
    if decision.kind is None or why_idle(snapshot, decision):
        return None
    gain = advise(snapshot.listing, snapshot.state).gain
    return DueCompaction(found.shown, decision.kind, gain, decision.reason)


def _uses(children: Iterable[Child]) -> Counter[Use]:
    uses: Counter[Use] = Counter()
    for child in children:
        verdict = child.verdict
        uses[Use.TRASH if verdict.name == TRASH else Use(verdict.state.value)] += child.amount.bytes
    return uses


def _waiting_bytes(plan: CleaningPlan | None, sizes: dict[str, int], now: float) -> tuple[int, int]:
    """What goes within a day when nothing else happens, and what goes after that."""
    soon = later = 0
    for one in plan.waiting if plan else ():
        size = sizes.get(one.name, 0)
        if (LAST_SECONDS if one.until is None else one.until) <= now + DAY_SECONDS:
            soon += size
        else:
            later += size
    return soon, later


def _kept_back(plan: CleaningPlan | None, sizes: dict[str, int]) -> tuple[KeptBack, ...]:
    by_reason: dict[str, KeptBack] = {}
    for name, why in plan.kept_back if plan else ():
        key = f"{why.code} {why.ids}"
        before = by_reason.get(key, KeptBack(why, 0, 0))
        by_reason[key] = KeptBack(before.reason, before.entries + 1, before.bytes + sizes.get(name, 0))
    return tuple(by_reason.values())


def _trash_of(snapshot: Snapshot) -> InTheTrash:
    runs: dict[str, None] = {}
    size = 0
    for path, length, _, is_dir in snapshot.listing.by_child.get(TRASH, ()):
        _, _, below = path.partition("/")
        if not is_dir:
            size += length
        if below and (is_dir or "/" in below):
            runs[below.partition("/")[0]] = None
    began = [when for run in runs if (when := TrashRun(snapshot.path, run).began) is not None]
    return InTheTrash(len(runs), size, min(began, default=None))


def _root_of(found: Found) -> tuple[str, str]:
    root = found.location.path
    for _ in found.location.partition:
        root = parent_of(root)
    return found.fs.url, root


def _held_up(found: Found, snapshot: Snapshot) -> Waiting | None:
    if found.hive is None:
        return None
    from acidctl.hive.waiting import Waiting, amount_waiting  # noqa: PLC0415 - with thrift: only for a metastore

    size, replaced = amount_waiting(snapshot)
    partition = "/".join(f"{key}={value}" for key, value in found.location.partition)
    return Waiting(found.hive.database, found.hive.name, partition, None, size, replaced) if size else None
