"""Rows of preferences and of single good or bad turns for LLaMA-Factory, with a `dataset_info.json`.

Format: data/README.md of github.com/hiyouga/LLaMA-Factory, sharegpt layout. `SharegptDatasetConverter`
(src/llamafactory/data/converter.py) takes a system message, then alternating human and gpt messages. A
ranking data set ends on human, with `chosen` and `rejected` as further keys; any other ends on gpt, with
`kto_tag`. It skips other rows with a warning, so they are omitted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from edgen.export.formats.shared.completions import COUNTED, RULE, Completion, make_rows_of_turns
from edgen.export.formats.shared.pair_rows import TurnPair
from edgen.export.formats.shared.trials import LLAMAFACTORY
from edgen.export.formats.sharegpt import OPENING, begins_with_user, convert_message
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import ActionOptions, DataTable, JsonLines, Patterns, write_new

PREFERENCE = "preference"
KTO = "kto"
INFO = "dataset_info.json"

# The description of a table in dataset_info.json. If one column is named, LLaMA-Factory has no defaults for
# the others.
_DESCRIBED: dict[str, dict[str, Any]] = {
    PREFERENCE: {
        "ranking": True,
        "columns": {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"},
    },
    KTO: {"columns": {"messages": "conversations", "kto_tag": "kto_tag"}},
}


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per pair, then one per completion."""
    return make_rows_of_turns(partial(_make_pair, chat), partial(_make_tagged_row, chat))(run, chat)


def _make_pair(chat: Chat, pair: TurnPair) -> Row | LeftOut:
    prompt = chat.user_first(pair.prompt)
    if not begins_with_user(prompt):
        return LeftOut("assistant_first")
    value = {
        "conversations": [convert_message(message) for message in prompt],
        "chosen": convert_message(pair.chosen),
        "rejected": convert_message(pair.rejected),
        "margin": pair.whole.label.margin,
        "id": pair.id,
    }
    return Row(pair.split, value, PREFERENCE, pair.whole.evidence, pair.scenario)


def _make_tagged_row(chat: Chat, found: Completion) -> Row | None:
    """Return the row of a completion; None if its pair has no row and was counted as an omission."""
    prompt = chat.user_first(found.prompt)
    if not begins_with_user(prompt):
        return None
    value = {
        "conversations": [convert_message(message) for message in (*prompt, found.completion)],
        "kto_tag": found.label,
        "id": found.id,
    }
    return Row(found.split, value, KTO, found.evidence, found.scenario)


class DescribedLines(JsonLines):
    """JSON Lines, and a dataset_info.json with an entry for each table and split that has rows."""

    def finish(self) -> Patterns:
        patterns = super().finish()
        entries = {
            f"{table}_{split}": {"file_name": path, "formatting": "sharegpt", **_DESCRIBED[table]}
            for (table, split), path in sorted(patterns.items())
        }
        text = msgspec.json.format(msgspec.json.encode(entries), indent=2)
        write_new(self.folder / INFO, text + b"\n")
        return patterns


FORMAT = Format(
    name="llamafactory",
    needs=("pairs",),
    summary="Preference pairs and good or bad turns, as LLaMA-Factory takes them, with dataset_info.json.",
    rows=rows,
    tables=(
        DataTable(
            {
                "conversations": "from (human, gpt or system) and value, up to the turn at which the two "
                "conversations part",
                "chosen": "the trained side's next message in the chosen conversation",
                "rejected": "the trained side's next message in the rejected one",
                "margin": "how strong the preference is, in (0, 1]; LLaMA-Factory does not read it",
                "id": "the pair",
            },
            PREFERENCE,
        ),
        DataTable(
            {
                "conversations": "from (human, gpt or system) and value, the trained side's message last",
                "kto_tag": "true: the last message is good; false: it is bad",
                "id": "the first pair that it comes from, and its part in that pair",
            },
            KTO,
        ),
    ),
    use="""\
llamafactory-cli train --stage dpo --dataset_dir THIS_FOLDER --dataset preference_train --do_train true \\
  --model_name_or_path MODEL --template TEMPLATE --finetuning_type lora --output_dir OUT
llamafactory-cli train --stage kto --dataset_dir THIS_FOLDER --dataset kto_train --do_train true \\
  --model_name_or_path MODEL --template TEMPLATE --finetuning_type lora --output_dir OUT""",
    layout=FormatLayout(files=DescribedLines, scenario=True, level="turn"),
    card=FormatCard(
        notes=(
            (
                "`dataset_info.json` names preference_train, preference_test, kto_train and kto_test, as far as "
                "they have rows."
            ),
            (
                "The stages dpo and rm take the preference rows, kto the others. For whole conversations take "
                "`--to sharegpt`."
            ),
            OPENING,
            (
                "LLaMA-Factory cuts rows that are longer than its cutoff_len. For KTO it pairs each row with "
                "the answer of the row before it; turns of a pair are next to each other here, so shuffle "
                "the lines first."
            ),
            (
                f"{RULE} Where pairs have no strengths, a chosen turn is good and a rejected one bad, and "
                "one that is both is left out."
            ),
            COUNTED,
        ),
        tried=(LLAMAFACTORY("its loader took all rows of both tables by dataset_info.json."),),
        tags=("llama-factory", "dpo", "kto", "preference"),
    ),
    Options=ActionOptions,
)
