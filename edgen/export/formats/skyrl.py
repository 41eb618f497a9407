"""Rows for SkyRL, with edgen's judge as the environment.

Format: `skyrl/train/dataset/dataset.py` and `skyrl_gym.make`: `prompt` and `env_class`; all other columns
reach the environment as `extras`. `edgen.env.skyrl_replies` is the environment.
"""

from __future__ import annotations

from typing import Any

from edgen.export.formats.shared.replies import DESCRIBED, REWARDED, TrainedReply, make_rows_of_replies
from edgen.plugin import Format, FormatCard, FormatLayout
from edgen.plugin.formats import Tried


def _make_value(reply: TrainedReply) -> dict[str, Any]:
    return {
        "data_source": "edgen",
        "prompt": reply.prompt,
        "env_class": "edgen-replies",
        "reward_spec": {"method": "rule", "ground_truth": reply.reference},
        "extra_info": reply.describe(),
    }


FORMAT = Format(
    name="skyrl",
    summary="Prompts with the run's own replies, as SkyRL's PromptDataset takes them; edgen's judge is the "
    "reward.",
    rows=make_rows_of_replies(_make_value),
    tables={
        "data_source": "edgen",
        "prompt": "messages up to a turn of the trained side",
        "env_class": "edgen-replies, the environment that scores a reply",
        "reward_spec": "method (rule) and ground_truth: the run's own reply at that turn, the reference",
        "extra_info": DESCRIBED,
    },
    use="""\
import skyrl_gym
skyrl_gym.register(id="edgen-replies", entry_point="edgen.env.skyrl_replies:ReplyEnv", kwargs={"job": "JOB"})
# then SkyRL's trainer, with data.train_data="['THIS_FOLDER/train.jsonl']" data.val_data="['THIS_FOLDER/test.jsonl']"
# and generator.max_turns=1; the registration belongs into the task that makes the trainer""",
    card=FormatCard(
        notes=(
            REWARDED,
            (
                'kwargs={"job": ..., "overrides": ["pairs.compare=response"]} has the judge compare the two '
                "replies instead of the conversations up to them."
            ),
            "Each row is one reply. For whole conversations with simulated partners there is `edgen.env`.",
            "Rows left out as repeated or only_ends are counted in prompts, not in conversations.",
        ),
        tried=(
            Tried(
                "skyrl",
                "0.3.0",
                "2026-11-22",
                "its PromptDataset took every row.",
            ),
            Tried(
                "skyrl-gym",
                "0.4.0",
                "2026-11-22",
                "it made the environment of a row as SkyRL's generator does, and the environment scored replies.",
            ),
        ),
        tags=("skyrl", "grpo", "prompts"),
    ),
    layout=FormatLayout(scenario=True, by_range=True, prompts_only=True),
)
