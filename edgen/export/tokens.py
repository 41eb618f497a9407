"""Replies as tokens and masks, by the user's tokenizer, for trainers that read these.

Method: `setting_one/tokenize_mask.py` of github.com/ZhaolinGao/REFUEL: the messages up to a reply through the
chat template, padded at the right; a mask that is 1 only on the reply, starting after its prompt.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

from edgen.core.errors import UsageError
from edgen.export.rows import LeftOut

MOST = 2048  # default tokens of a row, as in REFUEL's task.total_length
PAD = "[PAD]"  # padding token that REFUEL's trainer adds to any tokenizer


class ChatTokenizer:
    """A tokenizer with its chat template, and the padded length of every row. `facts` are for a card."""

    def __init__(self, tokenizer: Any, most: int, facts: dict[str, Any]) -> None:
        self._tokenizer = tokenizer
        self._pad: int = tokenizer.convert_tokens_to_ids(PAD)
        self._name: str = facts["name"]
        self.most = most
        self.facts = {**facts, "padded_to": most, "pad_id": self._pad}

    def mask_reply(self, messages: list[dict[str, str]]) -> tuple[list[int], list[int]] | LeftOut:
        """Return tokens of the messages and the mask of the last message, both of the length `most`. Return a
        LeftOut if the messages are longer, or if the context is tokenised differently before the reply."""
        before, whole = self._encode(messages[:-1], prompt=True), self._encode(messages, prompt=False)
        if len(whole) > self.most:
            return LeftOut("too_long")
        if whole[: len(before)] != before or len(whole) == len(before):
            return LeftOut("tokens_differ")
        padding = self.most - len(whole)
        mask = [0] * len(before) + [1] * (len(whole) - len(before)) + [0] * padding
        return whole + [self._pad] * padding, mask

    @property
    def end(self) -> str:
        """The text of the token that ends an answer; empty if the tokenizer has none."""
        return str(self._tokenizer.eos_token or "")

    def fits(self, messages: list[dict[str, str]]) -> bool:
        """Return whether messages are at most `most` tokens. Raises UsageError as `render` does."""
        return len(self._encode(messages, prompt=False)) <= self.most

    def render(self, messages: list[dict[str, str]]) -> str:
        """Return messages as the text that the assistant continues. Raises UsageError if the chat template
        rejects them."""
        return str(self._apply(messages, add_generation_prompt=True, tokenize=False))

    def _encode(self, messages: list[dict[str, str]], *, prompt: bool) -> list[int]:
        """Tokenise the messages. Raises UsageError if the chat template rejects them."""
        tokens = self._apply(messages, add_generation_prompt=prompt, tokenize=True, return_dict=False)
        return [*map(int, tokens)]

    def _apply(self, messages: list[dict[str, str]], **options: bool) -> Any:
        try:
            return self._tokenizer.apply_chat_template(messages, **options)
        except Exception as problem:  # noqa: BLE001 - a template may raise anything
            said = str(problem) or type(problem).__name__
            raise UsageError(
                f"--tokenizer {self._name}: its chat template does not accept such conversations ({said})."
            ) from None


def load_tokenizer(folder: Path, most: int | None) -> ChatTokenizer:
    """Load the tokenizer in a folder, for at most `most` tokens.

    Only files of the folder are read, and none of its code is run. Raises UsageError if transformers is not
    installed, or the folder has no tokenizer with a chat template.
    """
    if not folder.is_dir():
        raise UsageError(
            f"--tokenizer {folder}: there is no such folder; name one that a model's tokenizer was saved to."
        )
    tokenizer = _load(folder)
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            f"--tokenizer {folder}: the tokenizer has no chat template, so messages cannot be tokenised."
        )
    tokenizer.add_special_tokens({"pad_token": PAD})
    file = folder / "tokenizer.json"
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    facts = {"name": folder.resolve().name, "sha256": digest}
    return ChatTokenizer(tokenizer, most or MOST, facts)


def _load(folder: Path) -> Any:
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as missing:
        raise UsageError(
            f"--tokenizer needs transformers, which cannot be used here: {missing}. Install it: pip install "
            "transformers"
        ) from None
    try:
        return transformers.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, padding_side="right"
        )
    except Exception as problem:  # noqa: BLE001 - the errors depend on the files
        said = str(problem).splitlines() or [type(problem).__name__]
        raise UsageError(
            f"--tokenizer {folder}: transformers cannot load a tokenizer from it ({said[0]})."
        ) from None
