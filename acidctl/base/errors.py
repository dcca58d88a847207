"""Define the errors that a user may meet: what happened, why, what to do, and the exit status of each class.

The command line prints the three lines and exits with ``exit_status``.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit statuses of commands, each with its meaning in one line, as in docs/reference/exit-statuses.md."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitStatus:
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    DONE = 0, "done"
    FAILED = 1, "acidctl itself failed: a bug, please report it with --debug"
    USAGE = 2, "the command line cannot be used as it is"
    NOT_FOUND = 3, "a path does not exist, or nothing there is what the command needs"
    BAD_DATA = 4, "a file is damaged, is not ORC, or breaks the Hive ACID layout; or a row to write does not fit"
    ACCESS = 5, "permission denied, or the location cannot be written"
    STORAGE = 6, "the storage failed, cannot be reached, or cannot do what is needed"
    REFUSED = (
        7,
        "refused, because it was not confirmed, would not be safe, or another writer of the same rows came first",
    )
    ENVIRONMENT = 8, "Java, Spark or a Python package is missing or cannot be used"
    CONFLICT = 9, "the location changed meanwhile, another run holds its lock, or the target exists already"
    HISTORY = 10, "not enough history: a compaction has destroyed what the snapshot asks for"
    VERIFY = 11, "the result failed its verification; nothing was published"
    NOTHING_TO_DO = 12, "there was nothing to do (only with --exit-code)"
    POSTPONED = 13, "time or bytes ran out before everything was done (mostly only with --exit-code)"
    FINDINGS = (
        14,
        "the validation found errors, or what else --fail-on names; or something needs attention (status), or rows are "
        "held (erasure, erase)",
    )
    UNCHECKED = 15, "nothing wrong was found, but not everything could be checked"
    MEMORY = 16, "there is not enough memory for what was asked for"
    NOT_LOOKED_AT = 17, "a named place holds no location, or fewer were found than in the run before"
    INTERRUPTED = 130, "interrupted by a signal"
    # What a shell reports for a program that SIGPIPE ended: `acidctl cat t | head` ends quietly, as `cat` does.
    BROKEN_PIPE = 141, "the program that read the output has ended, as head does"


class AcidctlError(Exception):
    """Something that acidctl can explain.

    Args:
        what: one line, what failed, naming the path or value.
        why: one line, the cause, or an empty string when `what` already says it.
        hint: one line, what the user can do, or an empty string; options and commands as they are typed.
    """

    exit_status = ExitStatus.FAILED
    code = "error"

    def __init_subclass__(cls, status: ExitStatus | None = None) -> None:
        if status is not None:
            cls.exit_status, cls.code = status, status.name.lower().replace("_", "-")

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return ": ".join(part for part in (self.what, self.why) if part)

    def __reduce__(self) -> tuple[type[AcidctlError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.hint)


class UsageProblem(AcidctlError, status=ExitStatus.USAGE):
    """An option, an argument or a value in a configuration cannot be used."""


class NotFoundError(AcidctlError, status=ExitStatus.NOT_FOUND):
    """A path does not exist, or holds nothing of the kind asked for."""


class GoneError(NotFoundError):
    """A location that a walk or a metastore named a moment ago was dropped since.

    A command for many locations skips it; a command for this one fails.
    """

    code = "gone"


class DeadlineError(AcidctlError, status=ExitStatus.POSTPONED):
    """The deadline of the run has passed; a location that was not finished is left for another run."""


class NotLookedAtError(AcidctlError, status=ExitStatus.NOT_LOOKED_AT):
    """A named place holds no table, or fewer locations than the last recorded run found there."""


class BadDataError(AcidctlError, status=ExitStatus.BAD_DATA):
    """A file or a name breaks the format."""


class AccessError(AcidctlError, status=ExitStatus.ACCESS):
    """The storage denies access: permissions, credentials, a read-only file system."""


class StorageError(AcidctlError, status=ExitStatus.STORAGE):
    """The storage failed or cannot do what is needed."""


class NoSpaceError(StorageError):
    """The disk or the quota is full."""


class RefusedError(AcidctlError, status=ExitStatus.REFUSED):
    """Doing it would not be safe, or was not confirmed."""


class EnvironmentProblem(AcidctlError, status=ExitStatus.ENVIRONMENT):
    """Java, Spark or a Python package is missing or of the wrong version."""


class ConflictError(AcidctlError, status=ExitStatus.CONFLICT):
    """The location changed meanwhile, or the target exists already."""


class StatementConflict(ConflictError):
    """Another writer changed the same rows first, or held a lock on the table for too long: nothing was written."""

    exit_status, code = ExitStatus.REFUSED, "statement-conflict"


class HistoryError(AcidctlError, status=ExitStatus.HISTORY):
    """The snapshot asks for history that a compaction has destroyed (section 6.2)."""


class VerifyError(AcidctlError, status=ExitStatus.VERIFY):
    """A result differs from what went in; nothing was published."""


class MemoryProblem(AcidctlError, status=ExitStatus.MEMORY):
    """The memory of the machine, of the container or of a limit ran out."""


def out_of_memory(doing: str = "", detail: str = "") -> MemoryProblem:
    """Return the error for a MemoryError.

    Args:
        doing: what was being read, ``stripe 0 of FILE``.
        detail: the message of the original error.
    """
    what = f"there is not enough memory to read {doing}" if doing else "there is not enough memory"
    more = "give it more memory (ulimit -v, the container's limit)"
    return MemoryProblem(what, detail, f"read fewer columns, run fewer processes at a time, or {more}")


class UnexpectedError(AcidctlError):
    """A bug of acidctl, which fails the location that was at work, and ends a command only if nothing else is left.

    Args:
        trace: the trace of the original exception, which --debug shows.
    """

    code = AcidctlError.code

    def __init__(self, what: str, why: str = "", hint: str = "", trace: str = "") -> None:
        super().__init__(what, why, hint)
        self.trace = trace

    def __reduce__(self) -> tuple[type[AcidctlError], tuple[str, str, str, str]]:  # type: ignore[override]
        return type(self), (self.what, self.why, self.hint, self.trace)


_OF_MACHINE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS))
"""Numbers of system errors by which this machine, and no file of a table, is at fault."""


def unexpected(error: Exception, doing: str = "") -> AcidctlError:
    """Return an error of acidctl unchanged, a lack of memory, threads, space or thrift as such, any other as a bug.

    Args:
        doing: what was being done, ``while db.t was compacted``.
    """
    if isinstance(error, AcidctlError):
        return error
    text = " ".join(str(error).split())[:300]
    if isinstance(error, MemoryError):
        return out_of_memory(detail=text)
    if isinstance(error, RuntimeError) and NO_THREAD in text:
        return out_of_threads()
    if isinstance(error, OSError) and error.errno in _OF_MACHINE:
        return EnvironmentProblem("this machine cannot go on", text, "see its space, open files and memory; try again")
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "thrift":
        what, hint = "no metastore can be asked", "pip install 'acidctl[metastore]'"
        return EnvironmentProblem(what, "the package thrift is not installed", hint)
    import traceback  # noqa: PLC0415 - only a bug needs it

    why = f"this is a bug in acidctl{f', {doing}' if doing else ''}"
    trace = "".join(traceback.format_exception(error))
    hint = "run again with --debug, report it"
    return UnexpectedError(f"unexpected {type(error).__name__}: {text}", why, hint, trace)


def no_time_zones(doing: str, detail: str = "") -> EnvironmentProblem:
    """Return the error of an installation without the time zone database, which every TIMESTAMP needs, UTC's too.

    Args:
        doing: what cannot be done, as a sentence.
        detail: the message of the original error.
    """
    why = "this machine has no time zone database" + (f" ({detail})" if detail else "")
    hint = "install the operating system's package tzdata, or set TZDIR to the directory of a database"
    return EnvironmentProblem(doing, why, hint)


NO_THREAD = "can't start new thread"
"""The text of Python's RuntimeError if the kernel allows no more threads."""


def out_of_threads() -> EnvironmentProblem:
    """Return the error for :data:`NO_THREAD`."""
    why = "this user, or this container, runs as many processes and threads as it may"
    hint = "end some of them, or raise the limit (ulimit -u, pids.max)"
    return EnvironmentProblem("no further thread can be started", why, hint)


@contextmanager
def importing(what: str, hint: str, why: str = "") -> Iterator[None]:
    """Import optional packages within the block; EnvironmentProblem if one is missing."""
    try:
        yield
    except ImportError as error:
        raise EnvironmentProblem(what, f"{why}{error}", hint) from error
