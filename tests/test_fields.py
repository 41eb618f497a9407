"""Every field of a class with six or more of them is documented where it is declared."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import pytest

from tests import ROOT
from tests.source_imports import walk_statements

MOST_BARE = 5  # fields of a class without their own text: its docstring can name them
# A comment on the field's lines or alone on the line above, other than an instruction to a tool.
BESIDE = re.compile(r"# (?!fmt:|noqa|type:|pragma)")
ABOVE = re.compile(r"\s*# (?!fmt:|noqa|type:|pragma)")


def find_bare_fields(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each class with more than MOST_BARE undocumented fields, and these fields."""
    lines = ["", *source.splitlines(), ""]
    for node in walk_statements(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        fields, bare = 0, []
        for field, below in zip(node.body, [*node.body[1:], None], strict=True):
            match field:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    fields += 1
                    if not (is_text(below) or has_comment(field, lines) or has_help(field)):
                        bare.append(name)
        if fields > MOST_BARE and bare:
            yield node.name, bare


def is_text(below: ast.stmt | None) -> bool:
    """Return whether a statement is a docstring."""
    match below:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def has_comment(field: ast.AnnAssign, lines: list[str]) -> bool:
    """Return whether a comment stands on the field's lines or alone above them. Lines count from 1."""
    own = lines[field.lineno : (field.end_lineno or field.lineno) + 1]
    return any(map(BESIDE.search, own)) or ABOVE.match(lines[field.lineno - 1]) is not None


def has_help(field: ast.AnnAssign) -> bool:
    """Return whether the annotation contains the field's help, or names an option that is declared elsewhere.

    Help is a text as in `option("…")` or `Meta(description="…")`.
    """
    for call in ast.walk(field.annotation):
        if isinstance(call, ast.Name) and call.id in list_options():
            return True
        if isinstance(call, ast.Call):
            texts = [*call.args, *(one.value for one in call.keywords if one.arg == "description")]
            if any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in texts):
                return True
    return False


@functools.cache
def list_options() -> frozenset[str]:
    """Return the names of declared options, and of the functions that declare one.

    An option is declared as in `Sample = Annotated[int, option("…")]`.
    """
    found = set()
    for path in (ROOT / "edgen").rglob("options.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if any(
                    isinstance(one, ast.Name) and one.id.lstrip("_").startswith(("option", "declare_"))
                    for one in ast.walk(value)
                ):
                    found.add(name)
                case ast.FunctionDef(name=name) if name.startswith("declare_"):
                    found.add(name)
    return frozenset(found)


def test_fields_are_documented_where_they_are_declared() -> None:
    faults = [
        f"{path.relative_to(ROOT)}, {name}: {', '.join(bare)}"
        for path in sorted((ROOT / "edgen").rglob("*.py"))
        for name, bare in find_bare_fields(path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(["Give each field a comment beside it, or a docstring below it:", *faults])


CLASS = """
class A:
    a: int  # a count
    # Seconds.
    b: float
    c: str = ""
    '''The text.'''
    d: Annotated[str, option("Its name.")]
    e: Annotated[str, Meta(pattern=".", description="Its name.")]
    f: {last}
"""


@pytest.mark.parametrize(
    "last", ["int", 'int\n    "".join(())', 'Annotated[str, Meta(pattern=".")]', "int  # noqa: A003"]
)
def test_it_finds_a_bare_field(last: str) -> None:
    assert list(find_bare_fields(CLASS.format(last=last))) == [("A", ["f"])]


@pytest.mark.parametrize("last", ["int  # a count", "list[\n        int  # counts\n    ]"])
def test_it_accepts_documented_fields(last: str) -> None:
    assert not list(find_bare_fields(CLASS.format(last=last)))


def test_it_leaves_small_classes_alone() -> None:
    assert not list(find_bare_fields("class A:\n" + "".join(f"    {name}: int\n" for name in "abcde")))
