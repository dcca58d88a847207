"""Errors of a metastore and of the connection to it."""

from __future__ import annotations

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    DeadlineError,
    NotFoundError,
    StorageError,
    UsageProblem,
)


class MetastoreError(StorageError):
    """The metastore failed, or cannot be reached."""

    code = "metastore"


class Unreachable(MetastoreError):
    """The connection failed or was lost; the server may have carried out the request."""


class NoAnswer(Unreachable):
    """The call timed out; a second call would probably time out, too."""


class NotAsked(DeadlineError, NoAnswer):
    """The deadline of the run had passed before the call."""


class Unreadable(MetastoreError):
    """The answer cannot be read; the server may have carried out the request."""


class UnknownMethod(UsageProblem):
    """The server does not have a method."""


class AlreadyExists(ConflictError):
    """The object that was to be made is there already."""


class LostTransaction(ConflictError):
    """A transaction or a lock no longer exists: somebody ended it, or it timed out."""


_NOT_FOUND = {"NoSuchObjectException", "UnknownDBException"}
_LOST = {"NoSuchTxnException", "TxnAbortedException", "NoSuchLockException", "TxnOpenException"}


def refusal_of(kind: str, message: str, doing: str, server: str) -> AcidctlError:
    """Convert an exception that the interface declares."""
    what = f"the metastore {server} refused {doing}"
    why = f"{message or 'it says no more'} ({kind})"
    if kind in _NOT_FOUND or message.endswith(" table not found"):  # versions disagree on the kind of this one
        return NotFoundError(what, why, "check the names of database, table and partition")
    if kind == "AlreadyExistsException":
        return AlreadyExists(what, why, "choose another name")
    if kind in _LOST:
        return LostTransaction(what, why, "run it again")
    if "ermission denied" in message or "not allowed" in message or "AccessControl" in message:
        return AccessError(what, why, "ask for the permission, or run as another user")
    return MetastoreError(what, why, "see the metastore's log")
