"""Rows for REFUEL: two conversations that part at round h, with a reward each (arXiv 2410.04612).

Format: `setting_one/tokenize_mask.py` of github.com/ZhaolinGao/REFUEL: message lists that begin with the user
and hold whole rounds of user and assistant; `h` counts rounds from 0, so that the first 2h + 1 messages are
shared and the next one, by the assistant, differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from edgen.export.formats.shared.pair_rows import PreferredPair, TurnPair, make_rows_of_pairs, read_turn
from edgen.export.formats.shared.trials import DATASETS
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    MOST,
    PAD,
    ChatTokenizer,
    RolloutSignal,
    TokenOptions,
    Tried,
    find_label_signal,
    without_trailing_user,
)

TOKENS = {
    "chosen_token": "tokens of the first 2h + 2 messages of the chosen conversation, padded",
    "reject_token": "those of the rejected one",
    "chosen_mask": "1 on the tokens of the last of these messages, else 0",
    "reject_mask": "the same for the rejected one",
}


def compute_rewards(found: PreferredPair) -> tuple[float, float]:
    """Return the rewards of chosen and rejected, in [0, 1]: the conversations' own probabilities of
    understanding if these gave the label, the mean strengths of rollouts if it uses those, else p and 1 - p.
    In each case they differ by 2p - 1."""
    said = find_label_signal(found.pair, found.label)
    by_probability = found.pair.signals.probability if found.label.by == "probability" else None
    own = said if isinstance(said, RolloutSignal) else by_probability
    if own is not None and own.a is not None and own.b is not None:
        return (own.a, own.b) if found.label.chosen == "a" else (own.b, own.a)
    return found.label.p, 1 - found.label.p


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per pair, with its tokens if a tokenizer was given.

    Rows of the same two turns with other continuations stay: their rewards are samples of the turns' returns.
    """
    for found in make_rows_of_pairs(read_turn, partial(_make_row, chat), of=lambda turn: turn.whole)(
        run, chat
    ):
        yield found if isinstance(found, LeftOut) or chat.tokens is None else _with_tokens(found, chat.tokens)


def _with_tokens(row: Row, tokens: ChatTokenizer) -> Row | LeftOut:
    """Return the row with the tokens of both sides up to the reply at which they part, and masks of it."""
    columns = {}
    for side in ("chosen", "reject"):
        found = tokens.mask_reply(row.value[side][: 2 * row.value["h"] + 2])
        if isinstance(found, LeftOut):
            return found
        columns[f"{side}_token"], columns[f"{side}_mask"] = found
    return replace(row, value=row.value | {name: columns[name] for name in TOKENS})


def _make_row(chat: Chat, pair: TurnPair) -> Row | LeftOut:
    chosen, rejected = (chat.user_first(side) for side in (pair.whole.chosen, pair.whole.rejected))
    first = chosen[0]["role"]
    if first != "user":
        return LeftOut("system_message" if first == "system" else "assistant_first")
    at = pair.at - (len(pair.whole.chosen) - len(chosen))
    chosen_reward, reject_reward = compute_rewards(pair.whole)
    value = {
        "chosen": without_trailing_user(chosen),
        "reject": without_trailing_user(rejected),
        "chosen_reward": chosen_reward,
        "reject_reward": reject_reward,
        "h": at // 2,
        "id": pair.id,
    }
    return Row(pair.split, value, evidence=pair.whole.evidence)


FORMAT = Format(
    name="refuel",
    needs=("pairs",),
    summary="Whole conversations that share a prefix, with rewards, as REFUEL takes them.",
    rows=rows,
    tables={
        "chosen": "messages of the chosen conversation, from the user's first to the assistant's last",
        "reject": "messages of the rejected one",
        "chosen_reward": "its reward, in [0, 1]",
        "reject_reward": "the other's reward, in [0, 1]",
        "h": "the round at which they part, counted from 0: 2h + 1 messages are shared",
        "id": "the pair",
    },
    use="""\
from datasets import load_dataset
row = load_dataset("THIS_FOLDER", split="train")[0]
prefix, turn = row["chosen"][: 2 * row["h"] + 1], row["chosen"][2 * row["h"] + 1]
# exported with --tokenizer MODEL, for REFUEL's trainer:
accelerate launch ./setting_one/refuel.py --task.query_dataset THIS_FOLDER --task.total_length 2048 --base_model MODEL ...""",
    card=FormatCard(
        notes=(
            (
                "REFUEL's refuel.py reads tokens and masks, which depend on the model: `--tokenizer DIR`, "
                f"the folder of the model's tokenizer, adds them. Rows are padded with {PAD} at the right to "
                f"--max-tokens ({MOST} by default), the trainer's task.total_length; longer rows are left "
                "out, as in its tokenize_mask.py."
            ),
            "Both splits need rows: refuel.py reads train and test.",
            "A last message by the user is cut: REFUEL counts in rounds.",
            (
                "Where the trained side begins, its first words are put at the start of the user's first "
                "message, with the names of both; --opening user writes an opening line instead. A system "
                "message would shift the count of messages by one."
            ),
        ),
        tried=(
            DATASETS("load_dataset took both splits, and torch stacked the columns."),
            Tried(
                "REFUEL",
                "b76c534",
                "2026-11-22",
                "its tokenize_mask.py made the same tokens and masks.",
            ),
        ),
        tags=("refuel", "preference"),
    ),
    Options=TokenOptions,
    layout=FormatLayout(token_columns=TOKENS, by_range=True, level="conversation"),
)
