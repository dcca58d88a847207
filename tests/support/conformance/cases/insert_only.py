"""Insert-only tables of ORC, Parquet and text."""

# fmt: off
from __future__ import annotations

from support.conformance.declared import COMPACTED, Chapter, in_parquet, ins, no_rows, plain, said, text

orc = Chapter("insert-only tables", insert_only=True, ids="cccccc")
orc("mm-delta", "trino-1034", "Two deltas.", {"d1/000000_0": plain(1, 2), "d2/000000_0": plain(3)})
orc("mm-original", "trino-28632", "A file at the top, and a delta: hive.mm.allow.originals is false.", {
    "000000_0": plain(1, 2), "d1/000000_0": plain(4),
})
orc("mm-original-alone", "trino-28632", "A file at the top alone.", {"000000_0": plain(1, 2)})
orc("mm-original-folder", "trino-28632", "A file in a folder at the top.", {
    "part/000000_0": plain(1), "d1/000000_0": plain(4),
})
orc("mm-key-folder", "format section 1.1", "A file in a folder k=1, as a partition has it.", {
    "k=1/000000_0": plain(9), "d1/000000_0": plain(1), "d3/000000_0": plain(3),
})
orc("mm-delta-in-a-folder", "format section 1.1", "A delta in a folder that is none.", {
    "sub/delta_0000002_0000002_0000/000000_0": plain(9), "d1/000000_0": plain(1), "d3/000000_0": plain(3),
})
orc("mm-delta-in-a-key-folder", "format section 1.1", "A delta in a folder k=1, as a partition has it.", {
    "k=1/delta_0000002_0000002_0000/000000_0": plain(9), "d1/000000_0": plain(1), "d3/000000_0": plain(3),
})
orc("mm-base-in-a-key-folder", "format section 1.1", "A base in a folder k=1, as a partition has it.", {
    "k=1/base_0000002/000000_0": plain(9), "d1/000000_0": plain(1), "d3/000000_0": plain(3),
})
orc("mm-old-delta-in-a-key-folder", "format section 1.1", "A delta of a base's write ids in a folder k=1.", {
    "k=1/delta_0000002_0000002_0000/000000_0": plain(9), "base_0000003/000000_0": plain(1),
})
orc("mm-delta-deep-in-a-delta", "format section 1.1", "A delta in a folder in a delta.", {
    "d1/sub/delta_0000002_0000002_0000/000000_0": plain(9), "d1/000000_0": plain(1), "d3/000000_0": plain(3),
})
orc("mm-overwrite", "starrocks-71460", "An INSERT OVERWRITE.", {
    "d1/000000_0": plain(1), "base_0000002/000000_0": plain(2), "d3/000000_0": plain(3),
})
orc("mm-aborted", "format section 11", "A delta of an aborted write id.", {
    "d1/000000_0": plain(1), "d2/000000_0": plain(2), "d3/000000_0": plain(3),
}, ids="cac")
orc("mm-open", "format section 11", "A delta of an open write id.", {
    "d1/000000_0": plain(1), "d2/000000_0": plain(2), "d3/000000_0": plain(3),
}, ids="coc")
orc("mm-minor", "format section 11", "The output of a minor compaction beside its inputs.", {
    "d1/000000_0": plain(1), "d2/000000_0": plain(2), "d1-2/000000_0": plain(1, 2), "d3/000000_0": plain(3),
})
orc("mm-any-name", "format section 11", "Files of any name.", {"d1/part-00000.orc": plain(1), "d2/x": plain(2)})
orc("mm-union-folders", "format section 1.4", "The folders of a UNION ALL in a delta.", {
    "d1/HIVE_UNION_SUBDIR_1/000000_0": plain(1), "d1/HIVE_UNION_SUBDIR_2/000000_0": plain(2),
})
orc("mm-union-folders-and-a-delta", "format section 1.4", "The folders of a UNION ALL in a delta, and a delta.", {
    "d1/HIVE_UNION_SUBDIR_1/000000_0": plain(1), "d1/HIVE_UNION_SUBDIR_2/000000_0": plain(2), "d2/000000_0": plain(3),
})
orc("mm-twins", "format section 6.3", "Two outputs of one range, both committed.", {
    "delta_0000001_0000002_v0000010/000000_0": plain(1, 2), "delta_0000001_0000002_v0000012/000000_0": plain(1, 2),
    "d3/000000_0": plain(3),
})
orc("mm-twin-bases", "format section 6.2", "Two bases of compactions that end with one write id, and differ.", {
    "base_0000002_v0000010/000000_0": plain(1, 2), "base_0000002_v0000012/000000_0": plain(1),
    "d3/000000_0": plain(3),
})
orc("mm-deep-folder", "format section 11", "A file three folders deep in a delta.", {
    "d1/a/b/c/000000_0": plain(1), "d2/000000_0": plain(2),
})
orc("mm-hidden-file", "format section 1.3", "A hidden file and a hidden folder in a delta.", {
    "d1/000000_0": plain(1), "d1/_000001_0": plain(2), "d1/.000002_0": plain(3), "d1/_tmp/000003_0": plain(4),
})
orc("mm-truncated-by-impala", "hive-24021", "A base with a file _empty, as Impala truncates.", {
    "d1/000000_0": plain(1), "base_0000002/_empty": b"", "d3/000000_0": plain(3),
})
orc("mm-empty-base", "hive-24021", "A base without a file.", {
    "d1/000000_0": plain(1), "base_0000002/": b"", "d3/000000_0": plain(3),
})
orc("mm-without-rows", "hive-24021", "A base with a file without rows.", {
    "d1/000000_0": plain(1), "base_0000002/000000_0": no_rows(), "d3/000000_0": plain(3),
})
orc("mm-0-bytes", "hive-25722", "A file of 0 bytes in a delta.", {"d1/000000_0": plain(1), "d1/000001_0": b""})
orc("mm-delete-delta", "format section 11", "A delete delta in an insert-only table.", {
    "d1/000000_0": plain(1), "delete_delta_0000002_0000002_0000/000000_0": plain(1),
})
orc("mm-bucket-name", "format section 11", "A file bucket_00000 without ids.", {
    "d1/bucket_00000": plain(1), "d2/000000_0": plain(2),
})
orc("mm-with-ids", "format section 11", "A file with ids.", {"d1/bucket_00000": ins(1, 1), "d2/000000_0": plain(2)})
orc("mm-compacted-base", "format section 11", "A base of a compaction of Hive 3.", {
    "base_0000002/000000_0": plain(1), "base_0000002/_metadata_acid": COMPACTED, "d3/000000_0": plain(3),
})
orc("mm-visibility", "format section 11", "A base whose visibility transaction is committed, one whose is open.", {
    "d1/000000_0": plain(1), "d2/000000_0": plain(2), "base_0000001_v0000010/000000_0": plain(1),
    "base_0000002_v0000019/000000_0": plain(1),
})
orc("mm-acid-column-names", "doris-46130", "Columns that have the names of ACID columns.", {
    "d1/000000_0": plain((0, 7, 1, 2, 3, "x"), row=(
        "struct<operation:int,originaltransaction:bigint,bucket:int,rowid:bigint,currenttransaction:bigint,c:string>"
    )),
}, columns="operation int, originaltransaction bigint, bucket int, rowid bigint, currenttransaction bigint, c string")

parquet = Chapter("insert-only tables", insert_only=True, stored="parquet", ids="cccccc")
parquet("mm-parquet", "trino-576", "Two deltas of Parquet files.", {
    "d1/000000_0": in_parquet(1, 2), "d2/000000_0": in_parquet(3),
})
parquet("mm-parquet-original", "trino-28632", "A Parquet file at the top, and a delta.", {
    "000000_0": in_parquet(1, 2), "d1/000000_0": in_parquet(4),
})
parquet("mm-parquet-overwrite", "format section 11", "An INSERT OVERWRITE of Parquet files.", {
    "d1/000000_0": in_parquet(1), "base_0000002/000000_0": in_parquet(2), "d3/000000_0": in_parquet(3),
})
parquet("mm-parquet-union-folders", "format section 1.4", "The folders of a UNION ALL in a delta of Parquet files.", {
    "d1/HIVE_UNION_SUBDIR_1/000000_0": in_parquet(1), "d1/HIVE_UNION_SUBDIR_2/000000_0": in_parquet(2),
    "d2/000000_0": in_parquet(3),
})
parquet("mm-parquet-aborted", "format section 11", "A Parquet delta of an aborted write id.", {
    "d1/000000_0": in_parquet(1), "d2/000000_0": in_parquet(2), "d3/000000_0": in_parquet(3),
}, ids="cac")
parquet("mm-parquet-0-bytes", "hive-25722", "A Parquet file of 0 bytes.", {
    "d1/000000_0": in_parquet(1), "d1/000001_0": b"", "d2/000000_0": in_parquet(2),
})

texts = Chapter("insert-only tables", insert_only=True, stored="textfile", ids="cccccc")
texts("mm-text", "format section 11", "Two deltas of text.", {"d1/000000_0": text(1, 2), "d2/000000_0": text(3)})
texts("mm-text-original", "trino-28632", "A text file at the top, and a delta.", {
    "part1.csv": text(1, 2), "d1/000000_0": text(4),
})
texts("mm-text-0-bytes", "format section 11", "A text file of 0 bytes.", {
    "d1/000000_0": text(1), "d1/000001_0": b"", "d2/000000_0": text(2),
})
texts("mm-text-union-folders", "format section 1.4", "The folders of a UNION ALL in a delta of text.", {
    "d1/HIVE_UNION_SUBDIR_1/000000_0": text(1), "d1/HIVE_UNION_SUBDIR_2/000000_0": text(2), "d2/000000_0": text(3),
})
for name, properties in (
    ("header", (("skip.header.line.count", "1"),)), ("footer", (("skip.footer.line.count", "1"),)),
    ("null", (("serialization.null.format", "b3"),)),
):
    texts(f"mm-text-{name}", "hive-5795", f"Text{said(properties)}.", {
        "d1/000000_0": text(1, 2), "d2/000000_0": text(3, 4),
    }, properties=properties)
