"""Files: originals and their order, loaded ones, empty ones, flush lengths, metadata."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, both, dels, events, flushed, ins, no_rows, plain

originals = Chapter("original files")
originals("original-alone", "format section 5.1", "An original file.", {"000000_0": plain(1, 2)})
originals("copies", "format section 5.1", "Copies of one bucket are numbered on in the order of their names as text.", {
    "000000_0": plain(1), "000000_0_copy_1": plain(2), "000000_0_copy_10": plain(3), "000000_0_copy_2": plain(4),
    "x1": dels(1, (0, 2)),
})
originals("union-folders", "format section 5.1", "Folders of a UNION ALL.", {
    "000000_0": plain(1), "HIVE_UNION_SUBDIR_1/000000_0": plain(2), "HIVE_UNION_SUBDIR_15/000000_0": plain(3),
    "HIVE_UNION_SUBDIR_2/000000_0": plain(4), "x1": dels(1, (0, 2)),
})
originals("original-buckets", "format section 5.1", "Two buckets have a counter each.", {
    "000000_0": plain(1, 2), "000001_0": plain(3, 4), "x1/bucket_00001": dels(1, (0, 1), bucket=1),
})
originals("original-no-number", "format section 5.1", "An original file whose name has no bucket.", {
    "part-00000.orc": plain(1, 2), "d1": ins(1, 3),
})
originals("original-empty", "format section 5.1", "An original file of 0 bytes.", {
    "000000_0": plain(1), "000000_0_copy_1": b"", "000000_0_copy_2": plain(2), "d1": ins(1, 3),
})
originals("converted", "format section 5.1", "A converted table: its write ids begin with 10000001.", {
    "000000_0": plain(1, 2), "delta_10000001_10000001_0000/bucket_00000": ins(10000001, 3),
    "delete_delta_10000002_10000002_0000/bucket_00000": dels(10000002, (0, 0)),
}, ids="cc", converted=True)
originals("original-below-a-base", "format section 5.1", "An original file is obsolete by a base.", {
    "000000_0": plain(1), "base_0000001/bucket_00000": ins(1, 2), "base_0000001/_metadata_acid": COMPACTED,
})
originals("loaded", "format section 5.2", "Loaded files with a copy, and an update of them.", {
    "d1/000000_0": plain(1, 2), "d1/000000_0_copy_1": plain(3), "x2": dels(2, (1, 2)), "d2": ins(2, 4),
})
originals("loaded-base", "format section 5.2", "LOAD DATA OVERWRITE.", {
    "d1": ins(1, 1), "base_0000002/000000_0": plain(2, 3), "x3": dels(3, (2, 0)),
})
originals("loaded-no-number", "format section 5.2", "A loaded file whose name has no bucket.", {
    "d1/part-0.orc": plain(1, 2), "d2": ins(2, 3),
})
originals("loaded-beside-native", "validate V25", "A loaded file beside one with ids in a delta.", {
    "d1": ins(1, 1), "d1/000000_0": plain(2), "d2": ins(2, 3),
})

empty = Chapter("empty files and metadata")
empty("bucket-of-0-bytes", "hive-25722", "A bucket file of 0 bytes.", {
    "d1": ins(1, 1, 2), "d2/bucket_00003_0": b"", "d2": ins(2, 3),
})
empty("only-0-bytes", "hive-25722", "A delta whose only file has 0 bytes.", {"d1": ins(1, 1, 2), "d2": b""})
empty("delete-of-0-bytes", "hive-25722", "A delete delta whose only file has 0 bytes.", {"d1": ins(1, 1, 2), "x2": b""})
empty("no-rows-with-ids", "format section 3.2", "A file with ids and without rows.", {
    "d1": events(), "d2": ins(2, 1), "d3": ins(3, 2),
})
empty("loaded-without-rows", "format section 5.2", "A loaded file without rows.", {
    "d1/000000_0": no_rows(), "d2": ins(2, 1), "d3": ins(3, 2),
})
empty("truncated-base", "format section 1.4", "A base of TRUNCATE.", {
    "d1": ins(1, 1), "base_0000002/_metadata_acid": b'{"thisFileVersion":"0","dataFormat":"truncated"}', "d3": ins(3,
    3),
})
empty("dropped-base", "format section 1.4", "A base of a partition that Hive 4 drops.", {
    "d1": ins(1, 1), "base_0000002/_metadata_acid": b'{"thisFileVersion":"0","dataFormat":"dropped"}',
})
empty("metadata-of-0-bytes", "validate V14", "A _metadata_acid of 0 bytes.", {
    "d1": ins(1, 1), "base_0000002/_metadata_acid": b"", "base_0000002/bucket_00000": ins(1, 1), "d3": ins(3, 3),
})
empty("version-file-missing", "trino-5569", "No _orc_acid_version.", {
    "d1": ins(1, 1), "x2": dels(2, (1, 0)), "d2": ins(2, 2),
}, unmarked=True)
empty("version-file-of-0-bytes", "validate V13", "A _orc_acid_version of 0 bytes.", {
    "d1": ins(1, 1), "d1/_orc_acid_version": b"", "d2": ins(2, 2), "d2/_orc_acid_version": b"2",
}, unmarked=True)
empty("no-key-index", "format section 3.4", "A file with ids and without a key index.", {
    "d1": events((0, 1, 536870912, 0, 1, (1, "b1")), metadata={"hive.acid.key.index": None}), "d2": ins(2, 2),
})
empty("acid-columns-in-an-original-name", "hive-23703", "000000_0 with ids beside bucket_00000.", {
    "base_0000002/bucket_00000": both(ins(1, 1), ins(2, 2)), "base_0000002/000000_0": ins(1, 33, 44, bucket=0),
    "base_0000002/_metadata_acid": COMPACTED,
})
empty("acid-columns-in-an-original-name-alone", "hive-23703", "000000_0 with ids in a delta, and nothing else.", {
    "d1/000000_0": ins(1, 33, 44), "d2": ins(2, 2),
})
empty("acid-columns-beside-a-delta", "hive-23703", "000000_0 with ids beside bucket_00000 of a delta.", {
    "d1": ins(1, 1), "d1/000000_0": ins(1, 33, 44, first=5), "d2": ins(2, 2),
})
empty("acid-columns-beside-an-overwrite", "hive-23703", "The same beside an INSERT OVERWRITE.", {
    "base_0000001/bucket_00000": ins(1, 1), "base_0000001/000000_0": ins(1, 33, 44, first=5), "d2": ins(2, 2),
})
empty("acid-columns-beside-a-visible-base", "hive-23703", "The same in a base of a compaction of Hive 4.", {
    "base_0000001_v0000010/bucket_00000": ins(1, 1), "base_0000001_v0000010/000000_0": ins(1, 33, 44, first=5),
    "d2": ins(2, 2),
})
empty("no-ids-beside-an-overwrite", "validate V25", "No ids in 000000_0 beside an INSERT OVERWRITE.", {
    "base_0000001/bucket_00000": ins(1, 1), "base_0000001/000000_0": plain(33), "d2": ins(2, 2),
})
empty("no-ids-beside-a-compaction", "validate V25", "No ids in 000000_0 beside a compaction's.", {
    "base_0000001/bucket_00000": ins(1, 1), "base_0000001/000000_0": plain(33),
    "base_0000001/_metadata_acid": COMPACTED, "d2": ins(2, 2),
})

originals("loaded-union-folders", "format section 1.4", "The folders of a UNION ALL in a delta, and a delta.", {
    "d1/HIVE_UNION_SUBDIR_1/000000_0": plain(1), "d1/HIVE_UNION_SUBDIR_2/000000_0": plain(2), "d2": ins(2, 6),
})
originals("union-folder-beside-a-file", "format section 1.4", "A folder of a UNION ALL beside a loaded file.", {
    "d1/000000_0": plain(1), "d1/HIVE_UNION_SUBDIR_1/000000_0": plain(2), "d2": ins(2, 6),
})
originals("union-folders-of-a-base", "format section 1.4", "The folders of a UNION ALL in a base.", {
    "base_0000001/HIVE_UNION_SUBDIR_1/000000_0": plain(1), "base_0000001/HIVE_UNION_SUBDIR_2/000000_0": plain(2),
    "d2": ins(2, 6),
})
originals("loaded-in-a-wide-delta", "validate V25", "A file without ids in a delta of several write ids.", {
    "delta_0000001_0000002/000000_0": plain(1), "d3": ins(3, 6),
})
empty("flush-length-of-a-range", "format section 12", "A flush length that is not the size, in a wide delta.", {
    "d1-3": both(ins(1, 1), ins(2, 2), ins(3, 3), tail=b"xxxx"),
    "delta_0000001_0000003/bucket_00000_flush_length": flushed(-4), "d4": ins(4, 4),
})
