"""TRL's unpaired preference rows, turn level: for KTOTrainer.

https://huggingface.co/docs/trl/dataset_formats#unpaired-preference
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from edgen.export.formats.shared.completions import RULE, Completion, iterate_completions
from edgen.export.formats.shared.trials import TRL
from edgen.plugin import Format, FormatCard, FormatLayout, Row
from edgen.plugin.formats import SPLITS, ActionOptions, JsonLines, Staging, rows_from


def _make_row(found: Completion) -> Row:
    value = {"prompt": found.prompt, "completion": [found.completion], "label": found.label, "id": found.id}
    return Row(found.split, value, evidence=found.evidence, scenario=found.scenario)


class LabelledLines(JsonLines):
    """JSON Lines with counts of true and false rows, for balancing weights."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self._rows: Counter[tuple[str, bool]] = Counter()

    def add(self, row: Row) -> None:
        super().add(row)
        self._rows[row.split, row.value["label"]] += 1

    def notes(self) -> Iterator[str]:
        counts = ", ".join(
            f"{split} has {self._rows[split, True]} true and {self._rows[split, False]} false rows"
            for split in SPLITS
        )
        yield f"Labels: {counts}. {_compute_weights(self._rows['train', True], self._rows['train', False])}"


def _compute_weights(true: int, false: int) -> str:
    """Return the weights that balance the two losses: weight times rows is equal for both."""
    if not true or not false:
        return "No weight balances a train split that lacks one of them."
    if true == false:
        return "Both kinds of train count alike: desirable_weight and undesirable_weight can stay at 1.0."
    # Two digits, as in KTOTrainer's warning about the range.
    name, weight = (
        ("desirable_weight", false / true) if true < false else ("undesirable_weight", true / false)
    )
    return (
        f"KTOConfig({name}={weight:.2f}), the other weight left at 1.0, makes both kinds of train count "
        "alike."
    )


FORMAT = Format(
    name="trl-kto",
    needs=("pairs",),
    summary="Single turns that are good or bad, as TRL's KTOTrainer takes them.",
    rows=rows_from(iterate_completions, _make_row),
    tables={
        "prompt": "messages up to the turn at which the two conversations of a pair part",
        "completion": "the trained side's next message",
        "label": "true: good; false: bad",
        "id": "the first pair that it comes from, and its part in that pair",
    },
    use="""\
from datasets import load_dataset
from trl import KTOTrainer
data = load_dataset("THIS_FOLDER", split="train").shuffle(seed=0)
KTOTrainer(model=MODEL, train_dataset=data).train()""",
    layout=FormatLayout(files=LabelledLines, scenario=True, level="turn"),
    card=FormatCard(
        notes=(
            (
                "Both turns of a pair are in adjacent rows. Shuffle first: KTOTrainer pairs neighbours with "
                "each other's prompts to estimate its reference point."
            ),
            (
                f"{RULE} Where pairs have no strengths, a chosen completion is good and a rejected one bad, "
                "and one that is chosen in one pair and rejected in another after the same prompt is left "
                "out."
            ),
            (
                "No completion occurs twice. Rows left out as contradictory, middling or repeated are "
                "counted in completions."
            ),
        ),
        tried=(TRL("KTOTrainer took two steps with each of two chat templates."),),
        tags=("trl", "kto", "preference"),
    ),
    Options=ActionOptions,
)
