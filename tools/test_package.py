"""``python tools/test_package.py [--dist FOLDER] [PYTEST_ARGUMENTS...]``: the quick tests, outside of the tree.

They run with a wheel that is in the folder beside its sdist, or is made from a new sdist. The tests are those of the
sdist, in a directory without the sources: what is tested is what is installed. This Python's environment has the
packages of the tests; a venv of its own only builds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUICK = ("-m", "not spark and not server", "--ignore=tests/project", "-p", "no:cacheprovider")
"""tests/project looks at the sources, which are not there."""


def main(arguments: list[str]) -> int:
    """Pytest's exit status."""
    dist = Path(arguments[1]).resolve() if arguments[:1] == ["--dist"] else None
    arguments = arguments[2:] if dist else arguments
    with tempfile.TemporaryDirectory(prefix="acidctl-package-") as folder:
        sdist, wheel = built(dist) if dist else build(Path(folder))
        site, tests = Path(folder, "site"), unpacked(sdist, Path(folder, "tests"))
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
        )
        environ = {**os.environ, "PYTHONPATH": str(site)}
        where = [sys.executable, "-c", "import acidctl; print(acidctl.__file__)"]
        found = subprocess.run(where, cwd=tests, env=environ, check=True, capture_output=True, text=True).stdout.strip()
        if not Path(found).is_relative_to(site):
            print(f"acidctl would be that of {found}, and not of the wheel", file=sys.stderr)
            return 1
        print(f"testing {wheel.name} with the tests of {sdist.name}", flush=True)
        command = [sys.executable, "-m", "pytest", *QUICK, *arguments]
        return subprocess.run(command, cwd=tests, env=environ, check=False).returncode


def build(folder: Path) -> tuple[Path, Path]:
    """Sdist and wheel."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "build"], check=True)
    subprocess.run([python, "-m", "build", "--outdir", folder / "dist", ROOT], check=True, stdout=subprocess.DEVNULL)
    return built(folder / "dist")


def built(dist: Path) -> tuple[Path, Path]:
    """The one sdist and the one wheel of a folder."""
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel


def unpacked(sdist: Path, folder: Path) -> Path:
    """The sdist without the package itself."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    shutil.rmtree(inside / "acidctl")
    return inside


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
