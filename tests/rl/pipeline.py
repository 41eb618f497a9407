"""From a job to rows, like a user: the installed `edgen`, its commands one after the other.

The run has thirty scenarios of self-play by the simulator, four conversations each, the last three of which
leave the first at a teacher turn. The judge favours the first slot and sometimes gives no verdict, so that
there are ties and abstentions. Exports are made on first use, and read by `datasets`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, load_dataset
from transformers import PreTrainedTokenizerBase

from tests.rl import tiny

JOB = """\
name: rl
seed: 11
conversations: 30
replicates: 4
space: education_dialogue
protocol: selfplay
branch: {at: sampled}
backends:
  teacher: {type: simulator}
  student: {type: simulator}
  judge: {type: simulator, faults: "judge_first=0.2,judge_prose=0.3"}
split: {test: 0.2, by: scenario}
"""

Message = dict[str, Any]
Row = dict[str, Any]


def edgen(*arguments: str | Path, cwd: Path, code: int = 0) -> str:
    """Return the standard output of the command; it can reach no server and holds no key."""
    closed = "http://127.0.0.1:9"
    done = subprocess.run(
        [Path(sys.executable).parent / "edgen", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "LANG": "C.UTF-8",
             "HTTP_PROXY": closed, "HTTPS_PROXY": closed},
    )  # fmt: skip
    assert done.returncode == code, (
        f"edgen {arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def make_run(folder: Path) -> Path:
    """Make a finished run with pairs that an oracle labelled; return its path."""
    (folder / "job.yaml").write_text(JOB)
    run = folder / "run"
    edgen("generate", "job.yaml", "-o", run, cwd=folder)
    edgen("pairs", run, "--by", "oracle", cwd=folder)
    return run


class Exports:
    """The run's exports, each made once.

    `folder(…)` is the path, `summary(…)` the output of --json, `rows(…)` the data.
    """

    def __init__(self, run: Path, root: Path) -> None:
        self.run = run
        self.root = root
        self.made: dict[tuple[str, str, str], dict[str, Any]] = {}

    def folder(self, name: str, train: str = "teacher", opening: str = "user") -> Path:
        target = self.root / f"{name}-{train}-{opening}"
        if (name, train, opening) not in self.made:
            said = edgen(
                "export", self.run, "--to", name, "-o", target, "--train", train, "--opening", opening, "--json",
                cwd=self.root,
            )  # fmt: skip
            self.made[name, train, opening] = json.loads(said)
        return target

    def summary(self, name: str, train: str = "teacher", opening: str = "user") -> dict[str, Any]:
        self.folder(name, train, opening)
        return self.made[name, train, opening]

    def load(
        self, name: str, train: str = "teacher", opening: str = "user", config: str | None = None
    ) -> DatasetDict:
        """Load the export as in the card's own words: load_dataset(DIR)."""
        return load_dataset(
            str(self.folder(name, train, opening)), config, cache_dir=str(self.root / "cache")
        )

    def train(self, name: str, train: str = "teacher", opening: str = "user") -> Dataset:
        return self.load(name, train, opening)["train"]

    def lessons(self) -> dict[str, list[tuple[str, str]]]:
        """Return the accepted conversations by id, as (role, text) without the end marker."""
        found = {}
        for path in sorted((self.run / "shards").glob("conversations_*.json")):
            for record in json.loads(path.read_text()):
                turns = [(turn["role"], turn["text"]) for turn in record["conversation"]]
                role, text = turns[-1]
                found[record["id"]] = [
                    *turns[:-1],
                    (role, text.removesuffix("[end of conversation]").rstrip()),
                ]
        return found


class Tokenizers:
    """One tokenizer per template, all trained on the exported conversations."""

    def __init__(self, exports: Exports) -> None:
        self.texts = [text for turns in exports.lessons().values() for _, text in turns]
        self.made: dict[str, PreTrainedTokenizerBase] = {}

    def with_template(self, template: str) -> PreTrainedTokenizerBase:
        if template not in self.made:
            self.made[template] = tiny.tokenizer(self.texts, template)
        return self.made[template]


def joined(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join consecutive turns by one side into one message, with a blank line between them."""
    result: list[tuple[str, str]] = []
    for role, text in turns:
        if result and result[-1][0] == role:
            result[-1] = (role, f"{result[-1][1]}\n\n{text}")
        else:
            result.append((role, text))
    return result
