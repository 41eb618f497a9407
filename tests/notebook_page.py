"""docs/quickstart.ipynb with the outputs of its execution.

python -m tests.notebook_page executes it and writes the outputs (make docs).

Speeds and temporary folders, which differ between machines, are written as `…`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import ROOT

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
_SPEED = re.compile(r"[\d.,]+(?=/s\b)")
_FOLDER = re.compile(r"(?:/[\w.-]+)+/tmp\w+")


def read() -> Any:
    import nbformat

    return nbformat.read(NOTEBOOK, as_version=4)


def execute(notebook: Any, folder: Path) -> Any:
    """Return the notebook after its own kernel has executed it in a folder."""
    import nbclient

    kept = {name: os.environ.get(name) for name in ("PYTHONPATH", "IPYTHONDIR", "TMPDIR")}
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "IPYTHONDIR": str(folder / "ipython"),
        "TMPDIR": str(folder),
    }
    try:
        resources = {"metadata": {"path": str(folder)}}
        return nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources=resources
        ).execute()
    finally:
        for name, value in kept.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def settle(notebook: Any) -> Any:
    """Return the notebook without machine-dependent values, and each progress bar's last state alone."""
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
            if "text" in output:
                output["text"] = _settle(output["text"])
            for kind, text in output.get("data", {}).items():
                output["data"][kind] = _settle(text)
    return notebook


def _settle(text: str) -> str:
    return _FOLDER.sub("…", _SPEED.sub("…", text))


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as name:
        nbformat.write(settle(execute(read(), Path(name))), NOTEBOOK)
