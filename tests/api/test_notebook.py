"""In a notebook: the quick start as it is documented, its bar and its tables, and the stop button."""

from __future__ import annotations

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.late import Late

nbformat, nbclient = Late("nbformat"), Late("nbclient")
missing = [name for name in ("nbformat", "nbclient", "ipykernel") if find_spec(name) is None]

pytestmark = [pytest.mark.integration, pytest.mark.skipif(missing != [], reason=f"not installed: {missing}")]


def execute(notebook: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("TMPDIR", str(folder))
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def html_of(notebook: Any) -> str:
    return "".join(
        output.get("data", {}).get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )


def test_the_quick_start_runs_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(ROOT / "docs" / "quickstart.ipynb", as_version=4)
    page = html_of(execute(notebook, tmp_path, monkeypatch))
    assert '<progress value="40" max="40">' in page
    assert "<td" in page
    assert len(list(tmp_path.glob("*/lessons/shards/*.json"))) > 1


INTERRUPTED = """
import os, signal, threading
import edgen

job = edgen.Job(name="long", conversations=200_000, space="education_dialogue", prompt="education_dialogue",
                backends={"default": {"type": "simulator"}})
threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    edgen.generate(job, output="long")
except KeyboardInterrupt:
    print("stopped:", edgen.open("long").status.state, edgen.open("long").status.accepted > 0)
"""


def test_the_stop_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = nbformat.v4.new_code_cell(INTERRUPTED)
    started = time.monotonic()
    done = execute(nbformat.v4.new_notebook(cells=[cell]), tmp_path, monkeypatch)
    said = "".join(output.get("text", "") for output in done.cells[0].outputs)
    assert "stopped: stopped True" in said
    assert time.monotonic() - started < 60
