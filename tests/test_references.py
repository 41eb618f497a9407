"""Modules named in texts exist: the name of a moved module would mislead."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration  # texts name domains, which copies without these lack

FOLDERS = {path.parent.name for path in (ROOT / "edgen").glob("*/__init__.py")} - {"plugin"}
# `evaluation.measure`, `edgen.cli.space`, `execution/client/`, `export/format.py`, `edgen/cli/`
NAMED = re.compile(rf"`((?:edgen[./])?(?:{'|'.join(sorted(FOLDERS))})[./][a-z_0-9./]*)(?:[:`(]|\.[A-Z])")
# Files of runs and projects, and attributes of objects.
OTHERS = {"report.html", "config.faults", "env.stop", "space.yaml"}


def texts() -> Iterator[Path]:
    yield from (ROOT / "edgen").rglob("*.py")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"))


def is_there(named: str) -> bool:
    """Return whether this is a module, a folder, or an attribute of a module."""
    parts = named.removesuffix(".py").strip("./").replace("/", ".").removeprefix("edgen.").split(".")
    place = ROOT.joinpath("edgen", *parts)
    if place.is_dir() or place.with_suffix(".py").is_file():
        return True
    above = ROOT.joinpath("edgen", *parts[:-1])
    if len(parts) < 2 or not (above.with_suffix(".py").is_file() or (above / "__init__.py").is_file()):
        return False
    return hasattr(importlib.import_module(".".join(["edgen", *parts[:-1]])), parts[-1])


def test_modules_that_texts_name_are_there() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {named}"
        for path in texts()
        for named in NAMED.findall(path.read_text(encoding="utf-8"))
        if named not in OTHERS and not is_there(named)
    ]
    assert missing == []
