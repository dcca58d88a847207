"""The Dockerfile's steps run in a root file system of Debian's packages, without a registry or a container program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import REPO
from support.servers.hdfs_server import ServerUnavailable, download_debian
from support.servers.kerberos_packages import once

pytestmark = [pytest.mark.server, pytest.mark.by_hand]

_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WORK = """
acidctl demo orders
acidctl compact --major --assume-committed=0s orders
acidctl clean --yes --older-than 0 --unsafe-retention orders
acidctl cat --count orders
acidctl hive worker --help
acidctl hive cleaner --help
acidctl migrate --help
"""


def instructions() -> Iterator[tuple[str, str]]:
    """Yield the instructions of the Dockerfile with their words, continued lines joined."""
    text = re.sub(r"\\\n", "", (REPO / "Dockerfile").read_text("utf-8"))
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, words = line.partition(" ")
            yield name, words


def _debian(folder: Path) -> None:
    """Fill a folder with the Debian release of the image, and a Python in /usr/local, where the image has its own."""
    (image,) = [words for name, words in instructions() if name == "FROM"]
    programs = folder.parent / "debootstrap"
    programs.mkdir()
    download_debian(["debootstrap"], programs)
    sites = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    site = subprocess.run(sites, check=True, capture_output=True, text=True).stdout.split()[0]
    release = image.rpartition("-")[2]
    packages = "--include=python3-venv,ca-certificates"
    command = [str(programs / "usr/sbin/debootstrap"), "--variant=minbase", packages, release, str(folder), site]
    scripts = {"DEBOOTSTRAP_DIR": str(programs / "usr/share/debootstrap")}
    subprocess.run(command, env=os.environ | scripts, check=True, capture_output=True)
    subprocess.run(["chroot", str(folder), "python3", "-m", "venv", "/usr/local"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of Debian in which this machine's certificates and name servers count."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("a root file system needs the user root and unshare")
    try:
        kept = once("debian-of-the-container", _debian)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    copy = tmp_path_factory.mktemp("container") / "root"
    subprocess.run(["cp", "-a", str(kept), str(copy)], check=True)
    for name in (_CERTIFICATES, "etc/resolv.conf"):
        if Path("/", name).is_file():
            shutil.copy(Path("/", name), copy / name)
    return copy


def run_in(root: Path, script: str, user: str = "root") -> str:
    """Run a script below a root, with its own mounts of /proc and /dev, and return what it printed."""
    chroot = ["chroot", f"--userspec={user}", str(root), "/bin/sh", "-ec", script]
    mounts = f"mount --bind /proc {shlex.quote(f'{root}/proc')}; mount --bind /dev {shlex.quote(f'{root}/dev')}"
    environment = {
        "PATH": _PATH,
        "HOME": str(Path("/", user) if user == "root" else Path("/", "home", user)),
        "PIP_CERT": f"/{_CERTIFICATES}",
    }
    command = ["unshare", "--mount", "sh", "-ec", f"{mounts}; exec {shlex.join(chroot)}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_container_compacts_on_spark_as_a_user_without_rights(root: Path, tmp_path: Path) -> None:
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(tmp_path / "dist"), str(REPO)]
    subprocess.run(wheel, check=True, capture_output=True)
    user = "root"
    for name, words in instructions():
        if name == "COPY":
            *sources, to = words.split()
            for source in sources:
                base, pattern = (tmp_path, source) if source.startswith("dist/") else (REPO, source)
                for path in base.glob(pattern):
                    shutil.copy(path, root / to.strip("/"))
        elif name == "RUN":
            run_in(root, words, user)
        elif name == "USER":
            user = words
        else:
            assert (name, words) == ("ENTRYPOINT", '["acidctl"]') or name == "FROM"
    shown = run_in(root, f"cd; id -un; {_WORK.strip()}", user)
    assert shown.startswith("acidctl\n")
    assert "compacted" in shown
    assert len(list((root / "home/acidctl/orders").glob("base_*"))) == 1
    assert not list((root / "home/acidctl/orders").glob("delta_*"))
