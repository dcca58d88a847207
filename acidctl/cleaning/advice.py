"""Advice on what a user does next about an entry that a cleaning does not take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.names import manifest_for
from acidctl.location.change.lock import LOCK


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
        Advice(Action.PURGE, "`acidctl purge` deletes it for good"),
    ),
    HiddenKind(
        ".acidctl-backup", "what earlier repairs replaced",
        Advice(Action.PURGE, "`acidctl purge` deletes it for good"),
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
