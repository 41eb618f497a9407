"""TRL's preference rows with an implicit prompt, whole conversations: for RewardTrainer.

https://huggingface.co/docs/trl/dataset_formats#preference
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run
from edgen.exporters.preferences import Preferred, preferred
from edgen.exporters.voice import Voice


def rows(run: Run, voice: Voice) -> Iterator[Item]:
    """A row a pair."""
    for compared in run.compared():
        found = preferred(compared, voice)
        yield _row(found) if isinstance(found, Preferred) else found


def _row(found: Preferred) -> Row:
    # No column `margin`: RewardTrainer would subtract it in its loss without being asked to.
    value = {
        "chosen": found.chosen,
        "rejected": found.rejected,
        "p": found.label.p,
        "id": found.pair.id,
    }
    return Row(found.pair.split, value, evidence=found.evidence)


FORMAT = Format(
    name="trl-conversation",
    of="pairs",
    summary="Preference pairs of whole conversations, as TRL's RewardTrainer takes them.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "chosen": "all messages of the chosen conversation",
                "rejected": "all messages of the rejected one",
                "p": "the preference for the chosen one, in (0.5, 1]; RewardTrainer does not read it",
                "id": "the pair",
            },
        ),
    ),
    use="""\
from datasets import load_dataset
from trl import RewardTrainer
RewardTrainer(model=MODEL, train_dataset=load_dataset("THIS_FOLDER", split="train")).train()""",
    level="conversation",
    notes=(
        "A last message by the user stays: it belongs to the conversation, and RewardTrainer takes it.",
        "To have the strength of the preference in the loss, add a column `margin`, for instance 2p - 1.",
    ),
    tags=("trl", "reward-model", "preference"),
)
