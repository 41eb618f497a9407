"""An answer is requested until it is valid: placeholders and echoes fail.

The same request is never repeated at temperature 0.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgen.config.backends import BackendConfig
from edgen.core.errors import CallError, FailureKind
from edgen.core.forms import form, text, turn_form
from edgen.core.values import (
    Address,
    Conversation,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Turn,
)
from edgen.protocols.base import Question, Rules, ask
from edgen.protocols.gated import try_until_passed
from edgen.providers.function import FunctionConfig
from edgen.providers.llamacpp.config import LlamaCppConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.reading.one_turn.reader import read_turn
from edgen.simulator.provider import SimulatorConfig

WORDS = (Message("user", "Say something nice about bees."),)
FORM = form(text=text())
NO = Rejection(RejectionReason.UNREAD, "it is no answer")


def rules(backend: BackendConfig | None, asks: int = 4) -> Rules:
    return Rules(asks=asks, seed=7, backends={} if backend is None else {"default": backend})


def openai(**settings: Any) -> OpenAIConfig:
    return OpenAIConfig(model="m", **settings)


def refused(
    how: Rules, question: Question | None = None, reply: Reply | CallError | None = None
) -> tuple[Rejection, list[Request]]:
    """Return the result of answers that are never valid, and every request."""
    read = (
        (lambda _: msgspec.structs.replace(NO, reason=RejectionReason.TRUNCATED)) if reply else (lambda _: NO)
    )
    work = ask(question or Question(Address(0, 0), WORDS, "p"), how, read)
    return answered(work, reply if isinstance(reply, Reply) else Reply("?"))


def answered(work: Any, reply: Reply = Reply("?")) -> tuple[Any, list[Request]]:  # noqa: B008 - immutable
    """Return the result of work whose requests all get one reply, and every request."""
    asked = [next(work)]
    while True:
        try:
            asked.append(work.send(reply))
        except StopIteration as end:
            return end.value, asked


@pytest.mark.parametrize(
    ("backend", "requests"),
    [
        (openai(temperature=0), 1),
        (openai(temperature=0, seed=5), 1),
        (openai(temperature=0, seed="auto"), 4),  # each request has a seed of its own
        (openai(), 4),  # the service's default is unknown
        (openai(temperature=0.1), 4),
        (openai(extra_body={"temperature": 0}), 1),
        (openai(temperature=0, extra_body={"temperature": 1}), 4),
        (LlamaCppConfig(model="m", temperature=0), 1),  # a seed has no effect
        (LlamaCppConfig(model="m", temperature=0.1), 4),
        (SimulatorConfig(temperature=0), 4),
        (FunctionConfig(model="f", temperature=0), 4),
        (None, 4),
    ],
)
def test_the_same_request_is_not_repeated_at_temperature_0(
    backend: BackendConfig | None, requests: int
) -> None:
    found, asked = refused(rules(backend))
    assert len(asked) == requests
    assert found.reason == NO.reason
    assert ("temperature 0" in found.detail) is (requests == 1)


def test_it_may_be_sent_in_another_form_once() -> None:
    question = Question(Address(0, 0), WORDS, "p", form=FORM)
    found, (first, second) = refused(rules(openai(temperature=0)), question)
    assert first.schema == FORM.schema
    assert (second.schema, second.messages, second.prose) == (None, WORDS, ())
    assert second.other_form
    assert "temperature 0" in found.detail
    # A required form is never left out.
    _, asked = refused(rules(openai(temperature=0)), question._replace(form=FORM._replace(required=True)))
    assert len(asked) == 1


def test_a_service_that_takes_no_schema_was_asked_in_words_before() -> None:
    work = ask(Question(Address(0, 0), WORDS, "p", form=FORM), rules(openai(temperature=0)), lambda _: NO)
    next(work)
    assert work.send(Reply("?")).other_form
    with pytest.raises(StopIteration) as end:
        work.throw(CallError(FailureKind.BAD_REQUEST, "sent in words before"))
    assert end.value.value == NO


def test_more_room_makes_another_request() -> None:
    cut = Reply("Bees are", "length")
    assert len(refused(rules(openai(temperature=0, max_tokens=5)), reply=cut)[1]) == 1
    larger = openai(temperature=0, max_tokens=5, retry_max_tokens=50)
    _, asked = refused(rules(larger), reply=cut)
    assert [larger.room(request.max_tokens_scale) for request in asked] == [5, 50]


def test_a_conversation_that_fails_a_gate_is_not_made_again_at_temperature_0() -> None:
    def start(_: Rules) -> Any:
        yield Question(Address(0, 0), WORDS, "p").request(Address(0, 0), 7)
        return Conversation((Turn("A", "Hi."), Turn("B", "Ho.")))

    def decide(_: Conversation, __: Rules) -> Any:
        return Rejection(RejectionReason.GATE, "too short")
        yield

    for backend, requests in ((openai(temperature=0), 1), (openai(), 4)):
        found, asked = answered(try_until_passed(start, rules(backend), decide))
        assert len(asked) == requests
        assert found.reason == "gate"


def test_placeholders_and_echoes_are_rejected_whatever_reads_the_answer() -> None:
    def read(reply: Reply) -> Any:
        return read_turn(reply.text, "Teacher")

    for said, reason in (
        ("text", "placeholder"),
        ("Say something nice about bees.", "echo"),
        ("\n".join(["They buzz a lot."] * 5), "loop"),
    ):
        work = ask(Question(Address(0, 0), WORDS, "p", form=turn_form()), rules(None), read)
        next(work)
        again = work.send(Reply(msgspec.json.encode({"text": said}).decode()))
        assert again.retry_reason == reason
        with pytest.raises(StopIteration) as end:
            work.send(Reply("They make honey."))
        assert end.value.value.text == "They make honey."


def test_of_several_texts_the_hollow_ones_are_left_out() -> None:
    work = ask(
        Question(Address(0, 0), WORDS, "p"), rules(None), lambda _: ["...", "They make honey.", "a text"]
    )
    next(work)
    with pytest.raises(StopIteration) as end:
        work.send(Reply("?"))
    assert end.value.value == ["They make honey."]
    work = ask(Question(Address(0, 0), WORDS, "p"), rules(None, asks=1), lambda _: ["...", "a text"])
    next(work)
    with pytest.raises(StopIteration) as end:
        work.send(Reply("?"))
    assert end.value.value.reason == "placeholder"
