"""The example plugin: its wheel unpacked in a fresh environment, used, and removed again.

pip and uv do the same; neither has to be installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

PLUGIN = ROOT / "examples" / "plugin"
JOB = PLUGIN / "job.yaml"
FIVE = {("provider", "canned"), ("protocol", "teach_back"), ("family", "notes"), ("format", "script"), ("measure", "questions")}  # fmt: skip


class Environment:
    """A fresh environment that sees this one's packages, edgen's among them, and nothing of the network."""

    files: Sequence[Path] = ()  # of the plugin

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        (self.site,) = (folder / "lib").glob("python*/site-packages")
        seen = [str(ROOT), *(path for path in sys.path if path and Path(path).is_dir())]
        (self.site / "seen.pth").write_text("\n".join(seen))
        self.environ = {
            "PATH": os.defpath,
            "HOME": str(folder),
        }

    def run(self, *arguments: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *arguments],
            env=self.environ, input=said, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    def edgen(self, *commands: Sequence[object]) -> list[Ended]:
        """Run these commands one after the other in one new process; return the end of each."""
        said = json.dumps([[str(one) for one in command] for command in commands])
        done = self.run("-c", COMMANDS, said=said)
        assert done.returncode == 0, done.stderr
        return [Ended(*one) for one in json.loads(done.stdout)]


class Ended(NamedTuple):
    """A command's exit code and what it printed."""

    code: int
    out: str
    err: str


# Starting Python for each of them takes longer than their work.
COMMANDS = """
import contextlib, io, json, sys
from edgen.cli.app import app
from edgen.cli.output import run_guarded

ended = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run_guarded(lambda: app(arguments, prog_name="edgen"))
        except SystemExit as end:
            code = end.code
    ended.append((code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("fresh")
    environment = Environment(folder / "environment")
    (wheel,) = WheelBuilder(str(PLUGIN)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        environment.files = [environment.site / name for name in archive.namelist()]
        archive.extractall(environment.site)
    return environment


def test_a_job_with_all_five_and_without(environment: Environment, tmp_path: Path) -> None:
    run, other, files, exported = (tmp_path / name for name in ("run", "other", "files", "exported"))
    generate, as_simulated = ("generate", JOB, "--json", "-o"), "backends={default: {type: simulator}}"
    script, rows = ("export", run, "--to", "script"), ("export", run, "--to", "hf", "--files", "jsonl")
    ended = environment.edgen(
        ("prompts", "--json"),
        ("plugins", "--json"),
        (*generate, run),
        ("stats", run, "--only", "questions", "--json"),
        ("select", run, "--where", "questions >= 0", "-o", tmp_path / "asked", "--json"),
        ("stats", run, "--json"),
        ("validate", run, "--json"),
        (*generate, other, "--set", "teach_back.sentences=5"),
        ("compare", run, other, "--json"),
        (*script, "-o", exported / "script"),
        (*script, "--names", "plain", "-o", exported / "plain"),
        (*rows, "-o", exported / "hf"),
        ("estimate", JOB),
        (*generate, tmp_path / "simulated", "--set", as_simulated),
    )
    assert [one.code for one in ended] == [0] * len(ended), ended
    prompts, listed, made, questions, chosen, ours, checked, _, compared, *_, estimate, simulated = (
        one.out for one in ended
    )
    assert json.loads(prompts)["expects"]["taught_turn"] == "what is explained, or said back"
    found = [one for one in json.loads(listed)["plugins"] if one["package"] == "edgen-example"]
    assert {(one["kind"], one["name"]) for one in found} == FIVE
    assert {(one["version"], one["error"]) for one in found} == {("0.1.0", None)}

    facts = json.loads(made)
    assert (facts["state"], facts["accepted"], facts["calls"]["made"]) == ("complete", 12, 24)
    (shard, *_) = sorted((run / "shards").glob("conversations_train*.json"))
    record = json.loads(shard.read_bytes())[0]
    assert [*record] == ["id", "about", "lines", "provenance"]
    assert [role for role, _ in record["lines"]] == ["Teacher", "Student"]

    assert "questions" in json.dumps(json.loads(questions))
    assert json.loads(chosen)["accepted"] == 12
    told = json.loads(checked)
    assert (told["valid"], told["records"]) == (12, 12)

    told = json.loads(compared)
    assert [arm["accepted"] for arm in told["arms"]] == [12, 12]
    turns = next(one for one in told["metrics"] if one["name"] == "turns")
    assert [one["value"] for one in turns["arms"].values()] == [2.0, 2.0]

    lines = [json.loads(line) for line in (exported / "script" / "train.jsonl").read_text().splitlines()]
    assert lines[0]["script"].startswith("TEACHER. ")
    assert "one explanation and one answer" in (exported / "script" / "README.md").read_text()
    assert '"script":"Teacher. ' in (exported / "plain" / "train.jsonl").read_text()
    assert "--to script --names plain -o DIR" in (exported / "plain" / "README.md").read_text()
    (table, *_) = sorted((exported / "hf" / "data").glob("train-*.jsonl"))
    row = json.loads(table.read_text().splitlines()[0])
    assert [turn["role"] for turn in row["conversation"]] == ["Teacher", "Student"]
    assert row["model"] is not None
    assert "12" in estimate
    assert json.loads(simulated)["accepted"] == 12

    # Alone, in a process without knowledge of the run, so that only their layout identifies their family.
    shutil.copytree(run / "shards", files)
    (alone,) = environment.edgen(("stats", files, "--json"))
    told = json.loads(alone.out)
    assert (told["overview"]["records"], told["overview"]["unread"]) == (12, {})
    assert told["overview"]["simulated"] == 0
    assert "all dimensions" in told["leakage"]["groups"]
    assert told["lengths"] == json.loads(ours)["lengths"]

    for file in environment.files:
        file.unlink()
    without = environment.edgen(("generate", JOB, "-o", tmp_path / "again"), ("stats", run))
    for one in without:
        assert one.code == 2
        assert "teach_back" in one.err
        assert "Traceback" not in one.err
