"""What edgen's own kinds may import: `edgen.plugin`, their own folder and third parties, as any plugin."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import edgen.plugin
from tests import ROOT

pytestmark = pytest.mark.unit

# Folders that hold kinds alone, each file of which may import the others.
SHARED = ("edgen/evaluation/measures", "edgen/export/formats")
# What `edgen.plugin` has for more than a first plugin, by kind.
SUBMODULES = tuple(
    sorted(
        path.stem
        for path in (ROOT / "edgen" / "plugin").glob("*.py")
        if path.stem not in ("__init__", "lazy")
    )
)
# Not switched to edgen.plugin yet. To be empty. The protocols that stay read and show what judges and labellers do,
# with names that collide (two Choice, two Labels), and import one another.
NOT_YET = (
    "edgen/domains", "edgen/evaluation/measures", "edgen/protocols/labelling", "edgen/protocols/oracle",
    "edgen/protocols/rubric", "edgen/protocols/writing", "edgen/providers", "edgen/simulator",
)  # fmt: skip


def own_folders() -> dict[str, Path]:
    """The folder, or the one file, of each of edgen's own kinds, by its path."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    found = {}
    for entries in groups.values():
        for target in entries.values():
            parts = target.partition(":")[0].split(".")
            path = ROOT.joinpath(*parts)
            if parts[1] == "domains":
                path = ROOT.joinpath(*parts[:3])
            elif shared := next((one for one in SHARED if path.is_relative_to(ROOT / one)), None):
                path = ROOT / shared
            elif not path.is_dir():
                path = path.with_suffix(".py")
            found[path.relative_to(ROOT).as_posix()] = path
    return found


def foreign_imports(folder: Path) -> Iterator[str]:
    """Imports of edgen's modules that are neither public nor of the same folder."""
    own = ".".join(folder.relative_to(ROOT).with_suffix("").parts)
    for file in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in named:
                public = name in ("edgen", own) or name.startswith(("edgen.plugin", f"{own}."))
                if name.split(".")[0] == "edgen" and not public:
                    yield f"{file.relative_to(ROOT)}: {name}"


@pytest.mark.parametrize(
    "path", sorted(path for path in own_folders() if not path.startswith(NOT_YET)) or [""]
)
def test_a_kind_imports_edgen_plugin_alone(path: str) -> None:
    assert not path or list(foreign_imports(ROOT / path)) == []


def test_what_is_not_switched_takes_from_edgen_plugin_what_it_has() -> None:
    """Domains and measures still import other modules, but for no name that `edgen.plugin` exports."""
    missed = []
    for root in ("edgen/domains", "edgen/evaluation/measures"):
        for file in sorted((ROOT / root).rglob("*.py")):
            own = ".".join(file.relative_to(ROOT).parts[:3])
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("edgen."):
                    continue
                if node.module is None or node.module.startswith(("edgen.plugin", own)):
                    continue
                home = importlib.import_module(node.module)
                missed += [
                    f"{file.relative_to(ROOT)}: {one.name} of {node.module}"
                    for one in node.names
                    if one.name in edgen.plugin.__all__
                    and getattr(home, one.name, None) is getattr(edgen.plugin, one.name)
                ]
    assert missed == []


def test_the_list_of_what_is_not_switched_holds_nothing_that_is() -> None:
    waiting = {path: folder for path, folder in own_folders().items() if path.startswith(NOT_YET)}
    still = {
        root for root in NOT_YET
        if any(path.startswith(root) and any(foreign_imports(folder)) for path, folder in waiting.items())
    }  # fmt: skip
    assert still == {root for root in NOT_YET if any(path.startswith(root) for path in waiting)}


def test_the_example_imports_edgen_plugin_alone() -> None:
    assert list(foreign_imports(ROOT / "examples" / "plugin" / "edgen_example")) == []


def test_every_name_is_there_and_is_typed() -> None:
    tree = ast.parse((ROOT / "edgen" / "plugin" / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgen")
        for alias in node.names
    }
    listed = {name for names in edgen.plugin._HOMES.values() for name in names}
    assert typed == listed == {*edgen.plugin.__all__}
    assert all(getattr(edgen.plugin, name) is not None for name in edgen.plugin.__all__)


@pytest.mark.parametrize("name", SUBMODULES)
def test_every_name_of_a_submodule_is_there_typed_and_documented(name: str) -> None:
    module = importlib.import_module(f"edgen.plugin.{name}")
    tree = ast.parse((ROOT / "edgen" / "plugin" / f"{name}.py").read_text(encoding="utf-8"))
    typed = {
        (node.module or "", alias.name)
        for top in tree.body
        if isinstance(top, ast.If)
        for node in ast.walk(top)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    listed = {
        (ast.literal_eval(home), one)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for home, names in zip(node.keys, node.values, strict=True)
        if home is not None
        for one in ast.literal_eval(names).split()
    }
    assert typed == listed
    assert all(getattr(module, one) is not None for _, one in typed)
    said = set(re.findall(r"\w+", module.__doc__ or ""))
    assert [one for _, one in sorted(typed) if one not in said] == []


def test_every_name_stands_in_the_documentation_of_the_module() -> None:
    said = edgen.plugin.__doc__ or ""
    assert [name for name in edgen.plugin.__all__ if name not in said] == []
