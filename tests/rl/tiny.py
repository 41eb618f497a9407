"""A tiny random Llama and tokenizers for it, made on the spot: nothing is downloaded.

PLAIN takes any list of messages. STRICT refuses, as several published templates do, a conversation that does
not begin with the user (after at most one system message), or whose sides do not take turns. Both mark the
assistant's text, so that TRL can put the loss there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

torch.set_num_threads(2)

PAD, BEGIN, END = SPECIAL = ("<pad>", "<|begin|>", "<|end|>")

_TURNS = """\
<|begin|>{{ m['role'] }}
{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|end|>{% endgeneration %}\
{% else %}{{ m['content'] }}<|end|>{% endif %}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<|begin|>assistant
{% endif %}"""

PLAIN = "{% for m in messages %}" + _TURNS

STRICT = (
    """\
{% if messages[0]['role'] == 'system' %}<|begin|>system
{{ messages[0]['content'] }}<|end|>{{ '\\n' }}{% set turns = messages[1:] %}{% else %}{% set turns = messages %}{% endif %}\
{% for m in turns %}\
{% if m['role'] not in ('user', 'assistant') or (m['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}\
{% if not m['content'] or m['content'] != m['content'] | trim %}\
{{ raise_exception('A message is empty, or has white space around it') }}{% endif %}"""
    + _TURNS
)

TEMPLATES = {"plain": PLAIN, "strict": STRICT}


def tokenizer(texts: Sequence[str], template: str) -> PreTrainedTokenizerBase:
    """Return a byte-level BPE, trained on the texts so that conversations stay a few hundred tokens long."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(texts, trainer)
    result = PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token=PAD, bos_token=BEGIN, eos_token=END, model_max_length=8192
    )
    result.chat_template = template
    return result


def _config(tokens: PreTrainedTokenizerBase) -> LlamaConfig:
    torch.manual_seed(0)
    return LlamaConfig(
        vocab_size=len(tokens), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=8192, tie_word_embeddings=False,
        pad_token_id=tokens.pad_token_id, bos_token_id=tokens.bos_token_id, eos_token_id=tokens.eos_token_id,
    )  # fmt: skip


def language_model(tokens: PreTrainedTokenizerBase, folder: Path) -> PreTrainedModel:
    return _from_disk(LlamaForCausalLM(_config(tokens)), folder)


def reward_model(tokens: PreTrainedTokenizerBase, folder: Path) -> PreTrainedModel:
    config = _config(tokens)
    config.num_labels = 1
    return _from_disk(LlamaForSequenceClassification(config), folder)


def _from_disk(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model loaded from disk: trainers with a reference model read it again from its source."""
    model.save_pretrained(folder / "model")
    return type(model).from_pretrained(folder / "model")
