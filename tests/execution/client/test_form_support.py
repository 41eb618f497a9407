"""The form of answers that a service supports, when several calls detect it at once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from edgen.core.errors import CallError, FailureKind
from edgen.core.forms import form, probability, text
from edgen.core.values import Address, Message, Reply, Request
from edgen.execution.client.form_support import FormSupport, Way
from tests.clock import run_virtual

pytestmark = pytest.mark.unit

FORM = form(text=text(), probability=probability())
ASKED = Request(
    Address(0, 0), (Message("user", "?"),), seed=1, schema=FORM.schema, prose=(Message("user", "in words?"),)
)


@pytest.mark.parametrize("bounds", [True, False])
def test_a_refusal_that_comes_after_another_call_has_found_the_way_loses_no_call(*, bounds: bool) -> None:
    """Call n is answered after n seconds: the slow calls are refused long after the fast one was answered."""
    support = FormSupport("default", "x")

    async def complete(request: Request) -> Reply:
        await asyncio.sleep(request.seed)
        if request.schema is not None and (bounds or b"maxLength" in request.schema):
            raise CallError(FailureKind.BAD_REQUEST, "response_format is not supported", status=400)
        return Reply('{"text": "yes", "probability": 0.5}')

    async def main() -> list[Reply]:
        asked = [msgspec.structs.replace(ASKED, seed=10**power) for power in range(4)]
        return await asyncio.gather(*(support.complete(request, complete) for request in asked))

    assert len(run_virtual(main())) == 4
    assert support.way == ("prose" if bounds else "no_bounds")


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("schema", "by a JSON Schema with text and probability"),
        ("no_bounds", "by a JSON Schema, without bounds, with text and probability"),
        ("plain", "by a JSON Schema of names, types and values with text and probability"),
        ("prose", "in words alone, since the service takes no schema"),
    ],
)
def test_the_form_is_described_as_it_is_sent(way: Way, said: str) -> None:
    support = FormSupport("default", "x")
    support.restore(way)
    assert support.describe(ASKED) == said
    own = msgspec.structs.replace(ASKED, schema=None, prose=())
    assert support.describe(own) == "in the template's own words"
    required = msgspec.structs.replace(ASKED, prose=())
    assert support.describe(required) == "by a JSON Schema with text and probability"
