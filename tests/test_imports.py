"""Imports that commands may make: looking at a run or at the help loads no SDK and no HTTP stack."""

from __future__ import annotations

import json
import os
import re
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
    """Return the modules that a command has imported at its end."""
    return imported_by([arguments])[" ".join(arguments)]


def imported_by(commands: Iterable[Sequence[str]]) -> dict[str, set[str]]:
    """Return the modules that commands in one process have imported when each of them ends."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([*map(list, commands)])],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return {name: {*modules} for name, modules in json.loads(done.stderr.splitlines()[-1]).items()}


COMMANDS = (
    "generate", "estimate", "status", "runs", "parse", "validate", "space", "doctor", "simulator", "init", "preview",
    "prompts", "compare", "stats", "report", "pairs", "merge", "baseline", "score", "export",
)  # fmt: skip


def test_help_and_status_import_nothing_heavy_and_a_run_on_the_simulator_no_sdk(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    names = imported("generate", str(ROOT / "jobs/quickstart.yaml"), "-n", "3", "-o", run)
    assert (
        names & {"openai", "google.generativeai", "google.genai", "grpc", "torch", "pandas", "numpy"} == set()
    )
    helps = [["--help"], *([command, "--help"] for command in COMMANDS)]
    found = imported_by([*helps, ["status", run], ["status", run, "--json"]])
    assert {command: heavy for command, modules in found.items() if (heavy := modules & HEAVY)} == {}
    assert len(found) == 1 + len(COMMANDS) + 2


def test_a_name_of_edgen_plugin_does_not_load_the_others() -> None:
    code = "import sys; from edgen.plugin import Reply; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name for name in done.stdout.split() if name.startswith("edgen")}
    assert loaded == {"edgen", "edgen.core", "edgen.core.values", "edgen.core.version", "edgen.plugin"}


def test_the_settings_of_providers_are_read_without_what_calls_them() -> None:
    code = "import sys, edgen.plugin.providers, edgen.providers.openai, edgen.providers.function; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert HEAVY.intersection(done.stdout.split()) == set()


def test_completion_imports_only_what_it_reads_names_with() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "edgen"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env={
            **os.environ, "_EDGEN_COMPLETE": "complete_bash", "COMP_WORDS": "edgen preview jobs/q", "COMP_CWORD": "2",
        },
    )  # fmt: skip
    assert done.stdout.split() == ["jobs/quickstart.yaml"]
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "edgen.cli.complete" in names
    assert names & {"asyncio", "yaml", "rich"} == set()


def test_processes_of_edgen_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """`python -m` looks there first, and the folder may be untrusted: `-P` leaves it out."""
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "edgen").rglob("*.py"))
    starts = re.findall(r"\(?sys\.executable, (\"-\w\")", source)
    assert len(starts) >= 5
    assert set(starts) == {'"-P"'}
    (tmp_path / "msgspec.py").write_text("raise SystemExit('a module of the folder')")
    asked = subprocess.run(
        [sys.executable, "-P", "-m", "edgen.runtime.processes"],
        cwd=tmp_path, input=b"", capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert b"a module of the folder" not in asked.stderr
