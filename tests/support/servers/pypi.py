"""Packages of PyPI that tests need and that are not to be installed beside acidctl: in the cache, by checksum, once."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, cache_folder
from support.servers.jars import locked

_PIP = ("-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--require-hashes")


def packages(requirements: Path, *options: str) -> Path:
    """The folder where packages are that a file names by exact version and checksums.

    Args:
        options: of pip, which say whose wheels are taken.

    Raises:
        ServerUnavailable: they are not in the cache and cannot be fetched.
    """
    key = hashlib.sha256(requirements.read_bytes() + repr(options).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{requirements.stem}-{key}"
    with locked(cache_folder() / f"{requirements.stem}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f"{requirements.stem}-") as work:
                _install(requirements, options, Path(work) / "made")
                (Path(work) / "made").rename(folder)
    return folder


def _install(requirements: Path, options: tuple[str, ...], folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, *_PIP, *options, "--target", folder, "-r", requirements],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if ended.returncode:
        said = next((line for line in ended.stderr.splitlines() if line.startswith("ERROR")), "pip failed")
        wanted = ", ".join(line.split()[0] for line in requirements.read_text().splitlines() if "==" in line)
        raise ServerUnavailable(f"{wanted} cannot be fetched: {said[:200]}")
