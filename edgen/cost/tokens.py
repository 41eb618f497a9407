"""Token counts, by the model's own vocabulary if available, else estimated.

A counter states its method and its possible error. Libraries of the extra `tokens` are imported when a
counter is made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgen.config import BackendConfig
from edgen.config.backends import find_prices
from edgen.core.errors import UsageError
from edgen.core.extras import install_command
from edgen.core.pictures import Counted, count_picture_tokens, without_pictures
from edgen.core.text import count_utf8_bytes
from edgen.core.values import Message
from edgen.providers import find_calls

# Tokens around each message, and once before the answer. Source: OpenAI's cookbook, "How to count tokens with
# tiktoken".
_AROUND_MESSAGE = 4
_BEFORE_ANSWER = 3
_BYTES_PER_TOKEN = 4  # English, OpenAI's rule of thumb


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A counter of the tokens of texts. `how` is its method in words; `error` is the possible error of a
    prompt's count in either direction, as a share."""

    count: Callable[[str], int]
    how: str
    error: float

    def count_prompt(
        self, messages: Iterable[Message], schema: bytes | None = None, counted: Counted | None = None
    ) -> int:
        """Return the tokens of a prompt, including a chat template's around messages and the answer's schema.
        `counted`: counts a picture's tokens."""
        shown = 0 if schema is None else self.count(schema.decode())
        texts = [message.content for message in messages]
        seen = sum(count_picture_tokens(text, counted).expected for text in texts if counted is not None)
        said = sum(self.count(without_pictures(text)) + _AROUND_MESSAGE for text in texts)
        return _BEFORE_ANSWER + shown + seen + said


def make_picture_counter(backend: BackendConfig) -> Counted:
    """Return the function that counts the tokens of a picture for a backend's model."""
    return functools.partial(find_prices(backend).picture_tokens, backend.model)


def make_counter(backend: BackendConfig, tokenizer: Path | None = None) -> tuple[TokenCounter, str | None]:
    """Return the counter for a backend's model, and advice for a better one (None: no advice).

    `tokenizer` is the job's tokenizer.json. Raises UsageError if that cannot be used.
    """
    if tokenizer is not None:
        return _from_file(tokenizer), None
    if find_calls(backend).simulated:
        return APPROXIMATE, None
    if (vocabulary := find_prices(backend).vocabulary(backend.model)) is None:
        unknown = f"the vocabulary of {backend.model} is unknown, so its prompts are estimated"
        if hasattr(backend, "tokenizer"):
            unknown += "; the backend's `tokenizer:` can name a tokenizer.json to count them with"
        return APPROXIMATE, unknown
    try:
        import bpe_openai
    except ImportError:
        return APPROXIMATE, f"prompts are counted exactly after `{install_command('tokens')}`"
    encoding: Any = bpe_openai.get_encoding(vocabulary)
    # Only the service's tokens around messages are uncertain.
    return TokenCounter(
        lambda text: len(encoding.encode_ordinary(text)), f"{vocabulary}, its own vocabulary", 0.03
    ), None


def _from_file(path: Path) -> TokenCounter:
    try:
        import tokenizers
    except ImportError:
        raise UsageError(
            f"the job names a tokenizer ({path}), and its reader is not installed: "
            f"`{install_command('tokens')}`."
        ) from None
    if not path.is_file():
        raise UsageError(f"{path}: there is no such tokenizer; the job's backend names it.")
    try:
        made = tokenizers.Tokenizer.from_file(str(path))
    except Exception as problem:  # noqa: BLE001 - the library raises bare Exception for every error
        raise UsageError(
            f"{path}: this is not a tokenizer.json ({' '.join(str(problem).split())[:200]})."
        ) from None
    # Chat templates differ: with a short prompt, their tokens matter.
    return TokenCounter(lambda text: len(made.encode(text, add_special_tokens=False).ids), path.name, 0.05)


def _guess(text: str) -> int:
    return -(-count_utf8_bytes(text) // _BYTES_PER_TOKEN)


# Measured against o200k_base on the prompts of the shipped jobs, the templates and simulated lessons, all
# English: see tests/test_tokens.py. Short sentences of common words, as in `education_dialogue`, are
# overestimated most.
TOO_FEW, TOO_MANY = 0.05, 0.27
APPROXIMATE = TokenCounter(
    _guess,
    f"one token for four bytes, as in English; measured {TOO_FEW:.0%} too few to {TOO_MANY:.0%} too many",
    0.3,
)
