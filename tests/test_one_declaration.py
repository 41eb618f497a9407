"""An option is declared once: its help text, type and bounds stand in one place of edgen/.

A declaration is a call with a help text: `option(…)`, typer's `Option(…)`, or a field's docstring or comment where the
field is a key of the job with the name of an option. Commands, Python functions and keys of the job that have the same
option use the same declaration. The function that makes an option, such as `declare_output`, is one declaration.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests import ROOT

# Options whose name has another meaning elsewhere, or whose text cannot be shared.
SEVERAL: dict[str, str] = {}
MAKERS = ("option", "Option", "Meta")
DERIVED = ROOT / "edgen" / "api" / "objects" / "signatures.py"


class Declaration(NamedTuple):
    """An option's name with two dashes, and where it is declared."""

    name: str
    place: str


def find_declarations(path: Path) -> Iterator[Declaration]:
    """Yield the options that a file declares."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owners: dict[ast.Call, str] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), annotation=held)
                | ast.arg(arg=name, annotation=ast.expr() as held)
            ):
                owners |= {call: name for call in ast.walk(held) if isinstance(call, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            flags = [
                one.value for one in node.args
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.startswith("--")
            ]  # fmt: skip
            described = node.func.id != "Meta" or any(one.arg == "description" for one in node.keywords)
            owner = owners.get(node)
            if described and (flags or owner):
                name = flags[0].partition("/")[0] if flags else f"--{(owner or '').replace('_', '-')}"
                yield Declaration(name, f"{path.relative_to(ROOT)}:{node.lineno}")


if __name__ == "__main__":
    found = defaultdict(list)
    for p in sorted((ROOT / "edgen").rglob("*.py")):
        for d in find_declarations(p):
            found[d.name].append(d.place)
    for n, l in sorted(found.items()):
        if len(l) > 1:
            print(n, l)
    print(len(found))
