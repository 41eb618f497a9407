"""The import contracts name every module there is: one that is forgotten is held to nothing."""

from __future__ import annotations

import ast
import tomllib
from graphlib import TopologicalSorter

from tests import ROOT


def modules() -> set[str]:
    found = {path.stem for path in (ROOT / "edgen").glob("*.py")} - {"__init__"}
    return found | {path.parent.name for path in (ROOT / "edgen").glob("*/__init__.py")}


def test_every_module_has_its_layer_and_every_library_one_home() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers, *homes = settings["contracts"]
    assert {name.strip() for layer in layers["layers"] for name in layer.split("|")} == modules()
    allowed = {
        contract["forbidden_modules"][0]: {
            rule.split(" -> ")[0].removeprefix("edgen.").removesuffix(".**")
            for rule in contract["ignore_imports"]
        }
        for contract in homes
        if "forbidden_modules" in contract
    }
    assert allowed == {
        "aiohttp": {"providers", "simulator", "env.verifiers"},
        "jinja2": {"prompting", "report"},
        "jsonschema": {"validation", "prompting.prompt", "simulator.structured"},
        "matplotlib": {"report"},
        "numpy": {"stats", "evaluation", "preferences", "report", "domains"},
        "bm25s": {"domains.retrieval"},
        "pyarrow": {"export"},
        "rensa": {"evaluation"},
        "bert_score": {"evaluation"},
        "sqlite3": {"store"},
        "tenacity": {"execution"},
        "bpe_openai": {"cost"},
        "xllamacpp": {"providers.llamacpp"},
    }


def imports_of_each() -> dict[str, set[str]]:
    """The modules of edgen that each module imports, for types alone as well."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "edgen").rglob("*.py")
    }
    places = {name.removesuffix(".__init__"): path for name, path in files.items()}
    found: dict[str, set[str]] = {name: set() for name in places}
    for name, path in places.items():
        if name.startswith("edgen.plugin"):  # a list of names, each loaded when it is used
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                named = {f"{node.module}.{one.name}" for one in node.names}
                found[name] |= (named & places.keys()) or ({node.module} & places.keys())
    return {name: imported - {name} for name, imported in found.items()}


def test_no_modules_import_one_another_in_a_circle() -> None:
    TopologicalSorter(imports_of_each()).prepare()  # raises CycleError, which names the circle
