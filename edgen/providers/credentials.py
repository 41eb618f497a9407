"""What says who calls: the headers of a backend's calls that nobody else may see, and the secrets in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from edgen.core.errors import CallError
from edgen.providers.base import Key
from edgen.providers.failures import Secrets, add_hint
from edgen.providers.key_command import KeyCommand, KeySource

_KEPT = 8  # secrets: a call that is out for long may carry a key from some time ago


class Credentials:
    """The headers of every call, made by `write` of the key; None where there is none.

    A key that `source` has to get, or a command, is there once `current` was awaited. `secrets` are all that messages
    and replies are cleaned of.
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
        self.secrets = _longest_first((*self._keys, *self._others))

    async def current(self) -> Mapping[str, str]:
        """The headers as they are now. Raises CallError where a command gives no key."""
        if self._source is not None and not self._keys:
            await self._renew(None)
        return self.headers

    async def renewed(self, used: Mapping[str, str]) -> bool:
        """After a refusal of `used`: whether there are other headers now. Raises CallError as `current` does."""
        if self._source is not None and self.headers is used:
            await self._renew(self._keys[-1])
        return self.headers is not used

    def explain(self, failure: CallError) -> CallError:
        """The failure, with why no key was sent where the service wants one."""
        return add_hint(failure, self._hint)

    async def _renew(self, refused: str | None) -> None:
        assert self._source is not None
        key = await self._source.key_after(refused)
        if not self._keys or key != self._keys[-1]:
            self._keys = (*self._keys, key)[-_KEPT:]
            self.secrets = _longest_first((*self._keys, *self._others))
            self.headers = self._write(key)


def _longest_first(secrets: Iterable[str]) -> Secrets:
    """In the order in which they are taken out: one may be a part of another."""
    return tuple(sorted(set(secrets), key=len, reverse=True))
