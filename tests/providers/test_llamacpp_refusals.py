"""Models that cannot run in edgen's own process: one message each, and no crash."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import CallError, InputError
from edgen.providers import make
from edgen.providers.llamacpp.config import LlamaCppConfig
from edgen.providers.llamacpp.header import read_header
from tests.providers import llama
from tests.providers.fakes import request
from tests.providers.llama import Build


async def refusal(build: Build, path: Path, **settings: Any) -> str:
    """Return the message that refuses a model, when it is named or at its first call."""
    with pytest.raises(InputError) as caught:
        await build(path=str(path), **settings).complete(request("hi"))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.03, 0.2, 0.9, 0.9999])
async def test_a_file_that_is_cut_off(build: Build, weights: Path, tmp_path: Path, share: float) -> None:
    path, data = tmp_path / "cut.gguf", weights.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    said = await refusal(build, path)
    assert "cut off" in said or "not within the file bounds" in said


async def test_files_that_are_no_models(build: Build, weights: Path, tmp_path: Path) -> None:
    data = weights.read_bytes()
    for name, content, words in (
        ("empty", b"", "is empty"),
        ("text", b"hello world", "not a GGUF file"),
        ("old", data[:4] + struct.pack("<I", 1) + data[8:], "version 1 of the format"),
        (
            "odd",
            data.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0zlama", 1),
            "unknown model architecture",
        ),
    ):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(content)
        assert words in await refusal(build, path)
    assert "No such file" in await refusal(build, tmp_path / "missing.gguf")
    assert "directory" in (await refusal(build, tmp_path)).lower()


async def test_no_damage_of_a_header_ends_this_process(build: Build, weights: Path, tmp_path: Path) -> None:
    data, rng = weights.read_bytes(), random.Random(5)
    # A known abort: two tokens of the vocabulary become one.
    known = bytearray(data)
    place = data.index(b"\x01\0\0\0\0\0\0\0A\x01\0\0\0\0\0\0\0B")
    known[place + 8] = ord("B")
    damaged = [bytes(known)]
    for _ in range(12):
        one = bytearray(data)
        for _ in range(rng.choice([1, 2, 4])):
            one[rng.randrange(24, data.index(b"output.weight") + 2000)] = rng.randrange(256)
        damaged.append(bytes(one))
    refused = 0
    for number, content in enumerate(damaged):
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(content)
        try:
            await build(path=str(path)).complete(request("hi"))
        except (InputError, CallError):
            refused += 1
    assert refused > 3
    assert "signal" in await refusal(build, tmp_path / "0.gguf")


async def test_one_larger_than_the_memory(build: Build, weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(weights.read_bytes())
    with path.open("r+b") as file:
        file.truncate(1 << 43)  # a sparse file of 8 TB
    said = await refusal(build, path)
    assert "8,796.1 GB for its weights" in said
    assert "this machine has" in said
    said = await refusal(build, weights, context=10_000_000, slots=500)
    assert "1,280.0 GB for a context of 5,000,000,000 tokens" in said


async def test_a_model_without_a_chat_template_takes_one(build: Build, weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "base.gguf"
    path.write_bytes(weights.read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_templatx"))
    assert read_header(path).chat_template is None
    assert "chat_template" in await refusal(build, path)
    file = tmp_path / "chat.jinja"
    file.write_text(llama.CHAT_TEMPLATE)
    usual = await build(temperature=0).complete(request("hi"))
    for template in (llama.CHAT_TEMPLATE, str(file)):
        it = build(path=str(path), temperature=0, chat_template=template)
        assert (await it.complete(request("hi"))).text == usual.text
    for wrong in ("{{ nothing( }}", "{{ raise_exception(1) }}"):
        assert "the chat template fails (" in await refusal(build, path, chat_template=wrong)
    secret = tmp_path / "secret"
    secret.write_text("my key")
    (tmp_path / "link.jinja").symlink_to(secret)
    for name in ("secret", "link.jinja", "missing.jinja"):
        with pytest.raises(InputError, match=r"chat.template"):
            build(path=str(path), chat_template=str(tmp_path / name))


async def test_one_of_several_parts(build: Build, weights: Path, tmp_path: Path) -> None:
    import gguf

    path = tmp_path / "part.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "one of 3 parts" in await refusal(build, path)


class _Without:
    """An import finder without xllamacpp, as if it were not installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "xllamacpp":
            raise ImportError


def test_without_the_library(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [_Without(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(
        InputError, match=r"need xllamacpp, of the extra 'local'.* (pip install|uv sync) .*local"
    ):
        make(LlamaCppConfig(path=str(weights)), timeout=1, connections=1, environ={})
