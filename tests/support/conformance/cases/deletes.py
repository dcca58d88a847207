"""Delete events, keys that occur twice, and buckets."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, both, dels, events, ins, plain
from support.files.acid_files import B0, B1, DELETE, INSERT, UPDATE

deletes = Chapter("delete events")
deletes("update", "trino-15187", "An update: a delete and an insert of one write id.", {
    "d1": ins(1, 1, 2), "x2": dels(2, (1, 1)), "d2": ins(2, 3),
})
deletes("delete-of-a-base", "format section 4.2", "A row of a base is deleted.", {
    "base_0000001/bucket_00000": ins(1, 1, 2), "base_0000001/_metadata_acid": COMPACTED, "x2": dels(2, (1, 0)),
})
deletes("duplicate", "validate V34", "Two deletes of one row.", {
    "d1": ins(1, 1, 2), "x2": dels(2, (1, 0)), "x3": dels(3, (1, 0)),
})
deletes("of-nothing", "validate V33", "A delete of a row that is nowhere.", {"d1": ins(1, 1, 2), "x2": dels(2, (1, 7))})
deletes("below-the-row", "validate V35", "A delete whose write id is below the row's.", {
    "d3": ins(3, 1, 2), "x2": dels(2, (3, 0)),
})
deletes("same-write-id", "format section 4.2", "A row is inserted and deleted by one write id.", {
    "d1": ins(1, 1, 2), "x1": dels(1, (1, 0)),
})
deletes("of-another-bucket", "spark-acid-92", "The delete lies in the file of another bucket than the row.", {
    "d1": ins(1, 1, 2), "x2/bucket_00001": dels(2, (1, 0)),
})
deletes("of-another-statement", "format section 2", "A delete of the same numbers and another statement.", {
    "d1": ins(1, 1), "d1.1": ins(1, 2, statement=1), "x2": dels(2, (1, 0), statement=1),
})
deletes("whole-table", "format section 8.3", "All rows are deleted.", {"d1": ins(1, 1, 2), "x2": dels(2, (1, 0), (1,
    1))})
deletes("no-insert", "format section 6.3", "Delete deltas alone.", {"x1": dels(1, (1, 0)), "x2": dels(2, (1, 1))})
deletes("in-disorder", "validate V26", "The deletes are not sorted.", {
    "d1": ins(1, 1, 2, 3),
    "x2": events((DELETE, 1, B0, 2, 2, None), (DELETE, 1, B0, 0, 2, None)),
})
deletes("in-a-delta", "validate V12", "A delete event in a delta, as version 1 has them.", {
    "d1": ins(1, 1, 2), "d2": events((DELETE, 1, B0, 0, 2, None)),
})
deletes("with-a-row", "validate V12", "A delete event that has a row.", {
    "d1": ins(1, 1, 2), "x2": events((DELETE, 1, B0, 0, 2, (1, "b1"))),
})
deletes("insert-in-a-delete-delta", "validate V12", "An insert event in a delete delta.", {
    "d1": ins(1, 1, 2), "x2": events((INSERT, 1, B0, 0, 2, (1, "b1"))),
})
deletes("updates-in-a-base", "format section 4.1", "An update in a base, as compactions of version 1 leave it.", {
    "base_0000002/bucket_00000": events((UPDATE, 1, 0, 0, 2, (11, "b11")), (INSERT, 1, 0, 1, 1, (2, "b2"))),
    "base_0000002/_metadata_acid": COMPACTED, "d3": ins(3, 3), "d4": ins(4, 4),
})
deletes("of-updates-in-a-base", "format section 4.1", "An update in a base, which is deleted by a delete delta.", {
    "base_0000002/bucket_00000": events((UPDATE, 1, 0, 0, 2, (11, "b11")), (INSERT, 1, 0, 1, 1, (2, "b2"))),
    "base_0000002/_metadata_acid": COMPACTED, "d3": ins(3, 3), "x4": events((DELETE, 1, 0, 0, 4, None)),
})
deletes("of-an-original", "trino-2930", "A row of an original file is deleted.", {
    "000000_0": plain(1, 2), "x1": dels(1, (0, 1)),
})
deletes("of-a-loaded-row", "format section 5.2", "A row of a loaded file is deleted.", {
    "d1/000000_0": plain(1, 2), "x2": dels(2, (1, 1)),
})
deletes("old-bucket-form", "format section 2", "Rows and a delete with bucket values of version 0.", {
    "d1": events((INSERT, 1, 0, 0, 1, (1, "b1")), (INSERT, 1, 0, 1, 1, (2, "b2"))),
    "x2": events((DELETE, 1, 0, 0, 2, None)),
})

deletes("below-an-older-bucket", "spark-acid-92", "The same, and that bucket has rows, too.", {
    "d5/bucket_00001": ins(5, 1, 2, bucket=1), "d6": ins(6, 3), "x7": dels(7, (5, 0), bucket=1),
})
deletes("in-every-bucket", "format section 4.2", "Every file has the deletes of all buckets.", {
    "d1/bucket_00000": ins(1, 1, 2), "d1/bucket_00001": ins(1, 3, 4, bucket=1),
    "delete_delta_0000002_0000003/bucket_00000": both(dels(2, (1, 0)), dels(3, (1, 1), bucket=1)),
    "delete_delta_0000002_0000003/bucket_00001": both(dels(2, (1, 0)), dels(3, (1, 1), bucket=1)),
})
deletes("original-of-another-bucket", "format section 4.2", "The same, of an original row.", {
    "000001_0": plain(1, 2), "x1/bucket_00000": dels(1, (0, 0), bucket=1),
})
deletes("bucket-of-one-digit", "format section 1.4", "The deletes lie in bucket_0.", {
    "d1": ins(1, 1, 2), "x2/bucket_0": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("bucket-of-six-digits", "format section 1.4", "The deletes lie in bucket_000000.", {
    "d1": ins(1, 1, 2), "x2/bucket_000000": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("attempt-of-two-digits", "format section 1.4", "The deletes lie in bucket_00000_07.", {
    "d1": ins(1, 1, 2), "x2/bucket_00000_07": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("bucket-of-100000", "format section 1.4", "Rows and deletes lie in bucket_100000, which has six digits.", {
    "d1/bucket_100000": events((INSERT, 1, 100000, 0, 1, (1, "b1")), (INSERT, 1, 100000, 1, 1, (2, "b2"))),
    "x2/bucket_100000": events((DELETE, 1, 100000, 0, 2, None)), "d3": ins(3, 3),
})
deletes("attempt-beyond-numbers", "format section 1.4", "The number of an attempt does not fit in 32 bits.", {
    "d1": ins(1, 1, 2), "x2/bucket_00000_9999999999": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("rows-of-one-digit", "format section 1.4", "Rows lie in bucket_0, of a base and of a delta.", {
    "base_0000001/bucket_0": ins(1, 1, 2), "base_0000001/_metadata_acid": COMPACTED, "d2/bucket_0": ins(2, 3, 4),
    "x3": dels(3, (1, 0), (2, 0)),
})
deletes("bucket-in-capitals", "format section 1.4", "The deletes lie in BUCKET_00000.", {
    "d1": ins(1, 1, 2), "x2/BUCKET_00000": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("bucket-with-an-ending", "format section 1.4", "The deletes lie in bucket_00000.orc.", {
    "d1": ins(1, 1, 2), "x2/bucket_00000.orc": dels(2, (1, 0)), "d3": ins(3, 3),
})
deletes("unpadded-delete-delta", "format section 1.4", "A delete delta whose statement id is not padded.", {
    "d1": ins(1, 1, 2), "delete_delta_0000002_0000002_0/bucket_00000": dels(2, (1, 0)), "d3": ins(3, 3),
})

ids = Chapter("keys that occur twice")
ids("duplicate-in-a-file", "trino-8452", "Three rows of one ROW__ID in one file.", {
    "d1": events(*((INSERT, 1, B0, i // 3, 1, (i, f"b{i}")) for i in range(6))), "d2": ins(2, 7),
})
ids("duplicate-in-disorder", "trino-8452", "Row ids begin anew with every page of a writer.", {
    "d1": events(*((INSERT, 1, B0, i % 2, 1, (i, f"b{i}")) for i in range(6))), "d2": ins(2, 7),
})
ids("duplicate-and-deleted", "trino-8452", "Three rows of one ROW__ID, which is deleted.", {
    "d1": events(*((INSERT, 1, B0, i // 3, 1, (i, f"b{i}")) for i in range(6))), "x2": dels(2, (1, 0)),
})
ids("duplicate-in-two-deltas", "validate V27", "One ROW__ID in two deltas.", {
    "d1": ins(1, 1), "d2": both(ins(1, 1, current=2), ins(2, 2)),
})
ids("duplicate-in-two-buckets", "validate V27", "One ROW__ID in the files of two buckets.", {
    "d1/bucket_00000": ins(1, 1), "d1/bucket_00001": ins(1, 1), "d2": ins(2, 2),
})
ids("two-attempts", "validate V22", "The files of two attempts of one bucket.", {
    "d1/bucket_00000_0": ins(1, 1), "d1/bucket_00000_1": ins(1, 1), "d2": ins(2, 2),
})
ids("rows-in-disorder", "validate V26", "The rows are not sorted.", {
    "d1": events((INSERT, 1, B0, 1, 1, (2, "b2")), (INSERT, 1, B0, 0, 1, (1, "b1"))), "x2": dels(2, (1, 0)),
})
ids("gap-in-row-ids", "validate V29", "Row ids with a gap.", {
    "d1": both(ins(1, 1), ins(1, 2, first=9)), "x2": dels(2, (1, 9)),
})
ids("bucket-not-of-the-file", "validate V21", "Rows of bucket 1 in the file of bucket 0.", {
    "d1": events((INSERT, 1, B1, 0, 1, (1, "b1"))), "x2/bucket_00001": dels(2, (1, 0), bucket=1), "d3": ins(3, 3),
})
ids("delete-with-the-file", "validate V21", "Rows of bucket 1 in the file of bucket 0, and so is their delete.", {
    "d1": events((INSERT, 1, B1, 0, 1, (1, "b1"))), "x2": dels(2, (1, 0), bucket=1), "d3": ins(3, 3),
})
ids("foreign-write-id", "validate V28", "A row of write id 9 in the delta of write id 1.", {
    "d1": both(ins(1, 1), ins(9, 9)), "d2": ins(2, 2),
})
