"""MIT Kerberos for the tests where the machine has none, put into the cache folder once.

Its programs and headers come from Debian packages that are unpacked, not installed.  The Python packages of a Kerberos
login are built with them: PyPI has no wheels of two of them for Linux, so the extra `test` cannot ask for them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, cache_folder, download_debian

_WANTED = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev")
_OF_KERBEROS = (
    "krb5",
    "libkrb5",
    "libk5crypto",
    "libkadm5",
    "libkdb5",
    "libgss",
    "libverto",
    "libev",
    "libcom-err",
    "comerr-dev",
)
_NOT = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
_SYSTEM = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin"


class KerberosPrograms:
    """Where the programs are.

    Attributes:
        environment: what a process needs to run them.
        modules: the folder of the KDC's database modules; None for the system's own.
    """

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.modules: Path | None = None
        self._path = _SYSTEM
        if any(shutil.which(name, path=_SYSTEM) is None for name in ("krb5kdc", "kadmin.local", "kdb5_util", "kinit")):
            root = _unpacked()
            (self.modules,) = root.glob("usr/lib/*/krb5/plugins/kdb")
            self.environment = {"LD_LIBRARY_PATH": str(_libraries(root))}
            self._path = f"{root}/usr/sbin:{root}/usr/bin"

    def program(self, name: str) -> str:
        found = shutil.which(name, path=self._path)
        if found is None:
            raise ServerUnavailable(f"no {name} in the packages {' '.join(_WANTED)}")
        return found


def python_packages() -> Path | None:
    """A folder for `sys.path` that has `requests_kerberos`; None where it is installed."""
    # An earlier test of this process may have imported that of the cache, which programs it starts do not have.
    if PathFinder.find_spec("requests_kerberos"):
        return None

    def build(folder: Path) -> None:
        environment = {**os.environ, "CFLAGS": "-O0"}  # it is the compiler that takes the time
        if shutil.which("krb5-config", path=_SYSTEM) is None:
            environment |= _headers(_unpacked(), folder)
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", folder, "requests-kerberos"]
        subprocess.run(command, env=environment, check=True, capture_output=True)

    return once(f"requests-kerberos-{sys.implementation.cache_tag}", build)


def _unpacked() -> Path:
    def unpack(folder: Path) -> None:
        command = ["apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in _NOT), *_WANTED]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            subprocess.run(["apt-get", "update", "-q"], check=True, capture_output=True)
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
        download_debian(sorted({name for name in listed if name.startswith(_OF_KERBEROS)}), folder)

    return once("krb5", unpack)


def once(name: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the cache; filled aside, so that it is whole when it is there."""
    kept = cache_folder() / name
    if not kept.is_dir():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
            Path(work).chmod(0o755)
            folder = Path(work, name)
            folder.mkdir()
            try:
                fill(folder)
            except (OSError, subprocess.CalledProcessError) as error:
                said = (getattr(error, "stderr", None) or b"")[-300:]
                raise ServerUnavailable(f"the packages of {name} cannot be had: {error} {said!r}") from error
            if not kept.is_dir():
                folder.rename(kept)
    return kept


def _libraries(root: Path) -> Path:
    (library,) = root.glob("usr/lib/*/libkrb5.so.3")
    return library.parent


def _headers(root: Path, folder: Path) -> dict[str, str]:
    """What builds against headers and libraries below another root need; with a program in `folder` that tells it."""
    libraries = _libraries(root)
    told = (root / "usr/bin/krb5-config").read_text().replace("=/usr", f"={root}/usr")
    (folder / "krb5-config").write_text(told)
    (folder / "krb5-config").chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ.get('PATH', '')}",
        "C_INCLUDE_PATH": f"{root}/usr/include:{root}/usr/include/mit-krb5",
        "LIBRARY_PATH": f"{libraries}:{libraries}/mit-krb5",
        "LD_LIBRARY_PATH": str(libraries),
    }
