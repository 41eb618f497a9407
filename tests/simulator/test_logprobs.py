"""Log probabilities: the client's list for each token, and a judge's confidence in its verdict."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest

from edgen.core.values import Address, Message, Request
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.answers.verdict_logprobs import Bounds, read_preference
from edgen.simulator import judge
from edgen.simulator.backend import Simulator
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.service.server import serve_options
from tests.late import Late
from tests.simulator import lessons
from tests.simulator.prompts import prompt
from tests.simulator.sdks import openai_client
from tests.simulator.server import options

openai = Late("openai")

pytestmark = pytest.mark.integration

ASKED: Any = {
    "model": "m",
    "messages": [{"role": "user", "content": prompt()[0].content}],
    "temperature": 0,
    "logprobs": True,
}
GOOD = "Teacher: What do you think happens next?\nStudent: Oh, I see! So if I push it, it moves. Thank you, that's fun."
BAD = "Teacher: You never listen, it's your fault.\nStudent: This is stupid and boring. I give up."


def client(address: str) -> openai.AsyncOpenAI:
    return openai_client(address, timeout=60)


def judging(first: str, second: str) -> tuple[Message, ...]:
    return lessons.template("oracle_conversation").messages(
        {"conversation_1": first, "conversation_2": second}
    )


def leaning(first: str, second: str) -> float:
    """Return the judge's preference for the first text."""
    asked = judging(first, second)
    found = judge.compute_leaning(asked, "1", None) or judge.compute_leaning(asked, "2", None)
    assert found is not None
    return found


async def first_token(api: openai.AsyncOpenAI, first: str, second: str, **more: Any) -> dict[str, float]:
    """Return the probabilities at the first token of a verdict."""
    messages = [{"role": one.role, "content": one.content} for one in judging(first, second)]
    answer = await api.chat.completions.create(**{**ASKED, "messages": messages, "top_logprobs": 20, **more})
    listed = answer.choices[0].logprobs
    assert listed is not None
    assert listed.content
    return {likely.token: math.exp(likely.logprob) for likely in listed.content[0].top_logprobs}


async def soft(api: openai.AsyncOpenAI, first: str, second: str, **more: Any) -> float:
    """Return the preference for the first text, as a client that judges with log probabilities reads it."""
    found = await first_token(api, first, second, **more)
    return found["1"] / (found["1"] + found["2"])


@pytest.mark.parametrize("top", [0, 1, 5, 20])
async def test_each_token_has_its_probability(address: str, top: int) -> None:
    async with client(address) as api:
        answer = await api.chat.completions.create(**ASKED, top_logprobs=top)
        again = await api.chat.completions.create(**ASKED, top_logprobs=top)
    assert answer.choices == again.choices
    listed = answer.choices[0].logprobs
    assert listed is not None
    assert listed.content is not None
    assert answer.usage is not None
    assert len(listed.content) == answer.usage.completion_tokens
    assert "".join(one.token for one in listed.content) == answer.choices[0].message.content
    for one in listed.content:
        assert bytes(one.bytes or ()) == one.token.encode()
        assert len(one.top_logprobs) == top
        logs = [likely.logprob for likely in one.top_logprobs]
        assert logs == sorted(logs, reverse=True)
        assert sum(map(math.exp, logs)) <= 1
        assert not top or (one.token, one.logprob) in [(it.token, it.logprob) for it in one.top_logprobs]
        assert len({likely.token for likely in one.top_logprobs}) == top


async def test_they_change_no_answer_and_are_not_told_unasked(address: str) -> None:
    async with client(address) as api:
        scored = await api.chat.completions.create(**ASKED)
        plain = await api.chat.completions.create(**{**ASKED, "logprobs": False})
    assert scored.choices[0].message == plain.choices[0].message
    assert plain.choices[0].logprobs is None


async def test_a_stream_brings_the_same_tokens(address: str) -> None:
    async with client(address) as api:
        whole = await api.chat.completions.create(**ASKED, top_logprobs=3)
        stream = await api.chat.completions.create(**ASKED, top_logprobs=3, stream=True)
        chunks = [chunk.choices[0] async for chunk in stream]
    listed = whole.choices[0].logprobs
    assert listed is not None
    told = [one for chunk in chunks if chunk.logprobs for one in chunk.logprobs.content or ()]
    assert told == listed.content
    for chunk in chunks:
        if chunk.logprobs:
            assert "".join(one.token for one in chunk.logprobs.content or ()) == chunk.delta.content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"top_logprobs": 21}, "Between 0 and 20"),
        ({"top_logprobs": -1}, "Between 0 and 20"),
        ({"top_logprobs": 2, "logprobs": False}, "needs 'logprobs': true"),
    ],
)
async def test_what_no_service_tells_is_refused(address: str, change: dict[str, Any], said: str) -> None:
    async with client(address) as api:
        with pytest.raises(openai.BadRequestError, match=said):
            await api.chat.completions.create(**{**ASKED, **change})


async def test_a_refusal_has_its_own_and_a_call_none() -> None:
    async with serve_options(options(faults="refusal=1")) as address, client(address) as api:
        answers = [await api.chat.completions.create(**ASKED, seed=i) for i in range(20)]
    for answer in answers:
        choice = answer.choices[0]
        listed = choice.logprobs
        assert listed is not None
        assert "".join(one.token for one in listed.refusal or ()) == (choice.message.refusal or "")
        assert "".join(one.token for one in listed.content or ()) == (choice.message.content or "")


async def test_responses_tell_them_where_they_are_included(address: str) -> None:
    asked: Any = {"model": "m", "input": prompt()[0].content, "temperature": 0}
    included: Any = {"include": ["message.output_text.logprobs"], "top_logprobs": 4}
    async with client(address) as api:
        chat = await api.chat.completions.create(**ASKED, top_logprobs=4)
        answer: Any = await api.responses.create(**asked, **included)
        plain: Any = await api.responses.create(**asked)
        async with api.responses.stream(**asked, **included) as stream:
            events = [event async for event in stream if event.type == "response.output_text.delta"]
    listed = chat.choices[0].logprobs
    assert listed is not None
    told = answer.output[0].content[0].logprobs
    assert [one.to_dict() for one in told] == [one.to_dict() for one in listed.content or ()]
    assert [one.token for event in events for one in event.logprobs] == [one.token for one in told]
    assert plain.output[0].content[0].logprobs == []


# --- verdicts ------------------------------------------------------------------------------------


async def test_a_verdict_tells_how_sure_the_judge_is(address: str) -> None:
    async with client(address) as api:
        for seed in range(40):  # some verdicts have text around them
            found = await first_token(api, GOOD, BAD, seed=seed)
            assert sum(found.values()) <= 1
            assert found["1"] > 0.5 > found["2"]
            one = await soft(api, GOOD, BAD, seed=seed)
            assert one == pytest.approx(1 - await soft(api, BAD, GOOD, seed=seed))
            assert one == pytest.approx(await soft(api, GOOD, BAD, seed=seed, max_tokens=1))


@pytest.mark.parametrize("json_mode", [False, True])
async def test_the_number_itself_tells_the_same_however_it_is_dressed(json_mode: bool) -> None:
    """In words, and in JSON, where the first token is a bracket, the number is the same."""
    played = [lessons.shown(lessons.play(lessons.scenarios(2, seed=32)[0], 5_000 + k)[0]) for k in range(2)]
    asked = judging(*played)
    schema = b'{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}'
    backend = Simulator(SimulatorConfig(), timeout=60)
    said: set[str] = set()
    found: list[Any] = []
    for seed in range(40):
        request = Request(Address(0, 0), asked, seed=seed, logprobs=20, schema=schema if json_mode else None)
        reply = await backend.complete(request)
        said.add(reply.text)
        if (choice := read_verdict(reply.text)) is not None:  # bold text is not valid in JSON
            told = read_preference(reply.text, choice, reply.tokens)
            assert isinstance(told, Bounds)
            found.append(told.preference)
    assert len(said) > 3
    assert len(found) > 30
    expected = leaning(*played)
    assert 0.02 < expected < 0.98
    assert found == pytest.approx([expected] * len(found), abs=1e-5)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("judge_first", (0.97, 0.97)),
        ("judge_second", (0.03, 0.03)),
        ("judge_longer", (0.97, 0.03)),
    ],
)
async def test_a_biased_judge_is_sure_of_what_it_picks(fault: str, expected: tuple[float, float]) -> None:
    async with serve_options(options(faults=f"{fault}=1")) as address, client(address) as api:
        both = await soft(api, GOOD, BAD), await soft(api, BAD, GOOD)
    assert both == pytest.approx(expected)


async def test_a_noisy_judge_believes_what_it_says() -> None:
    async with serve_options(options(faults="judge_noise=1")) as address, client(address) as api:
        assert await soft(api, GOOD, BAD) < 0.2
    async with serve_options(options(faults="judge_both=1")) as address, client(address) as api:
        assert "1" not in await first_token(api, GOOD, BAD)


@pytest.mark.only_long
def test_soft_preferences_are_calibrated() -> None:
    """Soft preferences are calibrated.

    Of two self-play conversations of a scenario, the closing judge rates the preferred one higher as often as
    the preference states. The tests above check how clients get the preference.
    """
    judged: list[tuple[float, float]] = []
    for i, known in enumerate(lessons.scenarios(140, seed=31)):
        played = [lessons.play(known, 5_000 + 3 * i + k)[0] for k in range(3)]
        stated = [float(lessons.judged(known["topic"], said, 3 * i + k)) for k, said in enumerate(played)]
        for one, other in combinations(range(3), 2):
            first = leaning(lessons.shown(played[one]), lessons.shown(played[other]))
            won = stated[one] - stated[other]
            judged.append((first, 0.5 if won == 0 else float(won > 0)))
    sure = [(p, won) if p >= 0.5 else (1 - p, 1 - won) for p, won in judged]
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        found = [pair for pair in sure if low <= pair[0] < high]
        assert len(found) > 60
        expected, share = (sum(column) / len(found) for column in zip(*found, strict=True))
        assert share == pytest.approx(expected, abs=0.09)
