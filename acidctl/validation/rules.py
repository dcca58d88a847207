"""The registry: every rule with what it says, why it matters and what to do. Help, man page and findings use it.

V rules are those of format section 13.1; R rules name what one kind of reader refuses or misreads (sections 1.4, 3.4
and 6.5) and are looked at on request only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acidctl.validation.findings import Depth, Finding, Severity

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO
_LISTING, _FOOTERS, _DEEP = Depth.LISTING, Depth.FOOTERS, Depth.DEEP
_MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: ``V1`` to ``V42``, or ``R1`` and so on.
        severity: the worst that a finding of it can have; some cases are milder.
        depth: the cheapest depth that finds a case of it; deeper ones may find more.
        what: what must not be, or is worth knowing.
        why: why it matters.
        hint: what to do.
        section: of the format notes.
        readers: whom it concerns; empty for everybody.
    """

    id: str
    severity: Severity
    depth: Depth
    what: str
    why: str
    hint: str
    section: str = "13.1"
    readers: tuple[str, ...] = ()

    def finding(
        self, path: str, message: str, evidence: dict[str, Any] | None = None, severity: Severity | None = None
    ) -> Finding:
        """A finding of this rule; `severity` where it is milder than the rule's."""
        if len(message) > _MOST_TEXT:  # a store that sets no limit to names
            message = message[:_MOST_TEXT] + "..."
        return Finding(self.id, severity or self.severity, path, message, evidence or {})


_DIRECTORIES = (
    Rule(
        "V1", _E, _LISTING, "A directory has the prefix of an ACID directory, but the rest is no name of Hive's.",
        "Hive fails on the whole location with a NumberFormatException.",
        "Rename or remove it; nothing that Hive wrote is called so.", "1.1",
    ),
    Rule(
        "V2", _E, _LISTING, "A delta ends before it begins, or a base has a negative write id.",
        "Readers pass over it or fail; its rows are not seen.",
        "Find out what wrote it, and move it out of the location.", "1.1",
    ),
    Rule(
        "V3", _W, _LISTING, "A name has a statement id and a visibility id, or a statement id above 4095.",
        "No version of Hive writes such a name; Impala refuses it, and a bucket value has 12 bits for it.",
        "Find out what wrote it.", "1.1",
    ),
    Rule(
        "V4", _I, _LISTING, "The numbers in a name are not padded as Hive pads them.",
        "Readers compare numbers, so it does no harm; other tools may compare text.",
        "Nothing.", "1.1",
    ),
    Rule(
        "V5", _E, _LISTING, "Two directories have the same numbers in a different spelling.",
        "Readers take both: rows appear twice, or in an order that nobody chose.",
        "Keep one of them: compare their rows with `acidctl dump`.", "1.1",
    ),
    Rule(
        "V6", _W, _LISTING, "A delta of several write ids has a statement id.",
        "Only the streaming API of Hive 3 may write that.",
        "Nothing if a streaming client writes to the table.", "1.1",
    ),
    Rule(
        "V7", _E, _LISTING, "Two deltas of one kind overlap, and neither holds the other's range.",
        "Compaction never produces this: rows are read twice, or not at all.",
        "Find out what wrote them; restore the narrower deltas from a copy.", "6.3",
    ),
    Rule(
        "V8", _I, _LISTING, "Write ids are missing between the directories.",
        "Normal: other partitions, aborted and empty transactions use write ids too.",
        "Nothing.",
    ),
    Rule(
        "V9", _E, _LISTING, "A delta begins at or below the base's write id and ends above it.",
        "It is read whole, so rows that the base holds appear twice; Impala refuses it.",
        "Compare its rows up to the base's write id with the base, and move the wrong one away.",
        "6.3",
    ),
    Rule(
        "V10", _E, _LISTING, "Two visible directories differ in their visibility id only.",
        "Hive reads both and returns every row twice; acidctl and Impala read the later one.",
        "Move the one with the lower visibility id out of the location.", "6.3",
    ),
    Rule(
        "V11", _E, _LISTING, "A minor compaction was shown half: a wide delta hides directories of the other kind.",
        "Deleted rows come back, or rows vanish.",
        "If acidctl's own compaction died, run `acidctl compact` again: it finishes it. Otherwise move the lone wide "
        "directory away.", "8.6",
    ),
    Rule(
        "V12", _E, _DEEP, "An event's operation does not belong in such a directory, or a delete event has a row.",
        "Hive 3 and newer ignore the operation: updates and deletes are read as rows.",
        "Compact an ACID v1 table with a major compaction before Hive 3 reads it.", "4.2",
    ),
    Rule(
        "V13", _E, _LISTING, "The marker _orc_acid_version is missing, is no known version, or differs.",
        "Trino refuses deltas without it.",
        "Run `acidctl repair version-file`: it writes the marker where the files are of version 2 beyond doubt.", "3.3",
    ),
    Rule(
        "V14", _E, _LISTING, "A _metadata_acid cannot be used, lies in a delta, or says `truncated` beside data.",
        "It decides whether a base is a compaction; Hive refuses to read on.",
        "Restore it, or remove it where it lies in a delta.", "1.4",
    ),
    Rule(
        "V15", _W, _LISTING, "A base or delta holds no data file.",
        "With its metadata file it is a compaction or an overwrite by nothing; without, a writer may have died.",
        "If no writer is at work, look at what should be in it.",
    ),
    Rule(
        "V16", _W, _LISTING, "A staging directory has been lying around for more than a day.",
        "A writer or a compaction died; it takes space, and readers pass over it.",
        "Remove it when nothing writes to the table.", "8.6",
    ),
    Rule(
        "V17", _E, _LISTING, "A directory lies inside an ACID directory, as when a rename met an existing one.",
        "Readers do not look into it: its rows are lost to them.",
        "Run `acidctl repair nested`; where that refuses, move it to where it belongs by hand.",
    ),
    Rule(
        "V18", _W, _LISTING, "Original files lie beside a base, or have names that Hive does not number.",
        "Beside a base they are obsolete; without a number Hive's compaction fails on them.",
        "Obsolete ones: `acidctl clean`. Others: rename them as 000000_0 before the table is changed.", "5.1",
    ),
    Rule(
        "V19", _W, _LISTING, "There are more deltas, or larger ones, than Hive's thresholds allow.",
        "Reading becomes slow; perhaps Hive's initiator is not running.",
        "Run `acidctl compact`.", "9",
    ),
    Rule(
        "V20", _I, _LISTING, "Obsolete or aborted directories take space.",
        "No reader needs them.",
        "Run `acidctl clean`.", "10",
    ),
)  # fmt: skip

_FILES = (
    Rule(
        "V21", _E, _DEEP, "The bucket in an event is not the bucket of its file's name.",
        "Hive looks for deletes of bucket N in files of bucket N only: it would ignore this one.",
        "Run `acidctl compact --major`: acidctl applies deletes wherever they lie.", "2",
    ),
    Rule(
        "V22", _E, _LISTING, "A directory holds several files for one bucket, or a stray file named like a bucket.",
        "Attempts of one task hold the same rows, which are read twice; Hive fails on stray names.",
        "Keep the attempt that the task's manifest names; move the others away.", "1.4",
    ),
    Rule(
        "V23", _E, _DEEP, "A value of the bucket column has an unknown codec, or reserved bits set.",
        "Hive refuses the row.",
        "Find out what wrote the file; restore it.", "2",
    ),
    Rule(
        "V24", _E, _LISTING, "A data file cannot be read: it is empty, damaged, no ORC file, or ends the reader.",
        "Queries fail on it, and its rows are lost.",
        "Restore it from a copy; `acidctl dump` shows what can still be read.",
    ),
    Rule(
        "V25", _E, _LISTING, "A file lacks the ACID columns where it must have them, or has them where it must not.",
        "Readers fail, or number its rows wrongly.",
        "Find out what wrote it; move it out of the directory.", "3.1",
    ),
    Rule(
        "V26", _E, _DEEP, "Events are not in ascending order of their key, or a key is there twice.",
        "Readers merge sorted files: deletes are missed, and rows appear twice.",
        "Run `acidctl compact --major`: it sorts.", "4.2",
    ),
    Rule(
        "V27", _E, _DEEP, "The same ROW__ID is in two current files.",
        "The row is read twice, and a delete removes both.",
        "Find the file that is too many: a failed write, or a copied directory.", "4",
    ),
    Rule(
        "V28", _E, _DEEP, "The write id of an event does not belong in its directory.",
        "Snapshots hide and show such rows at the wrong time.",
        "Find out whether the directory or the file was renamed or copied.", "4",
    ),
    Rule(
        "V29", _E, _DEEP, "An event has a NULL or negative id, or the row ids of a new delta have gaps.",
        "A row without an id cannot be deleted or merged; gaps mean that rows were lost.",
        "Restore the file.", "4",
    ),
    Rule(
        "V30", _E, _FOOTERS, "hive.acid.key.index is missing, or does not fit the stripes.",
        "Hive takes the ranges of its splits from it: deletes are skipped, and Hive up to 3.1 takes a file without "
        "it for one without ids.",
        "Run `acidctl repair key-index`.", "13.3",
    ),
    Rule(
        "V31", _E, _FOOTERS, "hive.acid.stats or the statistics of the id columns are missing, or do not fit the rows.",
        "Readers leave out stripes and count rows by them.",
        "Run `acidctl compact --major`: it writes them anew.", "3.2",
    ),
    Rule(
        "V32", _W, _FOOTERS, "hive.acid.version is missing, or differs from _orc_acid_version.",
        "Tools that cross-check take the file for one of another version.",
        "Nothing, if the rows are right.", "3.3",
    ),
    Rule(
        "V33", _E, _DEEP, "A delete event names a row that is in no file of the location.",
        "Legal where the row is gone already; otherwise rows were lost, or a delete went to the wrong place.",
        "See whether a directory is missing.", "4.2",
    ),
    Rule(
        "V34", _W, _DEEP, "Several delete events name the same row.",
        "Legal after concurrent deletes; many of them point to a writer that repeats itself.",
        "Nothing; a major compaction removes them.", "4.2",
    ),
    Rule(
        "V35", _E, _DEEP, "A delete event is older than the row that it deletes.",
        "No writer can delete what is not there yet: its ids are wrong.",
        "Restore the file.", "4",
    ),
    Rule(
        "V36", _E, _LISTING, "A _flush_length file is damaged, lies where none belongs, or says more than there is.",
        "Streaming writers record there how much of a file counts; too much means that rows are lost.",
        "If no writer is at work, run `acidctl repair flush-length`.", "12",
    ),
    Rule(
        "V37", _W, _DEEP, "A compacted directory holds rows of write ids that are open or aborted.",
        "A compaction should have left them out; readers that filter by file show them.",
        "Run `acidctl compact --major` with the same --write-ids.", "8.2",
    ),
    Rule(
        "V38", _E, _FOOTERS, "Column types of a file do not fit the table's, or its columns are called _colN.",
        "Readers fail or return NULL; _colN are matched by position only.",
        "Compare with the table's columns; a major compaction gives the columns their names.", "3.1",
    ),
    Rule(
        "V39", _E, _FOOTERS, "An ACID file has ids but no struct of the table's columns, or inserted rows without one.",
        "There is nothing to read: queries fail, or return NULL in every column.",
        "Restore the file.", "3.1",
    ),
    Rule(
        "V40", _W, _LISTING, "A partitioned table has a base of its own, or a partition lies outside of its table.",
        "Hive reads partitions only: rows in the table's own directory are not seen.",
        "Move the misplaced directories into the partition that they belong to.",
    ),
    Rule(
        "V41", _W, _LISTING, "Files, or ACID directories, lie in a folder that holds tables deeper below.",
        "Whoever takes the folder for a table takes the files of those tables for its own original files.",
        "Move the files, or the tables, away; acidctl changes nothing in the folder itself.", "5.1",
    ),
    Rule(
        "V42", _I, _LISTING, "Nothing shows that the location is of a transactional table.",
        "A name like base_5 is no evidence: exports and tables of other formats have such directories, too.",
        "If it is one, give --table-type to the commands that change it.", "11",
    ),
)  # fmt: skip

READERS = ("hive2", "hive3", "hive4", "trino", "impala", "spark")
"""The readers that ``--for`` knows."""

_READER_RULES = (
    Rule(
        "R1", _E, _LISTING, "Visibility ids (_v) are unknown to the reader.",
        "Hive before 4 fails on the name.",
        "Rename after checking that the transaction is committed, or read with Hive 4.", "6.5", ("hive2", "hive3"),
    ),
    Rule(
        "R2", _E, _LISTING, "Bucket files have attempt ids, bucket_N_A.",
        "Hive before 4 does not match them: their rows are missed, and where they are delete events, deleted rows "
        "come back.",
        "Run `acidctl compact --major`: its files have none.", "1.4", ("hive2", "hive3"),
    ),
    Rule(
        "R3", _E, _LISTING, "Full-ACID directories lack _orc_acid_version.",
        "Trino takes them for files from before Hive 3 and refuses them.",
        "Run `acidctl compact --major`, or write the marker.", "3.3", ("trino",),
    ),
    Rule(
        "R4", _E, _LISTING, "A base is marked `truncated` in _metadata_acid.",
        "The reader knows `compacted` only, and refuses the base.",
        "Run `acidctl compact --major` after the next insert.", "1.4", ("hive3", "trino"),
    ),
    Rule(
        "R5", _E, _LISTING, "A _flush_length file lies beside a data file.",
        "Impala refuses the directory; Trino reads the file to its physical end, committed or not.",
        "Compact when the streaming writer has closed its batch; if it died, run `acidctl repair flush-length`.", "12",
        ("trino", "impala"),
    ),
    Rule(
        "R6", _W, _LISTING, "Which _v directories count is not looked at.",
        "Trino ignores visibility ids: it reads results of compactions that are not committed.",
        "Clean aborted compactions.", "6.5", ("trino",),
    ),
    Rule(
        "R7", _E, _LISTING, "A name has a statement id and a visibility id.",
        "Impala takes the directory for one of original files.",
        "Rename it without the statement id.", "1.1", ("impala",),
    ),
    Rule(
        "R8", _E, _LISTING, "Data files lie deeper than one level inside an ACID directory.",
        "Trino does not look into HIVE_UNION_SUBDIR directories: their rows are missed.",
        "Rewrite the partition with INSERT OVERWRITE.", "6.5", ("trino",),
    ),
    Rule(
        "R9", _E, _LISTING, "Original files of several buckets have delete events.",
        "Trino numbers originals of unbucketed tables as bucket 0: deletes hit the wrong rows.",
        "Run `acidctl compact --major`.", "5.1", ("trino",),
    ),
    Rule(
        "R10", _E, _LISTING, "Raw files lie in ACID directories, as LOAD DATA leaves them.",
        "Hive 2 expects the ACID columns in every file there.",
        "Run `acidctl compact --major`.", "5.2", ("hive2",),
    ),
    Rule(
        "R11", _E, _FOOTERS, "Files lack hive.acid.key.index.",
        "Hive up to 3.1 takes such a file for one without ids and shows the six columns as rows.",
        "Run `acidctl compact --major`.", "3.4", ("hive2", "hive3"),
    ),
    Rule(
        "R12", _E, _FOOTERS, "Files are of ACID version 2.",
        "Hive 2 takes the encoded bucket column for a bucket number.",
        "Read them with Hive 3 or newer.", "15", ("hive2",),
    ),
    Rule(
        "R13", _E, _FOOTERS, "Updates and deletes stand among the inserts: ACID version 1.",
        "Readers since Hive 3 ignore the operation: updates and deletes are read as rows.",
        "Run a major compaction first.", "4.2", ("hive3", "hive4", "trino", "impala"),
    ),
    Rule(
        "R14", _E, _FOOTERS, "The ACID columns are not spelled as Hive spells them.",
        "Hive 4 compares the names exactly, and takes the file for one without ids.",
        "Run `acidctl compact --major`: it spells them right.", "3.1", ("hive4",),
    ),
    Rule(
        "R15", _W, _FOOTERS, "Files have no row index (stride 0).",
        "Their statistics mean nothing: the reader reads whole stripes, whatever the condition.",
        "Run `acidctl compact --major`.", "3.4", ("hive3", "hive4", "trino", "impala", "spark"),
    ),
    Rule(
        "R16", _E, _LISTING, "Spark's own ORC reader shows events, not rows.",
        "It sees six columns, ignores deletes, and reads what is obsolete, aborted and open.",
        "Use `spark.read.format(\"hive_acid\")`, which acidctl brings.", "3.1", ("spark",),
    ),
    Rule(
        "R17", _E, _LISTING, "A base that this snapshot may not use.",
        "Trino refuses the location for any such base, an open INSERT OVERWRITE too.",
        "Wait until the write id is committed.", "6.5", ("trino",),
    ),
    Rule(
        "R18", _W, _LISTING, "A compacted base without a visibility id.",
        "Impala knows no _metadata_acid: it takes the base for an INSERT OVERWRITE, whatever write ids are open below.",
        "Compact when no write id below the base is open.", "6.5", ("impala",),
    ),
)  # fmt: skip

RULES: dict[str, Rule] = {rule.id: rule for rule in (*_DIRECTORIES, *_FILES, *_READER_RULES)}
"""Every rule by its id, in order."""


def rule(rule_id: str) -> Rule:
    """The rule of an id that is known to be one."""
    return RULES[rule_id]
