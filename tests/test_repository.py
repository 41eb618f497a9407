"""The files for a hosting service are valid, and agree with the project."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from edgen import __version__
from tests import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def check(schema: str, *files: object) -> subprocess.CompletedProcess[str]:
    """Check a file against a schema that check-jsonschema ships, so that nothing is downloaded."""
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.integration
def test_workflows_are_what_github_runs() -> None:
    assert WORKFLOWS
    done = check("vendor.github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout


@pytest.mark.integration
def test_the_citation_is_one() -> None:
    done = check("vendor.citation-file-format", ROOT / "CITATION.cff")
    assert done.returncode == 0, done.stdout


def test_the_citation_is_of_this_version_and_licence() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["title"], cited["version"], cited["license"]) == ("edgen", __version__, "Apache-2.0")


def test_a_workflow_runs_all_checks() -> None:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    assert any(step.get("run") == "bash .ci/run" for job in jobs for step in job["steps"])


@pytest.mark.integration
def test_a_fresh_machine_says_what_it_can_try_and_refuses_unknown_words() -> None:
    script = ROOT / ".ci" / "fresh-machine"
    listed = subprocess.run([script, "--list"], capture_output=True, text=True, timeout=60, check=True)
    words = [line.partition(":")[0] for line in listed.stdout.splitlines()]
    assert words == ["closed", "open", "user", "root", "pip", "uv", "3.13", "3.11", "busy", "quiet"]
    unknown = subprocess.run([script, "lazy"], capture_output=True, text=True, timeout=60)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "lazy: unknown" in unknown.stderr
