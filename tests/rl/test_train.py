"""TRL's trainers take the exported rows unchanged: real steps, without any warning about the data.

Each trainer's own tokenised rows are compared with the chat template's text of the exported ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import PreTrainedTokenizerBase
from trl import (
    DPOConfig,
    DPOTrainer,
    GRPOConfig,
    GRPOTrainer,
    KTOConfig,
    KTOTrainer,
    RewardConfig,
    RewardTrainer,
    SFTConfig,
    SFTTrainer,
)

from tests.rl import tiny
from tests.rl.pipeline import Exports, Message, Tokenizers, joined
from tests.rl.train import settings, take_steps
from tests.rl.watch import complaints

pytestmark = pytest.mark.integration

templates = pytest.mark.parametrize("template", tiny.TEMPLATES.values(), ids=tiny.TEMPLATES.keys())
openings = pytest.mark.parametrize("opening", ["user", "both"])


def ids(tokens: PreTrainedTokenizerBase, messages: list[Message], *, prompt: bool = False) -> list[int]:
    """Return the template's tokens of these messages, by transformers alone."""
    return tokens.apply_chat_template(messages, add_generation_prompt=prompt, return_dict=False)


def starts_with(whole: list[int], part: list[int]) -> bool:
    return whole[: len(part)] == part


@openings
@templates
def test_dpo(exports: Exports, tokenizers: Tokenizers, template: str, opening: str, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(template)
    rows = exports.train("trl-dpo", opening=opening)
    with complaints() as said:
        trainer = DPOTrainer(
            model=tiny.language_model(tokens, tmp_path), args=DPOConfig(**settings(tmp_path)),
            train_dataset=rows, processing_class=tokens,
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    assert len(trainer.train_dataset) == len(rows)
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        prompt = ids(tokens, row["prompt"], prompt=True)
        assert seen["prompt_ids"] == prompt
        assert seen["chosen_ids"] != seen["rejected_ids"]
        for side in ("chosen", "rejected"):
            whole = ids(tokens, row["prompt"] + row[side])
            assert starts_with(whole, prompt)
            assert seen["prompt_ids"] + seen[f"{side}_ids"] == whole
            assert tokens.decode(seen[f"{side}_ids"]) == f"{row[side][0]['content']}{tiny.END}\n"


@templates
def test_reward(exports: Exports, tokenizers: Tokenizers, template: str, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(template)
    rows = exports.train("trl-conversation")
    with complaints() as said:
        trainer = RewardTrainer(
            model=tiny.reward_model(tokens, tmp_path), args=RewardConfig(**settings(tmp_path)),
            train_dataset=rows, processing_class=tokens,
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    assert len(trainer.train_dataset) == len(rows)
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        assert seen["chosen_ids"] != seen["rejected_ids"]
        for side in ("chosen", "rejected"):
            assert seen[f"{side}_ids"] == ids(tokens, row[side])


@openings
@templates
def test_kto(exports: Exports, tokenizers: Tokenizers, template: str, opening: str, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(template)
    rows = exports.train("trl-kto", opening=opening).shuffle(seed=0)  # as the card says
    good = sum(rows["label"])
    bad = len(rows) - good
    assert good > 0
    assert bad > 0
    # TRL asks users with more rows of one kind to weigh the other: good * weight : bad from 1 to 4/3.
    with complaints() as said:
        told = KTOConfig(**settings(tmp_path), desirable_weight=round(1.15 * bad / good, 2))
        trainer = KTOTrainer(
            model=tiny.language_model(tokens, tmp_path), args=told,
            train_dataset=rows, processing_class=tokens,
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    assert len(trainer.train_dataset) == len(rows)
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        prompt = ids(tokens, row["prompt"], prompt=True)
        assert seen["label"] == row["label"]
        assert seen["prompt_ids"] == prompt
        assert seen["prompt_ids"] + seen["completion_ids"] == ids(tokens, row["prompt"] + row["completion"])


def trained_texts(tokens: PreTrainedTokenizerBase, labels: list[int]) -> list[str]:
    """Return the texts that the loss falls on, in order: runs of labels that are not masked."""
    texts: list[str] = []
    run: list[int] = []
    for label in [*labels, -100]:
        if label != -100:
            run.append(label)
        elif run:
            texts.append(tokens.decode(run))
            run = []
    return texts


@pytest.mark.parametrize(("side", "speaker"), [("teacher", "Teacher"), ("student", "Student")])
@templates
def test_sft_puts_the_loss_on_one_side(
    exports: Exports, tokenizers: Tokenizers, template: str, side: str, speaker: str, tmp_path: Path
) -> None:
    tokens = tokenizers.with_template(template)
    rows = exports.train("trl-sft", train=side)
    with complaints() as said:
        trainer = SFTTrainer(
            model=tiny.language_model(tokens, tmp_path), train_dataset=rows, processing_class=tokens,
            args=SFTConfig(**settings(tmp_path), assistant_only_loss=True),
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    lessons = {
        name: [text + tiny.END for role, text in joined(turns) if role == speaker]
        for name, turns in exports.lessons().items()
    }
    assert len(trainer.train_dataset) == len(rows)
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        assert trained_texts(tokens, seen["labels"]) == lessons[row["id"]]
    batch: dict[str, Any] = next(iter(trainer.get_train_dataloader()))
    for labels in batch["labels"].tolist():  # the input of a real step
        assert trained_texts(tokens, labels) in lessons.values()


@templates
def test_sft_learns_a_response_alone(
    exports: Exports, tokenizers: Tokenizers, template: str, tmp_path: Path
) -> None:
    tokens = tokenizers.with_template(template)
    rows = exports.train("sft")
    with complaints() as said:
        trainer = SFTTrainer(
            model=tiny.language_model(tokens, tmp_path), train_dataset=rows, processing_class=tokens,
            args=SFTConfig(**settings(tmp_path)),
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    assert len(trainer.train_dataset) == len(rows)
    answers = {f"{row['completion'][0]['content']}{tiny.END}\n" for row in rows}
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        prompt = ids(tokens, row["prompt"], prompt=True)
        assert seen["input_ids"] == ids(tokens, row["prompt"] + row["completion"])
        assert starts_with(seen["input_ids"], prompt)
        assert seen["labels"] == [-100] * len(prompt) + seen["input_ids"][len(prompt) :]
    batch: dict[str, Any] = next(iter(trainer.get_train_dataloader()))
    for labels in batch["labels"].tolist():  # the input of a real step
        assert tokens.decode([label for label in labels if label != -100]) in answers


def test_grpo_answers_the_prompts(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    """An online method samples its own answers to prompts, here rewarded for their length."""
    tokens = tokenizers.with_template(tiny.STRICT)
    asked: list[list[Message]] = []

    def reward(prompts: list[list[Message]], completion_ids: list[list[int]], **_: Any) -> list[float]:
        asked.extend(prompts)
        return [float(len(answer)) + index % 2 for index, answer in enumerate(completion_ids)]

    rows = exports.train("trl-prompts")
    told = {**settings(tmp_path), "num_generations": 2, "max_completion_length": 8}
    del told["max_length"]
    with complaints() as said:
        trainer = GRPOTrainer(
            model=tiny.language_model(tokens, tmp_path), reward_funcs=reward, args=GRPOConfig(**told),
            train_dataset=rows, processing_class=tokens,
        )  # fmt: skip
        take_steps(trainer)
    assert said == []
    assert asked
    assert all(prompt in list(rows["prompt"]) for prompt in asked)


def test_a_prompt_that_is_no_prefix_is_complained_about(
    exports: Exports, tokenizers: Tokenizers, tmp_path: Path
) -> None:
    """The tests above depend on TRL's warnings: here the template is wrong, and the warning is caught."""
    tokens = tiny.tokenizer(tokenizers.texts, "{{ messages | length }} messages\n" + tiny.PLAIN)
    rows: Dataset = exports.train("trl-dpo").select(range(4))
    with complaints() as said:
        DPOTrainer(
            model=tiny.language_model(tokens, tmp_path), args=DPOConfig(**settings(tmp_path)),
            train_dataset=rows, processing_class=tokens,
        )  # fmt: skip
    assert any("not a prefix" in line for line in said), said
