"""The notebook of the docs runs, and shows what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.paths import PYTHONPATH, REPO

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient")


def shown(cell: Any) -> str:
    """What a cell shows: as HTML, where there is some."""
    data = [output["data"] for output in cell["outputs"] if "data" in output]
    return "".join(one.get("text/html", one["text/plain"]) for one in data)


@pytest.mark.slow
def test_the_notebook_of_the_docs_runs_on_the_demo_table(
    acidctl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acidctl("demo", tmp_path / "crud_table").status == 0
    notebook = nbformat.read(REPO / "docs" / "how-to" / "notebook.ipynb", 4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "no output is kept"
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    found = {cell["id"]: shown(cell) for cell in notebook.cells if cell["cell_type"] == "code"}
    assert "<td>value</td><td>string</td>" in found["table"]
    assert "<td>A</td>" in found["frame"]
    assert "<td>B</td>" in found["frame"]
    assert all(found.values()), found
