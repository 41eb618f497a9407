"""The import contracts name every module there is: one that is forgotten is held to nothing."""

from __future__ import annotations

import tomllib

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
        "jsonschema": {"validation", "prompting.answer_schema", "simulator.structured"},
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
