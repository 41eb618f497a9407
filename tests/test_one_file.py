"""Each shipped provider, protocol, family, format and measure is one file or folder, plus its entry point.

No other module of the engine imports it: facts for the rest are attributes or methods of the object. The
exceptions are listed here, each with its reason.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from tests import ROOT
from tests.source_imports import imports_of

KINDS = ("providers", "protocols", "families", "formats", "measures")

# Object: why others import it.
SHARED = {
    "openai": "litellm and similar services speak its wire format",
    "gemini": "two more providers speak its wire format",
    "function": "a Python function that a caller passes becomes this provider",
    "oracle": "pairs and rewards are made of its verdicts",
    "rubric": "environments take it as a reward",
    "labelling": "annotators and labelling within a conversation ask its questions",
    "writing": "writers ask its questions",
    "space_growth": "`edgen space expand` asks its questions",
    "dialogue": "the base class of other families",
    "trl-sft": "verl's rows are its rows with another prompt",
    "sharegpt": "LLaMA-Factory's rows are its rows with a description",
    "overview": "the first lines of every terminal output",
    "diversity": "comparisons compute it in blocks of equal length",
    "labels": "`edgen annotate` prints its figures",
}


def _objects() -> dict[str, str]:
    """Return the module of each shipped object, by its name."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    return {
        name: target.partition(":")[0] for kind in KINDS for name, target in groups[f"edgen.{kind}"].items()
    }


def _importers() -> dict[str, set[str]]:
    """Return the modules that import each module, by its name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "edgen").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                found[node.module].add(module)
                for name in node.names:
                    found[f"{node.module}.{name.name}"].add(module)
            elif isinstance(node, ast.Import):
                for name in node.names:
                    found[name.name].add(module)
    return found


def _home(module: str) -> str:
    """Return the package that an object is free to use: its domain, its folder, or its file."""
    parts = module.split(".")
    if parts[:2] == ["edgen", "domains"]:
        return ".".join(parts[:3])
    return module


@pytest.mark.unit
def test_nothing_outside_its_file_or_folder_imports_a_shipped_object() -> None:
    importers = _importers()
    outside = {
        name: sorted(each for each in importers[module] if not f"{each}.".startswith(f"{_home(module)}."))
        for name, module in _objects().items()
    }
    found = {name: those for name, those in outside.items() if those}
    assert {name: those for name, those in found.items() if name not in SHARED} == {}
    assert sorted(SHARED) == sorted(found), "remove exceptions that are no longer needed"


@pytest.mark.unit
def test_there_are_objects_of_every_kind_and_their_modules_exist() -> None:
    objects = _objects()
    assert len(objects) > 40
    for module in objects.values():
        path = Path(ROOT, *module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), module
