"""REFUEL's rows: two conversations that part at round h, with a reward each (arXiv 2410.04612).

Keys as `setting_one/tokenize_mask.py` of github.com/ZhaolinGao/REFUEL has them: message lists that begin with
the user and hold whole rounds of user and assistant; `h` counts rounds from 0, so that the first 2h + 1
messages are shared and the next one, by the assistant, differs.
"""

from __future__ import annotations

from edgen.core.pair import RolloutSignal
from edgen.export.chat import without_trailing_user
from edgen.export.evidence import signal_behind
from edgen.export.format import Format, Item, LeftOut, Row, Tried
from edgen.export.pair_rows import Preferred, TurnPair, read_turn, rows_of_pairs


def rewards(found: Preferred) -> tuple[float, float]:
    """The rewards of chosen and rejected, in [0, 1]: the conversations' own probabilities of understanding
    where these gave the label, the mean strengths of rollouts where it rests on those, else p and 1 - p. Either way they
    differ by 2p - 1."""
    said = signal_behind(found.pair, found.label)
    by_probability = found.pair.signals.probability if found.label.by == "probability" else None
    own = said if isinstance(said, RolloutSignal) else by_probability
    if own is not None and own.a is not None and own.b is not None:
        return (own.a, own.b) if found.label.chosen == "a" else (own.b, own.a)
    return found.label.p, 1 - found.label.p


def _row(pair: TurnPair) -> Item:
    first = pair.whole.chosen[0]["role"]
    if first != "user":
        return LeftOut("system_message" if first == "system" else "assistant_first")
    chosen_reward, reject_reward = rewards(pair.whole)
    value = {
        "chosen": without_trailing_user(pair.whole.chosen),
        "reject": without_trailing_user(pair.whole.rejected),
        "chosen_reward": chosen_reward,
        "reject_reward": reject_reward,
        "h": pair.at // 2,
        "id": pair.id,
    }
    return Row(pair.split, value, evidence=pair.whole.evidence)


FORMAT = Format(
    name="refuel",
    needs=("pairs",),
    summary="Whole conversations that share a prefix, with rewards, as REFUEL takes them.",
    rows=rows_of_pairs(read_turn, _row),
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
prefix, turn = row["chosen"][: 2 * row["h"] + 1], row["chosen"][2 * row["h"] + 1]""",
    level="conversation",
    notes=(
        (
            "REFUEL's refuel.py reads token columns. They depend on your tokenizer: tokenise the first "
            "2h + 2 messages of `chosen` and `reject` into chosen_token and reject_token, with masks over the last of "
            "them alone, as its tokenize_mask.py does with sampled_h_from_sampled_len = h."
        ),
        "A last message by the user is cut: REFUEL counts in rounds.",
        "It needs --opening user: with a system message the count of messages would be off by one.",
    ),
    tried=(Tried("datasets", "5.2.0", "2026-11-22", "load_dataset took the folder."),),
    tags=("refuel", "preference"),
)
