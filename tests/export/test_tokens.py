"""Errors for rows that cannot be tokenised.

With a tokenizer they are in tests/rl/test_refuel_rows.py.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import UsageError
from edgen.export.rows import LeftOut
from edgen.export.tokens import PAD, ChatTokenizer
from tests.export.folders import RUN, write
from tests.export.runs import FORMATS, SPACE


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("trl-dpo", {"tokenizer": "."}, "trl-dpo does not take --tokenizer; refuel, sweet do"),
        ("refuel", {"max_tokens": 100}, "--max-tokens needs --tokenizer"),
        ("refuel", {"tokenizer": ".", "max_tokens": 0}, "--max-tokens 0: expected a whole number, 1 or more"),
        ("refuel", {"tokenizer": "nowhere"}, "nowhere: there is no such folder"),
    ],
)
def test_a_choice_that_does_not_count_is_refused(
    name: str, how: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        write(name, RUN, tmp_path / "out", **how)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="it is installed here")
def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--tokenizer needs transformers.*Install it: pip install transformers"
    ):
        write("refuel", RUN, tmp_path / "out", tokenizer=str(tmp_path))


class Words:
    """A tokenizer of words whose template puts the role before each message.

    `merges` joins the prompt with the reply.
    """

    def __init__(self, merges: bool = False) -> None:
        self.merges = merges

    def convert_tokens_to_ids(self, token: str) -> int:
        assert token == PAD
        return 0

    def apply_chat_template(
        self, messages: list[dict[str, str]], *, add_generation_prompt: bool, **_: Any
    ) -> list[int]:
        words = " ".join(f"{one['role']} {one['content']}" for one in messages).split()
        if add_generation_prompt:
            words.append("joined" if self.merges else "assistant")
        return [len(word) for word in words]


TALK = [{"role": "user", "content": "a bb"}, {"role": "assistant", "content": "ccc dddd"}]


def test_the_reply_is_masked_and_the_rest_padded() -> None:
    assert ChatTokenizer(Words(), 8, {"name": "words"}).mask_reply(TALK) == (
        [4, 1, 2, 9, 3, 4, 0, 0],
        [0, 0, 0, 0, 1, 1, 0, 0],
    )


def test_what_cannot_be_masked_is_left_out() -> None:
    assert ChatTokenizer(Words(), 5, {"name": "words"}).mask_reply(TALK) == LeftOut("too_long")
    assert ChatTokenizer(Words(merges=True), 8, {"name": "words"}).mask_reply(TALK) == LeftOut(
        "tokens_differ"
    )


def test_the_columns_are_told_with_a_tokenizer_alone() -> None:
    refuel = FORMATS["refuel"]
    (plain,), (tokenised,) = (
        refuel.tables_of(SPACE),
        refuel.tables_of(SPACE, refuel.read({"tokenizer": "model"})),
    )
    assert [*tokenised.columns][len(plain.columns) :] == [
        "chosen_token",
        "reject_token",
        "chosen_mask",
        "reject_mask",
    ]
