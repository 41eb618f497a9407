"""Rows for open-instruct's reinforcement learning with verifiers: `messages`, `ground_truth` and `dataset`.

Format: `rlvr_tokenize_v3` of open_instruct/dataset_transformation.py. `dataset` names the verifier of
open_instruct/ground_truth_utils.py: general-quality_ref is a model that grades a reply against a reference.
"""

from __future__ import annotations

from typing import Any

from edgen.export.formats.shared.replies import TrainedReply, make_rows_of_replies
from edgen.export.formats.shared.trials import OPEN_INSTRUCT
from edgen.plugin import Format, FormatCard, FormatLayout

VERIFIER = "general-quality_ref"


def _make_value(reply: TrainedReply) -> dict[str, Any]:
    return {
        "messages": reply.prompt,
        "ground_truth": reply.reference,
        "dataset": VERIFIER,
        "id": reply.id,
        "turn": reply.turn,
    }


FORMAT = Format(
    name="open-instruct",
    summary="Prompts with the run's own replies, as open-instruct's GRPO takes them with its judge.",
    rows=make_rows_of_replies(_make_value),
    tables={
        "messages": "messages up to a turn of the trained side",
        "ground_truth": "the run's own reply at that turn, the reference",
        "dataset": f"{VERIFIER}: the verifier, a model that grades a reply next to the reference",
        "id": "the conversation",
        "turn": "which turn of the trained side comes next, counted from 0",
    },
    use="""\
python open_instruct/grpo_fast.py --dataset_mixer_list THIS_FOLDER/train.jsonl 1.0 \\
  --dataset_mixer_eval_list THIS_FOLDER/test.jsonl 1.0 --model_name_or_path MODEL --llm_judge_model JUDGE ...""",
    card=FormatCard(
        notes=(
            (
                "The judge is open-instruct's own, with its prompt and without edgen's budget; it grades from 1 "
                "to 10."
            ),
            (
                "For its finetune.py take `--to trl-sft --no-masks`; for its dpo.py the table `pairs` of `--to "
                "openrlhf`, whose chosen and rejected differ in the last message alone, as it wants."
            ),
            "open-instruct sees only a split named train in a local file, so the command names both files.",
            "Rows left out as repeated or only_ends are counted in prompts, not in conversations.",
        ),
        tried=(
            OPEN_INSTRUCT(
                "its rlvr_tokenize_v1 took every row, and its judges have the verifier that the rows name."
            ),
        ),
        tags=("open-instruct", "grpo", "prompts"),
    ),
    layout=FormatLayout(scenario=True, by_range=True, prompts_only=True),
)
