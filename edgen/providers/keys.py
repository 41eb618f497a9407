"""The key that goes with a backend's calls: which variable holds it, and whether it may go where the calls go.

`edgen.providers.trust` decides about the pair of variable and host; the adapters are handed what came of that and look
up nothing themselves.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from edgen.core.errors import InputError, ProviderError
from edgen.providers.base import Key, KeyRequest
from edgen.providers.trust import Allowed, Consents, NoKey, Refused, decide_trust, is_anothers

log = logging.getLogger("edgen")


def judge_key(
    ask: KeyRequest, environ: Mapping[str, str], consents: Consents
) -> tuple[str, Allowed | NoKey | Refused] | None:
    """The variable whose key would go there, and whether it may; None where there is no key. What is plainly
    another service's secret is refused whether it is set or not."""
    for name in ask.variables:
        if environ.get(name, "").strip() or is_anothers(name):
            decision = decide_trust(name, ask.url, consents)
            if environ.get(name, "").strip() or isinstance(decision, Refused):
                return name, decision
    return None


def key_of(request: KeyRequest, environ: Mapping[str, str], consents: Consents) -> Key:
    """The key for a backend's calls. Raises ProviderError where one is needed and not set, InputError where it may
    not be sent."""
    found = judge_key(request, environ, consents)
    if found is not None:
        match found[1]:
            case Refused(sentence):
                raise InputError(sentence)
            case NoKey(hint):
                return Key(None, hint)
    return Key(find_key(request.variables, environ, service=request.service, required=request.required))


def find_key(names: Sequence[str], environ: Mapping[str, str], *, service: str, required: bool) -> str | None:
    """The first key that is set in `environ` under one of `names`; empty counts as not set.

    Raises ProviderError if there is none and one is required, or if it cannot be a key.
    """
    found = [(name, environ[name].strip()) for name in names if environ.get(name, "").strip()]
    if not found:
        if not required:
            return None
        if not all(map(_reads_as_name, names)):
            raise ProviderError(
                f"{service} needs an API key, and the variable that api_key_env names is not set. Its name is not "
                "shown, because it could be a key itself: api_key_env takes the name of an environment variable, "
                "as in api_key_env: MY_KEY, and the variable the key."
            )
        raise ProviderError(
            f"{service} needs an API key, and {' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set: "
            f"export {names[0]}=… (or name another variable with api_key_env in the job)."
        )
    name, key = found[0]
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ProviderError(
            f"{name} holds characters that no API key has (a line break, a space, a quotation mark of a text "
            "processor?): set it again to the key alone."
        )
    others = [other for other, value in found[1:] if value != key]
    if others:
        log.warning("%s and %s are both set; %s is used.", name, " and ".join(others), name)
    return key


def _reads_as_name(name: str) -> bool:
    """Whether `name` can be shown: short, no long run of letters and digits but for one with KEY in it."""
    if len(name) > 30 or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    return "KEY" in name or not re.search("[A-Za-z0-9]{16}", name)
