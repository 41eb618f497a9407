"""Folders of the path that hold installed packages; see `edgen.core.registry`."""

from __future__ import annotations

import os
import re
import site
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parents[2]


def split_path(path: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Split the entries of `sys.path`: folders that hold installed packages, and the others, each once."""
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    known = {_HERE, *map(_resolve_folder, sites)}
    known |= {
        _resolve_folder(one)
        for one in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if _is_absolute(one)
    }
    named: set[Path] | None = None  # read only if some folder is not known yet
    installed: dict[Path, None] = {}
    others: dict[Path, None] = {}
    for entry in path:
        folder = _resolve_folder(entry)
        if not _is_absolute(entry) or not folder.is_dir():
            trusted = False
        elif not (trusted := folder in known):
            named = _read_pth_files(sites) if named is None else named
            trusted = folder in named
        (installed if trusted else others)[folder] = None
    return [*installed], [folder for folder in others if folder not in installed]


def _is_absolute(entry: str) -> bool:
    return Path(entry).is_absolute()


def _resolve_folder(entry: str) -> Path:
    return Path(entry or ".").resolve()


def _read_pth_files(sites: Sequence[str]) -> set[Path]:
    """Return the folders named in `.pth` files of the site folders: as a line, or in quotes in a line of
    code."""
    found: set[Path] = set()
    for folder in map(Path, sites):
        for file in sorted(folder.glob("*.pth")):
            try:
                text = file.read_text(encoding="utf-8-sig")
            except (OSError, ValueError):
                continue
            for line in filter(None, map(str.strip, text.splitlines())):
                is_code = line.startswith(("import ", "import\t"))
                parts = re.findall(r"'([^']+)'|\"([^\"]+)\"", line) if is_code else [(line, "")]
                named = [single or double for single, double in parts]
                found |= {(folder / one).resolve() for one in named if not is_code or _is_absolute(one)}
    return found
