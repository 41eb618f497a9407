"""What models cost by their providers' lists: the data file `prices.yaml`, read.

A list price counts only where the provider's own host is asked; a reseller or a server of one's own may cost
anything. Nothing here is looked up over the network: each price has the date on which it was read.
"""

from __future__ import annotations

import difflib
import functools
import urllib.parse
from pathlib import Path

import msgspec

from edgen.errors import FileError
from edgen.loading import build, read_text, read_yaml

_FILE = Path(__file__).with_name("prices.yaml")
_OWN_HOSTS = {"openai": "api.openai.com", "gemini": "generativelanguage.googleapis.com"}
# The older way to the same service is billed alike.
_SAME_LIST = {"google-generativeai": "gemini"}


class ListPrice(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens of one model; `batch` is the share of it that a batch job costs, `date`
    when the figures were checked, `source` the page they are from."""

    model: str
    prompt: float
    completion: float
    batch: float
    date: str
    source: str


class _Model(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[str, ...]
    prompt: float
    completion: float
    date: str
    regional: float = 1.0


class _Provider(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    source: str
    batch: float
    models: tuple[_Model, ...]


class _Prices(msgspec.Struct, frozen=True):
    providers: tuple[_Provider, ...]


class _PricesError(FileError):
    what = "price list"


def list_price(kind: str, model: str, base_url: str | None) -> ListPrice | None:
    """What a model costs at the host of `base_url` (None: the provider's own), by a backend's type and the
    model's exact name. None where it is not listed, or where the host is not the provider's."""
    provider, regional = _asked(kind, base_url)
    if provider is None:
        return None
    name = _plain(model)
    found = next((listed for listed in provider.models if name in listed.names), None)
    return None if found is None else _price(provider, name, found, regional=regional)


def nearest_price(kind: str, model: str) -> ListPrice | None:
    """The price of the listed model whose name is most like this one, whatever the host; None if none is."""
    provider = _listed(kind)
    if provider is None:
        return None
    by_name = {name: listed for listed in provider.models for name in listed.names}
    close = difflib.get_close_matches(_plain(model), by_name, n=1, cutoff=0.6)
    return _price(provider, close[0], by_name[close[0]], regional=False) if close else None


def _price(provider: _Provider, name: str, listed: _Model, *, regional: bool) -> ListPrice:
    factor = listed.regional if regional else 1.0
    return ListPrice(
        model=name,
        prompt=round(listed.prompt * factor, 6),
        completion=round(listed.completion * factor, 6),
        batch=provider.batch,
        date=listed.date,
        source=provider.source,
    )


def _asked(kind: str, base_url: str | None) -> tuple[_Provider | None, bool]:
    """The list that holds at an address, and whether the host is a regional one; None where none holds."""
    try:
        host = None if base_url is None else (urllib.parse.urlsplit(base_url).hostname or "").rstrip(".")
    except ValueError:  # an address that is none: the backend says so
        return None, False
    own = _OWN_HOSTS.get(_SAME_LIST.get(kind, kind))
    # Most jobs ask a simulator or a server of one's own: the file is not read for them.
    if own is None or not (host is None or host == own or host.endswith(f".{own}")):
        return None, False
    return _listed(kind), host not in (None, own)


def _listed(kind: str) -> _Provider | None:
    kind = _SAME_LIST.get(kind, kind)
    return next((provider for provider in _prices().providers if provider.type == kind), None)


def _plain(model: str) -> str:
    return model.strip().removeprefix("models/")


@functools.cache
def _prices() -> _Prices:
    value = read_yaml(read_text(_FILE, _PricesError), str(_FILE), _PricesError)
    return build({"providers": value}, _Prices, str(_FILE), _PricesError)
