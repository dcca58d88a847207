"""Delete events, keys that occur twice, and buckets."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, both, dels, events, ins, plain
from support.files.acid_files import B0, B1, DELETE, INSERT

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
ids("foreign-write-id", "validate V28", "A row of write id 9 in the delta of write id 1.", {
    "d1": both(ins(1, 1), ins(9, 9)), "d2": ins(2, 2),
})
