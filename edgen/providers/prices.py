"""List prices of a provider: a YAML file in its folder, read on first use.

A list price applies only to the provider's own host, since a reseller or a private server may charge any
price. Nothing is looked up over the network. Each price has the date on which it was read.
"""

from __future__ import annotations

import difflib
import urllib.parse
from functools import cached_property
from pathlib import Path

import msgspec

from edgen.config.backends import Price
from edgen.core.errors import FileError
from edgen.core.yaml_values import build, read_text, read_yaml


class _Model(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of a model, in US dollars per million tokens."""

    names: tuple[str, ...]  # names of the model and its versions
    prompt: float  # price of prompts
    completion: float  # price of answers
    date: str  # date of the prices
    regional: float = 1.0  # factor at regional addresses
    cache_read: float | None = None  # share of the prompt's price; None: the list's default
    cache_write: float | None = None  # share of the prompt's price; None: the list's default


class _Prices(msgspec.Struct, frozen=True, kw_only=True):
    """A service's price list."""

    source: str  # source of the prices
    batch: float  # share of the price that a batch pays
    batch_cache: float | None = None  # the same for cached tokens; None: as `batch`
    cache_read: float | None = None  # default for models without a share of their own
    cache_write: float | None = None  # default for models without a share of their own
    cache_write_long: float | None = None  # for entries with a longer lifetime
    models: tuple[_Model, ...]  # the models with their prices


class _PricesError(FileError):
    what = "price list"


class PriceList:
    """The list in `file`, valid for `host` and its regional subdomains."""

    def __init__(self, file: Path, host: str) -> None:
        self._file = file
        self._host = host

    @cached_property
    def prices(self) -> _Prices:
        value = read_yaml(read_text(self._file, _PricesError), str(self._file), _PricesError)
        return build(value, _Prices, str(self._file), _PricesError)

    def price(self, model: str, address: str | None) -> Price | None:
        """Return the price of a model, by its exact name, at an address (None: the provider's own). None if
        it is not listed or the host is not the provider's."""
        try:
            host = None if address is None else (urllib.parse.urlsplit(address).hostname or "").rstrip(".")
        except ValueError:  # the backend reports the invalid address
            return None
        # Most jobs use a simulator or a private server, so the file is read only now.
        if not (host is None or host == self._host or host.endswith(f".{self._host}")):
            return None
        name = _strip_model_prefix(model)
        found = next((listed for listed in self.prices.models if name in listed.names), None)
        regional = host not in (None, self._host)
        return None if found is None else self._make_price(found, found.regional if regional else 1.0)

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """Return the listed model with the most similar name, on any host, and its price; None if none is
        similar."""
        by_name = {name: listed for listed in self.prices.models for name in listed.names}
        close = difflib.get_close_matches(_strip_model_prefix(model), by_name, n=1, cutoff=0.6)
        return (close[0], self._make_price(by_name[close[0]], 1.0)) if close else None

    def apply_long_cache_write(self, price: Price) -> Price:
        """Return a price of this list with the rate of cache writes with a longer lifetime."""
        share = self.prices.cache_write_long
        return msgspec.structs.replace(price, cache_write=_compute_share(price.prompt, share))

    def _make_price(self, listed: _Model, factor: float) -> Price:
        prompt = listed.prompt * factor
        return Price(
            prompt=round(prompt, 6),
            completion=round(listed.completion * factor, 6),
            cache_read=_compute_share(prompt, _choose_rate(listed.cache_read, self.prices.cache_read)),
            cache_write=_compute_share(prompt, _choose_rate(listed.cache_write, self.prices.cache_write)),
            batch=self.prices.batch,
            batch_cache=self.prices.batch_cache,
            date=listed.date,
            source=self.prices.source,
        )


def _choose_rate(own: float | None, others: float | None) -> float | None:
    return others if own is None else own


def _compute_share(prompt: float, share: float | None) -> float | None:
    return None if share is None else round(prompt * share, 6)


def _strip_model_prefix(model: str) -> str:
    return model.strip().removeprefix("models/")
