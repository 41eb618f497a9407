"""Counting tokens: a model's own vocabulary, a tokenizer.json, and the error of the estimate."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers

from edgen.config import BackendConfig
from edgen.core import resources
from edgen.core.errors import UsageError
from edgen.core.values import Message
from edgen.cost.tokens import APPROXIMATE, TOO_FEW, TOO_MANY, make_counter
from edgen.planning.load import load_plan
from edgen.simulator.text import respond


def _backend(provider: str, model: str) -> BackendConfig:
    config: BackendConfig = BackendConfig.variant(provider)(model=model)
    return config


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-5.4-nano", "o200k_base"),
        ("o4-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-4", "cl100k_base"),
        ("llama-3.3-70b", None),
        ("gpt-400", None),
    ],
)
def test_a_model_is_counted_with_its_own_vocabulary(model: str, vocabulary: str | None) -> None:
    made, hint = make_counter(_backend("openai", model))
    assert (hint is None) is (vocabulary is not None)
    assert (vocabulary or "four bytes") in made.how
    assert (made is APPROXIMATE) is (vocabulary is None)


def test_tokens_are_those_that_openai_publishes() -> None:
    # OpenAI's cookbook, "How to count tokens with tiktoken": the same sentence in both vocabularies.
    text = "お誕生日おめでとう"
    assert make_counter(_backend("openai", "gpt-4o"))[0].count(text) == 8
    assert make_counter(_backend("openai", "gpt-4"))[0].count(text) == 9
    assert (
        make_counter(_backend("openai", "gpt-4o"))[0].count("<|endoftext|>") > 1
    )  # literal text, not a control token


def test_where_the_vocabulary_is_not_known_what_can_be_done_is_said() -> None:
    made, hint = make_counter(
        _backend("openai", "gpt-6-sol")
    )  # on the price list, although its vocabulary is not published
    assert made is APPROXIMATE
    assert hint is not None
    assert "the vocabulary of gpt-6-sol is unknown" in hint
    assert "tokenizer.json" in hint
    assert "gemini-2.5-flash is unknown" in (make_counter(_backend("gemini", "gemini-2.5-flash"))[1] or "")
    assert make_counter(_backend("simulator", "edgen-simulator"))[1] is None


def test_the_guess_is_within_what_it_states() -> None:
    """The measured error of each way is as `how` states, and `error` is larger."""
    exact = make_counter(_backend("openai", "gpt-4o"))[0]
    texts = [resources.find("prompts", name).read_text() for name in resources.list_shipped("prompts")]
    prompt = (resources.find_folder("prompts") / "education_dialogue.j2").read_text()
    texts += [respond((Message("user", prompt),), seed=seed).text for seed in range(20)]
    offs = {}
    for text in texts:
        messages = [Message("user", text)]
        offs[text[:60]] = APPROXIMATE.count_prompt(messages) / exact.count_prompt(messages) - 1
    for name in ("quickstart", "selfplay"):
        plan = load_plan(resources.find_folder("jobs") / f"{name}.yaml", [])
        for index in range(100):
            for use, prompt_ in plan.opening(plan.scenario(index)).items():
                offs[f"{name} {use} {index}"] = (
                    APPROXIMATE.count_prompt(prompt_) / exact.count_prompt(prompt_) - 1
                )
    outside = {name: off for name, off in offs.items() if not -TOO_FEW <= off <= TOO_MANY}
    assert outside == {}
    assert max(offs.values()) > TOO_MANY - 0.05  # no more than that is claimed
    assert APPROXIMATE.error > max(TOO_FEW, TOO_MANY)
    assert "5% too few to 27% too many" in APPROXIMATE.how


def test_a_tokenizer_json_counts(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"the": 0, "cat": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(path))
    made, _ = make_counter(_backend("openai", "my-model"), path)
    assert made.count("the cat sat") == 3
    assert made.how == "tokenizer.json"


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such tokenizer"):
        make_counter(_backend("openai", "x"), tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UsageError, match=r"not a tokenizer\.json"):
        make_counter(_backend("openai", "x"), tmp_path / "bad.json")
