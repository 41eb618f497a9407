"""TRL's preference rows with an implicit prompt, whole conversations: for RewardTrainer.

https://huggingface.co/docs/trl/dataset_formats#preference
"""

from __future__ import annotations

from edgen.export.formats.shared.pair_rows import PreferredPair, make_rows_of_pairs, read_preferred
from edgen.export.formats.shared.trials import TRL
from edgen.plugin import Format, FormatCard, FormatLayout, Row


def _make_row(found: PreferredPair) -> Row:
    # No column `margin`: RewardTrainer would subtract it in its loss without being asked.
    value = {"chosen": found.chosen, "rejected": found.rejected, "p": found.label.p, "id": found.pair.id}
    return Row(found.pair.split, value, evidence=found.evidence, scenario=found.scenario)


FORMAT = Format(
    name="trl-conversation",
    needs=("pairs",),
    summary="Preference pairs of whole conversations, as TRL's RewardTrainer takes them.",
    rows=make_rows_of_pairs(read_preferred, _make_row),
    tables={
        "chosen": "all messages of the chosen conversation",
        "rejected": "all messages of the rejected one",
        "p": "the preference for the chosen one, in (0.5, 1]; RewardTrainer does not read it",
        "id": "the pair",
    },
    use="""\
from datasets import load_dataset
from trl import RewardTrainer
RewardTrainer(model=MODEL, train_dataset=load_dataset("THIS_FOLDER", split="train")).train()""",
    card=FormatCard(
        notes=(
            "A last message by the user stays: it belongs to the conversation, and RewardTrainer takes it.",
            "To have the strength of the preference in the loss, add a column `margin`, for instance 2p - 1.",
        ),
        tried=(TRL("RewardTrainer took two steps with each of two chat templates."),),
        tags=("trl", "reward-model", "preference"),
    ),
    layout=FormatLayout(scenario=True, by_range=True, level="conversation"),
)
