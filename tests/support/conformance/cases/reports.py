"""Tables of public reports, and of streaming writers."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, Content, both, dels, events, flushed, ins, no_rows, plain
from support.files.acid_files import B0, DELETE, INSERT, UPDATE

streams = Chapter("streaming writers")
streams("flush-whole", "format section 12", "A flush length that is the file's.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "d1-2/bucket_00000_flush_length": flushed(0, None),
})
streams("flush-shorter", "format section 12", "A file that is longer than its flush length.", {
    "d1-2": both(ins(1, 1), ins(2, 2), tail=b"\x00" * 50), "d1-2/bucket_00000_flush_length": flushed(0, -50),
})
streams("flush-0", "format section 12", "Nothing is committed of a stream.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "d1-2/bucket_00000_flush_length": flushed(0), "d3": ins(3, 3),
})
streams("flush-longer", "validate V36", "A flush length above the file's.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "d1-2/bucket_00000_flush_length": flushed(0, 10**9), "d3": ins(3, 3),
})
streams("flush-torn", "validate V36", "A flush length with three bytes of the next number.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "d1-2/bucket_00000_flush_length": flushed(0, None, tail=b"\x00\x00\x00"),
})
streams("flush-of-0-bytes", "validate V36", "A flush length of 0 bytes.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "d1-2/bucket_00000_flush_length": b"", "d3": ins(3, 3),
})
streams("flush-beside-one-write-id", "format section 12", "A flush length beside a delta of one write id.", {
    "d1": ins(1, 1), "d1/bucket_00000_flush_length": flushed(0), "d2": ins(2, 2),
})
streams("flush-alone", "validate V36", "A flush length without its file.", {
    "d1-2/bucket_00001_flush_length": b"\x00" * 8, "d1-2": both(ins(1, 1), ins(2, 2)),
})
streams("stream-aborted-in-it", "hive-24481", "A batch of a stream whose first write id was aborted.", {
    "d1-3": both(ins(1, 1), ins(2, 2), ins(3, 3)), "d4": ins(4, 4),
}, ids="accc")
streams("stream-aborted-at-its-end", "hive-24481", "A batch of a stream whose last write id was aborted.", {
    "d1": ins(1, 1), "d2-4": both(ins(2, 2), ins(3, 3), ins(4, 4)), "d5": ins(5, 5),
}, ids="cccac")
streams("stream-restarts-row-ids", "format section 4", "Row ids begin anew with every write id of a batch.", {
    "d1-2": both(ins(1, 1, 2), ins(2, 3, 4)), "x3": dels(3, (2, 0)),
})

reports = Chapter("public reports")
reports("delete-file-of-an-attempt", "trino-31302", "The delete's file has an attempt in its name, the rows' has one.",
    {
    "d1/bucket_00000_0": ins(1, 1, 2), "x2/bucket_00000_3": dels(2, (1, 0)),
})
reports("attempt-and-none", "hive-21164", "A file of an attempt, and a delete in one without.", {
    "d1/bucket_00000_0": ins(1, 1, 2), "x2/bucket_00000": dels(2, (1, 0)),
})
reports("none-and-attempt", "hive-23410", "A file without an attempt, and a delete in one with.", {
    "d1/bucket_00000": ins(1, 1, 2), "x2/bucket_00000_1": dels(2, (1, 0)),
})
reports("updated-twice", "trino-8268", "Two statements of one update wrote one ROW__ID each.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "x3": dels(3, (1, 0)), "x3.1": dels(3, (2, 0)),
    "d3": ins(3, 11), "d3.1": ins(3, 12, statement=1),
})
reports("same-id-in-two-statements", "trino-8268", "Two statements wrote rows of one ROW__ID, as Trino did.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "x3": dels(3, (1, 0)), "x3.1": dels(3, (2, 0)), "d3": ins(3, 11), "d3.1": ins(3,
    12),
})
reports("multi-insert", "trino-8208", "Two statements have rows of one number; one of them is deleted.", {
    "d1": ins(1, 1), "d1.1": ins(1, 2, statement=1), "x2": dels(2, (1, 0)),
})
reports("large-row-ids", "trino-12731", "Row ids above four thousand million.", {
    "d1": both(ins(1, 1, first=2**32 + 1), ins(1, 2, first=2**40)), "x2": dels(2, (1, 2**32 + 1)),
})
reports("redundant-base", "hive-25600", "A base with a copy of itself inside.", {
    "base_0000002/bucket_00000": ins(1, 1), "base_0000002/base_0000002/bucket_00000": ins(1, 1),
    "base_0000002/_metadata_acid": COMPACTED, "d3": ins(3, 3),
})
reports("redundant-delete-delta", "trino-16315", "A delete delta with a copy of itself inside.", {
    "d1": ins(1, 1, 2), "x2-5": dels(2, (1, 0)),
    "delete_delta_0000002_0000005/delete_delta_0000002_0000005/bucket_00000":
    dels(2, (1, 0)),
})
reports("attempt-in-a-base", "hive-28700", "A base whose file is of an attempt, a delete of its row.", {
    "base_0000002/bucket_00000_0": ins(2, 1, 2), "x3": dels(3, (2, 0)), "d4": ins(4, 4),
})
reports("loaded-and-inserted", "hive-25915", "A loaded file, and deltas.", {
    "d1/000000_0": plain(1, 2), "d2": ins(2, 3), "d3": ins(3, 4), "x4": dels(4, (1, 0)),
})
reports("hidden-directory", "trino-16715", "A location with a hidden directory that holds a delta.", {
    "d1": ins(1, 1), "_impala_insert_staging/x/delta_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
reports("delete-delta-of-a-minor", "trino-4623",
    "A delete delta without a statement id, as a minor compaction writes it.", {
    "d1": ins(1, 1, 2), "delete_delta_0000002_0000003/bucket_00000": dels(2, (1, 0)),
})
reports("no-version-anywhere", "trino-7579", "No version in the files' metadata, either.", {
    "d1": events((INSERT, 1, B0, 0, 1, (1, "b1")), metadata={"hive.acid.version": None}),
}, unmarked=True)
reports("version-in-the-file-alone", "trino-7579", "The version stands in the files' metadata alone.", {
    "d1": ins(1, 1), "x2": dels(2, (1, 0)), "d2": ins(2, 2),
}, unmarked=True)
reports("update-of-version-1", "trino-2790", "An update of version 1: in a delta, with the row's old id.", {
    "d1": events((INSERT, 1, 0, 0, 1, (1, "b1")), (INSERT, 1, 0, 1, 1, (2, "b2"))),
    "d2": events((UPDATE, 1, 0, 0, 2, (11, "b11"))),
}, unmarked=True)
reports("delete-of-version-1", "trino-2790", "A delete of version 1 in a delta.", {
    "delta_0000001_0000001/bucket_00000": events((INSERT, 1, 0, 0, 1, (1, "b1")), (INSERT, 1, 0, 1, 1, (2, "b2"))),
    "delta_0000002_0000002/bucket_00000": events((DELETE, 1, 0, 0, 2, None)),
}, unmarked=True)
reports("not-six-columns", "trino-12571", "bucket_00000 without ids in a delta.", {"d1": plain(1, 2), "d2": ins(2, 3)})
reports("visibility-beside-plain", "hive-21213", "A base of one number with a visibility transaction and one without.",
    {
    "base_0000002/bucket_00000": ins(1, 1), "base_0000002/_metadata_acid": COMPACTED,
    "base_0000002_v0000010/bucket_00000": ins(1, 1), "d3": ins(3, 3),
})
reports("failed-compaction", "hive-24900", "What a compaction left whose transaction was aborted.", {
    "d1": ins(1, 1), "x2": dels(2, (1, 0)), "d2": ins(2, 2), "delta_0000001_0000002_v0000018/bucket_00000": ins(1, 1),
    "delete_delta_0000001_0000002_v0000018/bucket_00000": dels(2, (1, 0)),
})
reports("deltas-without-deletes", "hive-20941", "The output of a minor compaction whose delete delta has no file.", {
    "d1-2": both(ins(1, 1), ins(2, 2)), "delete_delta_0000001_0000002/": b"", "d3": ins(3, 3),
})
reports("empty-insert-file", "hive-26510", "The output of a minor compaction whose delta has no rows.", {
    "d1": ins(1, 1), "delta_0000002_0000003/bucket_00000": events(), "delete_delta_0000002_0000003/bucket_00000":
    dels(2, (1, 0)),
})
reports("order-of-a-query", "hive-25257", "A base that is sorted by bucket first.", {
    "base_0000003/bucket_00000": events((INSERT, 1, B0, 0, 1, (1, "b1")), (INSERT, 3, B0, 0, 3, (3, "b3")),
                                        (INSERT, 1, B0 + 1, 0, 1, (2, "b2"))),
    "base_0000003/_metadata_acid": COMPACTED, "x4": dels(4, (1, 0)), "d4": ins(4, 4),
})
reports("order-of-a-query-statement-deleted", "hive-25258", "The same, and a row of the second statement is deleted.", {
    "delta_0000001_0000003/bucket_00000": events((INSERT, 1, B0, 0, 1, (1, "b1")), (INSERT, 3, B0, 0, 3, (3, "b3")),
                                                 (INSERT, 1, B0 + 1, 0, 1, (2, "b2"))),
    "x4": dels(4, (1, 0), statement=1), "d4": ins(4, 4),
})
reports("buckets-in-one-file", "hive-23763", "A minor compaction put rows of two buckets into one file.", {
    "delta_0000001_0000002/bucket_00000": both(ins(1, 1), ins(1, 2, bucket=1)),
    "delete_delta_0000003_0000003_0000/bucket_00001": dels(3, (1, 0), bucket=1),
})
reports("base-of-a-query", "hive-20699", "currentTransaction is the row's first write id, as a query writes it.", {
    "base_0000004_v0000010/bucket_00000": both(ins(1, 1), ins(3, 3)), "x5": dels(5, (3, 0)), "d5": ins(5, 5),
})
reports("many-statements", "hive-24715", "Rows of a task above 4095 lie in a second statement.", {
    "d1/bucket_04095": ins(1, 1, bucket=4095), "d1.1/bucket_00000": ins(1, 2, statement=1),
    "x2/bucket_04095": dels(2, (1, 0), bucket=4095),
})
reports("copies-after-conversion", "hive-16177", "A converted table of copies whose rows were updated.", {
    "000000_0": plain(1, 2), "000000_0_copy_1": plain(3, 4), "delete_delta_10000001_10000001_0000/bucket_00000":
    dels(10000001, (0, 2)), "delta_10000001_10000001_0000/bucket_00000": ins(10000001, 33),
}, ids="c", converted=True)
reports("original-and-deltas", "hive-12724", "A major compaction takes in original files and deltas.", {
    "000000_0": plain(1, 2), "000001_0": plain(3), "d1": ins(1, 4), "d2": ins(2, 5),
})
reports("best-base-by-the-list", "hive-13369", "The best base is above an open write id.", {
    "base_0000001/bucket_00000": ins(1, 1), "base_0000001/_metadata_acid": COMPACTED, "d2": ins(2, 2), "d3": ins(3, 3),
    "base_0000003/bucket_00000": both(ins(1, 1), ins(3, 3)), "base_0000003/_metadata_acid": COMPACTED,
}, ids="coc")
reports("last-stripe-not-in-the-index", "hive-18817", "A key index without the entry of the last stripe.", {
    "d1": events(*((INSERT, 1, B0, i, 1, (i, f"b{i}")) for i in range(3)), metadata={"hive.acid.key.index": ""}),
    "x2": dels(2, (1, 1)),
})
reports("wrong-key-index", "hive-18907", "A key index whose entry is below the last row.", {
    "d1": events(*((INSERT, 1, B0, i, 1, (i, f"b{i}")) for i in range(3)), metadata={
        "hive.acid.key.index": f"1,{B0},0;"}),
    "x2": dels(2, (1, 2)),
})
reports("attempt-beside-none", "validate V22", "One bucket with an attempt and without, as a failed task leaves it.", {
    "d1/bucket_00000": ins(1, 1), "d1/bucket_00000_0": ins(1, 1), "d2": ins(2, 2),
})
reports("union-of-full-acid", "hive-16832", "The legs of a UNION ALL: statements 1 and 2.", {
    "d1.1": ins(1, 1, statement=1), "d1.2": ins(1, 2, statement=2), "x2": dels(2, (1, 0), statement=2),
})
reports("minor-with-statement-kept", "hive-11030", "Statement ids stay in bucket values after a minor compaction.", {
    "d1-2": both(ins(1, 1), ins(1, 2, statement=1), ins(2, 3)), "x3": dels(3, (1, 0), statement=1),
})
reports("base-in-a-base", "hive-15202", "Two compactions at once: a base in a base.", {
    "base_0000002/bucket_00000": both(ins(1, 1), ins(2, 2)), "base_0000002/base_0000002/bucket_00001": ins(2, 9,
    bucket=1),
    "base_0000002/_metadata_acid": COMPACTED,
})
reports("no-base-below-an-open", "hive-29601", "An INSERT OVERWRITE above an open write id.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "base_0000003/bucket_00000": ins(3, 3),
}, ids="coc")
reports("empty-directory-of-a-writer", "hive-29567", "A delta without a file above the newest rows.", {
    "d1": ins(1, 1), "x2": dels(2, (1, 0)), "d2": ins(2, 2), "d3/": b"",
})
reports("no-rows-in-a-bucket", "hive-13040", "A bucket without rows beside one with rows.", {
    "d1/bucket_00000": events(), "d1/bucket_00001": ins(1, 1, bucket=1), "d2": ins(2, 2),
})
reports("empty-original-with-schema", "spark-8501", "An original file without rows whose schema is struct<>.", {
    "000000_0": no_rows("struct<>"), "000000_0_copy_1": plain(1), "d1": ins(1, 2),
})
reports("no-row-index", "trino-3436", "Files without a row index, as minor compactions of Hive 3 write them.", {
    "d1-2": Content(both(ins(1, 1), ins(2, 2)).events, by_pyorc=True, stride=0), "x3": dels(3, (1, 0)),
})
reports("original-of-a-long-attempt", "trino-7291", "An original file whose second number has 39 digits.", {
    "000000_128931710732837179949886632921173018761": plain(1, 2), "x1": dels(1, (0, 1)), "d1": ins(1, 3),
})
reports("deleted-rows-are-back", "hive-25638", "Deletes of several buckets whose row ids are large.", {
    "d1/bucket_00000": ins(1, 1, 2, first=2**31), "d1/bucket_00001": ins(1, 3, 4, first=2**31, bucket=1),
    "x2/bucket_00000": dels(2, (1, 2**31)), "x2/bucket_00001": dels(2, (1, 2**31), (1, 2**31 + 1), bucket=1),
})
reports("insert-only-made-full", "hive-26474",
    "A full table that was insert-only: deltas without ids, a base of an overwrite.", {
    "d1/000000_0": plain(1), "base_0000002/000000_0": plain(2, 3), "d3/000000_0": plain(4), "x4": dels(4, (2, 1)),
    "d4": ins(4, 5),
})

buckets = Chapter("buckets", extra="clustered by (a) into 2 buckets")
buckets("bucketed", "presto-6666", "A table of two buckets.", {
    "d1/bucket_00000": ins(1, 2, 4), "d1/bucket_00001": ins(1, 1, 3, bucket=1), "x2/bucket_00001": dels(2, (1, 0),
    bucket=1),
})
buckets("bucketed-original", "format section 5.1", "A converted table of two buckets.", {
    "000000_0": plain(2, 4), "000001_0": plain(1, 3), "x1/bucket_00001": dels(1, (0, 0), bucket=1),
})
buckets("bucketed-too-many", "format section 4.2", "A bucket that the table does not have.", {
    "d1/bucket_00000": ins(1, 2), "d1/bucket_00007": ins(1, 7, bucket=7), "x2/bucket_00007": dels(2, (1, 0), bucket=7),
})
buckets("bucketed-one-missing", "hive-13040", "One of two buckets has no file.", {
    "d1/bucket_00001": ins(1, 1, bucket=1), "d2/bucket_00001": ins(2, 3, bucket=1),
})
buckets("bucketed-delete-elsewhere", "validate V21", "A delete in the file of the other bucket.", {
    "d1/bucket_00000": ins(1, 2, 4), "d1/bucket_00001": ins(1, 1, 3, bucket=1), "x2/bucket_00000": dels(2, (1, 0),
    bucket=1),
})
buckets("bucketed-loaded", "format section 5.2", "Loaded files of two buckets.", {
    "d1/000000_0": plain(2, 4), "d1/000001_0": plain(1, 3), "x2/bucket_00001": dels(2, (1, 1), bucket=1),
})
