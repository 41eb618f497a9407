"""The number of calls that a local server answers at once: servers that report it, and
others, which get no request."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgen.config import Limits
from edgen.core.errors import CallError
from edgen.execution.client.admission import Admission
from edgen.execution.client.fleet import FleetServers
from edgen.providers import make
from edgen.providers.base import Backend, CountsSlots
from edgen.providers.openai.config import OpenAIConfig
from tests.execution.service import serve
from tests.execution.slotted import SlottedServer
from tests.providers import llama
from tests.providers.fakes import TRUSTING

LLAMA = {"/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4, "chat_template": "…"}}
SGLANG = {
    "max_running_requests": 9,
    "internal_states": [
        {"effective_max_running_requests_per_dp": 48},
        {"effective_max_running_requests_per_dp": 48},
    ],
}
VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0.0
# TYPE vllm:max_num_seqs gauge
vllm:max_num_seqs{engine="0",model_name="m"} 24.0
"""
TWO_ENGINES = """# TYPE vllm:max_num_seqs gauge
vllm:max_num_seqs{engine="0",model_name="m"} 24.0
vllm:max_num_seqs{engine="1",model_name="m"} 24.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
"""
RANKS = """# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",dp_rank="0",tp_rank="0"} 5.0
# TYPE sglang:max_running_requests gauge
sglang:max_running_requests{model_name="m",dp_rank="0",tp_rank="0"} 48.0
sglang:max_running_requests{model_name="m",dp_rank="0",tp_rank="1"} 48.0
sglang:max_running_requests{model_name="m",dp_rank="1",tp_rank="0"} 48.0
"""


@contextlib.asynccontextmanager
async def backend(
    url: str, environ: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[CountsSlots]:
    config = OpenAIConfig(model="m", base_url=url, **settings)
    made: Backend = make(config, timeout=60, connections=2, environ=environ or {})
    assert isinstance(made, CountsSlots)
    yield made
    await made.aclose()


@pytest.mark.parametrize(
    ("pages", "slots"),
    [
        (LLAMA, 4),
        ({"/slots": [{"id": 0, "is_processing": False}, {"id": 1, "is_processing": True}]}, 2),
        ({"/get_server_info": SGLANG}, 96),
        ({"/server_info": {"max_running_requests": 32, "internal_states": [{}]}}, 32),
        ({"/metrics": VLLM}, 24),
        ({"/metrics": 'vllm:scheduler_config_info{max_num_seqs="16",policy="fcfs"} 1.0\n'}, 16),
        ({"/metrics": TWO_ENGINES}, 48),
        ({"/metrics": TWO_ENGINES.replace("\n", "\r\n")}, 48),
        ({"/metrics": RANKS}, 96),
        ({"/metrics": "sglang_max_running_requests 2.56e+02\n"}, 256),
        ({"/metrics": 'vllm:max_num_seqs{model_name="a \\"} 9\\" b"} 7.0 1764268000000\n'}, 7),
        ({"/metrics": "vllm:max_num_seqs NaN\nvllm:max_num_seqs{engine=\"1\"} +Inf\n"}, None),
        ({"/metrics": "# vllm:max_num_seqs 24\nmy_max_num_seqs 24\n"}, None),
        ({"/metrics": 'vllm:num_requests_running{engine="0"} 7.0\n'}, None),
        ({"/props": {"total_slots": 0}, "/slots": []}, None),
        ({"/props": {"total_slots": "many"}, "/metrics": "<html>a page</html>"}, None),
        ({}, None),
    ],
)  # fmt: skip
async def test_servers_say_how_many_calls_they_answer_at_once(
    pages: dict[str, Any], slots: int | None
) -> None:
    async with serve(SlottedServer(pages=pages)) as server, backend(server.url) as asked:
        assert await asked.slots() == slots


@pytest.mark.parametrize("path", ["", "/v1", "/v1/"])
async def test_the_address_may_end_with_the_version(path: str) -> None:
    async with serve(SlottedServer(pages=LLAMA)) as server, backend(server.url[:-3] + path) as asked:
        assert await asked.slots() == 4


async def test_a_server_behind_a_path_is_asked_there() -> None:
    pages = {"/llm" + path: page for path, page in LLAMA.items()}
    async with serve(SlottedServer(pages=pages)) as server, backend(server.url[:-3] + "/llm/v1") as asked:
        assert await asked.slots() == 4


async def test_no_server_that_gets_a_key_is_asked() -> None:
    for environ, settings in (
        ({"OPENAI_API_KEY": "sk-local-1234"}, {}),
        ({"MINE": "sk-local-1234"}, {"headers": {"X-Key": "${MINE}"}}),
        (
            {"EDGEN_TRUSTED_HOSTS": "'127.0.0.1=!printf sk-local-1234'"},
            {"key_command": ("printf", "sk-local-1234")},
        ),
    ):
        async with (
            serve(SlottedServer(pages=LLAMA)) as server,
            backend(server.url, environ={**TRUSTING, **environ}, **settings) as asked,
        ):
            assert await asked.slots() is None, settings
            assert not server.looked_at


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "https://llm.example.com/v1", "http://8.8.8.8/v1"]
)
async def test_no_hosted_service_is_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with backend(url, auth="none") as asked:
        http: Any = asked._http  # type: ignore[attr-defined]

        async def get(_url: object) -> bytes:
            raise AssertionError("it was asked")

        monkeypatch.setattr(http, "get", get)
        assert await asked.slots() is None


async def test_a_server_that_loads_may_say_later() -> None:
    pages: dict[str, Any] = {}
    async with serve(SlottedServer(pages=pages, loading=True)) as server, backend(server.url) as asked:
        with pytest.raises(CallError, match="Loading model"):
            await asked.slots()
        server.loading = False
        pages.update(LLAMA)
        assert await asked.slots() == 4


async def test_each_of_several_servers_says_its_slots() -> None:
    async with (
        serve(SlottedServer(pages=LLAMA)) as one,
        serve(SlottedServer(pages={"/props": {"total_slots": 2}})) as other,
        serve(SlottedServer()) as silent,
    ):
        urls = (one.url, other.url, silent.url)
        made = make(
            OpenAIConfig(model="m", base_url=urls[0], more_base_urls=urls[1:]),
            timeout=60, connections=2, environ={},
        )  # fmt: skip
        limits, kind = Limits(in_flight=256), "openai"
        admission = Admission(limits)
        servers = FleetServers(made, made.model, kind, 30.0, admission)
        await servers.learn()
        assert [lane.window.slots for lane in servers.lanes] == [4, 2, None]
        assert [lane.window.size for lane in servers.lanes] == [4, 2, 32]
        assert (admission.window, admission.slots) == (38, None)
        await made.aclose()


async def test_a_real_server_says_it(tmp_path: Path) -> None:
    with llama.running(tmp_path, key="") as server:
        async with backend(server.base_url) as asked:
            assert await asked.slots() == 2
