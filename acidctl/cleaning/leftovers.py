"""Hidden entries: their kinds, the advice on each, and abandoned staging that dead writers left (format 1.4, 8.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.listing import Ages, Listing
from acidctl.acid.names import Kind, acid_directory, manifest_for, other_kind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import select
from acidctl.acid.writeids import Range, ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.cleaning.retention import LaterEntry, Policy
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import OWNER, owner_at
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import FileSystem


class Action(StrEnum):
    """A next step; programs may rely on these values."""

    ALLOW_CLEANUP = "allow-cleanup"
    BY_HAND = "by-hand"
    CLEAN = "clean"
    CLEAN_BY_FORCE = "clean-by-force"
    CLEAN_LATER = "clean-later"
    COMPACT = "compact"
    DECIDE = "decide"
    FOLLOW_HINT = "follow-hint"
    GIVE_LISTS = "give-lists"
    LOOK_INSIDE = "look-inside"
    PURGE = "purge"
    REPAIR = "repair"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Advice:
    """A next step; its `text` completes a sentence."""

    action: Action
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class HiddenKind:
    """A kind of hidden entry that acidctl or a writer makes in a location (format sections 1.4 and 8.6).

    Attributes:
        what: what an entry of this kind is, whether its writer is at work or dead.
        clears: the advice by which such an entry disappears.
        abandoned: what a dead writer's entry is; empty if a cleaning never takes one.
    """

    prefix: str
    what: str
    clears: Advice
    abandoned: str = ""


LOCK_CLAIM = HiddenKind(
    f"{LOCK}-", "the claim of a run that removes a stale lock",
    Advice(Action.WAIT, "it goes at once; `acidctl clean --leftovers` if not"), "claim on a stale lock",
)  # fmt: skip
QUERY_STAGING = HiddenKind(
    ".hive-staging", "the staging of a query of Hive's, at work or dead",
    Advice(Action.BY_HAND, "when no query of that time runs, remove it by hand"), "staging of a query",
)  # fmt: skip
COMPACTION_STAGING = HiddenKind(
    "_tmp_", "the staging of a compaction, at work or dead",
    Advice(
        Action.COMPACT,
        "the next `acidctl compact` removes what a dead one of this machine left; Hive's, and those of other machines, "
        "are removed by hand when no compaction is at work",
    ),
    "staging of a compaction",
)  # fmt: skip
INSERT_MANIFEST = HiddenKind(
    "_tmp.", "the manifest of a direct insert, at work or dead",
    Advice(Action.BY_HAND, "the insert removes it; when none is at work, remove it by hand"), "manifest of an insert",
)  # fmt: skip
_OTHERS = (
    LOCK_CLAIM,
    HiddenKind(
        LOCK, "the lock of a run of acidctl that changes the location",
        Advice(
            Action.WAIT,
            "it goes when that run ends; the next one takes it over when its process has died on the same machine, and "
            "--break-lock removes that of another machine",
        ),
    ),
    HiddenKind(
        ".acidctl-trash", "what earlier cleaning runs took away",
        Advice(Action.PURGE, "`acidctl purge` deletes it permanently"),
    ),
    HiddenKind(
        ".acidctl-backup", "what earlier repairs replaced",
        Advice(Action.PURGE, "`acidctl purge` deletes it permanently"),
    ),
    QUERY_STAGING,
    COMPACTION_STAGING,
)  # fmt: skip
_SCRATCH = HiddenKind(
    "", "scratch of a writer, at work or dead",
    Advice(Action.BY_HAND, "when no writer is at work, remove it by hand"),
)  # fmt: skip


def hidden_kind(name: str) -> HiddenKind:
    """Return the kind of a hidden entry of a location."""
    if manifest_for(name):
        return INSERT_MANIFEST
    return next((kind for kind in _OTHERS if name.startswith(kind.prefix)), _SCRATCH)


_COMPACTION, _QUERY, _CLAIM = COMPACTION_STAGING.prefix, QUERY_STAGING.prefix, LOCK_CLAIM.prefix


def is_leftover(name: str) -> bool:
    """Say if a hidden name is a writer's staging or a claim on a lock; no other hidden entry is ever removed."""
    if target := manifest_for(name):
        return target.startswith(tuple(f"{kind.value}_" for kind in Kind))
    return name.startswith((_COMPACTION, _QUERY, _CLAIM))


def is_query_staging(name: str) -> bool:
    """Say if a name is the staging of a query, which does not depend on other entries of the location."""
    return name.startswith(_QUERY)


def query_staging(fs: FileSystem, path: str) -> Snapshot:
    """Return a snapshot of only the staging of queries in a directory.

    Hive stages inserts into partitions in the directory of the table, which is not a location.

    Raises:
        NotFoundError, AccessError, StorageError: the directory cannot be listed.
    """
    top = tuple(entry for entry in fs.list_dir(path).entries if entry.is_dir and is_query_staging(entry.path))
    entries = fs.list_tree(path, Listing(path, top)).entries if top else ()
    # Some stores list the whole directory at once.
    listing = Listing(path, tuple(entry for entry in entries if is_query_staging(entry.path)))
    return Snapshot(fs, path, listing, select(listing), ValidWriteIds(), None, {})


def find_leftovers(
    snapshot: Snapshot, ages: Ages, gone: set[str], policy: Policy, now: float
) -> tuple[dict[str, Reason], dict[str, Reason], list[LaterEntry]]:
    """Find the abandoned staging of a location.

    Args:
        gone: visible names that the same plan removes.
        now: seconds since the epoch.

    Returns:
        The names that may be removed, in the order of removal, and those that are old enough but must stay, both with
        the reason; and the entries that are too young.
    """
    removable: dict[str, Reason] = {}
    kept_back: dict[str, Reason] = {}
    young: list[LaterEntry] = []
    directories = {
        entry.path.partition("/")[0]
        for entry in snapshot.listing.entries
        if entry.is_dir or "/" in entry.path or entry.path.startswith(_CLAIM)
    }
    for name in sorted(filter(is_leftover, directories)):
        since = ages.times.get(name)
        if not ages.is_old(name, policy.cutoff(now), unknown=policy.older_than <= 0):
            why = reason(Code.AGE_UNKNOWN)
            if since is not None:
                why = reason(Code.TOO_YOUNG, since=since, until=policy.until(since), how="written")
            young.append(LaterEntry(name, since, policy.until(since), why))
        elif against := _objection(snapshot, name, directories - gone):
            kept_back[name] = against
        else:
            removable[name] = reason(Code.LEFTOVER, what=hidden_kind(name).abandoned, since=since)
    return removable, kept_back, young


def _objection(snapshot: Snapshot, name: str, staying: set[str]) -> Reason | None:
    if target := manifest_for(name):
        # Only the manifest of a direct insert shows that its directory may be unfinished.
        if target not in staying:
            return None
        directory = acid_directory(target)
        ids = snapshot.write_ids
        if directory and not ids.is_everything:
            low = max(0, directory.min_write_id)
            if ids.range_valid(low, directory.max_write_id) is Range.ALL:
                return None
        return reason(Code.INSERT_UNKNOWN, by=(target,))
    is_claim = name.startswith(_CLAIM)
    if not (is_claim or name.startswith(_COMPACTION)):
        return None
    path = name if is_claim else f"{name}/{OWNER}"
    if not is_claim:
        files = snapshot.listing.by_child[name]
        for staged in sorted({entry.path.split("/")[1] for entry in files if "/" in entry.path} - staying):
            if (twin := other_kind(staged)) and twin in staying:
                return reason(Code.HALF_A_MINOR, by=(staged, twin), how="holds")
        if not any(entry.path == path and not entry.is_dir for entry in files):
            return None
    try:  # whether the process that it names still runs, as far as this machine can see
        owner = owner_at(snapshot.fs, snapshot.absolute(path))
    except AcidctlError as error:
        return reason(Code.OWNER_AT_WORK, is_claim=is_claim, why=error.why or error.what)
    return reason(Code.OWNER_AT_WORK, is_claim=is_claim, owner=str(owner)) if owner and owner.is_alive() else None
