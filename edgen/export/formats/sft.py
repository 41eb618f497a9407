"""Single responses with their prompts: TRL's prompt-completion rows, for SFTTrainer and other training on
completions.

https://huggingface.co/docs/trl/dataset_formats#prompt-completion
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.formats.shared.replies import iterate_responses
from edgen.export.formats.shared.trials import TRL
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import Repeats, ResponseOptions


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per response, without repeats after the same prompt of a scenario."""
    repeats = Repeats()
    for found in iterate_responses(run, chat):
        if isinstance(found, LeftOut):
            yield found
        elif found.reference is None:
            yield LeftOut("only_ends")
        elif found.flagged:
            yield LeftOut("nonsense")
        elif found.served:
            yield LeftOut("served")
        else:
            completion = {"role": "assistant", "content": found.reference}
            if repeats.has(found.drawn.index, [*found.prompt, completion]):
                yield LeftOut("repeated")
                continue
            value = {
                "prompt": found.prompt,
                "completion": [completion],
                "actions": ", ".join(found.labels),
                "id": found.id,
                "turn": found.turn,
            }
            yield Row(found.split, value, scenario=found.scenario)


FORMAT = Format(
    name="sft",
    summary="Single responses of the trained side, each with its prompt, as TRL's SFTTrainer takes them.",
    rows=rows,
    tables={
        "prompt": "messages up to the response; with --actions, the last one names the response's actions",
        "completion": "the response",
        "actions": "the response's actions, joined by commas; empty where they are unknown",
        "id": "the conversation",
        "turn": "which turn of the trained side it is, counted from 0",
    },
    use="""\
from datasets import load_dataset
from trl import SFTTrainer
SFTTrainer(model=MODEL, train_dataset=load_dataset("THIS_FOLDER", split="train")).train()""",
    card=FormatCard(
        notes=(
            (
                "SFTTrainer puts the loss on the completion alone, as it does where rows have a prompt and a "
                "completion."
            ),
            (
                "With --alternatives, each response to a turn has a row, including those that the "
                "conversation did not continue with; a response that the other side called nonsense has none."
            ),
            "Rows left out are counted in responses, not in conversations.",
        ),
        tried=(
            TRL(
                "SFTTrainer took two steps with each of two chat templates; the loss fell on the response alone."
            ),
        ),
        tags=("trl", "sft", "conversational"),
    ),
    Options=ResponseOptions,
    layout=FormatLayout(scenario=True, by_range=True),
)
