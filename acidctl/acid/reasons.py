"""Why something was decided: a stable code with its values; :mod:`acidctl.wording` makes English of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """What a reason says; stable, for programs."""

    # Verdicts on the entries of a location, and on a snapshot as a whole (format section 6).
    ABOVE_GIVEN = "above-given"
    ABOVE_HIGH_WATERMARK = "above-high-watermark"
    ADDS_NOTHING = "adds-nothing"
    BESIDE_DIRECTORIES = "beside-directories"
    CHOSEN_BASE = "chosen-base"
    COMMITTED = "committed"
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
    VISIBILITY_ABOVE_GIVEN = "visibility-above-given"
    VISIBILITY_OPEN = "visibility-open"
    WRITE_ID_ABORTED = "write-id-aborted"
    WRITE_ID_OPEN = "write-id-open"

    # Notes: what was assumed.
    ALL_TRANSACTIONS_COUNT = "all-transactions-count"
    ALL_WRITE_IDS_COUNT = "all-write-ids-count"
    COMPACTED_BELOW = "compacted-below"
    EMPTY_FILES = "empty-files"
    FROM_METASTORE = "from-metastore"
    FROM_METASTORE_AGAIN = "from-metastore-again"
    GIVEN_UNKNOWN = "given-unknown"
    NOT_IN_METASTORE = "not-in-metastore"
    OBSOLETE_IS_READ = "obsolete-is-read"
    PAST_MAY_LACK = "past-may-lack"
    OLD_COUNTS = "old-counts"
    OLD_TRANSACTIONS_COUNT = "old-transactions-count"
    STOPPED_BY = "stopped-by"

    # Doubts: what may not be finished.
    EMPTY_BASE = "empty-base"
    EMPTY_DIRECTORY = "empty-directory"
    INSERT_OVERWRITE_UNKNOWN = "insert-overwrite-unknown"
    MANIFEST = "manifest"
    NO_TIME = "no-time"
    NOT_READABLE = "not-readable"
    OPEN_STREAM = "open-stream"
    STRANGE_PATH = "strange-path"
    TRANSACTION_UNKNOWN = "transaction-unknown"
    WRITER_BESIDE = "writer-beside"
    WRITTEN_LATELY = "written-lately"

    # What a cleaning keeps back.
    ABOVE_CLEANER = "above-cleaner"
    HALF_A_MINOR = "half-a-minor"
    HIVE_COMPACTS = "hive-compacts"
    HOLDS_TWIN = "holds-twin"
    INSERT_UNKNOWN = "insert-unknown"
    LOST_ROWS = "lost-rows"
    NO_CLEANUP = "no-cleanup"
    NOT_PLANNED = "not-planned"
    OLD_QUERIES = "old-queries"
    READER_HOLDS = "reader-holds"
    ONLY_BY_DOUBT = "only-by-doubt"
    ONLY_BY_TRANSACTIONS = "only-by-transactions"
    OWNER_AT_WORK = "owner-at-work"
    OWNER_UNKNOWN = "owner-unknown"
    UNMARKED_BASE = "unmarked-base"

    # What waits, or goes, for its age; what leftovers are removed as.
    AGE_UNKNOWN = "age-unknown"
    CLOCKS_DIFFER = "clocks-differ"
    LEFTOVER = "leftover"
    TOO_YOUNG = "too-young"

    # What a plan of a cleaning would break.
    CLEANER_SEES_OTHER = "cleaner-sees-other"
    NEW_READER_SEES_OTHER = "new-reader-sees-other"
    OLD_READER_MAY_READ = "old-reader-may-read"
    OLD_READER_SEES_OTHER = "old-reader-sees-other"

    # Why an entry of the metastore's queue is not cleaned, or not marked as cleaned.
    COMMIT_UNKNOWN = "commit-unknown"
    COMMITTED_LATELY = "committed-lately"
    HIDES_ABORTED = "hides-aborted"
    HIVE_CLEANS = "hive-cleans"
    NO_HIGHEST_WRITE_ID = "no-highest-write-id"
    NOT_A_COMPACTION = "not-a-compaction"
    STILL_LEFT = "still-left"
    TRANSACTION_BELOW = "transaction-below"
    WRITES_UNDECIDED = "writes-undecided"

    # By what a location is known to be transactional, or why it is not.
    ACID_COLUMNS = "acid-columns"
    EMPTY = "empty"
    INSERT_ONLY_LAYOUT = "insert-only-layout"
    NO_ACID_COLUMNS = "no-acid-columns"
    NO_ACID_DIRECTORIES = "no-acid-directories"
    OTHER_FORMAT_BELOW = "other-format-below"
    OTHER_NAMES = "other-names"
    PART_OF_A_TABLE = "part-of-a-table"
    INSIDE_A_TABLE = "inside-a-table"
    IN_METASTORE = "in-metastore"
    SAID = "said"
    SIDE_FILE = "side-file"
    TABLES_BELOW = "tables-below"

    # What is left for another run.
    BUDGET_IS_USED = "budget-is-used"
    EXCLUDED = "excluded"
    OUT_OF_HOURS = "out-of-hours"
    TIME_IS_UP = "time-is-up"

    # Whether a compaction is due, and whether there is work for one (format sections 8 and 9).
    ASKED_FOR = "asked-for"
    AUTO_IS_OFF = "auto-is-off"
    DROPPED_MEANWHILE = "dropped-meanwhile"
    FEW_DELTAS = "few-deltas"
    FEWER_THAN_ASKED = "fewer-than-asked"
    GIVEN_UP = "given-up"
    IN_QUEUE = "in-queue"
    IS_REPLICA = "is-replica"
    LAYOUT_REFUSED = "layout-refused"
    MANY_ABORTED = "many-aborted"
    MANY_DELTAS = "many-deltas"
    MANY_DELTAS_AND_NO_BASE = "many-deltas-and-no-base"
    MANY_DELTAS_AND_NO_MINOR = "many-deltas-and-no-minor"
    MANY_DELTA_BYTES = "many-delta-bytes"
    MORE_ABOVE = "more-above"
    NO_DATA = "no-data"
    NOTHING_TO_MERGE = "nothing-to-merge"
    NOT_TRANSACTIONAL = "not-transactional"
    OBSOLETE_BASE_ALONE = "obsolete-base-alone"
    ONE_OF_EACH_KIND = "one-of-each-kind"
    ONLY_A_BASE = "only-a-base"
    OTHERS_GAIN_MORE = "others-gain-more"
    SINGLE_DELTA = "single-delta"

    # Layouts that Hive never writes (section 13.1).
    BESIDE_BUCKET_FILES = "beside-bucket-files"
    DELETES_ARE_ROWS = "deletes-are-rows"
    PARTITION_BESIDE = "partition-beside"
    UNPADDED_DELETES = "unpadded-deletes"
    NESTED_FILE = "nested-file"
    NOT_A_BUCKET_FILE = "not-a-bucket-file"
    NOT_HIVES_NAME = "not-hives-name"
    OVERLAP = "overlap"
    REFUSED_NAME = "refused-name"
    SECOND_ATTEMPT = "second-attempt"
    SPELLED_TWICE = "spelled-twice"
    STRADDLES_BASE = "straddles-base"
    TWINS = "twins"
    TYPE_ASSUMED = "type-assumed"

    # Whether a cleaning takes an entry, besides the reasons to keep it back.
    IS_READ = "is-read"
    NEITHER_OBSOLETE_NOR_ABORTED = "neither-obsolete-nor-aborted"
    NO_READER_RETURNS = "no-reader-returns"
    NOT_NEEDED = "not-needed"
    ONLY_AS_LEFTOVER = "only-as-leftover"
    OTHER_KIND = "other-kind"
    REFUSED = "refused"
    SNAPSHOT_REFUSED = "snapshot-refused"

    # What must happen before a cleaning may take it.
    AS_TOLD = "as-told"
    ALLOW_CLEANUP = "allow-cleanup"
    BRING_ROWS_BACK = "bring-rows-back"
    CLEAN = "clean"
    CLEAN_AFTER_QUERIES = "clean-after-queries"
    CLEAN_BY_FORCE = "clean-by-force"
    CLEAN_THEN = "clean-then"
    COMPACT_ABORTED = "compact-aborted"
    COMPACT_EVENTS = "compact-events"
    COMPACT_NEWER_BASE = "compact-newer-base"
    COMPACT_ORIGINALS = "compact-originals"
    DECIDE_THEN_COMPACT = "decide-then-compact"
    DECIDE_TRANSACTION = "decide-transaction"
    DECIDE_WRITE_IDS = "decide-write-ids"
    EXPLAIN_PARTITION = "explain-partition"
    FIND_MISSING_TWIN = "find-missing-twin"
    FINISH_PUBLICATION = "finish-publication"
    GIVE_TRANSACTIONS = "give-transactions"
    GIVE_WRITE_IDS = "give-write-ids"
    MOVE_STRANGER = "move-stranger"
    NEEDS_WIDER = "needs-wider"
    NEWER_SNAPSHOT = "newer-snapshot"
    RENAME = "rename"
    SEEK_ROWS = "seek-rows"
    WAIT_FOR_HIVE = "wait-for-hive"
    WAIT_FOR_TRANSACTION = "wait-for-transaction"
    WAIT_FOR_WRITER = "wait-for-writer"

    # What acidctl and writers keep hidden in a location, and what clears it.
    BACKUP = "backup"
    CLEAR_BACKUP = "clear-backup"
    CLEAR_COMPACTION_STAGING = "clear-compaction-staging"
    CLEAR_INSERT_MANIFEST = "clear-insert-manifest"
    CLEAR_LOCK = "clear-lock"
    CLEAR_LOCK_CLAIM = "clear-lock-claim"
    CLEAR_QUERY_STAGING = "clear-query-staging"
    CLEAR_SCRATCH = "clear-scratch"
    CLEAR_TRASH = "clear-trash"
    COMPACTION_STAGING = "compaction-staging"
    INSERT_MANIFEST = "insert-manifest"
    LOCK = "lock"
    LOCK_CLAIM = "lock-claim"
    QUERY_STAGING = "query-staging"
    SCRATCH = "scratch"
    TRASH = "trash"

    # Steps of a proof.
    BASE_OF_ORIGINALS = "base-of-originals"
    COMPACTED_BASE = "compacted-base"
    CONTENT = "content"
    EVENTS = "events"
    HELD_BY = "held-by"
    HELD_BY_NO_OTHER = "held-by-no-other"
    LATER_BASE = "later-base"
    LISTS = "lists"
    NOT_ACID = "not-acid"
    NOT_CHOSEN = "not-chosen"
    OTHER_OF_SAME_END = "other-of-same-end"
    PRE_ACID_ROWS = "pre-acid-rows"
    READABLE_BY = "readable-by"
    READ_BUT_REFUSED = "read-but-refused"
    STRADDLES = "straddles"
    TRANSACTION = "transaction"
    UNMARKED = "unmarked"
    WRITE_IDS = "write-ids"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided.

    Attributes:
        code: stable, for programs.
        by: names of the entries that decide it (what supersedes this one).
        ids: the write ids or transaction ids that decide it.
        values: what else its sentence names: numbers, times in seconds since the epoch, paths, directories, runs of
            ids; words only of other programs and of errors.
        parts: further reasons that it rests on.
    """

    code: Code
    by: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    values: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Reason, ...] = ()

    @property
    def codes(self) -> frozenset[Code]:
        """Its own code and those of its parts."""
        return frozenset({self.code, *(part.code for part in self.parts)})

    def value(self, name: str) -> Any:
        """One of its values; None when it has none of that name."""
        return dict(self.values).get(name)


def reason(code: Code, *parts: Reason, by: tuple[str, ...] = (), ids: tuple[int, ...] = (), **values: object) -> Reason:
    """A reason, its values by name."""
    return Reason(code, by, ids, tuple(values.items()), parts)
