"""Rows for verl's reinforcement learning, with edgen's judge as the reward.

Format: `verl/utils/dataset/rl_dataset.py` and the reward managers of `verl/experimental/reward_loop`:
`prompt`, `data_source`, `reward_model.ground_truth`, `extra_info`. `edgen.env.verl` scores.
"""

from __future__ import annotations

from typing import Any

from edgen.export.formats.shared.replies import DESCRIBED, REWARDED, TrainedReply, make_rows_of_replies
from edgen.export.formats.shared.trials import VERL
from edgen.plugin import Format, FormatCard, FormatLayout
from edgen.plugin.formats import ParquetFiles


def _make_value(reply: TrainedReply) -> dict[str, Any]:
    return {
        "data_source": "edgen",
        "prompt": reply.prompt,
        "ability": "dialogue",
        "reward_model": {"style": "rule", "ground_truth": reply.reference},
        "extra_info": reply.describe(),
    }


FORMAT = Format(
    name="verl-rl",
    summary="Prompts with the run's own replies, as verl's RLHFDataset takes them; edgen's judge is the "
    "reward.",
    rows=make_rows_of_replies(_make_value),
    tables={
        "data_source": "edgen",
        "prompt": "messages up to a turn of the trained side",
        "ability": "dialogue",
        "reward_model": "style (rule) and ground_truth: the run's own reply at that turn, the reference",
        "extra_info": DESCRIBED,
    },
    use="""\
python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=THIS_FOLDER/train.parquet \\
  data.val_files=THIS_FOLDER/test.parquet data.max_prompt_length=4096 data.filter_overlong_prompts=true \\
  actor_rollout_ref.model.path=MODEL actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 \\
  reward.num_workers=1 reward.custom_reward_function.path=pkg://edgen.env.verl \\
  reward.custom_reward_function.name=compute_score_async \\
  +reward.custom_reward_function.reward_kwargs.job=JOB ...""",
    card=FormatCard(
        notes=(
            REWARDED,
            (
                "With `pairs.compare: conversation` the judge sees the conversations up to the reply, with "
                "`response` the two replies next to the turns before them. "
                "'+reward.custom_reward_function.reward_kwargs.overrides=[pairs.compare=response]' changes "
                "it."
            ),
            (
                "Each of verl's reward.num_workers processes has a budget and limits of its own; one is enough, "
                "as "
                "compute_score_async waits for many judges at once. compute_score is the same for callers that "
                "do not await."
            ),
            (
                "The command is that of verl since 0.7.1. Up to 0.7.0 the keys begin with "
                "custom_reward_function, and up to 0.6.1 the path is that of a file: edgen/env/verl.py in "
                "the folder where edgen is installed."
            ),
            "Rows left out as repeated or only_ends are counted in prompts, not in conversations.",
        ),
        tried=(
            VERL(
                "its main_ppo composed the command's configuration, and validate_config took it once the micro "
                "batch sizes that the command leaves to you were set to 1; RLHFDataset took every row; the "
                "naive reward manager scored replies by both functions. No GPU, so no step."
            ),
        ),
        tags=("verl", "grpo", "prompts"),
    ),
    needs=("pyarrow",),
    layout=FormatLayout(files=ParquetFiles, scenario=True, by_range=True, prompts_only=True),
)
