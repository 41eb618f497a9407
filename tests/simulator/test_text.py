"""The conversations themselves: they follow from the prompt, they vary, and they are reproducible."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from functools import partial
from statistics import mean

import pytest

from edgen.core.values import Message
from edgen.reading import phrase_kinds
from edgen.simulator.phrases.book import BOOK, compile_book
from edgen.simulator.text import VERSION, respond
from tests import ROOT
from tests.dose import dose
from tests.simulator.prompts import (
    AS_JSON,
    LEARNING,
    STUDENT_REACTIONS,
    TEACHER_REACTIONS,
    TEACHING,
    every_scenario,
    probability_of,
    prompt,
    turns_of,
)
from tests.timing import takes_at_most


def said_by(role: str, messages: tuple[Message, ...], seeds: int = 40) -> str:
    """Return all texts of one side in reply to the messages, over many seeds."""
    texts = [respond(messages, seed=seed).text for seed in range(seeds)]
    return "\n".join(said for text in texts for who, said in turns_of(text) if who == role)


def spoken_from(rule: str, text: str) -> int:
    """Count sentences of a phrase book rule in the text, except short ones and those with slots."""
    return sum(
        text.count(phrasing[0]) for phrasing in BOOK[rule] if len(phrasing) == 1 and len(phrasing[0]) > 14
    )


@pytest.fixture(scope="module")
def thousand() -> list[str]:
    return [respond(messages, seed=i).text for i, messages in enumerate(every_scenario(1000))]


def test_form_of_a_thousand_conversations(thousand: list[str]) -> None:
    alone = 0
    for text in thousand:
        turns = turns_of(text)
        assert 10 <= len(turns) <= 15
        assert [role for role, _ in turns] == (["Teacher", "Student"] * 8)[: len(turns)]
        assert all(said.strip() for _, said in turns)
        assert text.startswith("Conversation:\n[\n   Teacher:")
        # The marker occurs once, at the very end.
        assert text.count("[end of conversation]") == 1
        assert turns[-1][1].endswith("[end of conversation]")
        alone += turns[-1][1] == "[end of conversation]"
        assert "{" not in text
    assert 10 < alone < 120, "some conversations have the marker as an entry of its own"


def test_sentences_begin_with_capitals(thousand: list[str]) -> None:
    for text in thousand:
        for _, said in turns_of(text):
            assert not re.search(r"(?:^|[^.][.!?] )[a-z]", said), said


def test_nobody_repeats_a_sentence(thousand: list[str]) -> None:
    """Exceptions are short sentences, which a long quarrel may use up."""
    scenarios = every_scenario(1000)
    others = [
        respond(scenario, seed=i, salt=salt).text
        for salt in (1, 2, 3)
        for i, scenario in enumerate(scenarios)
    ]
    for text in thousand + others:
        sentences = [s for _, said in turns_of(text) for s in re.split(r"(?<=[.!?]) ", said) if len(s) > 40]
        assert len(set(sentences)) == len(sentences), text


def test_lengths_use_the_whole_range(thousand: list[str]) -> None:
    assert {len(turns_of(text)) for text in thousand} == set(range(10, 16))


def test_probabilities_are_a_small_chance(thousand: list[str]) -> None:
    values = [probability_of(text) for text in thousand]
    assert all(0 <= value <= 1 and value == round(value, 2) for value in values)
    assert 0.2 <= mean(values) <= 0.45
    assert max(values) > 0.7
    assert min(values) < 0.08


def test_no_two_alike(thousand: list[str]) -> None:
    assert len({tuple(turns_of(text)) for text in thousand}) == 1000
    assert len({turns_of(text)[0][1] for text in thousand}) > 700, "openings differ, too"
    assert similarity(thousand[::10]) < 0.1


def test_the_same_scenario_again_is_another_conversation() -> None:
    texts = [respond(prompt(), seed=seed).text for seed in range(100)]
    assert len(set(texts)) == 100
    assert similarity(texts) < 0.2


def similarity(texts: list[str]) -> float:
    """Return the mean Jaccard similarity of the texts' word 3-grams over all pairs."""
    grams = []
    for text in texts:
        words = " ".join(said for _, said in turns_of(text)).lower().split()
        grams.append(set(zip(words, words[1:], words[2:], strict=False)))
    pairs = [(a, b) for i, a in enumerate(grams) for b in grams[i + 1 :]]
    return mean(len(a & b) / len(a | b) for a, b in pairs)


@pytest.mark.parametrize("layout", ["published", "json"])
def test_topic_is_spoken_of(layout: str) -> None:
    messages = (
        prompt("Supply and Demand", layout=AS_JSON) if layout == "json" else prompt("Supply and Demand")
    )
    for seed in range(50):
        assert "Supply and Demand" in respond(messages, seed=seed).text


def test_prompt_without_topic_gets_conversation_without_topic() -> None:
    with_topic = said_by("Teacher", prompt("Photosynthesis"))
    without = said_by("Teacher", prompt(None))
    assert "Photosynthesis" in with_topic
    assert "Photosynthesis" not in without
    assert "today's topic" in without


@pytest.mark.parametrize("reaction", STUDENT_REACTIONS[:4])
def test_mismatched_student_reacts_as_told(reaction: str) -> None:
    kind = phrase_kinds.find_student_reaction(reaction)
    told = said_by("Student", prompt(student_reaction=reaction))
    assert spoken_from(f"s.react.{kind}", told) > 40
    for other in {"rude", "disengaged", "frustrated", "anxious"} - {kind}:
        assert spoken_from(f"s.react.{other}", told) == 0


def test_student_who_might_tell_it_tells_it() -> None:
    told = said_by("Student", prompt(student_reaction="and might tell it to the teacher"))
    assert told.count("hands-on activities") + told.count("real-world applications") > 40


@pytest.mark.parametrize("reaction", [*TEACHER_REACTIONS[:3], TEACHER_REACTIONS[4]])
def test_teacher_reacts_as_told(reaction: str) -> None:
    kind = phrase_kinds.find_teacher_reaction(reaction)
    told = said_by("Teacher", prompt(teacher_reaction=reaction))
    assert spoken_from(f"t.react.{kind}", told) > 20
    for other in {"frustrated", "blames", "gives_up", "insists"} - {kind}:
        assert spoken_from(f"t.react.{other}", told) == 0


def test_adapting_teacher_changes_the_method_and_it_goes_better() -> None:
    adapting = [respond(prompt(teacher_reaction="but adapts to the student"), seed=i).text for i in range(60)]
    stubborn = [respond(prompt(teacher_reaction="and insists on it"), seed=i).text for i in range(60)]
    for text in adapting:
        turns = turns_of(text)
        turning = [i for i, (role, said) in enumerate(turns) if role == "Teacher" and is_turn(said)]
        assert len(turning) == 1
        assert 2 <= turning[0] <= len(turns) - 3
    assert not any(is_turn(said) for text in stubborn for _, said in turns_of(text))
    assert mean(map(probability_of, adapting)) > mean(map(probability_of, stubborn)) + 0.2


def is_turn(said: str) -> bool:
    """Return whether the teacher announces another method."""
    openings = [phrasing[0] for phrasing in BOOK["t.turn"]]
    return any(opening in said for opening in openings)


def test_might_adapt_means_mostly() -> None:
    texts = [
        respond(prompt(teacher_reaction="but might adapt to the student"), seed=i).text for i in range(200)
    ]
    adapted = sum(any(is_turn(said) for _, said in turns_of(text)) for text in texts)
    assert 120 < adapted < 180


def test_match_is_harmony() -> None:
    matched = prompt(learning=LEARNING[1], teaching=TEACHING[0])
    told = said_by("Student", matched)
    assert spoken_from("s.react.rude", told) == 0
    assert mean(probability_of(respond(matched, seed=i).text) for i in range(60)) > 0.5


def test_reaction_of_no_known_kind_is_shown_in_its_own_words() -> None:
    told = said_by("Student", prompt(student_reaction="and starts to hum an old tune otherwise"), 5)
    assert "*starts to hum an old tune*" in told


def test_method_of_no_known_family_is_quoted() -> None:
    told = said_by("Student", prompt(learning="underwater basket weaving"))
    assert told.count("underwater basket weaving") > 20


def test_json_prompt_gets_json() -> None:
    value = json.loads(respond(prompt(layout=AS_JSON), seed=1).text)
    assert list(value) == ["conversation", "probability"]
    assert {turn["role"] for turn in value["conversation"]} == {"Teacher", "Student"}
    assert 10 <= len(value["conversation"]) <= 15
    assert isinstance(value["probability"], float)


def test_prompt_that_shows_no_layout_gets_plain_lines() -> None:
    lines = respond(prompt(layout=""), seed=1).text.splitlines()
    assert lines[0].startswith("Teacher: ")
    assert lines[-1].endswith("[end of conversation]"), "no probability was asked for"


def test_marker_only_if_the_prompt_speaks_of_it() -> None:
    assert "[end" not in respond(prompt(turns="It lasts 10-15 turns."), seed=3).text


def test_asked_for_length_is_kept() -> None:
    lengths = {len(turns_of(respond(prompt(turns="It lasts 6 to 8 turns."), seed=i).text)) for i in range(60)}
    assert lengths == {6, 7, 8}
    for seed in range(20):
        assert len(turns_of(respond(prompt(turns="It lasts 2-2 turns."), seed=seed).text)) == 2


@pytest.mark.parametrize("text", ["hello", "ping", "", "Here are two interactions. Output 1 or 2."])
def test_other_prompts_get_a_short_plain_answer(text: str) -> None:
    reply = respond((Message("user", text),), seed=0)
    assert 0 < len(reply.text) < 100
    assert reply.finish_reason == "stop"


def test_inner_quotes_are_escaped() -> None:
    text = respond(prompt('The "Big Bang"'), seed=2).text
    assert '\\"Big Bang\\"' in text


def test_max_tokens_cuts() -> None:
    whole = respond(prompt(), seed=1)
    cut = respond(prompt(), seed=1, max_tokens=50)
    assert cut.text == whole.text[:200]
    assert (cut.finish_reason, whole.finish_reason) == ("length", "stop")
    assert cut.usage is not None
    assert cut.usage.completion_tokens == 50


def test_stop_sequence_ends_the_text() -> None:
    text = respond(prompt(), seed=1, stop=("Probability",)).text
    assert text.endswith("]\n")


def test_usage_is_about_four_characters_a_token() -> None:
    messages = prompt()
    reply = respond(messages, seed=1)
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == -(-len(messages[0].content) // 4)
    assert reply.usage.completion_tokens == -(-len(reply.text) // 4)


def test_reply_holds_no_lone_surrogate() -> None:
    assert respond(prompt("Caf\ud800 culture"), seed=1).text.encode()


SHOWN = """
import hashlib
from edgen.simulator.faults import parse
from edgen.simulator.text import respond
from tests.simulator.prompts import every_scenario
texts = [respond(m, seed=i, faults=parse("defects=0.5,refusal=0.1")).text for i, m in enumerate(every_scenario(50))]
print(hashlib.sha256("\\0".join(texts).encode()).hexdigest(), end=" ")

from tests.simulator import lessons
texts = []
for i, known in enumerate(lessons.scenarios(20)):
    said = lessons.play(known, i, parse("speaks_for_other=0.05,loop=0.05"))[0]
    texts += [lessons.shown(said), lessons.self_judged(known, said, i), lessons.compared(lessons.shown(said), texts[0] if texts else "", i)]
print(hashlib.sha256("\\0".join(texts).encode()).hexdigest()[:16])
"""


@pytest.mark.integration
def test_same_in_every_process_and_changed_only_with_the_version() -> None:
    """After an intended change of the lessons' digest: raise VERSION in text.py, and take the new digest."""
    root = ROOT
    hashes = set()
    for seed in ("0", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", SHOWN],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout)
    (shown,) = hashes
    assert (VERSION, shown.split()[1]) == (10, "37d463898be04edf")


def test_text_changes_only_with_the_version() -> None:
    """After an intended change: raise VERSION in text.py, and take the new hash."""
    texts = [respond(messages, seed=i).text for i, messages in enumerate(every_scenario(100))]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    assert (VERSION, digest[:16]) == (10, "0e0e098e2228c832")


def test_phrase_book_is_whole() -> None:
    slots = {"topic", "want", "have", "secret", "noun", "word", "other", "value", "label"}
    for name, phrases in BOOK.items():
        assert phrases, name
        assert len(set(phrases)) == len(phrases), f"{name} says something twice"
        for phrasing in phrases:
            assert {used.lower() for used in phrasing[1::2]} <= BOOK.keys() | slots, (name, phrasing)
    for method in phrase_kinds.METHODS:
        assert {
            f"t.method.{method}",
            f"t.teach.{method}",
            f"s.ask.{method}",
            f"s.enjoy.{method}",
        } <= BOOK.keys()
        assert len(BOOK[f"s.ask.{method}"]) >= 6, "who is never served asks six times in fifteen turns"
    for kind in phrase_kinds.STUDENT_KINDS:
        assert f"s.react.{kind}" in BOOK
    for kind in phrase_kinds.TEACHER_KINDS:
        assert f"t.react.{kind}" in BOOK


def test_line_outside_any_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule is open"):
        compile_book("Hello.\n[open]\nHi.")


@pytest.mark.long
def test_long_prompt_is_read_in_linear_time() -> None:
    fillers = (
        " ",
        "The student likes ",
        "Conversation:\n[\n",
        "\n",
        "- ",
        "student preference: ",
        "9 to 9 ",
        "The student:\n- ",
        "lesson in ",
        "conversation about a ",
    )
    for filler in fillers[: dose(3, 10)]:
        short, long = (partial(_answer_hostile, filler, length) for length in (2_000, 20_000))
        assert takes_at_most(40, long, short), f"{filler!r}: ten times the length takes 40 times as long"


def _answer_hostile(filler: str, length: int) -> None:
    hostile = filler * (length // len(filler))
    respond((Message("user", "Write a conversation. " + hostile + "The student likes" + hostile),), seed=1)
