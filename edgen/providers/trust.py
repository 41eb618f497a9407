"""Where an API key may go. `decide` is the one rule, and every call to a model is held to it.

A provider's key goes to that provider's own https hosts: `hosts.yaml` lists them. Any other pair of variable and host
needs the user's consent, which a job cannot give: it comes from the command line, from the environment or from the
user's own file. A server on this machine gets no key without consent, and the call is made without one. Over plain
http, no key leaves this machine. Names that plainly belong to other services go nowhere unless the user typed them.

A command that prints a key is a program that the job would run: without consent to that very command it is not.
Where the name of a variable stands, a command is written behind a "!", as a shell would take it.
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
from edgen.core.yaml_values import build, read_text, read_yaml

VARIABLE = "EDGEN_TRUSTED_HOSTS"
_TABLE = Path(__file__).with_name("hosts.yaml")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_ADDRESS = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\%]+)(?::(\d{1,5}))?(?:/[^?#]*)?")
_REGION = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){1,2}-\d{1,2}")  # of Amazon's, as in us-west-2
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
# Variables that hold other services' secrets, by their usual names.
_ANOTHERS = re.compile(
    r"AWS_(?!BEARER_TOKEN_BEDROCK\Z).*|.*_SECRET_ACCESS_KEY|.*PRIVATE_KEY.*|.*PASSWORD.*|.*PASSWD.*|.*CLIENT_SECRET.*|.*DATABASE_URL|.*_DSN"
    r"|(?:DJANGO_|FLASK_)?SECRET_KEY|SESSION_SECRET|JWT_.*|SSH_.*|SSHPASS|GPG_.*|VAULT_.*|OP_SERVICE_ACCOUNT_TOKEN"
    r"|GH_TOKEN|GITHUB_.*|GITLAB_.*|BITBUCKET_.*|CI_JOB_TOKEN|CIRCLE_TOKEN|ACTIONS_.*|NPM_TOKEN|NODE_AUTH_TOKEN|PYPI_.*|TWINE_.*"
    r"|UV_PUBLISH_.*|CARGO_REGISTRY_.*|DOCKER_.*|KUBE.*|TF_TOKEN_.*|HEROKU_.*|DIGITALOCEAN_.*|SENTRY_.*|DATADOG_.*|DD_API_KEY"
    r"|PG.*|MYSQL_.*|POSTGRES_.*|REDIS_.*|MONGO.*|STRIPE_.*|SLACK_.*|TWILIO_.*|SENDGRID_.*|GOOGLE_APPLICATION_CREDENTIALS"
    r"|AZURE_CLIENT_.*|AZURE_STORAGE_.*"
)


# --- places --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call goes: the host in lower case, in ASCII and without a trailing dot; its port; whether by TLS."""

    host: str
    port: int
    secure: bool

    @property
    def loopback(self) -> bool:
        """Whether it is this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def name(self) -> str:
        """What a person is shown and can consent to: with the port where it says something."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.loopback or self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def place_of(url: str) -> Place | None:
    """Where an address leads; None for what is no plain one: user, query, fragment, backslash, zone, empty label."""
    found = _ADDRESS.fullmatch(url)
    host = None if found is None else _host(found[2])
    if found is None or host is None:
        return None
    secure = found[1] == "https"
    port = int(found[3]) if found[3] else 443 if secure else 80
    return Place(host, port, secure) if 0 < port < 65536 else None


def _host(text: str) -> str | None:
    """A host in the one form in which hosts are compared; None if it is none."""
    text = text.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        host = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:  # also for labels that are empty or too long
        return None
    return host if len(host) <= 253 and all(map(_LABEL.fullmatch, host.split("."))) else None


# --- consents ------------------------------------------------------------------------------------


class Consent(msgspec.Struct, frozen=True):
    """A key may go to a host. No port: to any of its ports. No variable: whichever the job names, but no command.
    `typed`: it was given on the command line, or in answer to a question."""

    host: str
    port: int | None
    variable: str | None
    typed: bool = False


class Consents(msgspec.Struct, frozen=True):
    """All that the user consented to, and the file in which it can be written down."""

    given: tuple[Consent, ...] = ()
    file: Path = Path("~/.config/edgen/trusted_hosts.yaml")

    def cover(self, variable: str, place: Place) -> bool:
        """Whether the key in a variable, or printed by a command, may go to a place."""
        meant = (variable,) if is_command(variable) else (variable, None)
        return any(one.variable in meant and _meant(one, place) for one in self.given)

    def name(self, variable: str, place: Place) -> bool:
        """Whether the user typed that very pair."""
        return any(one.typed and one.variable == variable and _meant(one, place) for one in self.given)

    def also(self, variable: str, place: Place) -> Consents:
        """These, and one that was given just now."""
        more = Consent(place.host, None if place.loopback else place.port, variable, typed=True)
        return Consents((*self.given, more), self.file)


def _meant(consent: Consent, place: Place) -> bool:
    return consent.host == place.host and consent.port in (None, place.port)


def gather_consents(environ: Mapping[str, str], typed: Iterable[str] = ()) -> Consents:
    """What the user consented to: on the command line, in `environ`, in the file that it leads to.

    Raises InputError for what is no consent; what may be a key is not repeated.
    """
    file = consent_file(environ)
    given = [_consent(text, "--trust-host", typed=True) for text in typed]
    given += [_consent(text, VARIABLE) for text in _split_words(environ.get(VARIABLE, ""))]
    if file is None:
        return Consents(tuple(given))
    return Consents((*given, *_read_file(file)), file)


def consent_file(environ: Mapping[str, str]) -> Path | None:
    """The user's own file of consents, by XDG's rules; None where there is no home."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if folder.startswith("/"):  # a relative one is to be ignored
        return Path(folder, "edgen", "trusted_hosts.yaml")
    home = environ.get("HOME", "")
    return Path(home, ".config", "edgen", "trusted_hosts.yaml") if home.startswith("/") else None


def read_consents(text: str, source: str) -> list[Consent]:
    """The consents in the text of such a file: a YAML list of HOST=VARIABLE. Raises InputError."""
    value = read_yaml(text, source, _ConsentError)
    if not all(isinstance(line, str) for line in value or ()) or not isinstance(value, list | None):
        raise _ConsentError(source, "it is to be a list, a line a host: - llm.example.org=MY_KEY")
    return [_consent(line, source) for line in value or ()]


def _read_file(file: Path) -> list[Consent]:
    try:
        there = file.is_file()
    except OSError:  # in a folder that may not be looked into: it says nothing
        return []
    return read_consents(read_text(file, _ConsentError), str(file)) if there else []


def _split_words(text: str) -> list[str]:
    """Words with blanks or commas between them; in quotes, as a command needs, they may hold some."""
    if not re.search("['\"]", text):
        return [word for word in re.split(r"[\s,]+", text) if word]
    words = shlex.shlex(text, posix=True)
    words.whitespace, words.whitespace_split, words.commenters = " \t\r\n,", True, ""
    try:
        return list(words)
    except ValueError:
        raise UsageError(f"{VARIABLE}: a quotation mark is not closed.") from None


def is_command(variable: str) -> bool:
    """Whether what stands in a variable's place is a command."""
    return variable.startswith("!")


def write_command(command: Sequence[str]) -> str:
    """A command in a variable's place."""
    return f"!{shlex.join(command)}"


def _read_variable(text: str) -> str | None:
    """The name of a variable, or a command in its one form; None for what is neither."""
    if not is_command(text):
        return text if _NAME.fullmatch(text) else None
    try:
        return write_command(shlex.split(text[1:])) if text[1:].strip() else None
    except ValueError:
        return None


def _consent(text: str, source: str, *, typed: bool = False) -> Consent:
    where, equals, given = text.strip().partition("=")
    variable = _read_variable(given)
    bare = where if where.startswith("[") or where.count(":") < 2 else f"[{where}]"  # an IPv6 address
    place = place_of(f"https://{bare}")
    if place is None or "/" in where or (equals and variable is None):
        shown = f" {where!r}" if place is None else ""
        raise UsageError(
            f"{source}{shown}: expected HOST or HOST=VARIABLE, the name of a host and the name of the variable that "
            "holds its key, as in llm.example.org=MY_KEY or 127.0.0.1=MY_KEY."
        )
    port = place.port if re.search(r":\d+$", bare) else None
    return Consent(place.host, port, variable, typed)


class _ConsentError(FileError):
    what = "trusted hosts"


# --- the rule ------------------------------------------------------------------------------------


class Allowed(msgspec.Struct, frozen=True):
    """The key is sent."""

    place: Place


class NoKey(msgspec.Struct, frozen=True):
    """The call is made without a key. `hint` says how a key would be sent."""

    hint: str


class Refused(msgspec.Struct, frozen=True):
    """No call is made. `place`: where consent would let the key go; None where none would."""

    sentence: str
    place: Place | None = None


def decide_trust(variable: str, url: str, consents: Consents) -> Allowed | NoKey | Refused:
    """Whether the key in `variable` goes with calls to `url`; in its place there may be a command. Reads no key, runs
    nothing, asks nobody."""
    place, key = place_of(url), name_key(variable)
    if place is None:
        return Refused(
            f"{key} is not sent, because the job's address is no plain one: it takes a host and a "
            "path, as in https://llm.example.org/v1."
        )
    if is_anothers(variable) and not consents.name(variable, place):
        return Refused(
            f"the job wants {variable} sent to {place.name}, and by its name that is another service's secret. "
            "If it is the key of that host, put it into a variable of another name, or type the pair: "
            f"--trust-host {place.name}={variable}."
        )
    if not place.secure and not place.loopback:
        return Refused(
            f"{key} is not sent to {place.name} over plain http, where anybody on the way can read "
            "it: use https, or a tunnel to 127.0.0.1. For a server that wants no key, name a variable that is not "
            "set (api_key_env: NO_KEY)."
        )
    if consents.cover(variable, place) or (
        place.secure and place.port == 443 and _is_own(variable, place.host)
    ):
        return Allowed(place)
    ways = _ways(variable, place, consents.file)
    if place.loopback:
        return NoKey(f"{key} is not sent to {place.name}; it would be with {ways}")
    if is_command(variable):
        return Refused(
            f"the job wants to run a command and to send {place.name} {key}. If you want that, say so with {ways}.",
            place,
        )
    return Refused(
        f"the job wants {key} sent to {place.name}, which is not known to be its provider. If it "
        f"is, say so with {ways}.",
        place,
    )


def name_key(variable: str) -> str:
    """The key in a variable, or that a command prints, in words."""
    return f"what `{variable[1:]}` prints" if is_command(variable) else f"the key in {variable}"


def _ways(variable: str, place: Place, file: Path) -> str:
    """How consent is given."""
    pair = f"{place.name}={variable}"
    line = f"with the line `- {line_of(pair)}` in {file}"
    if is_command(variable):
        return f"--trust-host {shlex.quote(pair)}, or {line}"
    return f"--trust-host {pair}, with {VARIABLE}={pair} in the environment, or {line}"


def line_of(pair: str) -> str:
    """A pair of host and variable as the user's file has it: YAML, in quotes where it needs them."""
    return json.dumps(pair) if is_command(pair.partition("=")[2]) else pair


def is_anothers(variable: str) -> bool:
    """Whether a variable plainly holds another service's secret, by its name."""
    return not is_command(variable) and _ANOTHERS.fullmatch(variable) is not None


def _is_own(variable: str, host: str) -> bool:
    return any(_is_below(host, own) for own in _own_hosts().get(variable, ()))


def _is_below(host: str, own: str) -> bool:
    """Whether a host is meant by a line of the table."""
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
def _own_hosts() -> dict[str, tuple[str, ...]]:
    """The hosts of each well-known variable."""
    value = read_yaml(read_text(_TABLE, _ConsentError), str(_TABLE), _ConsentError)
    services = build({"services": value}, _Services, str(_TABLE), _ConsentError).services
    return {variable: service.hosts for service in services for variable in service.variables}
