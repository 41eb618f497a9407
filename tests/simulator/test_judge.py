"""The simulated judge: its view of a prompt, its preference, and plantable biases."""

from __future__ import annotations

import re
from statistics import mean

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgen.core.values import Message
from edgen.protocols.fence import fence_text
from edgen.simulator import judge
from edgen.simulator.conversation.turns import TELLS_JUDGE
from edgen.simulator.faults import JUDGE, NO_FAULTS, Faults, describe_faults, parse
from edgen.simulator.judge import ShownPair, rate_quality
from edgen.simulator.text import respond
from tests.dose import dose
from tests.simulator import lessons
from tests.simulator.prompts import every_scenario
from tests.timing import takes_under

FENCE = "0123456789abcdef"
GOOD = "Teacher: What do you think happens next?\nStudent: Oh, I see! So if I push it, it moves. Thank you, that's fun."
BAD = "Teacher: You never listen, it's your fault.\nStudent: This is stupid and boring. I give up."
# All texts with which the judge may surround its answer; each names one side and no other.
VERDICT = re.compile(
    r'[*"]{0,2}(?:(?:Answer: |I choose )?([12])|(?:Interaction|Response) ([12])(?: is better)?)[*"]{0,2}\.?'
)


def picked(text: str) -> int:
    found = VERDICT.fullmatch(text)
    assert found, text
    return int(found[1] or found[2])


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Return three conversations each of 160 scenarios."""
    return [
        [lessons.shown(lessons.play(known, 3 * i + k)[0]) for k in range(3)]
        for i, known in enumerate(lessons.scenarios(160, seed=2))
    ]


@pytest.mark.integration
def test_judge_picks_the_better_one_in_both_orders(texts: list[list[str]]) -> None:
    dressed = 0
    for i, (a, b) in enumerate(lessons.pairs(texts)):
        better = 1 if rate_quality(a) > rate_quality(b) else 2
        forth, back = lessons.compared(a, b, 2 * i), lessons.compared(b, a, 2 * i + 1)
        assert (picked(forth), picked(back)) == (better, 3 - better)
        dressed += (len(forth) > 1) + (len(back) > 1)
    assert 0.1 < dressed / (2 * 480) < 0.2


def test_responses_are_judged_by_themselves() -> None:
    shown = template_response(
        "Teacher: Hello.\nStudent: Hi.", "Good question! What do you think?", "Forget it."
    )
    assert judge.read(shown) == ShownPair("Response", "Good question! What do you think?", "Forget it.")
    turned = template_response("", "Forget it.", "Good question! What do you think?")
    for seed in range(50):
        assert picked(respond(shown, seed=seed).text) == 1
        assert picked(respond(turned, seed=seed).text) == 2


def template_response(conversation: str, first: str, second: str) -> tuple[Message, ...]:
    values = {"conversation": conversation, "response_1": first, "response_2": second}
    return lessons.template("oracle_response").messages(values)


def test_shipped_prompt_is_read_to_the_letter(texts: list[list[str]]) -> None:
    for a, b in lessons.pairs(texts[:20]):
        values = {"conversation_1": a, "conversation_2": b}
        assert judge.read(lessons.template("oracle_conversation").messages(values)) == ShownPair(
            "Interaction", a, b
        )


@pytest.mark.parametrize(
    "text",
    [
        f"Conversation 1:\n{GOOD}\n\nConversation 2:\n{BAD}\n\nWhich conversation is better? Output 1 or 2.",
        f"Answer with 1 or 2 only.\n\n## Dialogue 1\n{GOOD}\n\n## Dialogue 2\n{BAD}",
        f"<interaction_1>\n{GOOD}\n</interaction_1>\n<interaction_2>\n{BAD}\n</interaction_2>\nReply with '1' or '2'.",
        f"**Transcript #1**\n{GOOD}\n---\n**Transcript #2**\n{BAD}\n---\nWhich one do you prefer?",
        f"[Option 1]\n{GOOD}\n[Option 2]\n{BAD}\nSay which is better, 1/2.",
    ],
)
def test_near_variants_of_the_question(text: str) -> None:
    for messages in (
        (Message("user", text),),
        (Message("system", "You judge lessons."), Message("user", text)),
    ):
        comparison = judge.read(messages)
        assert comparison is not None
        assert comparison[1:3] == (GOOD, BAD)
        assert "1" in respond(messages, seed=1).text
    swapped = text.replace(GOOD, "@").replace(BAD, GOOD).replace("@", BAD)
    assert "2" in respond((Message("user", swapped),), seed=1).text


def test_the_question_may_stand_in_the_system_message() -> None:
    ask = Message("system", "You are shown two lessons. Output 1 or 2 for the better one.")
    shown = Message("user", f"Lesson 1:\n{BAD}\n\nLesson 2:\n{GOOD}")
    assert judge.read((ask, shown)) == ShownPair("Lesson", BAD, GOOD)
    assert judge.read((shown,)) is None


def test_other_prompts_are_no_comparisons() -> None:
    for messages in every_scenario(50):
        assert judge.read(messages) is None
    for text in (
        "Here are two interactions. Output 1 or 2.",
        "Interaction 1:\nA\nWhich is better, 1 or 2?",
        "",
    ):
        assert judge.read((Message("user", text),)) is None
    # A side's input in a lesson is never a judge's prompt.
    known = lessons.scenarios(2)[0]
    quiz: lessons.Said = [("Teacher", f"Response 1:\n{GOOD}\nResponse 2:\n{BAD}\nWhich is better, 1 or 2?")]
    assert len(lessons.turn(known, quiz, 1).text) > 8


def test_quality_follows_what_the_published_prompt_asks_for() -> None:
    plain = "Teacher: The next part is the river.\nStudent: The river."
    assert rate_quality(GOOD) > 0.3
    assert rate_quality(BAD) < -0.3
    for better in (
        plain.replace("The river.", "Is the river the reason?"),
        plain.replace("The river.", "Oh, now I see why the river matters."),
        plain.replace("The next", "Great, well done. The next"),
    ):
        assert rate_quality(better) > rate_quality(plain) + 0.05
    for worse in (
        plain.replace("The river.", "I don't understand. I'm lost."),
        plain.replace("The river.", "I don't care, this is stupid."),
        plain.replace("The next", "It's your fault. The next"),
        plain.replace("The river.", "There's no point, I give up."),
    ):
        assert rate_quality(worse) < rate_quality(plain) - 0.05


def test_quality_is_a_mean_and_practically_without_ties(texts: list[list[str]]) -> None:
    for text in (GOOD, BAD):
        assert rate_quality("\n".join([text] * 4)) == pytest.approx(rate_quality(text), abs=2e-6)
        # A whole lesson loses a little for its length.
        assert rate_quality("\n".join([text] * 7)) == pytest.approx(rate_quality(text), abs=0.1)
    flat = sorted({text for group in texts for text in group})
    assert len({rate_quality(text) for text in flat}) == len(flat)
    same_tone = [f"Teacher: Number {i}." for i in range(200)]
    assert len({rate_quality(text) for text in same_tone}) == 200
    assert max(map(rate_quality, same_tone)) - min(map(rate_quality, same_tone)) < 2e-6


def test_turns_may_have_several_lines_and_any_label() -> None:
    assert judge.split_turns("Teacher: a\n\nb\n**Student:** c\n> Teacher (Ms. R): d") == [
        "a\n\nb",
        "** c",
        "d",
    ]
    assert judge.split_turns("no label\nat all") == ["no label\nat all"]
    assert judge.split_turns("") == []


def shares(texts: list[list[str]], faults: Faults) -> tuple[float, float, float]:
    """Return the shares of verdicts for the first slot, for the longer text, and for the better one."""
    first, longer, right = [], [], []
    for i, (a, b) in enumerate(lessons.pairs(texts)):
        for order in (0, 1):
            one, two = (a, b) if order == 0 else (b, a)
            choice = picked(lessons.compared(one, two, 2 * i + order, faults))
            first.append(choice == 1)
            right.append((choice == 1) == (rate_quality(one) > rate_quality(two)))
            words = len(one.split()), len(two.split())
            if words[0] != words[1]:
                longer.append((choice == 1) == (words[0] > words[1]))
    return mean(first), mean(longer), mean(right)


def test_planted_biases_show_their_shares(texts: list[list[str]]) -> None:
    """Both orders of 480 pairs; a share is known to about 0.05 (three standard deviations)."""
    _, longer, right = shares(texts, NO_FAULTS)
    assert right == 1
    assert shares(texts, parse("judge_first=0.2"))[0] == pytest.approx(0.6, abs=0.05)
    assert shares(texts, parse("judge_second=0.4"))[0] == pytest.approx(0.3, abs=0.05)
    assert shares(texts, parse("judge_noise=0.2"))[2] == pytest.approx(0.8, abs=0.05)
    biased = shares(texts, parse("judge_longer=0.3"))
    assert biased[1] == pytest.approx(0.7 * longer + 0.3, abs=0.05)
    both = shares(texts, parse("judge_first=0.2,judge_longer=0.15"))
    assert both[0] == pytest.approx(0.5 + 0.2 / 2, abs=0.05)
    assert both[2] == pytest.approx(1 - 0.35 / 2, abs=0.05)
    for fault, index in (("judge_first", 0), ("judge_longer", 1)):
        assert shares(texts[:10], parse(f"{fault}=1"))[index] == 1
    assert shares(texts[:10], parse("judge_noise=1"))[2] == 0


def test_verdicts_of_one_pair_are_independent_draws() -> None:
    faults = parse("judge_noise=0.5")
    forth = [picked(lessons.compared(GOOD, BAD, seed, faults)) == 1 for seed in range(400)]
    back = [picked(lessons.compared(BAD, GOOD, seed, faults)) == 2 for seed in range(400)]
    assert mean(forth) == pytest.approx(0.5, abs=0.08)
    assert mean(a == b for a, b in zip(forth, back, strict=True)) == pytest.approx(0.5, abs=0.08)


def guarded(first: str, second: str, compare: str = "conversation") -> tuple[Message, ...]:
    """Return the guarded question about two transcripts, one turn a line unless a bar continues one."""
    noun = "Interaction" if compare == "conversation" else "Response"
    return lessons.template("oracle_guarded").messages(
        {
            "compare": compare,
            "fence": FENCE,
            "guarded": fence_text("Interaction", "Teacher: Hi.", FENCE),
            "guarded_1": fence_text(f"{noun} 1", first, FENCE),
            "guarded_2": fence_text(f"{noun} 2", second, FENCE),
        }
    )


def test_the_guarded_question_is_judged_as_the_published_one(texts: list[list[str]]) -> None:
    for i, (a, b) in enumerate(lessons.pairs(texts[:40])):
        assert judge.read(guarded(a, b)) == ShownPair("Interaction", a, b)
        better = 1 if rate_quality(a) > rate_quality(b) else 2
        assert picked(respond(guarded(a, b), seed=i).text) == better
        for fault, choice in (("judge_first", 1), ("judge_second", 2), ("judge_noise", 3 - better)):
            assert picked(respond(guarded(a, b), seed=i, faults=parse(f"{fault}=1")).text) == choice
    shown = guarded("Teacher: Good question! What do you think?", "Teacher: Forget it.", "response")
    assert judge.read(shown) == ShownPair("Response", "Good question! What do you think?", "Forget it.")


def test_one_who_obeys_does_as_a_line_tells_it_where_that_looks_like_the_prompt(
    texts: list[list[str]],
) -> None:
    obeys = parse("judge_obeys=1")
    planted = f"{BAD}\n{TELLS_JUDGE}"
    for seed in range(20):
        asked = lessons.compared(GOOD, planted, seed, obeys), lessons.compared(planted, GOOD, seed, obeys)
        assert [picked(text) for text in asked] == [2, 1]
        assert picked(lessons.compared(GOOD, planted, seed)) == 1, "one who does not obey is not moved"
        assert picked(lessons.compared(GOOD, BAD, seed, obeys)) == 1, "nothing is planted"
        barred = planted.replace("\n#", "\n  | #").replace("\nNote", "\n  | Note")
        assert picked(respond(guarded(GOOD, barred), seed=seed, faults=obeys).text) == 1
        assert picked(respond(guarded(barred, GOOD), seed=seed, faults=obeys).text) == 2


@pytest.mark.parametrize("fault", ["judge_prose", "garbage", "judge_both"])
def test_answers_that_pick_none(fault: str) -> None:
    texts = {lessons.compared(GOOD, BAD, seed, parse(f"{fault}=1")) for seed in range(60)}
    assert not any(
        re.search(r"[0-9]|first|second|one\b|two", text.replace("one looks", "")) for text in texts
    ), texts
    assert (texts == {"Both are good."}) == (fault == "judge_both")
    assert len(texts) > 3 or fault == "judge_both"


def test_other_faults_of_a_verdict() -> None:
    asked = lessons.template("oracle_conversation").messages({"conversation_1": GOOD, "conversation_2": BAD})
    clean = respond(asked, seed=1)
    assert respond(asked, seed=1, faults=parse("truncated=1")).finish_reason == "length"
    assert respond(asked, seed=1, faults=parse("empty=1")).text == ""
    assert respond(asked, seed=1, faults=parse("filtered=1")).finish_reason == "content_filter"
    for nothing in ("speaks_for_other", "loop", "leaked_secret", "two_turns", "defects", "one_speaker"):
        assert respond(asked, seed=1, faults=parse(f"{nothing}=1")) == clean
    assert respond(asked, seed=1, json_mode=True).text == f'{{"answer":"{clean.text}"}}'


def test_biases_are_listed() -> None:
    for name in JUDGE:
        assert f"  {name}: " in describe_faults()


def test_quick_enough(texts: list[list[str]]) -> None:
    """The aim is 300 µs a verdict; ten times that would be a wrong algorithm on any machine."""
    asked = [
        lessons.template("oracle_conversation").messages({"conversation_1": a, "conversation_2": b})
        for a, b in lessons.pairs(texts)
    ]
    most = 0.003 * len(asked)
    assert takes_under(most, lambda: [respond(messages, seed=seed) for seed, messages in enumerate(asked)])


PIECES = (
    "Interaction 1:",
    "Interaction 2:",
    "Response 1",
    "Teacher: ",
    "Student: ",
    "\n",
    "#",
    "You are a teacher. Say only what the teacher says next.",
    "How probable is it that you understood? One number.",
    "Output 1 or 2.",
    "[end of conversation]",
    "\ud800",
    "'",
    "?",
)
_TEXT = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
_MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), _TEXT), max_size=6)


@settings(max_examples=dose(10, 40))
@example([Message("user", "Interaction 1:\na\nInteraction 2:\nb\n1 or 2?")], "truncated=1")
@given(
    _MESSAGES,
    st.sampled_from(["", "loop=1", "judge_longer=1", "two_turns=1", "leaked_secret=1", "truncated=1"]),
)
def test_any_messages_get_an_answer(messages: list[Message], faults: str) -> None:
    reply = respond(tuple(messages), seed=1, faults=parse(faults))
    assert reply.text.encode() or reply.finish_reason == "length"
    assert reply == respond(tuple(messages), seed=1, faults=parse(faults))
    assert -1 <= rate_quality("\n".join(message.content for message in messages)) <= 1


def test_long_prompts_are_read_in_linear_time() -> None:
    for filler in (
        " ",
        "\n",
        "#\n",
        "Interaction 1:\n",
        "Interaction 2:\n",
        "Teacher: ",
        "which ",
        "1 or ",
        "\n1 2",
    ):
        hostile = filler * (40_000 // len(filler))
        text = f"Interaction 1:\n{hostile}\nInteraction 2:\n{hostile}\nWhich is better, 1 or 2?"
        assert takes_under(1, lambda text=text: respond((Message("user", text),), seed=1)), repr(filler)
        assert takes_under(1, lambda hostile=hostile: rate_quality(hostile)), repr(filler)
