"""Rows for OpenRLHF: preference pairs for train_dpo and train_rm, and single replies with a score.

Format of pairs: `openrlhf/datasets/reward_dataset.py` without `--data.prompt_key`: two message lists that
differ only in the last message. Names of columns are options of OpenRLHF, so the second table has names of
its own. Its values are plain texts in the layout of OpenRLHF's usual input template ("User: ...\\nAssistant:
").
"""

from __future__ import annotations

from edgen.export.formats.shared.completions import COUNTED, RULE, Completion, make_rows_of_turns
from edgen.export.formats.shared.pair_rows import TurnPair
from edgen.export.formats.shared.trials import OPEN_INSTRUCT
from edgen.plugin import Format, FormatCard, FormatLayout, Row
from edgen.plugin.formats import ActionOptions, DataTable, Message, Tried

PAIRS = "pairs"
SCORED = "scored"


def join_messages(prompt: list[Message]) -> str:
    """Return messages as one text for the assistant to continue."""
    return "".join(f"{m['role'].capitalize()}: {m['content']}\n" for m in prompt) + "Assistant: "


def _make_row(pair: TurnPair) -> Row:
    value = {
        "chosen": [*pair.prompt, pair.chosen],
        "rejected": [*pair.prompt, pair.rejected],
        "margin": pair.whole.label.margin,
        "id": pair.id,
    }
    return Row(pair.split, value, PAIRS, pair.whole.evidence, pair.scenario)


def _make_scored_row(found: Completion) -> Row:
    value = {
        "in_text": join_messages(found.prompt),
        "out_text": found.completion["content"],
        # OpenRLHF's unpaired losses require exactly 1 and 0; another number would count for neither.
        "score": 1.0 if found.label else 0.0,
        "id": found.id,
    }
    return Row(found.split, value, SCORED, found.evidence, found.scenario)


FORMAT = Format(
    name="openrlhf",
    needs=("pairs",),
    summary="Preference pairs and scored replies, as OpenRLHF takes them.",
    rows=make_rows_of_turns(_make_row, _make_scored_row),
    tables=(
        DataTable(
            {
                "chosen": "messages, the chosen last message included",
                "rejected": "the same messages, the rejected last message included",
                "margin": "how strong the preference is, in (0, 1]",
                "id": "the pair",
            },
            PAIRS,
        ),
        DataTable(
            {
                "in_text": "everything before the reply, as one text",
                "out_text": "the reply",
                "score": "1.0: good; 0.0: bad",
                "id": "the first pair that it comes from, and its part in that pair",
            },
            SCORED,
        ),
    ),
    use="""\
python -m openrlhf.cli.train_dpo --data.dataset THIS_FOLDER/pairs/train.jsonl --data.apply_chat_template ...
python -m openrlhf.cli.train_rm --data.dataset THIS_FOLDER/pairs/train.jsonl --data.apply_chat_template \\
  --model.margin_loss_enable ...""",
    card=FormatCard(
        notes=(
            "Leave out --data.prompt_key: the prompt is all but the last message.",
            (
                "For the scored replies give the keys: --data.input_key in_text --data.output_key out_text (and "
                "--label_key score in the releases that have train_kto)."
            ),
            (
                f"{RULE} Where pairs have no strengths, a chosen reply is good and a rejected one bad, and a "
                "reply that is chosen in one pair and rejected in another is not among the scored ones."
            ),
            COUNTED,
        ),
        tried=(
            Tried(
                "openrlhf",
                "0.11.2",
                "2026-11-22",
                "RewardDataset took the pairs as train_dpo and train_rm load them.",
            ),
            OPEN_INSTRUCT("its dpo.py's tokenisation took the pairs."),
        ),
        tags=("openrlhf", "preference"),
    ),
    Options=ActionOptions,
    layout=FormatLayout(scenario=True, level="turn"),
)
