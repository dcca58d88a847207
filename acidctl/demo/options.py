"""The shape of a large demo table, as options of the command line."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.verbs.options import Kind, Options, option


@dataclass(frozen=True, kw_only=True)
class BigOptions(Options):
    """The shape of a large table; the same options give the same rows."""

    rows: int = option(1_000_000, "--rows", kind=Kind.NUMBER, shown="1000000", help="Rows of each location.")
    write_ids: int = option(
        10, "--inserts", kind=Kind.NUMBER, least=1, shown="10", help="Write ids that insert, one delta each."
    )
    deletes: int = option(
        1_000, "--deletes", kind=Kind.NUMBER, shown="1000", help="Rows to delete, spread over all of them."
    )
    delete_write_ids: int = option(
        1,
        "--delete-write-ids",
        kind=Kind.NUMBER,
        least=1,
        shown="1",
        help="Write ids that delete, one delete delta each.",
    )
    buckets: int = option(
        1, "--buckets", kind=Kind.NUMBER, least=1, most=4096, shown="1", help="Bucket files of each directory."
    )
    partitions: int = option(
        0, "--partitions", kind=Kind.NUMBER, shown="0", help="Partitions p=0, p=1 and so on; 0 for none."
    )
    seed: int = option(0, "--seed", kind=Kind.NUMBER, shown="0", help="The same seed gives the same rows.")
    base: bool = option(False, "--base", help="Put the rows of the first write id into a compacted base.")
    compression: str = option(
        "zlib",
        "--compression",
        choices=("none", "zlib", "snappy", "lz4", "zstd"),
        shown="zlib",
        help="Compression of the ORC files.",
    )
