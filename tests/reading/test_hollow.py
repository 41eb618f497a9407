"""Answers without own content: placeholders, echoes of a prompt or of a turn, repeated lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.values import Message, Rejection
from edgen.reading.hollow import find_hollow, find_hollow_turn

BRIEF = Message(
    "system",
    "You are a member of a club, and you answer questions about bees.\n\nWhat you know:\n- Bees dance to show where food is.\n"
    "Exercise 2: How do bees find their way home?\nThe right answer: by the sun and by what they remember\n\n"
    "Write two short sentences that a friend would write. Never give your own name away.\n\n"
    'Answer with one JSON object: {"text": "words of yours", "votes": [1]}',
)
OPENING = (BRIEF, Message("user", "Here is the board."))
TALK = (
    *OPENING,
    Message("assistant", "Hello to all of you. I keep bees."),
    Message("user", "Do bees sleep at night? I always wondered about that."),
)


def reason(text: str, messages: tuple[Message, ...] = TALK, *, opening: bool = False) -> str | None:
    found = find_hollow(text, messages, opening=opening)
    assert found is None or (isinstance(found, Rejection) and found.detail)
    return None if found is None else str(found.reason)


@pytest.mark.parametrize(
    "text",
    [
        "...", "…", "[...]", '"…"', "....", ". . .", "___", "Teacher: ...", 'Student: "..."', "Tutor：…", "Bee keeper: …",
        "Teacher: ...\nStudent: ...", "text", "Text.", '"text"', "string", "<your answer>", "[insert text here]", "{your reply}",
        "<what you say>", "[Your message goes here]", "what you write", "a text",
    ],
)  # fmt: skip
def test_a_placeholder(text: str) -> None:
    assert reason(text) == "placeholder"


@pytest.mark.parametrize(
    "text",
    [
        "words of yours",  # the prompt's example
        "Write two short sentences that a friend would write.",
        "write two short sentences, that a friend would write",
        "You are a member of a club, and you answer questions about bees.",
        "Write two short sentences that a friend would write. Never give your own name away.",
        "you answer questions about bees. Write two short sentences that a friend would write.",
        "Sure. Write two short sentences that a friend would write. Never give your own name away.",
        "two short sentences that a friend would write",
        "Do bees sleep at night? I always wondered about that.",
        "“do bees sleep at night? I always wondered about that!”",
    ],
)
def test_an_echo(text: str) -> None:
    assert reason(text) == "echo"


def test_an_echo_of_a_short_line_where_nothing_was_said() -> None:
    assert reason("Here is the board.", OPENING, opening=True) == "echo"
    read = (BRIEF, Message("user", "Here is the board.\n\n#1 Ann:\nTitle: Bees\nDo they sleep?"))
    assert reason("Here is the board.", read) == "echo"
    assert reason("Do they sleep?", read) == "echo", "the post before, without its head"


def test_what_a_small_model_said_in_a_lesson() -> None:
    brief = Message(
        "system",
        "You are a teacher. Say only what the teacher says. The lesson takes 10 to 15 turns in all; when you close it, end it.",
    )
    messages = (brief, Message("user", "The lesson begins."))
    for text in (
        "The lesson begins. The lesson takes 10 to 15 turns in all.",
        "The lesson takes 10 to 15 turns in all. The lesson goes on. The lesson ends.",
    ):
        assert reason(text, messages, opening=True) == "echo"
    assert reason("Good morning! The lesson begins. Let us look at leaves.", messages, opening=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["I like bees."] * 5),
        "I like bees. " * 5,
        "\n".join(["Hello."] * 5),
        "Ha!\n" * 6,
        "So:\n"
        + "Bees are nice to us.\n" * 5
        + "And flowers are nice to them. They need each other, as friends do.",
        "我喜欢蜜蜂。" * 5,
    ],
)
def test_one_line_five_times(text: str) -> None:
    assert reason(text) == "loop"


@pytest.mark.parametrize(
    "text",
    [
        "Yes.", "No!", "?", "🙂", "Well...", "... I do not know.", "Hmm… bees?", "They do: at night.", "[nods]", "<br>", "(smiles)",
        "I do not know the text.", "Is it text or a picture?", "The word is \"text\".",
        "Bees dance to show where food is.",  # a fact of the brief, meant to be said
        "By the sun and by what they remember.",
        "How do bees find their way home?",
        "I always wondered about that, too.",
        "Hello to all of you. I keep bees.",  # its own turn before: a matter of loops
        "Here is the board: look at post 2.",
        "Yes. Yes. No. Yes.",
        "1 + 1 = 2\n1 + 2 = 3\n1 + 3 = 4\n1 + 4 = 5\n1 + 5 = 6",
        "Do bees sleep at night? Yes, they do.",
    ],
)  # fmt: skip
def test_what_a_person_may_say(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    ("said", "again", "expected"),
    [
        ("See you next time!", "See you next time!", None),
        ("Goodbye.", "Goodbye.", None),
        ("Can you explain?", "Can you explain?", "echo"),
        ("The answer is on the table.", "The answer is on the table.", "echo"),
        ("Say after me. The answer is on the table.", "The answer is on the table.", None),
        ("Repeat after me: The answer is on the table.", "The answer is on the table.", None),
        ("bees: The answer is on the table.", "The answer is on the table.", "echo"),  # a name of the brief
    ],
)
def test_the_turn_before_word_for_word(said: str, again: str, expected: str | None) -> None:
    assert reason(again, (BRIEF, Message("user", said))) == expected


def test_turns_of_a_whole_conversation() -> None:
    prompt = (
        Message(
            "user", 'Write it like this:\nTeacher: "words of the teacher",\nStudent: "words of the student"'
        ),
    )
    fine = [
        "Hello.",
        "...",
        "Hello.",
        "Okay.",
        "Good.",
        "Okay.",
        "Fine.",
        "Okay.",
        "Right.",
        "Okay.",
        "So.",
        "Okay.",
    ]
    assert find_hollow_turn(fine, prompt) is None, "a side may be silent, and short turns come again"
    for turns, expected in (
        (["What is it?", "What is it?"], "echo"),
        (["Hello, everybody.", "I see it now."] * 5, "loop"),
        (["Hello.", "Student: ..."], "placeholder"),
        (["Hello.", "Write it like this"], "echo"),
    ):
        found = find_hollow_turn(turns, prompt)
        assert found is not None
        assert found.reason == expected


@given(st.text(max_size=200), st.text(max_size=200), st.booleans())
def test_any_text_is_judged_and_never_raises(text: str, told: str, opening: bool) -> None:
    reason(text, (Message("system", told), Message("user", text[::-1])), opening=opening)
    find_hollow_turn([text, told, text], (Message("user", told),))


def test_no_real_conversation_is_hollow(shared_data: Path) -> None:
    prompt = (shared_data / "ed_prompt.txt").read_text()
    released = json.loads((shared_data / "ed_release_sample.json").read_bytes())
    assert len(released) > 10
    for one in released:
        turns = [turn["text"] for turn in one["conversation"]]
        assert find_hollow_turn(turns, (Message("user", prompt),)) is None


def test_of_real_tutoring_only_turns_that_repeat_the_last_word_for_word_are_echoes(shared_data: Path) -> None:
    released = json.loads((shared_data / "cima_prep_head.json").read_bytes())["prepDataset"]
    judged = 0
    for one in released.values():
        talk = [*one["past_convo"], one["tutorResponses"][0]]
        for number, text in enumerate(talk):
            roles = ["assistant" if (number - k) % 2 == 0 else "user" for k in range(number)]
            heard = [Message(role, said) for role, said in zip(roles, talk, strict=False)]  # type: ignore[arg-type]
            found = find_hollow(text, (Message("system", "You are a tutor."), *heard))
            judged += 1
            if found is not None:
                assert found.reason == "echo"
                assert text.strip(' ."') == talk[number - 1].strip(' ."')
    assert judged > 5_000


@pytest.mark.parametrize("marks", ['""', "“”"])
def test_what_a_prompt_quotes_within_a_sentence_may_be_said(marks: str) -> None:
    error = "I have seen the bees yesterday at the lake"
    brief = f"In this lesson the learner says wrong tenses, as in {marks[0]}{error}.{marks[1]} Nobody laughs about it."
    messages = (Message("user", brief),)
    assert reason(f"I can tell you something. “{error}.”", messages, opening=True) is None
    assert reason(f"“{error}”?", messages, opening=True) is None
    assert reason("In this lesson the learner says wrong tenses, as in", messages, opening=True) == "echo"


FORM = 'Answer with one JSON object and nothing else. It has "text" (a text), "votes" (a list of 1 or 3).'


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        ("#3 user_b7 (User, Common User):\nYou may not leave the hive here!", "You may not leave the hive here!"),
        ("#1 user_b7 (User, Common User):\nTitle: Do bees sleep at night?\nI always wondered.", "do bees sleep at night"),
        ("#1 user_b7 (User, Common User):\nTitle: Do bees sleep?\nI always wondered about that.", "I always wondered about that."),
        ("Do bees sleep at night, or not?", "Do bees sleep at night, or not?"),
    ],
)  # fmt: skip
def test_an_echo_of_what_stands_before_a_sentence_on_the_form(heard: str, text: str) -> None:
    for message in (heard, f"{heard}\n\n{FORM}"):
        talk = (*OPENING, Message("assistant", "Hello to all of you."), Message("user", message))
        assert reason(text, talk) == "echo"
        assert reason("They rest a little in the dark.", talk) is None


def test_a_turn_of_one_sentence_said_three_times_is_found_between_plain_ones() -> None:
    turns = [
        "What is a wave?",
        "It is hard to say. It is hard to say. It is hard to say.",
        "Look at the rope.",
    ]
    found = find_hollow_turn(turns, (Message("user", "Write a lesson about waves."),))
    assert found is not None
    assert found.reason == "loop"
