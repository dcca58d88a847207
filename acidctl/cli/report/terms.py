"""The words that `acidctl explain` knows besides codes and rules: states, terms and exit statuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from acidctl.acid.state import State
from acidctl.base.errors import ExitStatus

STATES: Mapping[State, str] = {
    State.CURRENT: "A reader of the snapshot reads it.",
    State.OBSOLETE: "No reader needs it: a base or a wider delta holds its write ids. `acidctl clean` removes it.",
    State.ABORTED: "Its transaction was rolled back: no reader returns its rows. `acidctl clean` removes it.",
    State.IGNORED: "Readers pass over it and `acidctl clean` leaves it alone: its write id is open or above the high "
    "watermark, a compaction is still writing it, its name is hidden or cannot be read, or it is a partition.",
}

PROVE = "`acidctl why LOCATION NAME` proves the state of a directory, and says what cleaning waits for"
"""What to do about a state, or about a directory."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of Hive or acidctl.

    Attributes:
        names: a regular expression for the names, in lower case, of directories and files that show it.
    """

    name: str
    what: str
    todo: str = PROVE
    names: str = ""


TERMS = (
    Term(
        "location",
        "The directory of a table without partitions, or of one partition.",
        "`acidctl ls PATH` lists the locations below a path",
    ),
    Term(
        "snapshot",
        "What one reader sees: a listing of the location, and which write ids are committed then.",
        "name a metastore, or give Hive's lists, so that acidctl sees what Hive's readers see",
    ),
    Term(
        "write id",
        "The number that a transaction gets in each table it writes; it is part of the directories' names.",
        "`acidctl history LOCATION` shows what every write id did",
    ),
    Term("base", "base_<write id>: all rows up to that write id.", names=r"base_-?\d+(_v\d+)?"),
    Term("delta", "delta_<first>_<last>: what these write ids inserted.", names=r"delta_\d+_\d+(_\d+)?(_v\d+)?"),
    Term(
        "delete delta",
        "delete_delta_<first>_<last>: the ids of the rows that these write ids deleted.",
        names=r"delete_delta(_\d+_\d+(_\d+)?(_v\d+)?)?",
    ),
    Term(
        "compaction",
        "A rewrite of a location to fewer directories, minor or major. Readers see the same rows afterwards.",
        "`acidctl compact LOCATION` does it; `acidctl ls --sort gain PATH` ranks locations by what it saves",
    ),
    Term(
        "minor",
        "A compaction that merges deltas to one delta and one delete delta. The base stays; no delete is applied.",
        "`acidctl compact --minor LOCATION`",
    ),
    Term(
        "major",
        "A compaction that writes base and deltas to a new base: deletes are applied, and readers open one directory.",
        "`acidctl compact --major LOCATION`",
    ),
    Term(
        "ROW__ID",
        "The identifier of a row: the write id that inserted it, its bucket property (bucket and statement), and its "
        "number within these. A delete event refers to its row by it.",
        "`acidctl cat --row-id LOCATION` shows it for every row",
        names=r"row__id|row_id|rowid",
    ),
    Term(
        "statement id",
        "The third number of a delta, as in delta_7_7_0001: which statement of its transaction wrote it.",
        names=r"(delete_)?delta_\d+_\d+_\d+(_v\d+)?",
    ),
    Term(
        "visibility transaction",
        "The end of a name, as in base_10_v0000123: a compaction of Hive 4 wrote it in "
        "transaction 123. A reader passes over it until that transaction is committed.",
        "name a metastore, or give --snapshot with Hive's transactions, so that acidctl knows whether it is committed",
        names=r"_v|.*_v\d+",
    ),
    Term(
        "original file",
        "A file of rows that was there before the table became transactional.",
        names=r"\d+_\d+(_copy_\d+)?",
    ),
    Term(
        "flush length",
        "bucket_<number>_flush_length: up to where a streaming writer has committed the file beside it.",
        "`acidctl repair` cuts the file, when that writer is dead",
        names=r"bucket_\d+(_\d+)?_flush_length",
    ),
    Term(
        "high watermark",
        "The highest write id that a snapshot knows; what is above it is not read.",
        "`acidctl why LOCATION` shows that of the snapshot",
        names=r"hwm|watermark",
    ),
    Term(
        "open",
        "Of a write id: its transaction is still at work, and nobody else reads what it wrote.",
        "`acidctl hive txns` lists open transactions, where a metastore knows them",
    ),
)


def terms_of(word: str) -> Iterator[Term]:
    """Yield the terms that a word in lower case names, or that it shows as the name of a directory or file."""
    for term in TERMS:
        if word == term.name.lower() or (term.names and re.fullmatch(term.names, word, re.ASCII)):
            yield term


TO_DO: Mapping[ExitStatus, str] = {
    ExitStatus.DONE: "nothing",
    ExitStatus.FAILED: "run it again with --debug, and report what it prints",
    ExitStatus.USAGE: "read the message, and `acidctl COMMAND --help`",
    ExitStatus.NOT_FOUND: "look at the path or the name: `acidctl ls` shows what is there",
    ExitStatus.BAD_DATA: "`acidctl validate` says what is broken, and `acidctl repair` mends some of it; correct a row "
    "that the message names",
    ExitStatus.ACCESS: "run it as a user who may, or ask for the permission",
    ExitStatus.STORAGE: "see whether the store can be reached and has room, then run it again",
    ExitStatus.REFUSED: "read the message: it says what would make it safe; most often --yes, where no terminal can be "
    "asked, or who says which rows are committed: a metastore, --snapshot, --assume-committed",
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
