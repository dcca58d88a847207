"""What can go wrong between acidctl and a metastore."""

from __future__ import annotations

from acidctl.errors import AccessError, AcidctlError, ConflictError, NotFoundError, StorageError, UsageProblem


class MetastoreError(StorageError):
    """The metastore failed, or cannot be reached."""

    code = "metastore"


class Unreachable(MetastoreError):
    """No answer: the connection could not be made, or was lost; what was asked for may have been done."""


class NoAnswer(Unreachable):
    """Time ran out: asking again would take as long again."""


class Unreadable(MetastoreError):
    """An answer that cannot be read; what was asked for may have been done."""


class UnknownMethod(UsageProblem):
    """The server does not have a method."""


class LostTransaction(ConflictError):
    """A transaction or a lock is not there any more: somebody ended it, or it timed out."""


_NOT_FOUND = {"NoSuchObjectException", "UnknownDBException"}
_LOST = {"NoSuchTxnException", "TxnAbortedException", "NoSuchLockException", "TxnOpenException"}


def refusal_of(kind: str, message: str, doing: str, server: str) -> AcidctlError:
    """The error for an exception that a server declares.

    Args:
        kind: its name in Hive's interface.
        message: its own words.
        doing: the method that was called.
    """
    what = f"the metastore {server} refused {doing}"
    why = f"{message or 'it says no more'} ({kind})"
    if kind in _NOT_FOUND or message.endswith(" table not found"):  # of which kind that is, versions disagree
        return NotFoundError(what, why, "check the names of database, table and partition")
    if kind in _LOST:
        return LostTransaction(what, why, "run it again")
    if "ermission denied" in message or "not allowed" in message or "AccessControl" in message:
        return AccessError(what, why, "ask for the permission, or run as another user")
    return MetastoreError(what, why, "see the metastore's log")
