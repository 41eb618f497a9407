"""Settings of backends at an address, which may have several servers."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import msgspec

from edgen.config.backends import BackendConfig, Url

_NODE = "node-local"  # used instead of a host: the node of the process that makes a call
_NODE_VARIABLE = "EDGEN_NODE_LOCAL"  # HOST or HOST:PORT of the node's server, if it is not 127.0.0.1


class ServedConfig(BackendConfig, frozen=True, kw_only=True):
    """Settings of a backend at an address: one server, or several servers of the same model."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"known_as", "more_base_urls"}
    """Keys that shape no answer."""
    LISTS: ClassVar[frozenset[str]] = frozenset({"base_url"})
    """Keys whose value may also be a list of such values."""
    PATH: ClassVar[str] = ""  # path of the API at the server that `node-local` means

    base_url: Url | None = None
    """Address without the path of a call (/chat/completions). A list: servers that share the calls.
    `node-local`: each node's own server, port 8000."""
    more_base_urls: tuple[Url, ...] = ()
    """Further servers."""
    known_as: Url | None = None
    """The ledger's one address for all servers; null: the first server's, or the resumed run's."""

    @classmethod
    def given(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return a job's values with a list in `base_url` split into its first address and the others, and
        with `node-local` as an address."""
        urls, more = values.get("base_url"), values.get("more_base_urls", [])
        node = f"http://{_NODE}:8000{cls.PATH}"
        if urls == _NODE:
            return values | {"base_url": node}
        if urls == []:
            return values | {"base_url": ""}  # reported as a missing address
        if not isinstance(urls, list) or not urls or not isinstance(more, list):
            return values
        first, *others = (node if url == _NODE else url for url in urls)
        return values | {"base_url": first, "more_base_urls": [*others, *more]}

    @classmethod
    def find_written(cls, place: str, values: dict[str, Any]) -> str:
        """Return the place in a job's `values` of what `given` puts at `place`, such as base_url[1]."""
        urls = values.get("base_url")
        if not isinstance(urls, list) or not urls:
            return place
        if place == "base_url":
            return "base_url[0]"
        key, _, number = place.rstrip("]").partition("[")
        if key != "more_base_urls" or not number.isdecimal():
            return place
        index = int(number) + 1
        return f"base_url[{index}]" if index < len(urls) else f"{key}[{index - len(urls)}]"

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all servers; empty for the service's own address."""
        return tuple(filter(None, (self.base_url, *self.more_base_urls)))

    @property
    def node_local(self) -> bool:
        """True if each process asks the server of its own node."""
        return self.base_url is not None and _is_node(self.base_url)

    @property
    def each_server(self) -> list[Self]:
        """The settings of each server; all have one identity. A node's own server has its address on this
        node."""
        if not self.more_base_urls and not self.node_local:
            return [self]
        known = self.known_as or self.base_url
        alone = msgspec.structs.replace(self, more_base_urls=(), known_as=known)
        if self.node_local:
            return [msgspec.structs.replace(alone, base_url=_find_node_address(str(self.base_url)))]
        return [alone, *(msgspec.structs.replace(alone, base_url=url) for url in self.more_base_urls)]

    @property
    def server_problem(self) -> str | None:
        """The problem of its list of servers; None if there is none."""
        if len({*map(_identify, self.urls)}) < len(self.urls):
            return "a server is listed twice"
        if self.more_base_urls and any(map(_is_node, self.urls)):
            return f"{_NODE} means a server on every node; it does not combine with other servers"
        return None


def _identify(url: str) -> tuple[str, str, str]:
    """Return scheme, host with port, and path: equal for two spellings of one address."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.casefold(), parts.path.rstrip("/")


def _is_node(url: str) -> bool:
    return urlsplit(url).hostname == _NODE


def _find_node_address(url: str) -> str:
    """Return the address at which a process of this node finds the node's server."""
    asked = urlsplit(url)
    host, _, port = (os.environ.get(_NODE_VARIABLE) or "127.0.0.1").partition(":")
    port = port or str(asked.port or "")
    return asked._replace(netloc=f"{host}:{port}" if port else host).geturl()
