"""Headers for services with OpenAI's APIs, and problems of the job's headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from edgen.plugin.errors import Problem
from edgen.plugin.providers import OWN_HEADERS, names_a_key, reads_as_key
from edgen.providers.openai.config import ServiceConfig

_KEY_HEADERS = {"bearer": "Authorization", "api-key": "api-key"}
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # RFC 9110, 5.6.2: a token
_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]{0,63})\}")


def write_headers(config: ServiceConfig, key: str | None, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a call. A header whose variable has no value is left out."""
    written = {
        name: _VARIABLE.sub(lambda found: variables[found[1]], value)
        for name, value in config.headers.items()
        if all(named in variables for named in _VARIABLE.findall(value))
    }
    if key is not None and config.auth != "none":
        written[_KEY_HEADERS[config.auth]] = f"Bearer {key}" if config.auth == "bearer" else key
    return written


def list_header_variables(config: ServiceConfig) -> Iterator[tuple[str, str]]:
    """Yield every header that names a variable, and the variable."""
    for name, value in config.headers.items():
        for variable in _VARIABLE.findall(value):
            yield name, variable


# --- problems --------------------------------------------------------------------------------


def find_service_problems(config: ServiceConfig) -> list[Problem]:
    """Return headers that cannot be sent and values that may be keys, without repeating them."""
    return [*_find_header_problems(config), *_find_query_problems(config), *_find_command_problems(config)]


def _find_header_problems(config: ServiceConfig) -> Iterator[Problem]:
    taken = {name.lower() for name in (_KEY_HEADERS.get(config.auth),) if name}
    seen: set[str] = set()
    for name, value in config.headers.items():
        if (wrong := _find_header_problem(name, value, taken, seen)) is not None:
            yield Problem(f"headers.{name[:100]}", wrong)
        seen.add(name.lower())


def _find_header_problem(name: str, value: str, taken: set[str], seen: set[str]) -> str | None:
    """Return the problem of one header; None if it has none."""
    lower = name.lower()
    if not _HEADER.fullmatch(name):
        return "this is not a valid header name: letters, digits and hyphens"
    if lower in OWN_HEADERS:
        return "edgen writes this header itself; remove it"
    if lower in taken:
        return "the service's key goes here; `auth: none` sends none, and leaves the header to you"
    if lower in seen:
        return "this header is here twice"
    literal = _VARIABLE.sub("", value)
    if "${" in literal:
        return "`${NAME}` takes the name of an environment variable, in upper case"
    if not (literal.isascii() and literal.isprintable()):
        return "a header holds printable ASCII characters alone"
    if reads_as_key(literal) or (names_a_key(name) and literal == value):
        before = "Bearer " if literal.lower().startswith("bearer") else ""
        return (
            f"a key stands here in clear text; export it, and name its variable: {name}: {before}${{MY_KEY}}"
        )
    return None


def _find_query_problems(config: ServiceConfig) -> Iterator[Problem]:
    for name, value in config.query.items():
        if "${" in value or names_a_key(name) or reads_as_key(value):
            yield Problem(
                f"query.{name[:100]}", "no key goes into an address, which others log; send it in a header"
            )


def _find_command_problems(config: ServiceConfig) -> Iterator[Problem]:
    if config.key_command and config.auth == "none":
        yield Problem("key_command", "`auth: none` sends no key; say how it is sent: bearer or api-key")
    if any(map(reads_as_key, config.key_command)):
        yield Problem(
            "key_command", "a key stands here in clear text; the command is to print it from elsewhere"
        )
