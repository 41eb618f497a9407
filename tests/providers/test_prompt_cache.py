"""Prompt caches: marks for Anthropic's cache, cached tokens of all services, and a cap that
holds with cache prices."""

from __future__ import annotations

import json
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from edgen.config import Price, load_job
from edgen.config.backends import find_prices
from edgen.core.errors import InputError
from edgen.core.values import Message, Usage
from edgen.execution.client.charges import compute_cost
from edgen.providers.anthropic import online as anthropic
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.gemini import online as gemini
from edgen.providers.openai import online as openai
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses import online as responses
from edgen.simulator.text import respond
from tests.execution.service import Service, edgen, files, serve
from tests.providers.fakes import request
from tests.providers.test_anthropic import ANSWER, backend

# --- marks ---------------------------------------------------------------------------------------


def body(*texts: str, system: str = "", **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        backend("http://localhost", **settings).body(request(*texts, system=system))
    )
    return found


MARK = {"type": "ephemeral"}


def test_the_system_message_is_kept() -> None:
    made = body("hello", system="be kind", prompt_cache="5m")
    assert made["system"] == [{"type": "text", "text": "be kind", "cache_control": MARK}]
    assert made["messages"] == [{"role": "user", "content": "hello"}], "nobody says this again"


def test_in_a_dialogue_all_that_was_said_is_kept() -> None:
    made = body("hello", "hi", "bye", system="be kind", prompt_cache="1h")
    mark = MARK | {"ttl": "1h"}
    assert made["system"][0]["cache_control"] == mark
    assert made["messages"] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "bye", "cache_control": mark}]},
    ]


def test_without_a_word_nothing_is_marked() -> None:
    assert "cache_control" not in json.dumps(body("hello", "hi", "bye", system="be kind"))
    assert "system" not in body("hello", prompt_cache="5m")


def test_a_cache_shapes_no_answer() -> None:
    """A run may be resumed with a cache, or without."""
    known = [
        backend("http://localhost", prompt_cache=kept, temperature=0.5).identity
        for kept in (None, "5m", "1h")
    ]
    assert known[0] == known[1] == known[2]


# --- cached tokens -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}, Usage(35, 7, 20, 10)),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}}, Usage(8, 7, 0, 3)),
        ({"cache_creation_input_tokens": 3, "cache_creation": {"ephemeral_1h_input_tokens": 3}}, Usage(8, 7, 0, 3)),
        ({"cache_creation": None, "cache_read_input_tokens": None}, Usage(5, 7)),
        ({"cache_creation": [1]}, Usage(5, 7)),
        ({"cache_creation": {"ephemeral_1h_input_tokens": "x"}}, None),
    ],
)  # fmt: skip
def test_what_anthropic_counts(usage: dict[str, Any], counted: Usage | None) -> None:
    answer = json.dumps(ANSWER | {"usage": {"input_tokens": 5, "output_tokens": 7} | usage})
    reply = anthropic.read_reply(answer.encode())
    assert reply is not None
    assert reply.usage == counted


@pytest.mark.parametrize(
    ("details", "counted"),
    [
        ({"cached_tokens": 20, "cache_write_tokens": 10}, Usage(35, 7, 20, 10)),
        ({"cached_tokens": 20, "audio_tokens": 0}, Usage(35, 7, 20)),
        ({}, Usage(35, 7)),
        (None, Usage(35, 7)),
        ("many", Usage(35, 7)),
        ({"cached_tokens": -1}, Usage(35, 7)),
        ({"cached_tokens": "x"}, Usage(35, 7)),
        ({"cached_tokens": 36}, Usage(35, 7)),
        ({"cached_tokens": 30, "cache_write_tokens": 30}, Usage(35, 7)),
    ],
)
def test_what_openai_counts(details: Any, counted: Usage) -> None:
    usage = {"prompt_tokens": 35, "completion_tokens": 7, "prompt_tokens_details": details}
    choice = {"message": {"content": "hi"}, "finish_reason": "stop"}
    reply = openai.read_reply(json.dumps({"choices": [choice], "usage": usage}).encode())
    assert reply is not None
    assert reply.usage == counted
    usage = {"input_tokens": 35, "output_tokens": 7, "input_tokens_details": details}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    answer = {"object": "response", "status": "completed", "output": [said], "usage": usage}
    reply = responses.read_reply(json.dumps(answer).encode())
    assert reply is not None
    assert reply.usage == counted


def test_what_gemini_counts() -> None:
    usage = {"promptTokenCount": 35, "candidatesTokenCount": 7, "cachedContentTokenCount": 20}
    candidate = {"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}
    reply = gemini.read_reply(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode())
    assert reply is not None
    assert reply.usage == Usage(35, 7, 20)


# --- costs ---------------------------------------------------------------------------------------

PRICE = Price(prompt=3, completion=15, cache_read=0.3, cache_write=3.75, batch=0.5)
DOLLARS = st.floats(0, 100) | st.none()


def test_each_kind_has_its_price() -> None:
    usage = Usage(1000, 10, 600, 300)
    assert compute_cost(PRICE, usage) == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 10 * 15) / 1e6)
    assert compute_cost(PRICE, usage, batch=True) == pytest.approx(compute_cost(PRICE, usage) / 2)
    apart = Price(prompt=3, completion=15, cache_read=0.3, batch=0.5, batch_cache=1.0)
    assert compute_cost(apart, Usage(1000, 0, 1000), batch=True) == pytest.approx(1000 * 0.3 / 1e6)
    plain = Price(prompt=3, completion=15)
    assert compute_cost(plain, usage) == compute_cost(plain, Usage(1000, 10))


@given(
    st.builds(Price, prompt=st.floats(0, 100), completion=st.floats(0, 100), cache_read=DOLLARS, cache_write=DOLLARS,
              batch=st.floats(0, 1), batch_cache=st.floats(0, 1) | st.none()),
    st.integers(0, 10**7), st.integers(0, 10**6), st.data(),
)  # fmt: skip
def test_no_usage_costs_more_than_the_most(price: Price, prompt: int, completion: int, data: Any) -> None:
    read = data.draw(st.integers(0, prompt))
    usage = Usage(prompt, completion, read, data.draw(st.integers(0, prompt - read)))
    for batch in (False, True):
        most = price.compute_highest_cost(prompt, completion, batch=batch)
        assert price.cost(usage, batch=batch) <= most * (1 + 1e-9) + 1e-12


def test_prices_of_the_list_are_those_of_what_is_asked_for() -> None:
    def listed(**settings: Any) -> Price:
        config = AnthropicConfig(model="claude-sonnet-4-6", **settings)
        price = find_prices(config).list_price(config)
        assert price is not None
        return price

    assert (listed().cache_read, listed().cache_write) == (None, None)
    short, long = listed(prompt_cache="5m"), listed(prompt_cache="1h")
    assert (short.prompt, short.cache_read, short.cache_write) == (3, 0.3, 3.75)
    assert (long.cache_read, long.cache_write) == (0.3, 6)
    gpt = find_prices(OpenAIConfig(model="m")).list_price(OpenAIConfig(model="gpt-5.6-terra"))
    assert gpt is not None
    assert (gpt.prompt, gpt.cache_read, gpt.cache_write) == (2, 0.2, 2.5)


def test_a_price_without_that_of_the_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: t\nspace: education_dialogue\nprompt: education_dialogue\nconversations: 1\nbackends: {default: "
        "{type: anthropic, model: m, prompt_cache: 5m, price: {prompt: 3, completion: 15}}}\n"
    )
    with pytest.raises(InputError, match=r"\$\.backends\.default\.price\.cache_write.*costs more"):
        load_job(path)


# --- a run ---------------------------------------------------------------------------------------


class Caching(Service):
    """The Messages API with a prompt cache, one token for four characters. `bill`: its charges in dollars."""

    bill = Fraction(0)
    kept: set[str]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = await request.json()
        blocks = [
            *_blocks(asked.get("system", "")),
            *(b for m in asked["messages"] for b in _blocks(m["content"])),
        ]
        assert sum("cache_control" in block for block in blocks) <= 4, "the most that the service takes"
        said = [
            Message(m["role"], "".join(b["text"] for b in _blocks(m["content"]))) for m in asked["messages"]
        ]
        system = [Message("system", "".join(b["text"] for b in _blocks(asked["system"])))]
        reply = respond([*system, *said], seed=zlib.crc32(repr(said).encode()))
        usage = self._count(blocks, reply.text)
        self.bill += _dollars(usage)
        counts = {
            "input_tokens": usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens,
            "output_tokens": usage.completion_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
        }
        return web.json_response(
            ANSWER | {"content": [{"type": "text", "text": reply.text}], "usage": counts}
        )

    def _count(self, blocks: list[Any], text: str) -> Usage:
        prefix, read, marked = "", 0, 0
        for block in blocks:
            prefix += block["text"]
            if "cache_control" in block:
                marked = len(prefix)
                read = marked if prefix in self.kept else read
                self.kept.add(prefix)
        return Usage(-(-len(prefix) // 4), -(-len(text) // 4), read // 4, (marked - read) // 4)


def _blocks(content: Any) -> list[Any]:
    return [{"text": content}] if isinstance(content, str) else content


def _dollars(usage: Usage) -> Fraction:
    plain = usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    cents = (
        plain * 300
        + usage.cache_read_tokens * 30
        + usage.cache_write_tokens * 375
        + usage.completion_tokens * 1500
    )
    return Fraction(cents, 100 * 10**6)


def write_job(path: Path, url: str, **changes: Any) -> Path:
    price = {"prompt": 3, "completion": 15, "cache_read": 0.3, "cache_write": 3.75}
    own = {
        "type": "anthropic",
        "model": "m",
        "base_url": url,
        "max_tokens": 300,
        "price": price,
        "temperature": 0,
    }
    job = {
        "name": "t", "seed": 5, "space": "education_dialogue", "protocol": "selfplay", "conversations": 4, "forms": "prose",
        "selfplay": {"max_turns": 6}, "backends": {"default": own | {"prompt_cache": "5m"}}, "limits": {"in_flight": 3},
    }  # fmt: skip
    path.write_text(json.dumps(job | changes))
    return path


async def test_a_run_pays_what_the_service_bills_and_its_cap_holds(tmp_path: Path) -> None:
    async with serve(Caching()) as service:
        service.kept = set()  # type: ignore[attr-defined]
        url = service.url.removesuffix("/v1")
        job = write_job(tmp_path / "job.yaml", url)
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        bill: Fraction = service.bill  # type: ignore[attr-defined]
        assert ended.facts["cost_usd"] == pytest.approx(
            float(bill), abs=5e-7
        )  # exact to a millionth of a dollar
        tokens = ended.facts["tokens"]
        assert min(tokens["cache_read"], tokens["cache_write"]) > 0
        shown = await edgen("status", tmp_path / "run")
        assert (
            f"({tokens['cache_read']:,} read from and {tokens['cache_write']:,} written to the prompt cache)"
            in shown.out
        )
        again = await edgen("estimate", job, "--runs", tmp_path, "--json")
        assert again.facts["prices"][0]["cache_write"] == 3.75
        # Under a cap, every call may write its whole prompt to the cache: the bill stays below the cap.
        service.kept, service.bill = set(), Fraction(0)  # type: ignore[attr-defined]
        cap = float(bill) / 2
        limits = {"in_flight": 3, "max_cost": cap}
        capped = write_job(tmp_path / "capped.yaml", url, limits=limits)
        stopped = await edgen("generate", capped, "-o", tmp_path / "capped", "--json")
        assert stopped.code == 4, stopped.err
        assert 0 < service.bill <= Fraction(cap)  # type: ignore[attr-defined]
        # A run without a cache gives the same files.
        plain = write_job(tmp_path / "plain.yaml", url, backends=json.loads(job.read_text())["backends"])
        text = plain.read_text().replace('"prompt_cache": "5m"', '"prompt_cache": null')
        plain.write_text(text)
        without = await edgen("generate", plain, "-o", tmp_path / "plain", "--json")
        assert "cache_read" not in without.facts["tokens"]
        made, cached = files(tmp_path / "plain"), files(tmp_path / "run")
        assert made.pop("manifest.json") != cached.pop("manifest.json"), "which holds the job's settings"
        assert made == cached
