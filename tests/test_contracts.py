"""The import contracts name every module there is: one that is forgotten is held to nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules() -> set[str]:
    found = {path.stem for path in (ROOT / "edgen").glob("*.py")} - {"__init__"}
    return found | {path.parent.name for path in (ROOT / "edgen").glob("*/__init__.py")}


def test_every_module_has_its_layer_and_every_library_one_home() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers, *homes = settings["contracts"]
    assert {name.strip() for layer in layers["layers"] for name in layer.split("|")} == modules()
    allowed = {
        contract["forbidden_modules"][0]: modules()
        - {name.removeprefix("edgen.") for name in contract["source_modules"]}
        for contract in homes
    }
    assert allowed == {
        "jinja2": {"prompting", "report"},
        "jsonschema": {"validation"},
        "aiohttp": {"backends"},
        "sqlite3": {"ledger"},
        "tenacity": {"retry"},
        "numpy": {"pairing", "quality", "comparison", "report"},
        "pyarrow": {"exporters"},
        "matplotlib": {"report"},
        "rensa": {"quality"},
        "bpe_openai": {"tokens"},
    }
