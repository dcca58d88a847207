"""Keep Python from importing modules from the current directory.

Anybody who may write there could run code of his own under a user who calls acidctl there.  This module imports only
what the interpreter holds already.
"""

from __future__ import annotations

import os
import sys

_PATH = "PYTHONPATH"


def forget_current_directory() -> None:
    """Remove the current directory from `sys.path`, where ``python -m`` and gaps in PYTHONPATH put it.

    It stays if acidctl itself lies in it, as in a checkout: anybody who may write there may change acidctl, too.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not imported yet
    except OSError:  # it is gone
        here = ""
    if os.path.abspath(f"{__file__}/../../..") == here:  # noqa: PTH100
        return
    if not sys.flags.safe_path and sys.path[:1] in (["."], [here]):
        del sys.path[0]
    given = os.environ.get(_PATH, "").split(os.pathsep) if os.environ.get(_PATH) else []
    gaps = {os.path.normpath(os.path.join(here, entry)) for entry in given if not os.path.isabs(entry)}  # noqa: PTH117, PTH118
    kept = {entry for entry in given if os.path.isabs(entry)}  # noqa: PTH117
    sys.path[:] = [entry for entry in import_path() if entry in kept or entry not in gaps]


class _NoPandas:
    """Hides pandas.  (``None`` in `sys.modules` would do for Python, but not for Cython's imports.)"""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out here", name=name)


def leave_out_pandas() -> None:
    """Keep pyarrow from importing pandas, which it does for any NumPy array, in processes that are acidctl's alone.

    That takes as long as printing a small table, and nothing in these processes needs it.
    """
    sys.meta_path.insert(0, _NoPandas)


def import_path() -> list[str]:
    """Return `sys.path` without entries that depend on the current directory, except the one of acidctl itself.

    Spark's executors name the archive that was sent to them by ``./``.
    """
    try:
        own = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100
        entries = [own if os.path.abspath(entry) == own else entry for entry in sys.path]  # noqa: PTH100
    except OSError:  # the current directory is gone
        entries = sys.path
    return [entry for entry in entries if os.path.isabs(entry)]  # noqa: PTH117


def child_environment() -> dict[str, str]:
    """Return the environment of a Python that is started here: none of its imports look into the current directory."""
    environ = {**os.environ, "PYTHONSAFEPATH": "1"}
    kept = [entry for entry in environ.pop(_PATH, "").split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117
    return {**environ, _PATH: os.pathsep.join(kept)} if kept else environ
