"""A real HDFS that holds very many files from its first moment on.

Writing a file through a DataNode takes milliseconds of work and some hundred of waiting.  So the NameNode finds its
names in an edit log that Hadoop's own offline tool wrote, and the DataNode finds the blocks as files in its folder,
hard links to a few contents: 300,000 names are there within a minute or two, and can be read, moved and removed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from support.servers.hdfs_server import HdfsServer

_EDITS = "org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer"
_EDITS_VERSION = -63
_ROOT_INODE = 16385
_FIRST_BLOCK = 1 << 30
_STAMP = 1001
_CHUNK = 512
_META_HEADER = b"\x00\x01" + b"\x01" + _CHUNK.to_bytes(4, "big")
"""Version 1; CRC-32; bytes of each checksum."""

_OWNER = "<USERNAME>root</USERNAME><GROUPNAME>supergroup</GROUPNAME>"
_TIME = 1_700_000_000_000


class FilledHdfsServer(HdfsServer):
    """Ready when all blocks are known.

    Args:
        files: path and the name of the content, parents made where they are first named.
        contents: bytes by name, each at most a block long.
    """

    HEAP = "2g"

    def __init__(
        self, directory: Path, files: Iterable[tuple[str, str]], contents: Mapping[str, bytes], timeout: float = 300
    ) -> None:
        self._files, self._contents = files, contents
        super().__init__(directory, timeout)

    def _start(self, timeout: float) -> None:
        super()._start(timeout)  # makes the folders, and the identities in them
        self.stop()
        self._processes.clear()
        blocks = self._write_names()
        self._write_blocks(blocks)
        self._launch_both(timeout)

    def _write_names(self) -> list[str]:
        """Put an edit log behind the empty image; the content of each block, by its number."""
        folder = self._directory / "data/dfs/name/current"
        for old in folder.glob("edits_*"):
            old.unlink()
        blocks: list[str] = []
        xml = self._directory / "edits.xml"
        last = 0
        with xml.open("w") as file:
            file.write(f"<EDITS><EDITS_VERSION>{_EDITS_VERSION}</EDITS_VERSION>")
            for last, (code, data) in enumerate(self._operations(blocks), 1):
                file.write(f"<RECORD><OPCODE>OP_{code}</OPCODE><DATA><TXID>{last}</TXID>{data}</DATA></RECORD>\n")
            file.write("</EDITS>\n")
        log = folder / f"edits_{1:019d}-{last:019d}"
        self.tool(_EDITS, "-p", "binary", "-i", str(xml), "-o", str(log))
        xml.unlink()
        (folder / "seen_txid").write_text(f"{last}\n")
        return blocks

    def _operations(self, blocks: list[str]) -> Iterator[tuple[str, str]]:
        """Operation and fields of every record; appends each file's content to `blocks`."""
        inode = _ROOT_INODE
        known = {""}
        yield "START_LOG_SEGMENT", ""
        for path, content in self._files:
            for parent in _parents(path):
                if parent not in known:
                    known.add(parent)
                    inode += 1
                    yield (
                        "MKDIR",
                        (
                            f"<LENGTH>0</LENGTH><INODEID>{inode}</INODEID><PATH>{escape(parent)}</PATH>"
                            f"<TIMESTAMP>{_TIME}</TIMESTAMP>{_permissions(0o755)}"
                        ),
                    )
            inode += 1
            yield "ADD", _file(path, inode, "<CLIENT_NAME>x</CLIENT_NAME><CLIENT_MACHINE>x</CLIENT_MACHINE>")
            block = (
                f"<BLOCK><BLOCK_ID>{_FIRST_BLOCK + len(blocks)}</BLOCK_ID>"
                f"<NUM_BYTES>{len(self._contents[content])}</NUM_BYTES><GENSTAMP>{_STAMP}</GENSTAMP></BLOCK>"
            )
            blocks.append(content)
            yield "CLOSE", _file(path, 0, "<CLIENT_NAME></CLIENT_NAME><CLIENT_MACHINE></CLIENT_MACHINE>" + block)
        yield "ALLOCATE_BLOCK_ID", f"<BLOCK_ID>{_FIRST_BLOCK + len(blocks)}</BLOCK_ID>"
        yield "SET_GENSTAMP_V2", f"<GENSTAMPV2>{_STAMP}</GENSTAMPV2>"
        yield "END_LOG_SEGMENT", ""

    def _write_blocks(self, blocks: list[str]) -> None:
        (pool,) = (self._directory / "data/dfs/data/current").glob("BP-*")
        sums = {name: _META_HEADER + _checksums(data) for name, data in self._contents.items()}
        written: dict[tuple[Path, str], tuple[Path, Path]] = {}
        for number, content in enumerate(blocks):
            block = _FIRST_BLOCK + number
            folder = pool / f"current/finalized/subdir{block >> 16 & 255}/subdir{block >> 8 & 255}"
            data, meta = folder / f"blk_{block}", folder / f"blk_{block}_{_STAMP}.meta"
            first = written.setdefault((folder, content), (data, meta))  # disks allow so many links, and no more
            if first[0] != data:
                os.link(first[0], data)
                os.link(first[1], meta)
                continue
            folder.mkdir(parents=True, exist_ok=True)
            data.write_bytes(self._contents[content])
            meta.write_bytes(sums[content])


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]


def _permissions(mode: int) -> str:
    return f"<PERMISSION_STATUS>{_OWNER}<MODE>{mode}</MODE></PERMISSION_STATUS>"


def _file(path: str, inode: int, more: str) -> str:
    return (
        f"<LENGTH>0</LENGTH><INODEID>{inode}</INODEID><PATH>{escape(path)}</PATH><REPLICATION>1</REPLICATION>"
        f"<MTIME>{_TIME}</MTIME><ATIME>{_TIME}</ATIME><BLOCKSIZE>134217728</BLOCKSIZE><OVERWRITE>false</OVERWRITE>"
        f"{more}{_permissions(0o644)}<RPC_CLIENTID></RPC_CLIENTID><RPC_CALLID>-2</RPC_CALLID>"
    )


def _checksums(data: bytes) -> bytes:
    return b"".join(zlib.crc32(data[at : at + _CHUNK]).to_bytes(4, "big") for at in range(0, len(data), _CHUNK))
