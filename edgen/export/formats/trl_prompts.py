"""TRL's prompt-only rows: for GRPOTrainer, RLOOTrainer and other online methods.

https://huggingface.co/docs/trl/dataset_formats#prompt-only
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.conversation_rows import Repeats
from edgen.export.format import Chat, Format, Item, LeftOut, Row, RunReader


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """A row for each turn of the trained side: what stands before it, once a scenario.

    Conversations of one scenario share their beginnings, which would otherwise weigh more than the rest.
    """
    repeats = Repeats()
    for conversation in run.conversations():
        messages = chat.messages(
            conversation.candidate.turns, conversation.scenario, conversation.candidate.ended_by
        )
        spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        for turn, at in enumerate(spoken):
            prompt = messages[:at]
            if repeats.has(conversation.scenario.index, prompt):
                yield LeftOut("repeated")
            else:
                value = {"prompt": prompt, "id": conversation.candidate.id, "turn": turn}
                yield Row(conversation.split, value, scenario=conversation.scenario)


FORMAT = Format(
    name="trl-prompts",
    summary="Prompts only, one for each turn of the trained side, as TRL's online trainers take them.",
    rows=rows,
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
    notes=(
        "Reward functions get every column by its name: `def reward(prompts, completions, **columns)`.",
        "What is left out as repeated is counted in prompts, not in conversations.",
    ),
    scenario=True,
    tags=("trl", "grpo", "prompts"),
)
