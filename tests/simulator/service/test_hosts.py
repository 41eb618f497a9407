"""A page whose own host name resolves to this machine gets no answer."""

from __future__ import annotations

import aiohttp
import pytest

from edgen.simulator.service.hosts import Hosts
from edgen.simulator.service.server import serve_options
from tests.simulator.server import options

pytestmark = pytest.mark.integration

OPTION = "--allow-host NAME"
OWN = ["localhost", "LOCALHOST:8377", "127.0.0.1", "127.0.0.1:8377", "127.8.9.1", "[::1]:8377", "a.localhost", "localhost.",
       "[::ffff:127.0.0.1]:1"]  # fmt: skip
OTHERS = ["evil.example", "evil.example:8377", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.5", "0.0.0.0",
          "[::]", "", " ", ":8377", "[", "127.0.0.1@evil.example", "notlocalhost", "2130706433", "evil.example\x1b"]  # fmt: skip


@pytest.mark.parametrize("host", OWN)
def test_this_machine_is_answered(host: str) -> None:
    for listens_on in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.168.1.5"):
        assert Hosts(listens_on, OPTION).explain_refusal({"Host": host}) is None
        assert Hosts(listens_on, OPTION).explain_refusal({"Host": host, "Origin": f"http://{host}"}) is None


@pytest.mark.parametrize("host", OTHERS)
def test_another_name_is_not(host: str) -> None:
    said = Hosts("127.0.0.1", OPTION).explain_refusal({"Host": host})
    assert said is not None
    assert said.isascii()
    assert said.isprintable()
    assert OPTION in said


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://localhost:1.evil.example",
        "file://",
        "x",
    ],
)
def test_a_page_of_elsewhere_is_not(origin: str) -> None:
    said = Hosts("0.0.0.0", OPTION).explain_refusal({"Host": "127.0.0.1:8377", "Origin": origin})
    assert said is not None
    assert origin in said


def test_where_it_listens_and_what_is_allowed_is_answered() -> None:
    assert Hosts("192.168.1.5", OPTION).explain_refusal({"Host": "192.168.1.5:8377"}) is None
    assert Hosts("192.168.1.5", OPTION).explain_refusal({"Host": "192.168.1.6:8377"}) is not None
    assert Hosts("fe80::1", OPTION).explain_refusal({"Host": "[fe80::1]:8377"}) is None
    assert Hosts("box.lan", OPTION).explain_refusal({"Host": "BOX.lan:8377"}) is None
    assert (
        Hosts("127.0.0.1", OPTION, ["simulator"]).explain_refusal(
            {"Host": "Simulator:8377", "Origin": "http://simulator"}
        )
        is None
    )
    assert Hosts("127.0.0.1", OPTION, ["simulator"]).explain_refusal({"Host": "simulator2"}) is not None


def test_on_every_address_any_in_digits_is_its_own_and_no_name_is() -> None:
    for listens_on in ("0.0.0.0", "::"):
        assert Hosts(listens_on, OPTION).explain_refusal({"Host": "192.168.1.5:8377"}) is None
        assert Hosts(listens_on, OPTION).explain_refusal({"Host": "[fe80::1]:8377"}) is None
        assert Hosts(listens_on, OPTION).explain_refusal({"Host": "evil.example"}) is not None


def test_a_request_without_a_host_comes_from_no_browser() -> None:
    assert Hosts("127.0.0.1", OPTION).explain_refusal({}) is None


async def test_the_server_refuses_with_a_sentence_whatever_is_asked() -> None:
    async with (
        serve_options(options(allow_hosts=("box.lan",))) as address,
        aiohttp.ClientSession() as session,
    ):
        for path in (
            "/",
            "/v1/models",
            "/v1/chat/completions",
            "/v1/files",
            "/v1beta/models/m:generateContent",
        ):
            async with session.get(f"{address}{path}", headers={"Host": "evil.example"}) as response:
                assert response.status == 403
                assert "'evil.example'" in (await response.json())["error"]["message"]
        for headers in ({"Host": "box.lan"}, {"Host": "localhost:1"}, {"Origin": address}, {}):
            async with session.get(f"{address}/v1/models", headers=headers) as response:
                assert response.status == 200
        async with session.get(f"{address}/v1/models", headers={"Origin": "http://evil.example"}) as response:
            assert response.status == 403
