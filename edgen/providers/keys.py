"""Keys of a backend's calls: the variables that hold them, and whether they may go to the call's host.

`edgen.providers.trust` decides about each pair of variable and host. The adapters get the result and look up
nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from edgen.config.backends import KeyRequest
from edgen.core.errors import InputError, ProviderError
from edgen.providers.base import Key
from edgen.providers.trust import (
    Allowed,
    Consents,
    NoKey,
    Refused,
    decide_trust,
    is_of_other_service,
    write_command,
)

log = logging.getLogger("edgen")


def judge_key(
    ask: KeyRequest, environ: Mapping[str, str], consents: Consents
) -> tuple[str, Allowed | NoKey | Refused] | None:
    """Return the variable (or command, see `trust`) whose key would be sent, and whether it may be sent; None
    if there is no key. A variable that plainly belongs to another service is refused even if it is not set.
    """
    if ask.command:
        command = write_command(ask.command)
        return command, decide_trust(command, ask.url, consents)
    if ask.library:
        return ask.variables[0], decide_trust(ask.variables[0], ask.url, consents)
    for name in ask.variables:
        if environ.get(name, "").strip() or is_of_other_service(name):
            decision = decide_trust(name, ask.url, consents)
            if environ.get(name, "").strip() or isinstance(decision, Refused):
                return name, decision
    return None


def assemble_key(requests: Sequence[KeyRequest], environ: Mapping[str, str], consents: Consents) -> Key:
    """Return everything that a backend may send for its requests. Raises ProviderError if a required value is
    not set, InputError if it may not be sent."""
    key = Key()
    for request in requests:
        found = judge_key(request, environ, consents)
        match found:
            case (_, Refused(sentence)):
                raise InputError(sentence)
            case (_, NoKey(hint)):
                key = key._replace(hint="; ".join(filter(None, (key.hint, hint))))
            case _ if request.command:
                key = key._replace(command=(request.command, environ))
            case _ if request.library:
                key = key._replace(library=True)
            case _ if request.header:
                key = key._replace(variables={**key.variables, **_find_value(request, environ)})
            case _:
                value = find_key(
                    request.variables, environ, service=request.service, required=request.required
                )
                key = key._replace(value=value)
    return key


def _find_value(request: KeyRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that a header names, with its value; empty if it is optional and not set."""
    (name,) = request.variables
    value = environ.get(name, "").strip()
    if not value and request.required:
        raise ProviderError(
            f"the header {request.header} for {request.service} needs {name}, which is not set: export "
            f"{name}=…"
        )
    if not (value.isascii() and value.isprintable()):
        raise ProviderError(f"{name} holds characters that no header has: set it again to the key alone.")
    return {name: value} if value else {}


def find_key(names: Sequence[str], environ: Mapping[str, str], *, service: str, required: bool) -> str | None:
    """Return the first key set in `environ` under one of `names`. An empty value counts as not set.

    Raises ProviderError if a required key is missing or invalid.
    """
    found = [(name, environ[name].strip()) for name in names if environ.get(name, "").strip()]
    if not found:
        if not required:
            return None
        if not all(map(_reads_as_name, names)):
            raise ProviderError(
                f"{service} needs an API key, and the variable that api_key_env names is not set. Its name "
                "is not "
                "shown, because it could be a key itself: api_key_env takes the name of an environment "
                "variable, as in api_key_env: MY_KEY, and the variable the key."
            )
        raise ProviderError(
            f"{service} needs an API key, and {' and '.join(names)} {'are' if len(names) > 1 else 'is'} not "
            f"set: export {names[0]}=… (or name another variable with api_key_env in the job)."
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
    """Return whether `name` can be shown: it is short, and has no long run of letters and digits unless it
    contains KEY."""
    if len(name) > 30 or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    return "KEY" in name or not re.search("[A-Za-z0-9]{16}", name)


# Headers that belong to a connection or that edgen sets.
OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)

# --- plain-text keys --------------------------------------------------------------------------

# Names of headers whose values are keys.
_KEY_NAMES = re.compile(
    r"(?i)authorization|api-?key|(^|[-_.])(auth|key|token|secret|password|passwd|credential|cookie"
    r"|signature)s?($|[-_.])"
)
# Prefixes of keys of well-known services, and texts too long and mixed to be a word.
_KEY_BEGINS = re.compile(
    r"(?i:\b(bearer|basic|token)\s+\S)|\b(sk|rk|gsk|xai|hf|nvapi|csk|ghp|eyJ|AIza|ya29)[-_.A-Za-z0-9]{12,}"
)
_MIXED = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{30,}")


def reads_as_key(text: str) -> bool:
    """Return whether a text looks like a key; such texts are never printed or stored."""
    return _KEY_BEGINS.search(text) is not None or _MIXED.search(text) is not None


def names_a_key(name: str) -> bool:
    """Return whether a header or parameter of this name holds a key."""
    return _KEY_NAMES.search(name) is not None
