"""The example plugin: installed by pip into a fresh environment, used, and taken away again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

PLUGIN = ROOT / "examples" / "plugin"
JOB = PLUGIN / "job.yaml"
FIVE = {("provider", "canned"), ("protocol", "teach_back"), ("family", "notes"), ("format", "script"), ("measure", "questions")}  # fmt: skip


class Environment:
    """A fresh environment that sees this one's packages, edgen's among them, and nothing of the network."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        (site,) = (folder / "lib").glob("python*/site-packages")
        seen = [str(ROOT), *(path for path in sys.path if path and Path(path).is_dir())]
        (site / "seen.pth").write_text("\n".join(seen))
        self.environ = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", *arguments]
        return subprocess.run(
            command, env=self.environ, capture_output=True, text=True, timeout=100, check=False
        )

    def edgen(self, *arguments: str) -> str:
        done = self.run("edgen", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("fresh"))
    done = environment.run("pip", "install", "--no-build-isolation", "--no-deps", "-q", str(PLUGIN))
    assert done.returncode == 0, done.stderr
    return environment


def test_a_job_with_all_five_and_without(environment: Environment, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    expected = json.loads(environment.edgen("prompts", "--json"))["expects"]
    assert expected["taught_turn"] == "what is explained, or said back"
    listed = json.loads(environment.edgen("plugins", "--json"))["plugins"]
    ours = [one for one in listed if one["package"] == "edgen-example"]
    assert {(one["kind"], one["name"]) for one in ours} == FIVE
    assert {(one["version"], one["error"]) for one in ours} == {("0.1.0", None)}

    facts = json.loads(environment.edgen("generate", str(JOB), "-o", run, "--json"))
    assert (facts["state"], facts["accepted"], facts["calls"]["made"]) == ("complete", 12, 24)
    (shard, *_) = sorted(Path(run, "shards").glob("conversations_train*.json"))
    record = json.loads(shard.read_bytes())[0]
    assert [*record] == ["id", "about", "lines", "provenance"]
    assert [role for role, _ in record["lines"]] == ["Teacher", "Student"]

    found = json.loads(environment.edgen("stats", run, "--only", "questions", "--json"))
    assert "questions" in json.dumps(found)
    chosen = environment.edgen(
        "select", run, "--where", "questions >= 0", "-o", str(tmp_path / "asked"), "--json"
    )
    assert json.loads(chosen)["accepted"] == 12
    files = tmp_path / "files"  # by themselves, so that nothing but their layout tells whose they are
    shutil.copytree(Path(run, "shards"), files)
    found = json.loads(environment.edgen("stats", str(files), "--json"))
    assert (found["overview"]["records"], found["overview"]["unread"]) == (12, {})
    assert found["overview"]["simulated"] == 0
    assert "all dimensions" in found["leakage"]["groups"]
    ours = json.loads(environment.edgen("stats", run, "--json"))
    assert found["lengths"] == ours["lengths"]
    checked = json.loads(environment.edgen("validate", run, "--json"))
    assert (checked["valid"], checked["records"]) == (12, 12)

    other = str(tmp_path / "other")
    environment.edgen("generate", str(JOB), "-o", other, "--set", "teach_back.sentences=5", "--json")
    compared = json.loads(environment.edgen("compare", run, other, "--json"))
    assert [arm["accepted"] for arm in compared["arms"]] == [12, 12]
    turns = next(one for one in compared["metrics"] if one["name"] == "turns")
    assert [one["value"] for one in turns["arms"].values()] == [2.0, 2.0]

    environment.edgen("export", run, "--to", "script", "-o", str(tmp_path / "script"))
    rows = [json.loads(line) for line in (tmp_path / "script" / "train.jsonl").read_text().splitlines()]
    assert rows[0]["script"].startswith("TEACHER. ")
    assert "one explanation and one answer" in (tmp_path / "script" / "README.md").read_text()
    environment.edgen("export", run, "--to", "script", "--names", "plain", "-o", str(tmp_path / "plain"))
    assert '"script":"Teacher. ' in (tmp_path / "plain" / "train.jsonl").read_text()
    assert "--to script --names plain -o DIR" in (tmp_path / "plain" / "README.md").read_text()
    assert "12" in environment.edgen("estimate", str(JOB))

    rehearsed = ("--set", "backends={default: {type: simulator}}")
    facts = json.loads(
        environment.edgen("generate", str(JOB), "-o", str(tmp_path / "simulated"), *rehearsed, "--json")
    )
    assert facts["accepted"] == 12

    environment.edgen("export", run, "--to", "hf", "--files", "jsonl", "-o", str(tmp_path / "hf"))
    (table, *_) = sorted((tmp_path / "hf" / "data").glob("train-*.jsonl"))
    row = json.loads(table.read_text().splitlines()[0])
    assert [turn["role"] for turn in row["conversation"]] == ["Teacher", "Student"]
    assert row["model"] is not None

    done = environment.run("pip", "uninstall", "-y", "-q", "edgen-example")
    assert done.returncode == 0, done.stderr
    done = environment.run("edgen", "generate", str(JOB), "-o", str(tmp_path / "again"))
    assert done.returncode == 2
    assert "teach_back" in done.stderr
    assert "Traceback" not in done.stderr
    done = environment.run("edgen", "stats", run)
    assert done.returncode == 2
    assert "teach_back" in done.stderr
