"""Modules of edgen that a plugin's package imports and that may change in any release."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from edgen.core.registry import DISTRIBUTION, Plugin, explain_problem

_IMPORT = re.compile(r"^\s*(?:from\s+(edgen(?:\.\w+)*)\s+import\b|import\s+(edgen(?:\.\w+)*))", re.M)
_PUBLIC = re.compile(r"edgen(\.plugin|\.testing(\..*)?)?")
_MOST_FILES = 500  # of a package that are read
_MOST_BYTES = 1_000_000  # of a file


def find_private_imports(plugin: Plugin) -> tuple[str, ...]:
    """Return the modules of edgen that the package of a plugin imports, other than `edgen`, `edgen.plugin`
    and `edgen.testing`, by name; empty for edgen's own objects, and for a plugin that cannot be loaded."""
    if plugin.package == DISTRIBUTION or explain_problem(plugin) is not None:
        return ()
    found = {name for file in _list_files(plugin) for name in _find_imports(file)}
    return tuple(sorted(name for name in found if not _PUBLIC.fullmatch(name)))


def _list_files(plugin: Plugin) -> Iterator[Path]:
    """Yield the Python files of the package that holds a plugin, or its one module."""
    home = plugin.object.partition(":")[0].strip()
    top = sys.modules.get(home.partition(".")[0])
    module = sys.modules.get(home)
    if top is not None and top.__file__ is not None and Path(top.__file__).name == "__init__.py":
        yield from islice(sorted(Path(top.__file__).parent.rglob("*.py")), _MOST_FILES)
    elif module is not None and module.__file__ is not None:
        yield Path(module.__file__)


def _find_imports(file: Path) -> Iterator[str]:
    try:
        text = file.read_bytes()[:_MOST_BYTES].decode("utf-8", errors="replace")
    except OSError:
        return
    yield from (one or other for one, other in _IMPORT.findall(text))
