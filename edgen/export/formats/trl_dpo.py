"""TRL's preference rows, turn level: for DPOTrainer, CPOTrainer, ORPOTrainer and the like.

https://huggingface.co/docs/trl/dataset_formats#preference
"""

from __future__ import annotations

from edgen.export.formats.shared.pair_rows import TurnPair, make_rows_of_pairs, read_turn
from edgen.export.formats.shared.trials import AXOLOTL, TRL
from edgen.plugin import Format, FormatCard, FormatLayout, Row
from edgen.plugin.formats import ActionOptions


def _make_row(pair: TurnPair) -> Row:
    value = {
        "prompt": pair.prompt,
        "chosen": [pair.chosen],
        "rejected": [pair.rejected],
        "margin": pair.whole.label.margin,
        "id": pair.id,
    }
    return Row(pair.split, value, evidence=pair.whole.evidence, scenario=pair.scenario)


FORMAT = Format(
    name="trl-dpo",
    needs=("pairs",),
    summary="Preference pairs of single turns, as TRL's DPOTrainer takes them.",
    rows=make_rows_of_pairs(read_turn, _make_row),
    tables={
        "prompt": "messages up to the turn at which the two conversations part",
        "chosen": "the trained side's next message in the chosen conversation",
        "rejected": "the trained side's next message in the rejected one",
        "margin": "how strong the preference is, in (0, 1]; DPOTrainer does not read it",
        "id": "the pair",
    },
    use="""\
from datasets import load_dataset
from trl import DPOTrainer
DPOTrainer(model=MODEL, train_dataset=load_dataset("THIS_FOLDER", split="train")).train()
# axolotl:
rl: dpo
datasets: [{path: THIS_FOLDER, split: train, type: chat_template.default, field_messages: prompt}]""",
    card=FormatCard(
        notes=(
            "RewardTrainer would take `margin` into its loss; for reward models use the format trl-conversation.",
        ),
        tried=(
            TRL(
                "DPOTrainer took two steps with each of two chat templates; its tokens were exactly the "
                "prompts and replies."
            ),
            AXOLOTL("its preprocessing took the rows with the configuration above."),
        ),
        tags=("trl", "dpo", "preference"),
    ),
    Options=ActionOptions,
    layout=FormatLayout(scenario=True, by_range=True, level="turn"),
)
