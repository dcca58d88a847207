"""Names and nesting of directories; which base and which deltas a snapshot reads."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, both, dels, ins, plain

names = Chapter("names of directories")

names("canonical", "format section 1.1", "Two deltas, as Hive 3 and 4 name them.", {"d1": ins(1, 1, 2), "d2": ins(2,
    3)})
names("no-statement", "presto-1970", "A delta without a statement id, as before Hive 1.3.", {
    "delta_0000001_0000001/bucket_00000": ins(1, 1, 2),
})
names("unpadded", "format section 1.1", "Numbers that are not padded.", {
    "delta_1_1/bucket_00000": ins(1, 1), "delta_0000002_2_0/bucket_00000": ins(2, 2), "base_0/bucket_00000": ins(0, 3),
})
names("eight-digits", "format section 1.1", "Write ids of eight digits are numbers, not text.", {
    "d9999999": ins(9999999, 1), "delta_10000000_10000000_0000/bucket_00000": ins(10000000, 2),
    "delete_delta_10000000_10000000_0000/bucket_00000": dels(10000000, (9999999, 0)),
})
names("no-number-base", "format section 1.1", "A directory base_tmp beside a delta.", {
    "d1": ins(1, 1), "base_tmp/bucket_00000": ins(2, 2),
})
names("no-number-delta", "format section 1.1", "A directory delta_x beside a delta.", {
    "d1": ins(1, 1), "delta_x/bucket_00000": ins(2, 2),
})
names("delta-alone", "format section 1.1", "A directory that is called delta_ beside a delta.", {
    "d1": ins(1, 1), "delta_/bucket_00000": ins(2, 2),
})
names("delta-one-number", "format section 1.1", "A delta with one number.", {
    "d1": ins(1, 1), "delta_0000002/bucket_00000": ins(2, 2),
})
names("delta-dash", "format section 1.1", "A delta whose name has an end of its own, delta_2_2_0000-old.", {
    "d1": ins(1, 1), "delta_0000002_0000002_0000-old/bucket_00000": ins(2, 2),
})
names("base-dash", "format section 1.1", "A base whose name has an end of its own, base_2.bak.", {
    "d1": ins(1, 1), "base_0000002.bak/bucket_00000": ins(2, 2),
})
names("upper-case-delta", "format section 1.1", "A delta in capitals.", {
    "d1": ins(1, 1), "DELTA_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
names("reversed-range", "validate V2", "A delta that ends before it begins.", {
    "d1": ins(1, 1), "delta_0000005_0000003/bucket_00000": ins(4, 2),
})
names("negative-base", "validate V2", "A base with a negative write id.", {
    "base_-5/bucket_00000": ins(1, 1), "d1": ins(1, 2),
})
names("statement-and-visibility", "validate V3", "A statement id and a visibility id in one name.", {
    "delta_0000001_0000001_0000_v0000010/bucket_00000": ins(1, 1),
})
names("statement-of-five-digits", "format section 2", "A statement id above 4095.", {
    "delta_0000001_0000001_5000/bucket_00000": ins(1, 1, statement=100),
})
names("statement-in-a-range", "validate V6", "A delta of several write ids with a statement id.", {
    "delta_0000001_0000003_0000/bucket_00000": both(ins(1, 1), ins(3, 3)),
})
names("nested-delta", "trino-8920", "A delta in a delta, as a rename onto a directory leaves it.", {
    "delta_0000001_0000005/bucket_00000": ins(1, 1), "delta_0000001_0000005/delta_0000002_0000002/bucket_00000": ins(2,
    2),
})
names("nested-base", "validate V17", "A base in a base, as a rename onto a directory leaves it.", {
    "base_0000005/bucket_00000": ins(1, 1), "base_0000005/base_0000005/bucket_00000": ins(2, 2),
    "base_0000005/_metadata_acid": COMPACTED,
})
names("delta-in-a-folder", "format section 1.1", "A delta in a folder that is none.", {
    "d1": ins(1, 1), "sub/delta_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
names("delta-in-a-key-folder", "format section 1.1", "A delta in a folder k=1, as a partition has it.", {
    "d1": ins(1, 1), "k=1/delta_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
names("file-in-a-key-folder", "format section 5.1", "An original file in a folder k=1, as a partition has it.", {
    "d1": ins(1, 1), "k=1/000000_0": plain(2),
})
names("hidden-delta", "format section 1.3", "A delta in a directory whose name begins with a point.", {
    "d1": ins(1, 1), ".hive-staging_x/delta_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
names("hidden-underscore", "format section 1.3", "A delta in _tmp_x.", {
    "d1": ins(1, 1), "_tmp_x/delta_0000002_0000002_0000/bucket_00000": ins(2, 2),
})
names("dash-tmp", "format section 1.4", "A directory -tmp.delta_2_2_0000, as Hive 4 puts manifests there.", {
    "d1": ins(1, 1), "-tmp.delta_0000002_0000002_0000/000000_0.manifest": b"\x00\x00\x00\x00",
})
names("file-called-delta", "format section 1.1", "A file whose name is that of a delta.", {
    "d1": ins(1, 1), "delta_0000002_0000002_0000": b"",
})
names("empty-delta", "validate V15", "A delta without a file.", {"d1": ins(1, 1), "d2/": b""})
names("empty-base", "validate V15", "A base of a compaction without a file.", {
    "d1": ins(1, 1), "base_0000001/_metadata_acid": COMPACTED, "d2": ins(2, 2),
})
names("bare-base", "validate V15", "A base without any file: Hive 4 does not see it.", {
    "d1": ins(1, 1), "base_0000002/": b"", "d3": ins(3, 3),
}, unmarked=True)
names("bare-wide-delta", "validate V15", "A wide delta without any file, over narrow ones.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "delta_0000001_0000002/": b"",
}, unmarked=True)

bases = Chapter("which base, which deltas")
bases("overwrite", "format section 1.2", "An INSERT OVERWRITE hides what is below it.", {
    "d1": ins(1, 1), "base_0000002/bucket_00000": ins(2, 2), "d3": ins(3, 3),
})
bases("two-bases", "format section 6.2", "The largest of two bases.", {
    "base_0000002/bucket_00000": ins(1, 1), "base_0000002/_metadata_acid": COMPACTED,
    "base_0000004/bucket_00000": both(ins(1, 1), ins(3, 3)), "base_0000004/_metadata_acid": COMPACTED, "d3": ins(3, 3),
})
bases("minimum-base", "format section 1.2", "A base of original files alone, and a delta.", {
    "base_-9223372036854775808/bucket_00000": ins(0, 1, 2), "base_-9223372036854775808/_metadata_acid": COMPACTED,
    "000000_0": plain(1, 2), "d1": ins(1, 3),
})
bases("zero-base", "format section 1.2", "base_0000000, and a delta.", {
    "base_0000000/bucket_00000": ins(0, 1), "d1": ins(1, 2),
})
bases("minor-hides", "hive-25977", "The output of a minor compaction hides its inputs.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "x3": dels(3, (1, 0)), "d1-3": both(ins(1, 1), ins(2, 2)), "x1-3": dels(3, (1,
    0)),
})
bases("minor-hides-deletes", "format section 6.3", "A wide delta hides a narrow delete delta, too.", {
    "d1": ins(1, 1), "x2": dels(2, (1, 0)), "d1-3": ins(1, 1, 2),
})
bases("overlapping", "validate V7", "Two deltas whose ranges overlap.", {
    "d1-3": both(ins(1, 1), ins(3, 3)), "d2-4": both(ins(2, 2), ins(3, 3), ins(4, 4)),
})
bases("straddling", "validate V9", "A delta that begins below a base and ends above it.", {
    "base_0000002/bucket_00000": ins(1, 1), "base_0000002/_metadata_acid": COMPACTED, "d1-4": both(ins(1, 1), ins(4,
    4)),
})
bases("same-range-no-statement", "format section 6.3", "delta_5_5 hides delta_5_5_0000.", {
    "delta_0000005_0000005/bucket_00000": ins(5, 1), "d5": ins(5, 2),
})
bases("statements", "format section 6.3", "Three statements of one transaction.", {
    "d1": ins(1, 1), "d1.1": ins(1, 2, statement=1), "d1.7": ins(1, 3, statement=7),
})
bases("delete-and-later-statement", "format section 6.3", "A delete delta of statement 0, a delta of statement 1.", {
    "d1": ins(1, 1, 2), "x2": dels(2, (1, 0)), "d2.1": ins(2, 3, statement=1),
})
bases("aborted-delta", "hive-21052", "A delta of an aborted write id.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "d3": ins(3, 3),
}, ids="cac")
bases("open-delta", "format section 6.3", "A delta of an open write id.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "d3": ins(3, 3),
}, ids="coc")
bases("above-the-watermark", "format section 6.3", "A delta above the high watermark.", {
    "d1": ins(1, 1), "d7": ins(7, 7),
}, ids="ccc")
bases("aborted-in-a-range", "format section 6.3", "A delta of three write ids, the second aborted.", {
    "d1-3": both(ins(1, 1), ins(2, 2), ins(3, 3)),
}, ids="cac")
bases("open-in-a-range", "format section 6.3", "A delta of three write ids, the second open.", {
    "d1-3": both(ins(1, 1), ins(2, 2), ins(3, 3)),
}, ids="coc")
bases("aborted-delete", "format section 4.2", "The delete of an aborted transaction.", {
    "d1": ins(1, 1, 2), "x2": dels(2, (1, 0)), "x3": dels(3, (1, 1)),
}, ids="cac")
bases("aborted-overwrite", "format section 6.2", "An aborted INSERT OVERWRITE.", {
    "d1": ins(1, 1), "base_0000002/bucket_00000": ins(2, 2), "d3": ins(3, 3),
}, ids="cac")
bases("open-overwrite", "format section 6.2", "An open INSERT OVERWRITE.", {
    "d1": ins(1, 1), "base_0000002/bucket_00000": ins(2, 2), "d3": ins(3, 3),
}, ids="coc")
bases("compacted-above-an-open", "format section 6.2", "The only base is a compaction's above an open write id.", {
    "base_0000003/bucket_00000": ins(1, 1), "base_0000003/_metadata_acid": COMPACTED,
}, ids="coc")
bases("visible-base", "format section 6.1", "The base of a compaction whose transaction is committed.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "base_0000002_v0000010/bucket_00000": both(ins(1, 1), ins(2, 2)),
})
bases("visibility-aborted", "format section 6.1", "The base of a compaction whose transaction was aborted.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "base_0000002_v0000018/bucket_00000": ins(1, 1),
})
bases("visibility-open", "hive-29572", "The base of a compaction whose transaction is open.", {
    "d1": ins(1, 1), "d2": ins(2, 2), "base_0000002_v0000019/bucket_00000": ins(1, 1),
})
bases("twins-of-visibility", "format section 6.3", "Two outputs of one range, both committed.", {
    "delta_0000001_0000003_v0000013/bucket_00000": both(ins(1, 1), ins(2, 2), ins(3, 3)),
    "delta_0000001_0000003_v0000015/bucket_00000": both(ins(1, 1), ins(2, 2), ins(3, 3)),
})
bases("twin-bases", "format section 6.2", "Two bases of compactions that end with one write id, and differ.", {
    "base_0000002_v0000010/bucket_00000": ins(1, 1), "base_0000002_v0000012/bucket_00000": both(ins(1, 1), ins(2, 2)),
    "d3": ins(3, 3),
})
bases("twin-bases-of-two-hives", "format section 6.2", "Such bases of a compaction of Hive 3 and one of Hive 4.", {
    "base_0000002/bucket_00000": both(ins(1, 1), ins(2, 2)), "base_0000002/_metadata_acid": COMPACTED,
    "base_0000002_v0000012/bucket_00000": ins(1, 1), "d3": ins(3, 3),
})
bases("twin-delete-deltas", "format section 6.3", "Two delete deltas of one range, both committed.", {
    "d1": ins(1, 1, 2, 3), "delete_delta_0000002_0000003_v0000013/bucket_00000": dels(2, (1, 0)),
    "delete_delta_0000002_0000003_v0000015/bucket_00000": dels(3, (1, 1)),
})
bases("twins-below-a-base", "format section 6.3", "Two deltas of one range that a base hides.", {
    "delta_0000001_0000003_v0000013/bucket_00000": ins(1, 1), "delta_0000001_0000003_v0000015/bucket_00000": ins(1, 1),
    "base_0000003_v0000016/bucket_00000": ins(1, 1), "d4": ins(4, 4),
})
