"""Files for SWEET-RL (arXiv 2503.15478): trajectories with rewards, pairs for the critic, pairs of turns.

Format: `scripts/evaluate_code.py` and `scripts/sample_best_of_n.py` of github.com/facebookresearch/sweet_rl
read trajectories; `RewardDataset` of its fork of OpenRLHF reads `chosen` and `rejected` as texts. The critic
sees information that the policy does not have: here the part of the scenario that the trained role does not
see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from edgen.export.formats.shared.pair_rows import (
    PreferredPair,
    TurnPair,
    group_by_scenario,
    have_equal_messages,
    keep_consistent,
    read_preferred,
    read_turn,
)
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader, Scenario
from edgen.plugin.formats import ComparedPair, DataTable, Message, TokenOptions, Tried, without_trailing_user

TRAJECTORIES, CRITIC, TURNS = "trajectories", "critic", "turns"
_TOLD = "In light that the final answer is: {}."  # the beginning of a critic's text in evaluate_code.py


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield the rows of each pair, then the rejected trajectories.

    `evaluate_code.py --k 2` reads one conversation of each task, then the others in the same order. So the
    run is read twice.
    """
    for pairs in group_by_scenario(run):
        wholes = keep_consistent([_read(compared, chat) for compared in pairs])
        turns = keep_consistent([read_turn(compared, chat) for compared in pairs])
        for found, turn in zip(wholes, turns, strict=True):
            if isinstance(found, LeftOut):
                yield found
                continue
            yield _make_trajectory(found, chat, found.chosen, 1.0)
            yield _make_critic_row(found, chat)
            yield turn if isinstance(turn, LeftOut) else _make_turn_row(turn, chat)
    for pairs in group_by_scenario(run):
        for found in keep_consistent([_read(compared, chat) for compared in pairs]):
            if isinstance(found, PreferredPair):
                yield _make_trajectory(found, chat, found.rejected, 0.0)


def _read(compared: ComparedPair, chat: Chat) -> PreferredPair | LeftOut:
    """Return a pair whose conversations begin with the user and end with the assistant."""
    found = read_preferred(compared, chat)
    if isinstance(found, LeftOut):
        return found
    sides = [without_trailing_user(chat.user_first(side)) for side in (found.chosen, found.rejected)]
    for side in sides:
        if next((one["role"] for one in side if one["role"] != "system"), "assistant") == "assistant":
            return LeftOut("assistant_first")
        if chat.tokens is not None and not chat.tokens.fits(side):
            return LeftOut("too_long")
    if have_equal_messages(*sides):
        return LeftOut("identical")
    return replace(found, chosen=sides[0], rejected=sides[1])


def _make_trajectory(found: PreferredPair, chat: Chat, messages: list[Message], reward: float) -> Row:
    """Return a conversation as `simulate_interactions.py` writes one, with a reward."""
    history: list[dict[str, str]] = []
    for at, message in enumerate(messages):
        if message["role"] == "user":
            history.append(message)
        elif message["role"] == "assistant":
            history.append(
                message | {"input": _join_input(chat, messages[:at]), "output": message["content"]}
            )
    task = {
        "problem_description": _describe(chat, found.scenario, hidden=False),
        "ground_truth": _describe(chat, found.scenario, hidden=True),
    }
    value = {
        "task": task, "dialogue_history": history, "answer": messages[-1]["content"], "reward": reward,
        "id": found.pair.id,
    }  # fmt: skip
    return Row(found.pair.split, value, TRAJECTORIES)


def _make_critic_row(found: PreferredPair, chat: Chat) -> Row:
    """Return a row of both conversations, each after what the trained role does not see."""
    told = _TOLD.format(_describe(chat, found.scenario, hidden=True))
    sides = {
        name: told + _join_input(chat, side[:-1]) + side[-1]["content"]
        for name, side in (("chosen", found.chosen), ("rejected", found.rejected))
    }
    return Row(found.pair.split, {**sides, "id": found.pair.id}, CRITIC)


def _make_turn_row(found: TurnPair, chat: Chat) -> Row:
    """Return a row of the two turns at which a pair parts, after their common prompt."""
    before = _join_input(chat, chat.user_first(found.prompt))
    end = "" if chat.tokens is None else chat.tokens.end
    sides = {
        "chosen": before + found.chosen["content"] + end,
        "rejected": before + found.rejected["content"] + end,
    }
    return Row(found.split, {**sides, "id": found.id}, TURNS, found.whole.evidence)


def _join_input(chat: Chat, messages: list[Message]) -> str:
    """Return the text that the assistant continues: by a chat template, or plain without a tokenizer."""
    if chat.tokens is not None:
        return chat.tokens.render(messages)
    return "".join(f"{one['role'].capitalize()}: {one['content']}\n\n" for one in messages) + "Assistant: "


def _describe(chat: Chat, scenario: Scenario, *, hidden: bool) -> str:
    """Return the facts of a scenario that the trained role knows, or those hidden from it; empty if there are
    none."""
    sees = next(role.sees for role in chat.space.roles if role.name == chat.assistant)
    named = [one for one in chat.space.dimensions if (one.name not in sees) is hidden]
    return "; ".join(f"{one.words}: {scenario[one.name]}" for one in named)


FORMAT = Format(
    name="sweet",
    needs=("pairs",),
    summary="Trajectories with rewards, and pairs for the critic and the policy, as SWEET-RL takes them.",
    rows=rows,
    tables=(
        DataTable(
            {
                "task": "problem_description: what the trained role knows of the scenario; ground_truth: "
                "what it does not see",
                "dialogue_history": "messages, the user first; the assistant's have input (the text before) "
                "and output",
                "answer": "the assistant's last message",
                "reward": "1.0: chosen; 0.0: rejected",
                "id": "the pair",
            },
            TRAJECTORIES,
        ),
        DataTable(
            {
                "chosen": "the hidden information, then the chosen conversation as one text",
                "rejected": "the same with the rejected conversation",
                "id": "the pair",
            },
            CRITIC,
        ),
        DataTable(
            {
                "chosen": "the prompt that both share and the chosen next turn, as one text",
                "rejected": "the same with the rejected turn",
                "id": "the pair",
            },
            TURNS,
        ),
    ),
    use="""\
# exported with --tokenizer MODEL; the first line makes critic/train.jsonl again
python scripts/evaluate_code.py THIS_FOLDER/trajectories/train.jsonl --k 2 --ground_truth_preference_path AGAIN.jsonl
python -m openrlhf.cli.train_dpo --dataset THIS_FOLDER/critic --mean_log_prob \\
  --response_template "<|start_header_id|>assistant<|end_header_id|>" ...
python scripts/sample_best_of_n.py THIS_FOLDER/trajectories/train.jsonl SAMPLED.jsonl  # then rank_best_of_n.py
python -m openrlhf.cli.train_dpo --dataset THIS_FOLDER/turns --nll_loss_coef 0.01 ...""",
    layout=FormatLayout(level="turn"),
    card=FormatCard(
        notes=(
            (
                "SWEET-RL trains on texts that depend on the model: `--tokenizer DIR` writes them by its chat "
                "template, with its end "
                "marks, which --response_template needs. Without it, texts are `User: …` and `Assistant: …`."
            ),
            (
                "trajectories/ holds the chosen conversations, then the rejected ones in the same order, as --k "
                "2 reads them."
            ),
            "A pair that is left out for its turn alone is in trajectories/ and critic/.",
            (
                "Where the trained role sees the whole scenario, ground_truth is empty, and the critic knows no "
                "more than the policy."
            ),
        ),
        tried=(
            Tried(
                "SWEET",
                "38daf2a",
                "2026-11-28",
                "its evaluate_code.py took the trajectories and made the texts of critic; RewardDataset of its "
                "fork of OpenRLHF took those and turns, with every turn of the assistant in the loss.",
            ),
        ),
        tags=("sweet-rl", "preference"),
    ),
    Options=TokenOptions,
)
