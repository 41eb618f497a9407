"""Hosts that may get a key: the rule by a table, generated hosts, and consents as people write them."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from edgen.core.errors import InputError
from edgen.providers.trust import (
    Allowed,
    Consents,
    NoKey,
    Refused,
    decide_trust,
    find_consent_file,
    gather_consents,
    is_of_other_service,
    place_of,
    read_consents,
)

pytestmark = pytest.mark.unit


def consents(*typed: str, env: str = "") -> Consents:
    return gather_consents({"EDGEN_TRUSTED_HOSTS": env}, typed)


OPENAI = "OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        (OPENAI, "https://api.openai.com/v1"),
        (OPENAI, "https://API.OpenAI.com./v1"),
        (OPENAI, "https://api.openai.com:443/v1"),
        (OPENAI, "https://eu.api.openai.com/v1"),
        ("GOOGLE_API_KEY", "https://generativelanguage.googleapis.com"),
        ("GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("AZURE_OPENAI_API_KEY", "https://mine.openai.azure.com/openai/v1"),
        ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
        ("GROQ_API_KEY", "https://api.groq.com/openai/v1"),
        ("TOGETHER_API_KEY", "https://api.together.xyz/v1"),
        ("FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1"),
        ("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
        ("MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
        ("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"),
        ("XAI_API_KEY", "https://api.x.ai/v1"),
        ("CEREBRAS_API_KEY", "https://api.cerebras.ai/v1"),
        ("AWS_BEARER_TOKEN_BEDROCK", "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1"),
        ("AWS_BEARER_TOKEN_BEDROCK", "https://bedrock-mantle.us-gov-west-1.api.aws/v1"),
    ],
)
def test_a_providers_key_goes_to_its_own_host_without_a_word(variable: str, url: str) -> None:
    assert isinstance(decide_trust(variable, url, Consents()), Allowed)


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        (OPENAI, "https://api.openai.com.evil.example/v1"),
        (OPENAI, "https://evilapi.openai.com/v1"),
        (OPENAI, "https://openai.com/v1"),
        (OPENAI, "https://api-openai.com/v1"),
        (OPENAI, "https://api.openai.com:8443/v1"),
        (OPENAI, "https://api.groq.com/openai/v1"),
        (OPENAI, "https://10.0.0.7/v1"),
        (OPENAI, "https://аpi.openai.com/v1"),
        ("AZURE_OPENAI_API_KEY", "https://openai.azure.com/v1"),
        ("AZURE_OPENAI_API_KEY", "https://x.openai.azure.com.evil.example/v1"),
        ("GOOGLE_API_KEY", "https://storage.googleapis.com/"),
        ("MY_KEY", "https://api.openai.com/v1"),
        ("ANTHROPIC_API_KEY", "https://api.openai.com/v1"),
        (OPENAI, "https://localhost.evil.example/v1"),
        (OPENAI, "https://127.0.0.1.evil.example/v1"),
    ],
)
def test_any_other_pair_needs_consent(variable: str, url: str) -> None:
    found = decide_trust(variable, url, Consents())
    assert isinstance(found, Refused)
    place = found.place
    assert place is not None, "consent would help"
    pair = f"{place.name}={variable}"
    for part in (variable, place.name, f"--trust-host {pair}", f"EDGEN_TRUSTED_HOSTS={pair}", f"- {pair}"):
        assert part in found.sentence
    assert isinstance(decide_trust(variable, url, consents(pair)), Allowed)
    assert isinstance(decide_trust(variable, url, consents(env=pair)), Allowed)
    assert isinstance(decide_trust(variable, url, Consents().add(variable, place)), Allowed)
    assert isinstance(decide_trust("ANOTHER_KEY", url, consents(pair)), Refused)
    assert isinstance(decide_trust(variable, url, consents(f"elsewhere.example={variable}")), Refused)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com@evil.example/v1",
        "https://user:word@api.openai.com/v1",
        "https://api.openai.com\\@evil.example/v1",
        "https://api.openai.com?@evil.example/v1",
        "https://api.openai.com#@evil.example/v1",
        "https://evil.example\\.api.openai.com/v1",
        "https://evil.example%2f.api.openai.com/v1",
        "https://api.openai.com..",
        "https://.api.openai.com/v1",
        "https://api.openai.com:0/v1",
        "https://api.openai.com:65536/v1",
        "https://api.openai.com:443:443/v1",
        "https://api.openai.com\n/v1\n",
        "https:/api.openai.com",
        "//api.openai.com/v1",
        "ftp://api.openai.com/v1",
        "https://[::1%eth0]/v1",
        "https:///v1",
        "",
    ],
)
def test_what_is_no_plain_address_gets_no_key(url: str) -> None:
    everything = consents("api.openai.com", "evil.example")
    found = decide_trust(OPENAI, url, everything)
    assert isinstance(found, Refused)
    assert found.place is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.7.6", "localhost", "LOCALHOST", "localhost.", "[::1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_this_machine_gets_no_key_without_consent(host: str, scheme: str) -> None:
    url = f"{scheme}://{host}:8080/v1"
    found = decide_trust(OPENAI, url, Consents())
    assert isinstance(found, NoKey)
    place = place_of(url)
    assert place is not None
    assert f"--trust-host {place.name}={OPENAI}" in found.hint
    for consent in (f"{place.name}={OPENAI}", place.name, f"{place.name}:8080={OPENAI}"):
        assert isinstance(decide_trust(OPENAI, url, consents(consent)), Allowed)
    assert isinstance(decide_trust(OPENAI, url, consents(f"{place.name}:8081={OPENAI}")), NoKey)


@pytest.mark.parametrize(
    "url", ["http://api.openai.com/v1", "http://elsewhere/v1", "http://10.0.0.7:8000/v1", "http://0.0.0.0/v1"]
)
def test_plain_http_to_elsewhere_never_carries_a_key(url: str) -> None:
    place = place_of(url)
    assert place is not None
    for said in (Consents(), consents(f"{place.name}={OPENAI}", place.host)):
        found = decide_trust(OPENAI, url, said)
        assert isinstance(found, Refused)
        assert found.place is None, "no consent helps"
        assert "plain http" in found.sentence


SECRETS = [
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "MINIO_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "SSH_AUTH_SOCK",
    "DATABASE_URL", "PROD_DATABASE_URL", "NPM_TOKEN", "PYPI_TOKEN", "PGPASSWORD", "MY_DB_PASSWORD", "SENTRY_DSN",
    "DEPLOY_PRIVATE_KEY", "VAULT_TOKEN", "SLACK_BOT_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET",
    "SECRET_KEY", "DJANGO_SECRET_KEY", "JWT_SECRET", "HEROKU_API_KEY", "SENTRY_AUTH_TOKEN", "DD_API_KEY", "CIRCLE_TOKEN",
    "AZURE_STORAGE_KEY", "OP_SERVICE_ACCOUNT_TOKEN", "SSHPASS",
]  # fmt: skip


@pytest.mark.parametrize(
    "url", ["https://llm.example/v1", "http://127.0.0.1:8080/v1", "https://api.openai.com/v1"]
)
def test_another_services_secret_goes_only_where_that_very_pair_was_typed(url: str) -> None:
    place = place_of(url)
    assert place is not None
    for variable in SECRETS:
        pair = f"{place.name}={variable}"
        for said in (Consents(), consents(place.name), consents(env=pair)):
            found = decide_trust(variable, url, said)
            assert isinstance(found, Refused), variable
            assert found.place is None
            assert "another service's secret" in found.sentence
            assert f"--trust-host {pair}" in found.sentence
        assert isinstance(decide_trust(variable, url, consents(pair)), Allowed), variable


@pytest.mark.parametrize(
    "variable", ["OPENAI_API_KEY", "MY_KEY", "HF_TOKEN", "LLM_TOKEN", "AZURE_OPENAI_API_KEY"]
)
def test_a_models_key_is_nobody_elses_secret(variable: str) -> None:
    assert not is_of_other_service(variable)


# --- hosts ---------------------------------------------------------------------------------------

_LABELS = st.text(string.ascii_letters + string.digits + "-_.:@/\\?#%[]~ аéß。\u200b", max_size=25)


def client_reads(url: str) -> URL | None:
    """Return the address as the HTTP client reads it; None if the client refuses it."""
    try:
        return URL(url)
    except (ValueError, IndexError):
        return None


@given(before=_LABELS, after=_LABELS)
@example(before="", after="")
@example(before="", after="[]@")
@example(before="eu.", after=":443/v1")
def test_only_the_providers_own_names_get_its_key(before: str, after: str) -> None:
    """Any text around a provider's name: if the key is sent, the client connects to that provider."""
    url = f"https://{before}api.openai.com{after}"
    parsed = client_reads(url)
    if parsed is not None and isinstance(decide_trust(OPENAI, url, Consents()), Allowed):
        host = (parsed.host or "").removesuffix(".")
        assert host == "api.openai.com" or host.endswith(".api.openai.com")
        assert (parsed.scheme, parsed.port, parsed.user) == ("https", 443, None)


@given(st.text(string.ascii_lowercase + string.digits + ".-:[]/@", max_size=30))
@example("127.0.0.1")
@example("[::1]:80")
def test_a_place_is_where_the_client_goes(rest: str) -> None:
    url = f"http://{rest}"
    place, parsed = place_of(url), client_reads(url)
    if place is not None and parsed is not None:
        assert (parsed.host or "").lower().removesuffix(".") == place.host
        assert parsed.port == place.port
        assert parsed.user is None


@given(
    st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,8}[a-z0-9])?){0,3}", fullmatch=True)
)
def test_a_host_is_the_same_however_it_is_written(host: str) -> None:
    said = consents(host)
    for written in (host, host.upper(), f"{host}.", f"{host}:443"):
        assert isinstance(decide_trust("MY_KEY", f"https://{written}/v1", said), Allowed)
    for other in (f"x{host}", f"{host}x", f"x.{host}", f"{host}.x"):
        assert not isinstance(decide_trust("MY_KEY", f"https://{other}/v1", said), Allowed)


@pytest.mark.parametrize(
    "host",
    [
        "bedrock-runtime.s3.amazonaws.com",  # any customer's bucket
        "bedrock-runtime.us-west-2.evil.amazonaws.com",
        "x.bedrock-runtime.us-west-2.amazonaws.com",
        "bedrock-runtime.us-west-2.amazonaws.com.example.org",
        "bedrock-runtime..amazonaws.com",
        "bedrock-runtime.amazonaws.com",
    ],
)
def test_a_region_is_a_region(host: str) -> None:
    decision = decide_trust("AWS_BEARER_TOKEN_BEDROCK", f"https://{host}/openai/v1", Consents())
    assert isinstance(decision, Refused)


# --- consents ------------------------------------------------------------------------------------


def test_consents_come_from_the_command_line_the_environment_and_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "edgen" / "trusted_hosts.yaml"
    file.parent.mkdir()
    file.write_text("# mine\n- filed.example=FILED_KEY\n- any.example:8443\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "EDGEN_TRUSTED_HOSTS": "one.example=ONE_KEY, two.example"}
    found = gather_consents(environ, ["[::1]=MY_KEY", "Bücher.example=BOOK_KEY"])
    assert found.file == file
    shown = {(one.host, one.port, one.variable, one.typed) for one in found.entries}
    assert shown == {
        ("::1", None, "MY_KEY", True),
        ("xn--bcher-kva.example", None, "BOOK_KEY", True),
        ("one.example", None, "ONE_KEY", False),
        ("two.example", None, None, False),
        ("filed.example", None, "FILED_KEY", False),
        ("any.example", 8443, None, False),
    }


@pytest.mark.parametrize(
    "text",
    ["", "=KEY", "a b", "https://llm.example", "llm.example/v1", "*.example", "me@llm.example", "a=b", "a="],
)
def test_what_is_no_consent_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"--trust-host.*expected HOST or HOST=VARIABLE") as caught:
        gather_consents({}, [text])
    assert caught.value.exit_code == 2


def test_a_key_written_for_its_name_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        gather_consents({"EDGEN_TRUSTED_HOSTS": "llm.example=sk-a-real-key-123"})
    assert "sk-a-real" not in str(caught.value)


@pytest.mark.parametrize("text", ["host: KEY", "- {a: b}", "- 7", "words", "- [", "- llm.example=sk-lower"])
def test_a_file_of_consents_that_cannot_be_read_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_consents(text, "the-file.yaml")
    assert "the-file.yaml" in str(caught.value)


def test_an_empty_file_of_consents_holds_none() -> None:
    assert read_consents("# nothing yet\n", "f") == []


def test_the_users_file_is_where_xdg_says() -> None:
    name = "edgen/trusted_hosts.yaml"
    assert find_consent_file({"HOME": "/home/me"}) == Path("/home/me/.config", name)
    assert find_consent_file({"HOME": "/home/me", "XDG_CONFIG_HOME": "/cfg"}) == Path("/cfg", name)
    assert find_consent_file({"HOME": "/home/me", "XDG_CONFIG_HOME": "here"}) == Path(
        "/home/me/.config", name
    )
    assert find_consent_file({}) is None


@pytest.mark.parametrize(
    "host", ["straße.de", "faß.example", "ς.com", "a\u200db.com", "fo\u00ado.com", "api.openai.com\u180e"]
)
def test_a_host_that_versions_of_idna_read_differently_is_refused(host: str) -> None:
    assert place_of(f"https://{host}/v1") is None


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("ｅxample.com", "example.com"), ("example。com", "example.com"), ("１２７.0.0.1", "127.0.0.1"), ("K.com", "k.com"),
        ("☃.net", "xn--n3h.net"), ("bücher.example", "xn--bcher-kva.example"), ("xn--zca.com", "xn--zca.com"),
    ],
)  # fmt: skip
def test_a_host_is_compared_as_it_is_called(host: str, called: str) -> None:
    place = place_of(f"https://{host}/v1")
    assert place is not None
    assert (place.host, URL(f"https://{host}/v1").raw_host) == (called, called)
