"""Rules for where an API key may go. `decide_trust` applies to every model call.

A provider's key goes to that provider's own https hosts, listed in `hosts.yaml`. Any other pair of variable
and host needs the user's consent. A job cannot give it: it comes from the command line, the environment or
the user's own file. Calls to a server on this machine carry no key without consent. Over plain http, no key
leaves this machine. Variables that plainly belong to other services are sent nowhere unless the user typed
them.

A command that prints a key is a program run by the job, so it needs consent to exactly that command. In place
of a variable's name, a command is written after a "!", quoted as in a shell.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edgen.core.errors import FileError, UsageError
from edgen.core.text import compile_later
from edgen.core.yaml_values import build, read_text, read_yaml

VARIABLE = "EDGEN_TRUSTED_HOSTS"
_TABLE = Path(__file__).with_name("hosts.yaml")
_LABEL = compile_later(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_ADDRESS = compile_later(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\%]+)(?::(\d{1,5}))?(?:/[^?#]*)?")
_REGION = compile_later(r"[a-z]{2,3}(-[a-z]{2,12}){1,2}-\d{1,2}")  # Amazon's regions, such as us-west-2
_NAME = compile_later(r"[A-Z_][A-Z0-9_]{0,63}")
# Usual names of variables with other services' secrets.
_ANOTHERS = compile_later(
    r"AWS_(?!BEARER_TOKEN_BEDROCK\Z).*|.*_SECRET_ACCESS_KEY|.*PRIVATE_KEY.*|.*PASSWORD.*|.*PASSWD.*"
    r"|.*CLIENT_SECRET.*|.*DATABASE_URL|.*_DSN"
    r"|(?:DJANGO_|FLASK_)?SECRET_KEY|SESSION_SECRET|JWT_.*|SSH_.*|SSHPASS|GPG_.*|VAULT_.*"
    r"|OP_SERVICE_ACCOUNT_TOKEN"
    r"|GH_TOKEN|GITHUB_.*|GITLAB_.*|BITBUCKET_.*|CI_JOB_TOKEN|CIRCLE_TOKEN|ACTIONS_.*|NPM_TOKEN"
    r"|NODE_AUTH_TOKEN|PYPI_.*|TWINE_.*"
    r"|UV_PUBLISH_.*|CARGO_REGISTRY_.*|DOCKER_.*|KUBE.*|TF_TOKEN_.*|HEROKU_.*|DIGITALOCEAN_.*|SENTRY_.*"
    r"|DATADOG_.*|DD_API_KEY"
    r"|PG.*|MYSQL_.*|POSTGRES_.*|REDIS_.*|MONGO.*|STRIPE_.*|SLACK_.*|TWILIO_.*|SENDGRID_.*"
    r"|GOOGLE_APPLICATION_CREDENTIALS|AZURE_CLIENT_.*|AZURE_STORAGE_.*"
)


# --- places --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Destination:
    """Destination of a call: host (lower case, ASCII, no trailing dot), port, and whether it uses TLS."""

    host: str
    port: int
    secure: bool

    @property
    def loopback(self) -> bool:
        """True for this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def name(self) -> str:
        """The name to show and to consent to, with the port if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.loopback or self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def place_of(url: str) -> Destination | None:
    """Parse an address; None for an address with user, query, fragment, backslash, zone or empty label."""
    found = _ADDRESS.fullmatch(url)
    host = None if found is None else _parse_host(found[2])
    if found is None or host is None:
        return None
    secure = found[1] == "https"
    port = int(found[3]) if found[3] else 443 if secure else 80
    return Destination(host, port, secure) if 0 < port < 65536 else None


def _parse_host(text: str) -> str | None:
    """Return a host in the canonical form for comparison; None for an invalid host.

    Calls go to the host as yarl reads it, by IDNA 2008. Hosts that IDNA 2003 reads differently ("straße.de"
    is "strasse.de" there) are refused, so that a name has one meaning everywhere.
    """
    text = text.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        from yarl import URL  # takes 5 ms, and few runs need it before their first call

        called = (URL(f"https://{text}").raw_host or "").lower()
        by_2003 = text.encode("idna").decode("ascii").lower()
    except ValueError:  # including empty and too long labels
        return None
    if called != by_2003:
        return None
    host = called.removesuffix(".")
    return host if len(host) <= 253 and all(map(_LABEL.fullmatch, host.split("."))) else None


# --- consents ------------------------------------------------------------------------------------


class Consent(msgspec.Struct, frozen=True):
    """Permission to send a key to a host. Without a port: to any port. Without a variable: any variable of
    the job, but no command. `typed`: given on the command line or in answer to a question."""

    host: str
    port: int | None
    variable: str | None
    typed: bool = False


class Consents(msgspec.Struct, frozen=True):
    """All of the user's consents, and the file where a new one can be written."""

    entries: tuple[Consent, ...] = ()
    file: Path = Path("~/.config/edgen/trusted_hosts.yaml")

    def may_send(self, variable: str, place: Destination) -> bool:
        """Return whether the key from a variable or command may go to a place."""
        meant = (variable,) if is_command(variable) else (variable, None)
        return any(one.variable in meant and _is_meant_for(one, place) for one in self.entries)

    def name(self, variable: str, place: Destination) -> bool:
        """Return whether the user typed exactly that pair."""
        return any(
            one.typed and one.variable == variable and _is_meant_for(one, place) for one in self.entries
        )

    def add(self, variable: str, place: Destination) -> Consents:
        """Return these consents and a new one."""
        more = Consent(place.host, None if place.loopback else place.port, variable, typed=True)
        return Consents((*self.entries, more), self.file)


def _is_meant_for(consent: Consent, place: Destination) -> bool:
    return consent.host == place.host and consent.port in (None, place.port)


def gather_consents(environ: Mapping[str, str], typed: Iterable[str] = ()) -> Consents:
    """Read the user's consents: from the command line, from `environ`, and from the file that `environ` leads
    to.

    Raises InputError for an invalid consent, without repeating what may be a key.
    """
    file = find_consent_file(environ)
    given = [_parse_consent(text, "--trust-host", typed=True) for text in typed]
    given += [_parse_consent(text, VARIABLE) for text in _split_words(environ.get(VARIABLE, ""))]
    if file is None:
        return Consents(tuple(given))
    return Consents((*given, *_read_file(file)), file)


def find_consent_file(environ: Mapping[str, str]) -> Path | None:
    """Return the user's consent file, by XDG's rules; None without a home folder."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if folder.startswith("/"):  # ignore relative paths
        return Path(folder, "edgen", "trusted_hosts.yaml")
    home = environ.get("HOME", "")
    return Path(home, ".config", "edgen", "trusted_hosts.yaml") if home.startswith("/") else None


def read_consents(text: str, source: str) -> list[Consent]:
    """Parse the text of a consent file: a YAML list of HOST=VARIABLE. Raises InputError."""
    value = read_yaml(text, source, _ConsentError)
    if not all(isinstance(line, str) for line in value or ()) or not isinstance(value, list | None):
        raise _ConsentError(source, "expected a list with a line for each host: - llm.example.org=MY_KEY")
    return [_parse_consent(line, source) for line in value or ()]


def _read_file(file: Path) -> list[Consent]:
    try:
        there = file.is_file()
    except OSError:  # the folder is unreadable, so there are no consents
        return []
    return read_consents(read_text(file, _ConsentError), str(file)) if there else []


def _split_words(text: str) -> list[str]:
    """Split at blanks and commas, except within quotes, which commands need."""
    if not re.search("['\"]", text):
        return [word for word in re.split(r"[\s,]+", text) if word]
    words = shlex.shlex(text, posix=True)
    words.whitespace, words.whitespace_split, words.commenters = " \t\r\n,", True, ""
    try:
        return list(words)
    except ValueError:
        raise UsageError(f"{VARIABLE}: a quotation mark is not closed.") from None


def is_command(variable: str) -> bool:
    """Return whether a command stands in place of a variable."""
    return variable.startswith("!")


def write_command(command: Sequence[str]) -> str:
    """Return a command in the form that replaces a variable."""
    return f"!{shlex.join(command)}"


def _read_variable(text: str) -> str | None:
    """Read a variable's name or a canonical command; None for anything else."""
    if not is_command(text):
        return text if _NAME.fullmatch(text) else None
    try:
        return write_command(shlex.split(text[1:])) if text[1:].strip() else None
    except ValueError:
        return None


def _parse_consent(text: str, source: str, *, typed: bool = False) -> Consent:
    where, equals, given = text.strip().partition("=")
    variable = _read_variable(given)
    bare = where if where.startswith("[") or where.count(":") < 2 else f"[{where}]"  # an IPv6 address
    place = place_of(f"https://{bare}")
    if place is None or "/" in where or (equals and variable is None):
        shown = f" {where!r}" if place is None else ""
        raise UsageError(
            f"{source}{shown}: expected HOST or HOST=VARIABLE, the name of a host and the name of the "
            "variable that holds its key, as in llm.example.org=MY_KEY or 127.0.0.1=MY_KEY."
        )
    port = place.port if re.search(r":\d+$", bare) else None
    return Consent(place.host, port, variable, typed)


class _ConsentError(FileError):
    what = "trusted hosts"


# --- decisions ------------------------------------------------------------------------------------


class Allowed(msgspec.Struct, frozen=True):
    """The key is sent."""

    place: Destination


class NoKey(msgspec.Struct, frozen=True):
    """The call is made without a key. `hint` explains how to have the key sent."""

    hint: str


class Refused(msgspec.Struct, frozen=True):
    """No call is made. `place`: the place to which consent would let the key go; None if consent would not
    help."""

    sentence: str
    place: Destination | None = None


def decide_trust(variable: str, url: str, consents: Consents) -> Allowed | NoKey | Refused:
    """Decide whether the key in `variable` (or from a command) is sent with calls to `url`. Reads no key,
    runs nothing and asks nothing."""
    place, key = place_of(url), name_key(variable)
    if place is None:
        return Refused(
            f"{key} is not sent, because the job's address is not a plain one: it takes a host and a "
            "path, as in https://llm.example.org/v1, and a host that all versions of IDNA read alike (write "
            "others in ASCII, as xn--…)."
        )
    if is_of_other_service(variable) and not consents.name(variable, place):
        return Refused(
            f"the job wants {variable} sent to {place.name}, and by its name that is another service's "
            "secret. "
            "If it is the key of that host, put it into a variable of another name, or type the pair: "
            f"--trust-host {place.name}={variable}."
        )
    if not place.secure and not place.loopback:
        return Refused(
            f"{key} is not sent to {place.name} over plain http, where anybody on the way can read "
            "it: use https, or a tunnel to 127.0.0.1. For a server that wants no key, name a variable that "
            "is not set (api_key_env: NO_KEY)."
        )
    if consents.may_send(variable, place) or (
        place.secure and place.port == 443 and _is_own(variable, place.host)
    ):
        return Allowed(place)
    ways = _describe_ways(variable, place, consents.file)
    if place.loopback:
        return NoKey(f"{key} is not sent to {place.name}; it would be with {ways}")
    if is_command(variable):
        return Refused(
            f"the job wants to run a command and to send {place.name} {key}. If you want that, say so with "
            f"{ways}.",
            place,
        )
    return Refused(
        f"the job wants {key} sent to {place.name}, which is not known to be its provider. If it "
        f"is, say so with {ways}.",
        place,
    )


def name_key(variable: str) -> str:
    """Name the key of a variable or a command in words."""
    return f"what `{variable[1:]}` prints" if is_command(variable) else f"the key in {variable}"


def _describe_ways(variable: str, place: Destination, file: Path) -> str:
    """Describe how to give consent."""
    pair = f"{place.name}={variable}"
    line = f"with the line `- {render_line(pair)}` in {file}"
    if is_command(variable):
        return f"--trust-host {shlex.quote(pair)}, or {line}"
    return f"--trust-host {pair}, with {VARIABLE}={pair} in the environment, or {line}"


def render_line(pair: str) -> str:
    """Return a pair of host and variable as a line of the user's file: YAML, quoted where needed."""
    return json.dumps(pair) if is_command(pair.partition("=")[2]) else pair


def is_of_other_service(variable: str) -> bool:
    """Return whether a variable, by its name, plainly holds another service's secret."""
    return not is_command(variable) and _ANOTHERS.fullmatch(variable) is not None


def _is_own(variable: str, host: str) -> bool:
    return any(_is_below(host, own) for own in _read_own_hosts().get(variable, ()))


def are_one_service(host: str, other: str) -> bool:
    """Return whether one line of the table lists both hosts."""
    return any(
        any(_is_below(host, own) for own in hosts) and any(_is_below(other, own) for own in hosts)
        for hosts in _read_own_hosts().values()
    )


def _is_below(host: str, own: str) -> bool:
    """Return whether a line of the table covers a host."""
    if own.startswith("*."):
        return host.endswith(own[1:])
    before, region, after = own.partition("{region}")
    if not region:
        return host == own
    named = host.removeprefix(before).removesuffix(after)
    return host == before + named + after and _REGION.fullmatch(named) is not None


class _Service(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    variables: tuple[str, ...]
    hosts: tuple[str, ...]


class _Services(msgspec.Struct, frozen=True):
    services: tuple[_Service, ...]


@functools.cache
def _read_own_hosts() -> dict[str, tuple[str, ...]]:
    """Return the hosts of each well-known variable."""
    value = read_yaml(read_text(_TABLE, _ConsentError), str(_TABLE), _ConsentError)
    services = build({"services": value}, _Services, str(_TABLE), _ConsentError).services
    return {variable: service.hosts for service in services for variable in service.variables}
