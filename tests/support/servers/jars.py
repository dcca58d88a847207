"""Jars of servers, fetched with Maven by exact version into a cache, once.

``maven/NAME.xml`` is the project whose dependencies make a server's class path; ``maven/NAME.sha256`` has the checksum
of every file that it comes to.  Java sources of ours, that a server needs beside its own jars, are in ``java/NAME``.
Where there is a ``maven/NAME.keep``, nothing else is kept of archives than the folders that its patterns name.

    python -m support.servers.jars NAME                 # the folder, filled at the first use
    python -m support.servers.jars --checksums NAME     # write NAME.sha256 anew, after a change of NAME.xml
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, cache_folder

_HERE = Path(__file__).resolve().parent
_COMPILED_ELSEWHERE = ("hive42",)
"""Its classes are those of Java 21, which an older javac cannot read: what was compiled for 4.0.1 runs on them."""


def fetch(name: str) -> Path:
    """The folder of a server's jars: they are in ``lib/``, what was compiled in ``classes/``, archives beside them.

    Raises:
        ServerUnavailable: it is not in the cache and cannot be fetched, or a checksum differs.
    """
    folder = cache_folder() / f"{name}-{_key(name)}"
    with locked(cache_folder() / f"{name}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f"{name}-") as work:
                _fill(name, Path(work) / "made")
                (Path(work) / "made").rename(folder)
    return folder


def _key(name: str) -> str:
    """What the folder was made of, so that a change makes another."""
    sources = [
        _HERE / f"maven/{name}.xml",
        _HERE / f"maven/{name}.sha256",
        *sorted(_HERE.glob(f"maven/{name}.keep")),
        *_java_sources(name),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _java_sources(name: str) -> list[Path]:
    if name in _COMPILED_ELSEWHERE:
        return []
    return [
        path
        for folder in (name, name.rstrip("0123456789"))
        for path in sorted((_HERE / f"java/{folder}").rglob("*.java"))
    ]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Several test processes may ask at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(name: str, folder: Path) -> None:
    library = folder / "lib"
    _download(name, library)
    _check(name, library)
    for archive in [*library.glob("*.tar.gz")]:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()
    _keep(name, folder)
    _remove_replaced(folder)
    sources = list(map(str, _java_sources(name)))
    if sources:
        (folder / "classes").mkdir()
        path = ":".join(f"{part}/*" for part in (library, *sorted(folder.glob("*/lib"))))
        _run(["javac", "-nowarn", "-cp", path, "-d", str(folder / "classes"), *sources], "cannot compile")


def _keep(name: str, folder: Path) -> None:
    """Remove of what was unpacked all that is not to be kept; a hard link to something removed stays whole."""
    patterns = _HERE / f"maven/{name}.keep"
    if not patterns.exists():
        return
    kept = {path for pattern in patterns.read_text().split() for path in folder.glob(pattern)} | {folder / "lib"}
    above = {parent for path in kept for parent in path.parents}
    for path in [child for parent in above if parent.is_relative_to(folder) for child in parent.iterdir()]:
        if path in kept | above:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _remove_replaced(folder: Path) -> None:
    """A jar in ``lib/`` takes the place of the same one of another version in an archive."""
    chosen = {_artifact(path) for path in folder.glob("lib/*.jar")}
    for path in folder.glob("*/lib/*.jar"):
        if _artifact(path) in chosen:
            path.unlink()


def _artifact(path: Path) -> str:
    return re.sub(r"-\d[^/]*$", "", path.stem)


def _download(name: str, library: Path) -> None:
    if not shutil.which("mvn"):
        raise ServerUnavailable("there is no mvn (Maven), which fetches the jars")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.7.1:copy-dependencies"
    command = ["mvn", "-q", "-B", "-f", str(_HERE / f"maven/{name}.xml"), goal, "-DincludeScope=runtime"]
    _run([*command, f"-DoutputDirectory={library}"], f"the jars of {name} cannot be fetched")


def _run(command: list[str], trouble: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stdout", "") or getattr(error, "stderr", "") or str(error)
        line = next((line for line in said.splitlines() if "ERROR" in line or "error" in line), said.strip())
        raise ServerUnavailable(f"{trouble}: {line[:300]}") from error


def _sums(library: Path) -> str:
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(library.iterdir())
    )


def _check(name: str, library: Path) -> None:
    wanted = set((_HERE / f"maven/{name}.sha256").read_text().splitlines())
    found = set(_sums(library).splitlines())
    if wrong := sorted(line.split()[-1] for line in wanted ^ found):
        raise ServerUnavailable(
            f"jars of {name} that are not those that were checked: {', '.join(dict.fromkeys(wrong))}"
        )


def main(arguments: list[str]) -> None:
    """The command line of this module."""
    if arguments[0] == "--checksums":
        for name in arguments[1:]:
            with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
                _download(name, Path(work) / "lib")
                (_HERE / f"maven/{name}.sha256").write_text(_sums(Path(work) / "lib"))
        return
    for name in arguments:
        print(fetch(name))


if __name__ == "__main__":
    main(sys.argv[1:])
