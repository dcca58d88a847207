"""The package goes to the executors of a user's session once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from acidctl.spark.shipping import package_zip, ship_to


class Context:
    """Does what PySpark's context does: it remembers each package that is added, also one that it has."""

    def __init__(self, master: str) -> None:
        self.master, self._python_includes = master, ["theirs.zip"]

    def addPyFile(self, path: str) -> None:
        self._python_includes.append(Path(path).name)


def test_a_session_gets_the_package_once_however_many_frames_are_written() -> None:
    cluster, local = Context("spark://host:7077"), Context("local[2]")
    for _ in range(3):
        ship_to(SimpleNamespace(sparkContext=cluster))
        ship_to(SimpleNamespace(sparkContext=local))
    assert cluster._python_includes == ["theirs.zip", package_zip().name]
    assert local._python_includes == ["theirs.zip"]
