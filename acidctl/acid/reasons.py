"""Why something was decided: a stable code with its values; :mod:`acidctl.wording` turns them into English."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """The stable codes of reasons, for programs.

    Two codes differ if a program, or the user's next step, differs; values distinguish the sentences of one code.
    """

    # Verdicts on the entries of a location, and on a snapshot as a whole (format section 6).
    ABOVE_GIVEN = "above-given"
    ABOVE_HIGH_WATERMARK = "above-high-watermark"
    ADDS_NOTHING = "adds-nothing"
    BESIDE_DIRECTORIES = "beside-directories"
    HIDDEN = "hidden"
    LEFT_OUT = "left-out"
    NOT_ENOUGH_HISTORY = "not-enough-history"
    OPEN_BELOW_BASE = "open-below-base"
    ORIGINAL = "original"
    ORIGINAL_WITHOUT_BUCKET = "original-without-bucket"
    PARTITION = "partition"
    PARTLY_COMMITTED = "partly-committed"
    PAST_NOT_PROVEN = "past-not-proven"
    SUPERSEDED_BY_BASE = "superseded-by-base"
    SUPERSEDED_BY_DELTA = "superseded-by-delta"
    UNPARSEABLE = "unparseable"
    VISIBILITY_ABORTED = "visibility-aborted"
    VISIBILITY_OPEN = "visibility-open"
    WRITE_ID_ABORTED = "write-id-aborted"
    WRITE_ID_OPEN = "write-id-open"

    # Notes about assumptions.
    ASSUMED_COMMITTED = "assumed-committed"
    AT_MOMENT = "at-moment"
    COMPACTED_BELOW = "compacted-below"
    EMPTY_FILES = "empty-files"
    FROM_METASTORE = "from-metastore"
    GIVEN_UNKNOWN = "given-unknown"
    NOT_IN_METASTORE = "not-in-metastore"
    OBSOLETE_IS_READ = "obsolete-is-read"
    PAST_MAY_LACK = "past-may-lack"
    STOPPED_BY = "stopped-by"

    # Doubts: directories that may not be finished.
    EMPTY_BASE = "empty-base"
    NOT_READABLE = "not-readable"
    STRANGE_PATH = "strange-path"
    TRANSACTION_UNKNOWN = "transaction-unknown"
    WRITER_AT_WORK = "writer-at-work"

    # Reasons of a cleaning to keep an entry.
    ABOVE_CLEANER = "above-cleaner"
    HALF_A_MINOR = "half-a-minor"
    HIVE_COMPACTS = "hive-compacts"
    INSERT_UNKNOWN = "insert-unknown"
    LOST_ROWS = "lost-rows"
    NO_CLEANUP = "no-cleanup"
    NOT_PLANNED = "not-planned"
    ONLY_BY_DOUBT = "only-by-doubt"
    OWNER_AT_WORK = "owner-at-work"
    READER_HOLDS = "reader-holds"
    UNMARKED_BASE = "unmarked-base"

    # The age of entries, stale staging files, and unsafe plans.
    AGE_UNKNOWN = "age-unknown"
    LEFTOVER = "leftover"
    TOO_YOUNG = "too-young"
    UNSAFE_PLAN = "unsafe-plan"

    # Why an entry of the metastore's queue is not cleaned, or not marked as cleaned.
    COMMIT_UNKNOWN = "commit-unknown"
    COMMITTED_LATELY = "committed-lately"
    HIDES_ABORTED = "hides-aborted"
    LEFT_TO_HIVE = "left-to-hive"
    STILL_LEFT = "still-left"
    TRANSACTION_BELOW = "transaction-below"
    WRITES_UNDECIDED = "writes-undecided"

    # Evidence that a location is transactional, or why there is none.
    BY_FILES = "by-files"
    EMPTY = "empty"
    IN_METASTORE = "in-metastore"
    INSIDE_A_TABLE = "inside-a-table"
    NO_EVIDENCE = "no-evidence"
    OTHER_FORMAT_BELOW = "other-format-below"
    SAID = "said"
    TABLES_BELOW = "tables-below"

    # Reasons to postpone work to another run.
    BUDGET_IS_USED = "budget-is-used"
    EXCLUDED = "excluded"
    TIME_IS_UP = "time-is-up"

    # Whether a compaction is due, and whether there is work for one (format sections 8 and 9).
    ASKED_FOR = "asked-for"
    AUTO_IS_OFF = "auto-is-off"
    DROPPED_MEANWHILE = "dropped-meanwhile"
    FEW_DELTAS = "few-deltas"
    GIVEN_UP = "given-up"
    IN_QUEUE = "in-queue"
    IS_REPLICA = "is-replica"
    LAYOUT_REFUSED = "layout-refused"
    MANY_DELTA_BYTES = "many-delta-bytes"
    MANY_DELTAS = "many-deltas"
    MORE_ABOVE = "more-above"
    NO_DATA = "no-data"
    NOT_TRANSACTIONAL = "not-transactional"
    NOTHING_TO_MERGE = "nothing-to-merge"
    OTHERS_GAIN_MORE = "others-gain-more"

    # Layouts that Hive never writes (section 13.1).
    DEEP_DIRECTORY = "deep-directory"
    DELETES_ARE_ROWS = "deletes-are-rows"
    MISPLACED_DELETES = "misplaced-deletes"
    OVERLAP = "overlap"
    PARTITION_BESIDE = "partition-beside"
    STRAY_FILE = "stray-file"
    TYPE_ASSUMED = "type-assumed"
    UNPADDED_DELETES = "unpadded-deletes"

    # Whether a cleaning removes an entry, besides the reasons to keep it.
    IS_READ = "is-read"
    NOT_NEEDED = "not-needed"
    NOT_OBSOLETE = "not-obsolete"
    ONLY_AS_LEFTOVER = "only-as-leftover"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided.

    Attributes:

        by: names of the entries that decide it, such as the one that supersedes this one.
        ids: the write ids or transaction ids that decide it.
        values: further values of its sentence: numbers, times in seconds since the epoch, paths, directories, runs of
            ids; words only from other programs and errors. ``how`` chooses among the sentences of a code.
        parts: further reasons that it rests on.
    """

    code: Code
    by: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    values: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Reason, ...] = ()

    @property
    def codes(self) -> frozenset[Code]:
        """Return its own code and those of its parts."""
        return frozenset({self.code, *(part.code for part in self.parts)})

    def value(self, name: str) -> Any:
        """Return one of its values; None if it has none of that name."""
        return dict(self.values).get(name)


def reason(code: Code, *parts: Reason, by: tuple[str, ...] = (), ids: tuple[int, ...] = (), **values: object) -> Reason:
    """Make a reason from values by name."""
    return Reason(code, by, ids, tuple(values.items()), parts)
