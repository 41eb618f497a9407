"""TRL's preference rows, turn level: for DPOTrainer, CPOTrainer, ORPOTrainer and the like.

https://huggingface.co/docs/trl/dataset_formats#preference
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run
from edgen.exporters.preferences import TurnPair, turn_level
from edgen.exporters.voice import Voice


def rows(run: Run, voice: Voice) -> Iterator[Item]:
    """A row a pair."""
    for compared in run.compared():
        found = turn_level(compared, voice)
        yield _row(found) if isinstance(found, TurnPair) else found


def _row(pair: TurnPair) -> Row:
    value = {
        "prompt": pair.prompt,
        "chosen": [pair.chosen],
        "rejected": [pair.rejected],
        "margin": pair.whole.label.margin,
        "id": pair.id,
    }
    return Row(pair.split, value, evidence=pair.whole.evidence)


FORMAT = Format(
    name="trl-dpo",
    of="pairs",
    summary="Preference pairs of single turns, as TRL's DPOTrainer takes them.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "prompt": "messages up to the turn at which the two conversations part",
                "chosen": "the trained side's next message in the chosen conversation",
                "rejected": "the trained side's next message in the rejected one",
                "margin": "how strong the preference is, in (0, 1]; DPOTrainer does not read it",
                "id": "the pair",
            },
        ),
    ),
    use="""\
from datasets import load_dataset
from trl import DPOTrainer
DPOTrainer(model=MODEL, train_dataset=load_dataset("THIS_FOLDER", split="train")).train()""",
    level="turn",
    notes=(
        "RewardTrainer would take `margin` into its loss; for reward models use the format trl-conversation.",
    ),
    tags=("trl", "dpo", "preference"),
)
