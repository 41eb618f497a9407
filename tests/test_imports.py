"""What commands may import: looking at a run or at the help costs no SDK and no HTTP stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

HEAVY = {
    "aiohttp", "jsonschema", "jsonschema_rs", "jinja2", "tenacity", "openai", "anthropic", "httpx", "litellm", "google.generativeai", "google.genai", "google.ai", "grpc", "numpy", "nltk", "matplotlib", "rensa", "torch", "pandas", "pydantic",
}  # fmt: skip

SCRIPT = """
import json, sys
from edgen.__main__ import main
found = {}
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["edgen", *arguments]
    try:
        main()
    except SystemExit:
        pass
    found[" ".join(arguments)] = sorted(sys.modules)
print(json.dumps(found), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """What a command has imported at its end."""
    return imported_by([arguments])[" ".join(arguments)]


def imported_by(commands: Iterable[Sequence[str]]) -> dict[str, set[str]]:
    """What some commands, run one after the other in one process, have imported when each of them ends."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([*map(list, commands)])],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return {name: {*modules} for name, modules in json.loads(done.stderr.splitlines()[-1]).items()}


def test_help_imports_nothing_heavy() -> None:
    commands = (
        "generate", "estimate", "status", "runs", "parse", "validate", "space", "doctor", "simulator", "init", "preview",
        "prompts", "compare", "stats", "report", "pairs", "merge", "baseline", "score", "export",
    )  # fmt: skip
    found = imported_by([["--help"], *([command, "--help"] for command in commands)])
    assert {command: heavy for command, modules in found.items() if (heavy := modules & HEAVY)} == {}
    assert len(found) == 1 + len(commands)


def test_status_imports_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "edgen",
            "generate",
            ROOT / "jobs/quickstart.yaml",
            "-n",
            "3",
            "-o",
            tmp_path / "run",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert imported("status", str(tmp_path / "run")) & HEAVY == set()
    assert imported("status", str(tmp_path / "run"), "--json") & HEAVY == set()


def test_a_run_on_the_simulator_imports_no_sdk(tmp_path: Path) -> None:
    names = imported("generate", str(ROOT / "jobs/quickstart.yaml"), "-n", "3", "-o", str(tmp_path / "run"))
    assert (
        names & {"openai", "google.generativeai", "google.genai", "grpc", "torch", "pandas", "numpy"} == set()
    )
