"""TRL's unpaired preference rows, turn level: for KTOTrainer.

https://huggingface.co/docs/trl/dataset_formats#unpaired-preference
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run
from edgen.exporters.preferences import Completion, completions
from edgen.exporters.voice import Voice


def rows(run: Run, voice: Voice) -> Iterator[Item]:
    """A row a completion, each once."""
    for found in completions(run, voice):
        yield _row(found) if isinstance(found, Completion) else found


def _row(found: Completion) -> Row:
    value = {
        "prompt": found.prompt,
        "completion": [found.completion],
        "label": found.label,
        "id": found.id,
    }
    return Row(found.split, value)


FORMAT = Format(
    name="trl-kto",
    of="pairs",
    summary="Single turns that are good or bad, as TRL's KTOTrainer takes them.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "prompt": "messages up to the turn at which the two conversations of a pair part",
                "completion": "the trained side's next message",
                "label": "true: chosen; false: rejected",
                "id": "the first pair that it comes from, and its part in it",
            },
        ),
    ),
    use="""\
from datasets import load_dataset
from trl import KTOTrainer
data = load_dataset("THIS_FOLDER", split="train").shuffle(seed=0)
KTOTrainer(model=MODEL, train_dataset=data).train()""",
    notes=(
        (
            "Both turns of a pair stand one after the other. Shuffle first: KTOTrainer pairs neighbours with each "
            "other's prompts to estimate its reference point."
        ),
        (
            "A completion that is chosen in one pair and rejected in another after the same prompt is left out, and "
            "none stands here twice."
        ),
    ),
    tags=("trl", "kto", "preference"),
)
