"""docs/environment.md is correct: its code for each adapter runs unchanged, and so does the example."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from edgen.env import SyncEducationEnv
from edgen.simulator.options import ServerOptions
from edgen.simulator.service.server import serve_options
from tests import ROOT
from tests.env.jobs import job
from tests.rl import tiny
from tests.rl.pipeline import Tokenizers
from tests.rl.served import Served
from tests.rl.test_adapters import simulated_eval
from tests.rl.train import settings

PAGE = (ROOT / "docs" / "environment.md").read_text()


def blocks(heading: str, language: str = "python") -> list[str]:
    """Return the code under a heading, block by block."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def test_both_of_trls_ways_make_a_trainer(tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tiny.tokenizer(tokenizers.texts, qwen3_chat_template)
    tokens.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    told = {**settings(tmp_path), "num_generations": 2, "max_completion_length": 8}
    del told["max_length"]
    known = {
        "GRPOTrainer": GRPOTrainer, "Dataset": Dataset, "SyncEducationEnv": SyncEducationEnv, "tokenizer": tokens,
        "model": tiny.language_model(tokens, tmp_path), "args": GRPOConfig(**told),
    }  # fmt: skip
    rollouts, tools = blocks("TRL")
    names: dict[str, Any] = {}
    for text in (rollouts, tools):
        names = {**known}
        exec(text, names)
        assert len(names["trainer"].train_dataset) > 100
    assert [tool.__name__ for tool in names["trainer"].tools] == ["say"]


def test_skyrl_makes_what_is_registered() -> None:
    import skyrl_gym

    names: dict[str, Any] = {}
    exec(blocks("SkyRL-gym")[0], names)
    row = names["rows"][3]
    gym = skyrl_gym.make(row["env_class"], extras={"scenario": row["scenario"], "max_turns": 1})
    assert gym.init(row["prompt"])[0] == row["prompt"]
    assert 0 <= gym.step("What do you know about it already?")["reward"] <= 1
    names["env"].close()
    skyrl_gym.envs.deregister("lessons")


def test_openenvs_server_and_client() -> None:
    server, client = blocks("OpenEnv")
    served: dict[str, Any] = {}
    exec(server, served)
    with Served(served["app"]) as url:
        names: dict[str, Any] = {"url": url}
        exec(client, names)
    assert names["result"].done
    assert names["result"].reward is not None


def test_a_module_may_have_a_reward_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kind_lessons.py").write_text(blocks("verifiers")[1])
    monkeypatch.syspath_prepend(tmp_path)

    async def evaluate() -> Any:
        config = {"job": job(tmp_path, conversations=1)}
        return await simulated_eval("kind_lessons", tmp_path, config, policy={"max_turns": 1})

    (episode,) = asyncio.run(evaluate())
    (trace,) = episode.traces
    assert trace.rewards["conversation"].score == pytest.approx(trace.metrics["kind"])


async def test_vf_eval_takes_the_module_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "lessons.py").write_text(blocks("verifiers")[0])
    (command,) = blocks("verifiers", "sh")
    async with serve_options(ServerOptions()) as url:
        for name, value in (("MODEL", "simulator"), ("URL", url), ("NAME", "NO_KEY_IS_NEEDED")):
            command = re.sub(rf"\b{name}\b", value, command)
        vf_eval, *rest = shlex.split(command)
        told = [
            str(Path(sys.executable).with_name(vf_eval)),
            *rest,
            "--no-rich",
            "--output-dir",
            str(tmp_path / "out"),
        ]
        environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "HOME": str(tmp_path)}
        done = await asyncio.to_thread(
            subprocess.run, told, env=environ, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r'"conversation": \{\s+"score": 0\.\d+', done.stdout)) == 3


def test_the_example_trains_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    picture = tmp_path / "training.svg"
    script = ROOT / "examples" / "train" / "train.py"
    names: dict[str, Any] = {"__name__": "example", "__file__": str(script)}
    exec(compile(script.read_text(), script, "exec"), names)
    monkeypatch.setattr(sys, "argv", ["train.py", "--steps", "2", "--picture", str(picture)])
    names["main"]()
    torch.set_num_threads(threads)
    said = capsys.readouterr().out
    assert re.search(
        r"mean reward 0\.\d+ in the first tenth of 2 steps, 0\.\d+ in the last; 128 conversations", said
    )
    assert "<svg" in picture.read_text()
