"""Host checks: a local server answers only requests that are meant for it.

A web page can point its own name to 127.0.0.1 (DNS rebinding) and then read a local server's answers. Its
requests still carry that name, in Host and in Origin. So the server accepts only safe names: this machine's
own, the address that it listens on, and names that its user allows. A server that listens on every address
accepts any numeric address, since no name can be redirected then.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit


class Hosts:
    """The names that a server accepts. `listens_on`: a name or an address. `option`: the server's option
    that allows a name, for messages. `allowed`: further names."""

    def __init__(self, listens_on: str, option: str, allowed: Iterable[str] = ()) -> None:
        self._option = option
        self._names = {name.lower().strip("[]").rstrip(".") for name in (listens_on, *allowed)}
        address = _parse_address(listens_on)
        self._any_address = address is not None and address.is_unspecified

    def explain_refusal(self, headers: Mapping[str, str]) -> str | None:
        """Explain why a request with these headers is refused; None if it is accepted. A request without Host
        does not come from a browser."""
        host = headers.get("Host")
        if host is not None and not self._is_answered(_read_host_name(f"//{host}")):
            return (
                f"This server does not answer to the name {_quote(host)}: a page elsewhere may have pointed "
                f"it here. Ask for 127.0.0.1 or localhost, or start it with {self._option}."
            )
        origin = headers.get("Origin")
        if origin is not None and not self._is_answered(_read_host_name(origin)):
            return (
                f"This server does not answer pages of {_quote(origin)}. Start it with {self._option} to "
                "allow those of a host."
            )
        return None

    def _is_answered(self, name: str | None) -> bool:
        if name is None:
            return False
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        address = _parse_address(name)
        return address is not None and (self._any_address or _is_loopback(address))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _read_host_name(url: str) -> str | None:
    """Return the host of a URL or a Host header, in lower case; None if there is none."""
    try:
        parts = urlsplit(url)
        name, _ = parts.hostname, parts.port  # raises for an invalid port
    except ValueError:
        return None
    return name.rstrip(".") if name else None


def _parse_address(name: str) -> _Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _is_loopback(address: _Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _quote(text: str) -> str:
    return ascii(text if len(text) <= 100 else text[:99] + "…")
