"""What to do about each exit status: the other half of what :class:`acidctl.errors.ExitStatus` says of it."""

from __future__ import annotations

from collections.abc import Mapping

from acidctl.errors import ExitStatus

TO_DO: Mapping[ExitStatus, str] = {
    ExitStatus.DONE: "nothing",
    ExitStatus.FAILED: "run it again with --debug, and report what it prints",
    ExitStatus.USAGE: "read the message, and `acidctl COMMAND --help`",
    ExitStatus.NOT_FOUND: "look at the path or the name: `acidctl ls` shows what is there",
    ExitStatus.BAD_DATA: "`acidctl validate` says what is broken, and `acidctl repair` mends some of it",
    ExitStatus.ACCESS: "run it as a user who may, or ask for the permission",
    ExitStatus.STORAGE: "see whether the store can be reached and has room, then run it again",
    ExitStatus.REFUSED: "read the message: it says what would make it safe; most often --yes, where no terminal can be "
    "asked, or who says which rows are committed: a metastore, --write-ids, --assume-committed",
    ExitStatus.ENVIRONMENT: "`acidctl doctor` shows what is used, and what is missing",
    ExitStatus.CONFLICT: "run it again: it plans by what is there now",
    ExitStatus.HISTORY: "use a newer snapshot: `acidctl why` says which one can be read",
    ExitStatus.VERIFY: "keep the staging directory that the message names, and report it; the inputs are as they were",
    ExitStatus.NOTHING_TO_DO: "nothing",
    ExitStatus.POSTPONED: "run it again, or give it more time or bytes",
    ExitStatus.FINDINGS: "read what was found: `acidctl explain RULE` says what to do about a rule",
    ExitStatus.UNCHECKED: "see what could not be read, and why; then validate again",
    ExitStatus.MEMORY: "read fewer columns, run fewer processes at a time, or give it more memory",
    ExitStatus.NOT_LOOKED_AT: "see whether the place is mounted and complete; if locations were dropped on purpose, "
    "run it once with --accept-fewer",
    ExitStatus.INTERRUPTED: "run it again: what was begun is finished, or was taken back",
    ExitStatus.BROKEN_PIPE: "nothing",
}
