"""One hierarchy of errors: what happened, why, what to do, and the exit status that follows from the class.

Every error that a user may meet is a subclass of :class:`AcidctlError`.  The command line prints the three
lines and exits with ``exit_status``; the table of exit statuses in the README and the man page is generated
from :func:`exit_statuses`.
"""

from __future__ import annotations


class AcidctlError(Exception):
    """Something that acidctl can explain.

    Args:
        what: one line, what failed, naming the path or value.
        why: one line, the cause, or an empty string when `what` already says it.
        hint: one line, what the user can do, or an empty string.
    """

    exit_status = 1
    code = "error"
    meaning = "acidctl itself failed: a bug, please report it with --debug"

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return ": ".join(part for part in (self.what, self.why) if part)

    def __reduce__(self) -> tuple[type[AcidctlError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.hint)


class UsageProblem(AcidctlError):
    """An option, an argument or a value in a configuration that cannot be used."""

    exit_status = 2
    code = "usage"
    meaning = "the command line cannot be used as it is"


class NotFoundError(AcidctlError):
    """A path that does not exist, or holds nothing of the kind asked for."""

    exit_status = 3
    code = "not-found"
    meaning = "a path does not exist, or nothing there is what the command needs"


class BadDataError(AcidctlError):
    """A file or a name that breaks the format."""

    exit_status = 4
    code = "bad-data"
    meaning = "a file is damaged, is not ORC, or breaks the Hive ACID layout"


class AccessError(AcidctlError):
    """The storage says no: permissions, credentials, a read-only place."""

    exit_status = 5
    code = "access"
    meaning = "permission denied, or the location cannot be written"


class StorageError(AcidctlError):
    """The storage failed or cannot do what is needed."""

    exit_status = 6
    code = "storage"
    meaning = "the storage failed, cannot be reached, or cannot do what is needed"


class RefusedError(AcidctlError):
    """Doing it would not be safe, or was not confirmed."""

    exit_status = 7
    code = "refused"
    meaning = "refused, because it was not confirmed or would not be safe"


class EnvironmentProblem(AcidctlError):
    """Java, Spark or a Python package is missing or of the wrong version."""

    exit_status = 8
    code = "environment"
    meaning = "Java, Spark or a Python package is missing or cannot be used"


class ConflictError(AcidctlError):
    """The location changed meanwhile, or the target exists already."""

    exit_status = 9
    code = "conflict"
    meaning = "the location changed meanwhile, or the target exists already"


class HistoryError(AcidctlError):
    """The snapshot asks for history that a compaction has destroyed (section 6.2)."""

    exit_status = 10
    code = "history"
    meaning = "not enough history: a compaction has destroyed what the snapshot asks for"


class VerifyError(AcidctlError):
    """A result differs from what went in; nothing was published."""

    exit_status = 11
    code = "verify"
    meaning = "the result failed its verification; nothing was published"


class NothingToDo(AcidctlError):
    """Raised only on request (``--exit-code``): there was nothing to do."""

    exit_status = 12
    code = "nothing-to-do"
    meaning = "there was nothing to do (only with --exit-code)"


class Postponed(AcidctlError):
    """Raised only on request (``--exit-code``): a window, a deadline or a budget of bytes ended the run early."""

    exit_status = 13
    code = "postponed"
    meaning = "time or bytes ran out before everything was done (only with --exit-code)"


class FindingsError(AcidctlError):
    """`validate` found what is wrong enough; its findings are its output, so this is never shown."""

    exit_status = 14
    code = "findings"
    meaning = "the validation found errors, or warnings with --fail-on warning"


class UncheckedError(AcidctlError):
    """`validate` found nothing, but could not look at everything."""

    exit_status = 15
    code = "unchecked"
    meaning = "the validation found nothing wrong, but could not check everything"


class MemoryProblem(AcidctlError):
    """The memory of the machine, of the container or of a limit ran out."""

    exit_status = 16
    code = "memory"
    meaning = "there is not enough memory for what was asked for"


def out_of_memory(doing: str = "", detail: str = "") -> MemoryProblem:
    """The error for a MemoryError, wherever it was met.

    Args:
        doing: what was being done, ``stripe 0 of FILE``.
        detail: the words of whoever ran out, if any.
    """
    what = f"there is not enough memory to read {doing}" if doing else "there is not enough memory"
    hint = (
        "read fewer columns, run fewer processes at a time, or give it more memory (ulimit -v, the container's limit)"
    )
    return MemoryProblem(what, detail, hint)


NO_THREAD = "can't start new thread"
"""What Python says, as a RuntimeError, when the kernel gives it no more."""


def out_of_threads() -> EnvironmentProblem:
    """The error for it, wherever it was met."""
    return EnvironmentProblem(
        "no further thread can be started",
        "this user, or this container, runs as many processes and threads as it may",
        "end some of them, or raise the limit (ulimit -u, pids.max)",
    )


INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended: `acidctl cat t | head` ends quietly, as `cat` does."""


def exit_statuses() -> list[tuple[int, str]]:
    """Every exit status with its meaning, ascending: the table of the README and the man page."""
    classes: list[type[AcidctlError]] = [AcidctlError, *AcidctlError.__subclasses__()]
    rows = {
        0: "done",
        INTERRUPTED: "interrupted by a signal",
        BROKEN_PIPE: "the program that read the output has ended, as head does",
    }
    rows |= {cls.exit_status: cls.meaning for cls in classes}
    return sorted(rows.items())
