"""Pictures in requests: each service's wire format, with a server that keeps its requests and with the
simulator's server, which accepts real pictures only."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from edgen.config.backends import find_features, find_prices
from edgen.core.errors import InputError
from edgen.core.pictures import (
    MOST_BYTES,
    PromptPicture,
    lower_pictures,
    pictures_in,
    read_picture,
    refuse_pictures,
    without_pictures,
)
from edgen.core.values import Message
from edgen.providers import make
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.base import Key, Link
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.vertex.config import VertexConfig
from edgen.providers.vertex.online import VertexBackend
from edgen.simulator.service.anthropic import MESSAGES
from edgen.simulator.service.dialect import BadCall
from edgen.simulator.service.gemini import GEMINI
from edgen.simulator.service.openai_chat import CHAT
from edgen.simulator.text import respond
from tests import pictures
from tests.providers.fakes import TRUSTING, FakeServer, answer, request

KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "k-0123456789abcdef")
OF_OPENAI = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
OF_ANTHROPIC = {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
OF_GOOGLE = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}


def shown(size: int = 8) -> PromptPicture:
    return read_picture(pictures.png(size, 6))


def b64(picture: PromptPicture) -> str:
    return base64.b64encode(picture.data).decode()


def backend(kind: str, url: str, **more: Any) -> Any:
    link = Link(5, 4, {**KEYS, **TRUSTING})
    if kind == "vertex":
        config = VertexConfig(model="m", project="p-123456", base_url=url, **more)
        return VertexBackend(config, Key(), link)
    made: Any = {"openai": OpenAIConfig, "anthropic": AnthropicConfig, "gemini": GeminiConfig}[kind]
    return make(made(model="m", base_url=url, **more), timeout=60, connections=4, environ=link.environ)


async def sent(fake: FakeServer, kind: str, *texts: str, system: str | None = None, **more: Any) -> Any:
    """Send a request with these messages; return its body as the service receives it."""
    reply = {"openai": OF_OPENAI, "anthropic": OF_ANTHROPIC}.get(kind, OF_GOOGLE)
    fake.says(answer(reply))
    it = backend(kind, fake.url, **more)
    try:
        assert (await it.complete(request(*texts, system=system))).text == "hi"
    finally:
        await it.aclose()
    return fake.seen[-1].json


async def test_openai_gets_image_urls_with_data(fake: FakeServer) -> None:
    one, two = shown(), shown(9)
    body = await sent(fake, "openai", f"Look: {one.mark} and {two.mark}. Which?", system="Be short.")
    assert body["messages"] == [
        {"role": "system", "content": "Be short."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look: "},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(one)}"}},
                {"type": "text", "text": " and "},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(two)}"}},
                {"type": "text", "text": ". Which?"},
            ],
        },
    ]
    read = CHAT.read(json.dumps(body).encode())
    assert read.messages[1].content == "Look: \n[a picture]\n and \n[a picture]\n. Which?"


async def test_anthropic_gets_image_blocks(fake: FakeServer) -> None:
    one = read_picture(pictures.jpeg(40, 30))
    body = await sent(fake, "anthropic", f"{one.mark}\nWhat is it?", system="Be short.", max_tokens=9)
    assert body["system"] == "Be short."
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": b64(one)}},
                {"type": "text", "text": "\nWhat is it?"},
            ],
        }
    ]
    assert MESSAGES.read(json.dumps(body).encode()).messages[1].content == "[a picture]\n\nWhat is it?"


async def test_anthropic_s_prompt_cache_ends_with_a_picture(fake: FakeServer) -> None:
    one = shown()
    said = ("Look.", "I see nothing.", f"Now: {one.mark}")
    body = await sent(fake, "anthropic", *said, max_tokens=9, prompt_cache="5m")
    last = body["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["text", "image"]
    assert [block.get("cache_control") for block in last] == [None, {"type": "ephemeral"}]


@pytest.mark.parametrize("kind", ["gemini", "vertex"])
async def test_google_gets_inline_data(fake: FakeServer, kind: str) -> None:
    one = read_picture(pictures.webp(40, 30))
    body = await sent(fake, kind, f"Look: {one.mark}", system="Be short.")
    assert body["systemInstruction"] == {"parts": [{"text": "Be short."}]}
    image = {"inlineData": {"mimeType": "image/webp", "data": b64(one)}}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Look: "}, image]}]
    read = GEMINI.read(json.dumps(body).encode(), "m", stream=False)
    assert read.messages[1].content == "Look: \n[a picture]"


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini", "vertex"])
async def test_a_picture_of_a_system_message_goes_to_the_user(fake: FakeServer, kind: str) -> None:
    """No service accepts pictures in system messages."""
    one = shown()
    more = {"max_tokens": 9} if kind == "anthropic" else {}
    body = await sent(fake, kind, "Begin.", system=f"You see {one.mark} and {one.mark}.", **more)
    text = json.dumps(body)
    assert text.count(b64(one)) == 1
    assert "You see [picture 1] and [picture 1]." in text
    user = body["messages"][-1]["content"] if "messages" in body else body["contents"][0]["parts"]
    assert [part["text"] for part in user if "text" in part] == ["[picture 1]", "Begin."]
    assert len(user) == 3


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini", "vertex"])
async def test_texts_without_pictures_are_sent_as_before(fake: FakeServer, kind: str) -> None:
    """A mark of an unknown picture, which a model or a person may write, stays text."""
    unknown = f"⟦picture {'0' * 64} image/png 8x6⟧"
    more = {"max_tokens": 9} if kind == "anthropic" else {}
    body = await sent(fake, kind, f"See {unknown}", "Yes", "Then?", **more)
    if "messages" in body:
        assert [one["content"] for one in body["messages"]] == [f"See {unknown}", "Yes", "Then?"]
    else:
        assert body["contents"][0] == {"role": "user", "parts": [{"text": f"See {unknown}"}]}


def test_what_an_assistant_said_has_no_pictures() -> None:
    one = shown()
    (said,) = lower_pictures([Message("assistant", one.mark), Message("user", one.mark)], str, repr)[:1]
    assert said == Message("assistant", one.mark)


def test_a_prompt_of_a_system_alone_gets_a_message_for_its_picture() -> None:
    one = shown()
    system, user = lower_pictures([Message("system", f"See {one.mark}")], str, lambda picture: picture.digest)
    assert system == Message("system", "See [picture 1]")
    assert user == {"role": "user", "content": ["[picture 1]", one.digest]}


# ---- files


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (pictures.png(31, 17), "image/png"),
        (pictures.gif(31, 17), "image/gif"),
        (pictures.jpeg(31, 17), "image/jpeg"),
        (pictures.webp(31, 17), "image/webp"),
    ],
    ids=["png", "gif", "jpeg", "webp"],
)
def test_type_and_size_are_those_of_the_content(data: bytes, media_type: str) -> None:
    found = read_picture(data)
    assert (found.media_type, found.width, found.height) == (media_type, 31, 17)
    assert found.digest in found.mark
    assert pictures_in(f"a {found.mark} b {found.mark}") == [found, found]
    assert without_pictures(f"a {found.mark} b") == "a [a picture] b"
    for end in range(len(data) - 1):
        with pytest.raises(ValueError, match=r"cut off or damaged|not a PNG"):
            read_picture(data[: end + 1] if end > 20 else data[:end])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a PNG, JPEG, GIF or WebP"),
        (b"", "not a PNG"),
        (b"%PDF-1.7", "not a PNG"),
        (pictures.png(9000, 1), "each side has 1 to 8,000"),
        (pictures.gif(0, 5), "each side has 1 to 8,000"),
        (b"\x89PNG\r\n\x1a\n" + bytes(MOST_BYTES), "larger than"),
    ],
    ids=["svg", "empty", "pdf", "wide", "flat", "large"],
)
def test_other_files_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_picture(data)


# ---- models without pictures, and costs


def test_a_backend_that_takes_no_pictures_says_so() -> None:
    takes = {kind: find_features(config).picture_problem(config) for kind, config in configs().items()}
    assert {kind for kind, problem in takes.items() if problem is None} >= {
        "openai", "anthropic", "gemini", "vertex", "simulator",
    }  # fmt: skip
    assert "takes no pictures" in str(takes["llamacpp"])
    with pytest.raises(InputError, match="takes no pictures"):
        refuse_pictures([Message("user", shown().mark)], takes["llamacpp"])
    refuse_pictures([Message("user", "no picture")], takes["llamacpp"])


def configs() -> dict[str, Any]:
    from edgen.providers.llamacpp.config import LlamaCppConfig
    from edgen.simulator.config import SimulatorConfig

    return {
        "openai": OpenAIConfig(model="m"),
        "anthropic": AnthropicConfig(model="m", max_tokens=9),
        "gemini": GeminiConfig(model="m"),
        "vertex": VertexConfig(model="m", project="p-123456"),
        "llamacpp": LlamaCppConfig(model="smollm2"),
        "simulator": SimulatorConfig(),
    }


@pytest.mark.parametrize(
    ("kind", "model", "size", "expected"),
    [
        ("openai", "gpt-4o", (1024, 1024), 765),  # examples in OpenAI's guide
        ("openai", "gpt-4o", (2048, 4096), 1105),
        ("openai", "gpt-4.1-mini", (1024, 1024), 1659),  # 1,024 patches × 1.62
        ("openai", "gpt-4o-mini", (512, 512), 8500),
        ("openai", "some-local-vlm", (280, 280), 100),
        ("anthropic", "claude-sonnet-4-5", (200, 200), 54),  # examples in Anthropic's guide
        ("anthropic", "claude-sonnet-4-5", (1000, 1000), 1334),
        ("gemini", "gemini-2.5-flash", (300, 300), 258),
        ("gemini", "gemini-2.5-flash", (960, 540), 516),
        ("vertex", "gemini-3-pro", (960, 540), 1120),
    ],
)
def test_tokens_of_pictures(kind: str, model: str, size: tuple[int, int], expected: int) -> None:
    picture = PromptPicture("0" * 64, "image/png", *size, b"")
    counted = find_prices(configs()[kind]).picture_tokens(model, picture)
    assert counted.expected == expected
    assert counted.most >= expected


# ---- the simulator


def test_the_simulator_acknowledges_pictures_and_does_not_see_them() -> None:
    one = shown()
    told = respond([Message("user", f"Say the word. {one.mark}")], seed=1)
    assert "⟦" not in told.text
    assert told.simulated
    other = read_picture(pictures.png(8, 6, grey=10))
    assert other.digest != one.digest


@pytest.mark.parametrize("data", ["", "%%%", base64.b64encode(b"no picture").decode()])
def test_the_simulator_s_server_takes_pictures_only(data: str) -> None:
    url = f"data:image/png;base64,{data}"
    part = {"type": "image_url", "image_url": {"url": url}}
    with pytest.raises(BadCall, match="a picture is invalid"):
        CHAT.read(json.dumps({"messages": [{"role": "user", "content": [part]}]}).encode())
    stated = {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{b64(shown())}"}}
    with pytest.raises(BadCall, match="a picture is image/png"):
        CHAT.read(json.dumps({"messages": [{"role": "user", "content": [stated]}]}).encode())
    link = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}}
    with pytest.raises(BadCall, match="a picture is invalid"):
        CHAT.read(json.dumps({"messages": [{"role": "user", "content": [link]}]}).encode())
