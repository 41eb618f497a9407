"""The judge: what it is shown, in which orders, and what becomes of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgen.model import Message, Rejection, RejectionReason, Reply, Request, Turn
from edgen.pairing.model import Candidate, Compare, Verdict
from edgen.prompting import SCENARIO_VARIABLES, Prompt, load_prompt
from edgen.protocols import Rules
from edgen.protocols.oracle import COMPARED, Comparison, oracle, shared_prefix
from edgen.resources import find
from tests.protocols.play import SCENARIO


def candidate(number: int, *texts: str) -> Candidate:
    turns = tuple(Turn("Teacher" if i % 2 == 0 else "Student", text) for i, text in enumerate(texts))
    return Candidate(
        id=f"t-000003-r{number}", scenario=3, number=number, replicate=number, turns=turns, ended_by="Student"
    )


A = candidate(0, "Good morning.", "Hello.", "We look at leaves.", "Oh, nice!")
B = candidate(1, "Good morning.", "Hello.", "Open your books.", "Must I?")


def shipped(compare: Compare) -> Prompt:
    return load_prompt(find("prompts", f"oracle_{compare}"), (*SCENARIO_VARIABLES, *COMPARED[compare]))


def judge(
    answer: Callable[[Request], str | Reply], a: Candidate = A, b: Candidate = B, *, compare: Compare = "conversation",
    votes: int = 1, asks: int = 3, prompt: Prompt | None = None,
) -> tuple[list[Verdict] | Rejection, list[Request]]:  # fmt: skip
    protocol = oracle(
        Comparison(SCENARIO, 0, a, b), prompt or shipped(compare), compare, votes, Rules(asks=asks, seed=7)
    )
    asked: list[Request] = []
    given: Reply | None = None
    try:
        while True:
            request = protocol.send(given)  # type: ignore[arg-type]
            asked.append(request)
            said = answer(request)
            given = Reply(said) if isinstance(said, str) else said
    except StopIteration as end:
        return end.value, asked


def likes_leaves(request: Request) -> str:
    text = request.messages[0].content
    return "1" if text.index("leaves") < text.index("books") else "2"


def test_it_is_shown_what_was_published_to_the_letter_in_both_orders(shared_data: Path) -> None:
    published = json.loads((shared_data / "ed_vocabulary.json").read_text())
    _, asked = judge(likes_leaves)
    shown = ["\n".join(f"{turn.role}: {turn.text}" for turn in c.turns) for c in (A, B)]
    for request, (first, second) in zip(asked, (shown, shown[::-1]), strict=True):
        text = published["preference_prompt_multi_turn"].replace("{conv1}", first).replace("{conv2}", second)
        assert request.messages == (Message("user", text),)
        assert request.role == "judge"
    _, asked = judge(likes_leaves, compare="response")
    text = published["preference_prompt_single_turn"].replace(
        "{conv}", "Teacher: Good morning.\nStudent: Hello."
    )
    text = text.replace("{resp1}", "We look at leaves.").replace("{resp2}", "Open your books.")
    assert asked[0].messages == (Message("user", text),)
    assert asked[1].messages[0].content.index("books") < asked[1].messages[0].content.index("leaves")


@pytest.mark.parametrize("compare", ["conversation", "response"])
def test_neither_the_scenario_nor_the_end_marker_is_shown(compare: Compare) -> None:
    _, asked = judge(likes_leaves, compare=compare)
    for request in asked:
        text = str(request.messages)
        assert "[end of conversation]" not in text
        for name in (
            "topic",
            "student_preference",
            "student_reaction",
            "teacher_preference",
            "teacher_reaction",
        ):
            assert getattr(SCENARIO, name) not in text


def test_a_template_that_asks_for_the_scenario_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_text("{{ topic }}: leaves {{ conversation_1 }} books {{ conversation_2 }} 1 or 2?")
    prompt = load_prompt(path, (*SCENARIO_VARIABLES, *COMPARED["conversation"]))
    _, asked = judge(lambda _: "1", prompt=prompt)
    assert asked[0].messages[0].content.startswith("photosynthesis: leaves Teacher: Good morning.")


def test_a_fair_judge_names_the_same_side_in_both_orders() -> None:
    verdicts, asked = judge(likes_leaves, votes=3)
    assert isinstance(verdicts, list)
    assert [(v.order, v.vote, v.choice) for v in verdicts] == [
        (o, n, "a") for n in range(3) for o in ("ab", "ba")
    ]
    assert [request.address.step for request in asked] == [0, 1, 2, 3, 4, 5]
    assert len({request.seed for request in asked}) == 6, "votes are draws of their own"


def test_one_who_always_says_1_names_both_sides() -> None:
    verdicts, _ = judge(lambda _: "1")
    assert isinstance(verdicts, list)
    assert [v.choice for v in verdicts] == ["a", "b"]


def test_an_answer_that_names_neither_is_asked_for_again_and_stays_unread() -> None:
    verdicts, asked = judge(lambda r: "Both are fine." if r.address.attempt == 0 else likes_leaves(r))
    assert isinstance(verdicts, list)
    assert [v.choice for v in verdicts] == ["a", "a"]
    assert len(asked) == 4
    verdicts, asked = judge(lambda r: "Hm." if r.address.step == 1 else likes_leaves(r))
    assert isinstance(verdicts, list)
    assert [(v.choice, v.text) for v in verdicts] == [("a", None), (None, "Hm.")]
    assert [request.address.attempt for request in asked] == [0, 0, 1, 2]


def test_a_verdict_that_was_cut_off_is_asked_for_with_more_room() -> None:
    _, asked = judge(lambda r: Reply("Interac", finish_reason="length") if r.address.attempt == 0 else "2")
    assert [request.max_tokens_scale for request in asked] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("a", "b", "compare", "reason"),
    [
        (A, candidate(1, *[turn.text for turn in A.turns]), "conversation", RejectionReason.IDENTICAL),
        (A, candidate(1, "Good morning.", "What now?"), "response", RejectionReason.NO_RESPONSES),
        (A, candidate(1, "Good morning.", "Hello."), "response", RejectionReason.NO_RESPONSES),
    ],
)
def test_what_cannot_be_compared_is_not_asked(
    a: Candidate, b: Candidate, compare: Compare, reason: RejectionReason
) -> None:
    result, asked = judge(likes_leaves, a, b, compare=compare)
    assert isinstance(result, Rejection)
    assert result.reason is reason
    assert asked == []


def test_the_shared_prefix_is_counted_in_turns() -> None:
    assert shared_prefix(A, B) == 2
    assert shared_prefix(A, A) == 4
    assert shared_prefix(A, candidate(2, "Hi.")) == 0
