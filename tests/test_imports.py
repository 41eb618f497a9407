"""What commands may import: looking at a run or at the help costs no SDK and no HTTP stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

HEAVY = {
    "aiohttp", "jsonschema", "jsonschema_rs", "jinja2", "tenacity", "openai", "anthropic", "httpx", "litellm", "google.generativeai", "google.genai", "google.ai", "grpc", "numpy", "nltk", "matplotlib", "rensa", "torch", "pandas", "pydantic",
}  # fmt: skip

SCRIPT = """
import json, sys
sys.argv = ["edgen", *sys.argv[1:]]
from edgen.__main__ import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "command",
    [
        "generate",
        "estimate",
        "status",
        "runs",
        "parse",
        "validate",
        "space",
        "doctor",
        "simulator",
        "init",
        "preview",
        "prompts",
        "compare",
        "stats",
        "report",
        "export",
        "pairs",
        "merge",
        "baseline",
        "score",
    ],
)
def test_help_imports_nothing_heavy(command: str) -> None:
    assert imported(command, "--help") & HEAVY == set()


def test_the_first_help_imports_nothing_heavy() -> None:
    assert imported("--help") & HEAVY == set()


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
