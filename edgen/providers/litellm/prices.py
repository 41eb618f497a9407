"""Prices from the list of the installed litellm, read without importing it."""

from __future__ import annotations

import functools
import importlib.util
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from edgen.plugin.providers import Price

_LIST = "model_prices_and_context_window_backup.json"
_MILLION = 1_000_000


def find_price(model: str) -> Price | None:
    """Return the price of a model at its own service; None if litellm has no price by tokens. Its zeros are
    missing prices."""
    entry = _load_entries().get(model) or _load_entries().get(model.partition("/")[2])
    if entry is None or entry.get("litellm_provider") != model.partition("/")[0]:
        return None
    prompt, completion, thought = (_read_price(entry, name) for name in _PER_TOKEN)
    if not prompt or not completion or any(entry.get(name) for name in _PER_CALL):
        return None
    source = f"the price list of litellm {metadata.version('litellm')}"
    return Price(prompt=prompt, completion=max(completion, thought), source=source)


_PER_TOKEN = ("input_cost_per_token", "output_cost_per_token", "output_cost_per_reasoning_token")
_PER_CALL = (
    "input_cost_per_request",
    "output_cost_per_request",
    "input_cost_per_second",
    "output_cost_per_second",
)


def _read_price(entry: dict[str, Any], name: str) -> float:
    """Return US dollars per million tokens; 0 if the list has no number."""
    value = entry.get(name)
    return round(value * _MILLION, 6) if isinstance(value, int | float) else 0.0


@functools.cache
def _load_entries() -> dict[str, dict[str, Any]]:
    """Return the entries by model; empty if litellm is not installed."""
    found = importlib.util.find_spec("litellm")
    if found is None or not found.submodule_search_locations:
        return {}
    try:
        text = Path(found.submodule_search_locations[0], _LIST).read_bytes()
        return msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (OSError, msgspec.DecodeError):  # another release may keep it elsewhere: the job can state it
        return {}
