"""SkyRL's own data set and environments on its export: prompts are unchanged, the judge scores replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import skyrl_gym
from skyrl.train.dataset import PromptDataset
from skyrl_gym.envs.registration import deregister

from edgen.core.errors import UsageError
from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers

pytestmark = pytest.mark.integration
NAME = "edgen-replies"


@pytest.fixture(scope="module")
def rows(exports: Exports, tokenizers: Tokenizers) -> PromptDataset:
    tokens = tokenizers.with_template(tiny.STRICT)
    return PromptDataset(str(exports.folder("skyrl") / "train.jsonl"), tokens, 4096, num_workers=1)


@pytest.fixture(scope="module")
def _registered(exports: Exports) -> Iterator[None]:
    """Register the environments as the card says."""
    card = (exports.folder("skyrl") / "README.md").read_text()
    told = next(line for line in card.splitlines() if line.startswith("skyrl_gym.register("))
    exec(told.replace('"JOB"', repr(str(exports.run / "job.yaml"))), {"skyrl_gym": skyrl_gym})
    yield
    deregister(NAME)


def test_the_prompts_come_through(exports: Exports, rows: PromptDataset) -> None:
    given = exports.train("skyrl")
    assert len(rows) == len(given)
    for one, row in zip(rows.collate_fn([rows[i] for i in range(len(given))]), given, strict=True):
        assert one["prompt"] == row["prompt"]
        assert one["env_class"] == NAME
        assert one["env_extras"]["reward_spec"]["ground_truth"] == row["reward_spec"]["ground_truth"]


@pytest.mark.usefixtures("_registered")
def test_the_environment_scores_one_reply(rows: PromptDataset) -> None:
    """The environment is made and stepped as by SkyRL's generator."""

    def play(number: int, reply: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
        prompt, env_class, extras, _ = rows[number]
        env = skyrl_gym.make(env_class, env_config={}, extras={**extras, "max_turns": 1})
        assert env.init(prompt)[0] == prompt
        said = env.step(extras["reward_spec"]["ground_truth"] if reply is None else reply)
        env.close()
        return said, env.get_metrics()

    same, metrics = play(0, None)
    assert (same["reward"], same["done"], same["observations"], metrics) == (0.5, True, [], {"judged": 1.0})
    assert play(1, "")[0]["reward"] == 0.0
    rewards = [play(number, f"Let us look at it, {number}.")[0]["reward"] for number in range(12)]
    assert set(rewards) <= {0.0, 0.5, 1.0}


@pytest.mark.usefixtures("_registered")
def test_a_row_of_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="take rows of `edgen export --to skyrl`"):
        skyrl_gym.make(NAME, env_config={}, extras={"data_source": "openai/gsm8k"})
