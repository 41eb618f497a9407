"""Credentials: the secret headers of a backend's calls, and the secrets in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from edgen.core.errors import CallError
from edgen.providers.base import Key
from edgen.providers.failures import Secrets, add_hint
from edgen.providers.key_command import KeyCommand, KeySource

_KEPT = 8  # secrets that are remembered: a long call may carry an old key


class Credentials:
    """Headers of every call, made from the key by `write`; None without a key.

    Await `current` before use if the key comes from `source` or a command. `secrets` are removed from
    messages and replies.
    """

    def __init__(
        self, key: Key, write: Callable[[str | None], Mapping[str, str]], source: KeySource | None = None
    ) -> None:
        self._write = write
        self._source = KeyCommand(*key.command) if key.command is not None else source
        self._others = tuple(key.variables.values())
        self._keys: Secrets = () if key.value is None else (key.value,)
        self._hint = key.hint
        self.headers = write(key.value)
        self.secrets = _sort_longest_first((*self._keys, *self._others))

    async def current(self) -> Mapping[str, str]:
        """Return the current headers. Raises CallError if a command returns no key."""
        if self._source is not None and not self._keys:
            await self._renew(None)
        return self.headers

    async def renew_headers(self, used: Mapping[str, str]) -> bool:
        """Renew the headers after a refusal of `used`. Return whether they are new. Raises CallError as
        `current` does."""
        if self._source is not None and self.headers is used:
            await self._renew(self._keys[-1])
        return self.headers is not used

    def explain(self, failure: CallError) -> CallError:
        """Return the failure, with a hint if the service wants a key and none was sent."""
        return add_hint(failure, self._hint)

    async def _renew(self, refused: str | None) -> None:
        assert self._source is not None
        key = await self._source.key_after(refused)
        if not self._keys or key != self._keys[-1]:
            self._keys = (*self._keys, key)[-_KEPT:]
            self.secrets = _sort_longest_first((*self._keys, *self._others))
            self.headers = self._write(key)


def _sort_longest_first(secrets: Iterable[str]) -> Secrets:
    """Sort secrets by length, longest first, since one may contain another."""
    return tuple(sorted(set(secrets), key=len, reverse=True))
