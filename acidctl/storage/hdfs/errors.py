"""Map the exceptions of a NameNode or DataNode, which WebHDFS and RPC share, to acidctl's own."""

from __future__ import annotations

from acidctl.base.errors import AccessError, AcidctlError, ConflictError, NotFoundError, StorageError
from acidctl.base.printable import printable
from acidctl.storage.retry import PassingError

_Row = tuple[type[AcidctlError], str, str]


class QuotaError(StorageError):
    """A quota of space is used up: the file was created, but not all of its bytes were written."""


_USER_HINT = "name another user: USER@ before the host, or HADOOP_USER_NAME; with Kerberos, kinit as one who may"
_STANDBY_HINT = (
    "name the active one, or both: webhdfs://nn1:9870,nn2:9870/path, or the nameservice with HADOOP_CONF_DIR"
)
_SAFE_MODE_HINT = "wait until the NameNode has started, or ask for `hdfs dfsadmin -safemode leave`"

_BY_EXCEPTION: dict[str, _Row] = {
    "FileNotFoundException": (NotFoundError, "no such file or directory", "check the spelling of the path"),
    "PathNotFoundException": (NotFoundError, "no such file or directory", "check the spelling of the path"),
    "FileAlreadyExistsException": (ConflictError, "it exists already", "something else made it, or an earlier run did"),
    "AlreadyBeingCreatedException": (ConflictError, "somebody else is writing it", "try again when that is done"),
    "RecoveryInProgressException": (ConflictError, "somebody else is writing it", "try again when that is done"),
    "LeaseExpiredException": (ConflictError, "somebody else removed or took it over", "list the location again"),
    "ParentNotDirectoryException": (NotFoundError, "a parent of it is a file, not a directory", "check the path"),
    "AccessControlException": (AccessError, "permission denied", _USER_HINT),
    "AuthorizationException": (AccessError, "this user may not act for that one", "check hadoop.proxyuser settings"),
    "SecurityException": (AccessError, "the server wants another kind of login", "kinit, and the option kerberos=true"),
    "InvalidToken": (AccessError, "the delegation token is not valid (any more)", "get a new token"),
    "StandbyException": (PassingError, "this NameNode is on standby", _STANDBY_HINT),
    "SafeModeException": (StorageError, "HDFS is in safe mode, nothing can be written", _SAFE_MODE_HINT),
    "RetriableException": (PassingError, "the NameNode is not ready yet", "try again in a minute"),
    "InvalidPathException": (StorageError, "HDFS does not allow such a name", "use a name without ':' and '//'"),
    "DSQuotaExceededException": (QuotaError, "the space quota is used up", "free some space or raise the quota"),
    "QuotaByStorageTypeExceededException": (
        QuotaError,
        "a space quota is used up",
        "free some space or raise the quota",
    ),
    "NSQuotaExceededException": (StorageError, "the quota of names is used up", "remove files or raise the quota"),
    "SnapshotException": (StorageError, "a snapshot protects it", "delete the snapshots of the directory first"),
    "UnsupportedOperationException": (StorageError, "the server does not know this operation", ""),
}

_BY_WORDS = {"Name node is in safe mode": "SafeModeException", "Invalid path name": "InvalidPathException"}


def from_remote(what: str, exception: str | None, message: str) -> AcidctlError:
    """Return the error for a server's exception, by its class; an IPC wrapper has the class in its message.

    Args:
        exception: the class, with or without its package; None if the answer does not name it.
        message: the server's message, perhaps with Java's stack behind the first line.
    """
    first = message.strip().partition("\n")[0]
    if "InvalidToken" in first:  # within a SecurityException that says less
        exception = "InvalidToken"
    by_words = (name for words, name in _BY_WORDS.items() if words in first)
    for name in ((exception or "").rpartition(".")[2], *(word for word in _BY_EXCEPTION if word in first), *by_words):
        if name in _BY_EXCEPTION:
            kind, why, hint = _BY_EXCEPTION[name]
            return kind(what, why, hint)
    if "already exists" in first or "must both be directories" in first:
        return ConflictError(what, "it exists already", "something else made it meanwhile, or an earlier run left it")
    if "could only be replicated to 0 nodes" in first or "could only be written to 0" in first:
        return StorageError(what, "no DataNode can take it", "look for full disks: hdfs dfsadmin -report")
    return StorageError(what, printable(f"{exception}: {first}"), "see the NameNode's log")
