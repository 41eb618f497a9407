"""TRL's prompt-only rows: for GRPOTrainer, RLOOTrainer and other online methods.

https://huggingface.co/docs/trl/dataset_formats#prompt-only
"""

from __future__ import annotations

from edgen.export.formats.shared.replies import TrainedReply, iterate_replies
from edgen.export.formats.shared.trials import TRL
from edgen.plugin import Format, FormatCard, FormatLayout, Row
from edgen.plugin.formats import ResponseOptions, rows_from


def _make_row(found: TrainedReply) -> Row:
    value = {"prompt": found.prompt, "id": found.id, "turn": found.turn}
    return Row(found.split, value, scenario=found.scenario)


FORMAT = Format(
    name="trl-prompts",
    summary="Prompts only, one for each turn of the trained side, as TRL's online trainers take them.",
    rows=rows_from(iterate_replies, _make_row),
    tables={
        "prompt": "messages up to a turn of the trained side",
        "id": "the conversation",
        "turn": "which turn of the trained side comes next, counted from 0",
    },
    use="""\
from datasets import load_dataset
from trl import GRPOTrainer
data = load_dataset("THIS_FOLDER", split="train")
GRPOTrainer(model=MODEL, reward_funcs=REWARD, train_dataset=data).train()""",
    card=FormatCard(
        notes=(
            "Reward functions get every column by its name: `def reward(prompts, completions, **columns)`.",
            "Rows left out as repeated are counted in prompts, not in conversations.",
        ),
        tried=(TRL("GRPOTrainer took two steps: it sampled replies to the prompts."),),
        tags=("trl", "grpo", "prompts"),
    ),
    Options=ResponseOptions,
    layout=FormatLayout(scenario=True, by_range=True, prompts_only=True),
)
