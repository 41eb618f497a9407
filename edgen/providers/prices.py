"""What models cost by a provider's list: a YAML file in the provider's folder, read when it is first asked.

A list price counts only where the provider's own host is asked; a reseller or a server of one's own may cost
anything. Nothing here is looked up over the network: each price has the date on which it was read.
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
    names: tuple[str, ...]
    prompt: float
    completion: float
    date: str
    regional: float = 1.0


class _Prices(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    batch: float
    models: tuple[_Model, ...]


class _PricesError(FileError):
    what = "price list"


class PriceList:
    """The list in `file`, which holds at `host` and at its regional hosts below it."""

    def __init__(self, file: Path, host: str) -> None:
        self._file = file
        self._host = host

    @cached_property
    def prices(self) -> _Prices:
        value = read_yaml(read_text(self._file, _PricesError), str(self._file), _PricesError)
        return build(value, _Prices, str(self._file), _PricesError)

    def price(self, model: str, address: str | None) -> Price | None:
        """What a model costs, by its exact name, at an address (None: the provider's own). None where it is not
        listed, or where the host is not the provider's."""
        try:
            host = None if address is None else (urllib.parse.urlsplit(address).hostname or "").rstrip(".")
        except ValueError:  # an address that is none: the backend says so
            return None
        # Most jobs ask a simulator or a server of one's own: the file is not read for them.
        if not (host is None or host == self._host or host.endswith(f".{self._host}")):
            return None
        name = _plain(model)
        found = next((listed for listed in self.prices.models if name in listed.names), None)
        regional = host not in (None, self._host)
        return None if found is None else self._price(found, found.regional if regional else 1.0)

    def nearest(self, model: str) -> tuple[str, Price] | None:
        """The listed model whose name is most like this one, whatever the host, and its price; None if none is."""
        by_name = {name: listed for listed in self.prices.models for name in listed.names}
        close = difflib.get_close_matches(_plain(model), by_name, n=1, cutoff=0.6)
        return (close[0], self._price(by_name[close[0]], 1.0)) if close else None

    def _price(self, listed: _Model, factor: float) -> Price:
        return Price(
            prompt=round(listed.prompt * factor, 6),
            completion=round(listed.completion * factor, 6),
            batch=self.prices.batch,
            date=listed.date,
            source=self.prices.source,
        )


def _plain(model: str) -> str:
    return model.strip().removeprefix("models/")
