"""The import statements of source files: each file is parsed once a process, for all tests that look at imports."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All import statements of a file, those within functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
