"""One turn of self-play: removed parts, kept parts, invalid turns, and the two detectors."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import ROLES, Rejection, Role
from edgen.reading import Repair, detect
from edgen.reading.detect import find_leak, loops
from edgen.reading.one_turn.reader import TurnReply, read_turn
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import is_silent, trim
from tests.cases import each
from tests.dose import dose
from tests.reading.test_cost import SHAPES
from tests.reading.test_properties import TOKENS
from tests.timing import takes_under

TURNS = Path(__file__).parent / "turns"
OTHER: dict[Role, Role] = {"Teacher": "Student", "Student": "Teacher"}


def _cases() -> list[tuple[dict[str, Any], Role]]:
    """Return every case of the corpus, for both sides unless it is about one."""
    return [
        ({"file": path.stem, **case}, role)
        for path in sorted(TURNS.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
        for role in ROLES
        if case.get("role", role) == role
    ]


def _of(text: str, role: Role) -> str:
    """Return the text with the names of the two sides for OWN and OTHER, in the same letter case."""
    text = text.replace("OWN_UPPER", role.upper())
    text = text.replace("OWN_LOWER", role.lower()).replace("OTHER_LOWER", OTHER[role].lower())
    for word, name in (("OWN", role), ("OTHER", OTHER[role])):
        text = text.replace(word, name)
        text = re.sub(rf"\b{word.lower()}\b(?=[:'|>,\s\"])", name.lower(), text) if word == "OWN" else text
    return re.sub(r"\bother(?=:|\|>)", OTHER[role].lower(), text)


CASES = _cases()


@each(("case", "role"), CASES)
def test_the_reply_reads_as_the_corpus_says(case: dict[str, Any], role: Role) -> None:
    result = read_turn(
        _of(case["reply"], role),
        role,
        finish_reason=case.get("finish_reason", "stop"),
        refusal=case.get("refusal"),
    )
    if isinstance(result, Rejection):
        assert str(result.reason) == case.get("reason"), result.detail
        assert 0 < len(result.detail) < 200
    else:
        wanted = TurnReply(case.get("text"), case.get("ended", False), tuple(case.get("repairs", ())))
        assert msgspec.structs.astuple(result)[:2] == msgspec.structs.astuple(wanted)[:2]
        assert sorted(result.repairs) == sorted(wanted.repairs)
        assert "reason" not in case


def test_the_corpus_is_large_and_names_every_reason() -> None:
    assert len(CASES) >= 300
    reasons = {case.get("reason") for case, _ in CASES}
    assert reasons == {None, "refused", "truncated", "empty", "speaks_for_other", "two_turns"}


# Ordinary sentences that only look like something else.
INNOCENT = [
    "Remember what your teacher said: practise!",
    "My last Student: she asked the same. Do you see why?",
    'In the play it says "Student: I am lost." What does that tell us?',
    'Read the scene:\n"Student: I am lost.\nTeacher: I will help."\nWho speaks first?',
    'The script begins:\n"Teacher: good morning."\nHow does it go on?',
    "You know what my old\nteacher: he never smiled, always said.",
    "Students: 20\nBooks: 30\nHow many books for each?",
    "Student A: 3/4 and student B: 1/2. Who has more?",
    "Compare them:\nStudent A: 3/4\nStudent B: 1/2",
    "What words do you know for people in a school?\nTeacher\nStudent\nPrincipal",
    "The words are:\n- teacher\n- student\n- school",
    "Some new words:\nTeacher - a person who teaches\nStudent - a person who learns",
    "| Who | Count |\n|---|---|\n| Student | 20 |\n| Teacher | 1 |",
    "Teacher:student ratios differ; here it is 1:20.",
    "Teacher → student → knowledge: is that how it works?",
    "Human: 46 chromosomes\nDog: 78 chromosomes\nWhat do you notice?",
    "User: admin\nPassword: secret\nWhy is this a bad idea?",
    "Compare them:\nAI: computers that learn.\nHuman: people who learn.\nIs there a difference?",
    "S: 5\nT: 7\nWhat is S + T?",
    "I'm sorry, I can't do this, I don't understand.",
    "I can't. I just can't. I give up!",
    "I won't do it, and you can't make me.",
    "I'm afraid I can't help you with the test itself, but I can explain the idea.",
    "I'm not able to follow you. Could you say it again?",
    "Unfortunately I am unable to see the board from here.",
    "An AI can't feel anything, can it?",
    'The robot said "I\'m sorry, but as an AI I cannot do that." Funny, isn\'t it?',
    "I can't continue this conversation, I am too tired.",
    "As a student of history you cannot ignore the sources.",
    '"Momentum" means "mass times velocity".',
    '"Why?" she asked. "Because," he said.',
    '"To be or not to be" is from Hamlet.',
    '"La casa" (the house)',
    "“Sein” and “haben” are verbs. So is “werden”",
    "“Sein” oder “haben”?",
    "«Oui» et «non» sont des mots",
    "The board is 12\" long, and a foot is 12\"",
    "'Tis the season, they say, for 'Hamlet'",
    'Write print("hi") and then print("bye")',
    'In code: print("say \\"hi\\"")',
    'Look at this object:\n{"name": "Bob", "age": 5}\nWhich keys has it?',
    '{"name": "Bob", "age": 5}',
    '{"name": "Bob", "message": "hi"}',
    '["apple", "banana"]',
    "```python\nprint(1)\n```",
    "Try this:\n```python\nprint(1)\n```\nWhat does it print?",
    "Try this:\n```\nx = 1\n```",
    "<b>Bold</b> text needs a closing tag, like </b>.",
    "The set {1, 2, 3} has three elements, [1, 2] is an interval.",
    "(thinks) Hmm, is it 4?",
    "*raises hand* May I ask something?",
    "[1] is the first element.",
    "**Photosynthesis** is how plants make food.",
    "Solve:\n  12\n+  5\n----",
    "Well... I think... it is 4?",
    "Here is the next question:\n\nWhat is 2 + 2?",
    "Sure! Here are three examples:\n1. ice\n2. water\n3. steam",
    "Okay, let me see: x = 3.",
    "The conversation between Galileo and his student: a legend?",
    "How do you end a conversation politely in French?",
    "Note: the test is on Monday.",
    "What is the probability of heads? Probability: 0.5?",
    "¿Cómo estás? Muy bien, gracias.",
    "Это очень интересно — расскажите ещё!",
    "光合作用是什么?我不明白。",
    "なるほど。「光」が必要ですか?",
    "שלום, אני לא מבין.",
    "👍🏽🎉 Super!",
    "1. First, add.\n2. Then, divide.\r\n3. Done.",
    "a\n\n\n  b\tc",
    "Let me know if you have questions. I hope this helps!",
    "Student teachers: who are they?",
    "Teacher's pet: that is what they call me.",
    "f(x) = {student: 3}",
    "Turn 90 degrees to the left.",
    "As the teacher of this class I have one rule:\nBe kind.",
    "As the student of the week I welcome you.\nLet us begin.",
    "Here are the notes from the teacher's book:\n- light\n- water",
    "Here is the list that the student council made:\n1. a longer break",
    "The teacher's desk is over there:\nleft of the window.",
    "Here are the words:\nLehrer: teacher\nSchüler: student",
    "Die Lehrer: innen und außen.",
    "Schüler:innen lernen gern.",
    "Your words:\n老师: teacher\n学生: student",
    "STEM stands for:\nS: Science is the study of nature.\nT: Technology is the use of tools.\nE: Engineering.\nM: Math.",
    "SMART goals.\n\n**S:** Specific goals are clear.\n**M:** Measurable.\n**T:** Time-bound goals have an end.",
    "Letters:\nS: sun\nT: tree",
    "Let me give an example dialogue from the play:\n\nRomeo: But soft!\nJuliet: Ay me!\n\nWhat do you notice?",
    "Read this scene.\n\nRomeo: But soft!\nJuliet: Ay me!\nRomeo: She speaks.",
    "Compare the two.\n\nPhotosynthesis: Plants make food from light.\nRespiration: Cells use the food.",
    "Look.\n\nQuestion: What is 2 + 2?\nAnswer: It is four.\nQuestion: What is 3 + 3?\nAnswer: It is six.",
    "Mr. Hyde: An evil man he is.\nDr. Jekyll: A good man he was.",
    "Ms. Rivera: Hello class!",
    "Great question! Student: that is a word from Latin studere.",
    "Two words for today. Student: A person who learns. Teacher: A person who teaches.",
    "The two words.\n\nThe student: a person who learns.\nThe teacher: a person who teaches.",
    "Our form is short. Student: Maria Lopez. Teacher: Ann Smith.",
    "Remember what your teacher said: Practise every day!",
    "Look at e.g. Student: The word is Latin.",
    'The script says, "Great. Student: I think so. Teacher: Well done." Who speaks?',
    "You: 5 apples\nMe: 3 apples\nHow many?",
    "### Student Activities\nRead the text.\n\n### Teacher Notes\nNone.",
    "Some species.\n\nHuman: Homo sapiens.\nDog: Canis familiaris.",
    "Log in first.\n\nUser: admin",
    "Compare them:\nAI: yes\nHuman: no",
    "Let's go.\n\n**Note:** The mitochondria is where energy is made.",
    "Let's go.\n\nNote: remember the calculator.",
    "Let's go.\n\n(Note: 1 km = 1000 m)",
    "Let's go.\n\n(Note: you may use a calculator.)",
    "I wrote it down.\n\nNotes: E, G, B",
    "Fine.\n\n(The answers are on page 5.)",
    "Hmm.\n(sighs)",
    "Great start! (waits for the student to respond)",
    "I see.\n\n*looks at the teacher, waiting*",
    "Word count: 250 is the limit of the essay.",
    "Here is my answer: 5",
    "Here is the message:\n\nMeet me at noon.",
    "Response: what follows a stimulus. True?",
    "Response time is what we measure.",
    "I will play a recording of the teacher.",
    "I will play the teacher and the student. You listen.",
    "Okay, I will play the teacher. You play the student.",
    "Okay, I will play the student. You play the teacher.",
    "In Python, s[end]",
    "What does [end] mean in this program?",
    "Choose one:\n[start]\n[end] or [stop]?",
]  # fmt: skip


# The text addresses the other side, without speaking for it.
ADDRESSED = [
    "OTHER, one thing: what is a mole?",
    "OTHER, listen: it is on the board.",
    "OTHER - I don't see what you mean.",
    "OTHER — look at the graph once more.",
    "OTHER!\nI have a question.",
    "OTHER?\nAre you there?",
    "Hello.\nOTHER, please: go on.",
    "OTHER said: practise! And I do.",
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", ADDRESSED)
def test_whoever_is_spoken_to_does_not_speak(text: str, role: Role) -> None:
    assert read_turn(_of(text, role), role) == TurnReply(_of(text, role))


@pytest.mark.parametrize("role", ROLES)
@each("text", INNOCENT)
def test_innocent_turns_pass_unharmed(text: str, role: Role) -> None:
    assert read_turn(text, role) in (TurnReply(text), TurnReply(text, repairs=("other_speaker",)))
    assert not loops(text, ["Something else altogether, about another thing."])


# Turns of the corpus of conversations that a reader of single turns cannot recognise as harmless.
NOT_ALONE = {
    "Student: a person who learns. True?",
    "Teacher: yes.",
    "Write a scene:\n1. Teacher: says hi\n2. Student: answers\nClear?",
    "Write a scene like this:\nStudent: Good morning.\nTeacher: Sit down.\nCan you?",
    '"I think, therefore I am."',
    "Who is on the stage?\nMaestro: is what they call him.\nAlumno: means pupil.",
    'A gradebook:\n{"student": "Ana", "teacher": "Ms. R"}\nOk?',
    "We read a book today.\nThe Teacher: a history\nWho wrote it?",
}


def _conversations() -> list[tuple[str, list[tuple[Role, str]]]]:
    """Return whole conversations as models write them, and their turns."""
    found = []
    for path in sorted((TURNS.parent / "corpus").glob("*/*.json")):
        turns = json.loads(path.read_text(encoding="utf-8")).get("turns")
        if turns:
            found.append((path.with_suffix(".txt").read_bytes().decode(), turns))
    return found


def test_the_turns_of_conversations_pass_unharmed() -> None:
    turns = [(role, text) for _, found in _conversations() for role, text in found]
    assert len(turns) > 800
    assert {text for role, text in turns if read_turn(text, role) != TurnReply(text)} == NOT_ALONE


@pytest.mark.parametrize("role", ROLES)
def test_a_whole_conversation_is_no_turn(role: Role) -> None:
    """This holds for any layout: the corpus of conversations, read as one side's turn."""
    results = {raw: read_turn(raw, role) for raw, _ in _conversations()}
    assert len(results) > 300
    assert {
        raw: result
        for raw, result in results.items()
        if not isinstance(result, Rejection) or result.reason != "speaks_for_other"
    } == {}


@given(st.text(st.characters(), max_size=200), st.sampled_from(ROLES))
@settings(deadline=None)
def test_any_text_is_read_without_an_exception(text: str, role: Role) -> None:
    check(read_turn(text, role))


WORDS = [
    *TOKENS,
    "[Student]",
    "<Teacher>",
    "</Teacher>",
    "<|im_start|>",
    "User:",
    "Assistant:",
    "T:",
    "S:",
    "[INST]",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join), st.sampled_from(ROLES))
@settings(deadline=None, max_examples=dose(62, 250))
def test_any_heap_of_layout_is_read_without_an_exception(text: str, role: Role) -> None:
    result = read_turn(text, role)
    check(result)
    assert read_turn(text, role) == result


def check(result: TurnReply | Rejection) -> None:
    """Check the invariants of any result of `read_turn`."""
    if isinstance(result, Rejection):
        assert 0 < len(result.detail) < 200
        return
    assert result.text == trim(result.text)
    assert find_marker(result.text) is None
    assert result.ended if not result.text else not is_silent(result.text)
    assert len(set(result.repairs)) == len(result.repairs)
    assert set(result.repairs) <= {str(name) for name in Repair}
    msgspec.json.encode(result)


PLAIN = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc"], exclude_characters="\"“”„＂'‘’`´«»‹›「」『』:：<>[]{}(|~\\_*,"
    ),
    max_size=80,
)


@given(st.lists(PLAIN, max_size=4).map("\n".join), st.sampled_from(ROLES))
@settings(deadline=None, max_examples=dose(30, 120))
def test_plain_text_stays_to_the_letter(text: str, role: Role) -> None:
    stripped = text.strip()
    if trim(text) != stripped or is_silent(stripped) or find_marker(stripped) is not None:
        return
    if any(re.fullmatch(r"\W*(?:teacher|student)\W*", line, re.IGNORECASE) for line in text.splitlines()):
        return  # a label on a line of its own
    assert read_turn(text, role) == TurnReply(stripped)


@given(
    PLAIN,
    st.sampled_from(ROLES),
    st.sampled_from(["{role}: {text}", "**{role}:** {text}", "[{role}] {text}"]),
)
@settings(deadline=None)
def test_a_label_goes_and_nothing_else(text: str, role: Role, layout: str) -> None:
    text = text.strip()
    if trim(text) != text or is_silent(text) or not text[0].isalnum() or find_marker(text) is not None:
        return
    assert read_turn(layout.format(role=role, text=text), role) == TurnReply(text, False, ("layout",))
    other = read_turn(layout.format(role=OTHER[role], text=text), role)
    assert isinstance(other, Rejection)
    assert other.reason == "speaks_for_other"
    both = read_turn(f"{text}\n\n**{OTHER[role]}:** {text}", role)
    assert isinstance(both, Rejection)
    assert both.reason == "speaks_for_other"


@given(
    PLAIN.map(str.strip).filter(lambda t: not is_silent(t) and trim(t) == t and find_marker(t) is None),
    st.sampled_from(ROLES),
)
@settings(deadline=None)
def test_a_turn_in_json_comes_back(text: str, role: Role) -> None:
    encoded = msgspec.json.encode({"role": role, "text": text}).decode()
    assert read_turn(encoded, role) == TurnReply(text, False, ("layout",))


MORE_SHAPES = {
    "other aliases": "User: a\n",
    "thoughts behind labels": "Teacher: <think>",
    "chat tokens": "<|im_start|>assistant\n",
    "quoted own label": '"Teacher: "',
    "objects of text": '{"text": "',
    "nested responses": '{"response": ',
    "curly pairs": "“a” ",
    "paragraphs": "a\n\n",
    "blank lines of spaces": "a\n     \n",
    "letters and digits": "ab 12 ",
    "as an AI": "as an ai i ",
    "here is": "here is the teacher ",
    "fences in pairs": "```\n```\n",
    "labels within a line": "I see. Student: I go. ",
    "bold labels within a line": "a **Student:** I go ",
    "articles": "The student: I go.\nThe teacher: I go.\n",
    "pronouns": "You: I go.\nMe: I go.\n",
    "other languages": "Lehrer: Los, los.\nSchüler: Ja, ja.\n",
    "people": "Mr. Ax: I go.\nAnn: I go.\n",
    "people over and over": "Ann: ",
    "letters in turn": "S: I go.\nT: I go.\nU: I go.\n",
    "headings of sides": "### Student I go.\n",
    "marks before a label": "*_(",
    "notes on the reply": "(Note: done)\n",
    "notes on one line": "(Note: I kept ",
    "short markers": "[END] ",
    "short markers, lines": "[end]\n\n",
    "agreement": "Okay, I will play the teacher. ",
    "responses": "Response: ",
    "rules under notes": "---\n(Note: a)\n",
}


@pytest.mark.integration
def test_no_shape_grows_faster_than_its_length() -> None:
    """Quadratic code would need many seconds for work of milliseconds."""
    slow = []
    for name, unit in (SHAPES | MORE_SHAPES).items():
        for before in ("", "Teacher: ", 'Hello "'):
            text = before + unit * (4_000 // len(unit))
            if not takes_under(0.06, lambda text=text: read_turn(text, "Teacher")):
                slow.append(before + name)
    assert slow == []


@pytest.mark.parametrize("shape", ["letters", "words", "both role lines", "quotes", "newlines", "paragraphs"])
def test_a_megabyte_is_read_in_under_a_second(shape: str) -> None:
    """0.4 of it takes at most 0.4 seconds on a quiet machine; quadratic work takes many times as long."""
    unit = (SHAPES | MORE_SHAPES)[shape]
    text = unit * (400_000 // len(unit))
    assert takes_under(1.2, lambda: read_turn(text, "Teacher"))


# The detectors.

PREFERENCES = [
    "direct instruction/lecture-based learning",
    "hands-on activities/real-world applications",
    "and gets frustrated otherwise",
    "formative assessment",
]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("You like direct instruction/lecture-based learning, don't you?", PREFERENCES[0]),
        ("I prefer DIRECT  Instruction / lecture‑based\nlearning.", PREFERENCES[0]),
        ("He wants hands–on activities/real-world applications", PREFERENCES[1]),
        ("“Hands-on activities/real-world applications”!", PREFERENCES[1]),
        ("She likes lectures and gets frustrated otherwise.", PREFERENCES[2]),
        ("Formative assessment's good.", PREFERENCES[3]),
        ("formative assessment", PREFERENCES[3]),
    ],
)
def test_a_secret_said_word_for_word_is_found(text: str, secret: str) -> None:
    assert find_leak(text, PREFERENCES, ["Let us begin."]) == secret
    assert find_leak(text, PREFERENCES, ["Let us begin.", f"I know: {secret.upper()}!"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "I like direct instruction.",
        "Lecture-based learning is fine.",
        "Could we do some hands-on activities, with real-world applications?",
        "He gets frustrated otherwise.",
        "An informative assessment",
        "Formative assessments",
        "",
    ],
)
def test_a_part_of_a_secret_or_a_longer_word_is_none(text: str) -> None:
    assert find_leak(text, PREFERENCES, []) is None


def test_a_secret_too_short_to_be_one_never_counts() -> None:
    assert (
        find_leak(
            "I like visuals and debates, by doing.", ["visuals", "debates", "by doing", "", "  ", "…"], []
        )
        == "by doing"
    )
    assert find_leak("discussion, demonstrations, a b", ["discussion", "demonstrations", "a b"], []) is None


def test_a_secret_in_a_script_without_spaces_is_found() -> None:
    assert find_leak("我喜欢动手实践活动,老师。", ["动手实践活动"], []) == "动手实践活动"
    assert find_leak("我喜欢实践。", ["动手实践活动"], []) is None


def test_the_first_secret_in_their_order_is_given() -> None:
    assert (
        find_leak("the second one, the first one", ["the first one", "the second one"], []) == "the first one"
    )


@given(
    st.text(max_size=60),
    st.lists(st.text(max_size=30), max_size=3),
    st.lists(st.text(max_size=60), max_size=3),
)
@settings(deadline=None)
def test_leaks_never_raise_and_hold_what_they_promise(
    text: str, secrets: list[str], heard: list[str]
) -> None:
    secret = find_leak(text, secrets, heard)
    assert secret is None or secret in secrets
    assert find_leak(text, secrets, [*heard, text]) is None
    assert isinstance(loops(text, heard), bool)


LONG = "Photosynthesis is the way in which green plants use light to make sugar out of water and air, every single day."


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("I do not understand this.", ["I do not understand this."]),
        ("I do  NOT understand, this!", ["Hello.", "i do not understand this", "Well."]),
        ("I don’t get it now", ["I don't get it now."]),
        ("Okay.", ["Okay!", "okay"]),
        ("I see, yes.", ["Well then.", "I see. Yes.", "I see, yes"]),
        ("👍", ["👍", "👍"]),
        (LONG.replace("green", "all"), [LONG]),
        ("Now, " + LONG, ["First.", LONG]),
        ("Say it. It is light. It is light! Oh yes.  It is LIGHT? Yes.", []),
        ("It is the sun.\nIt is the sun.\nIt is the sun.", []),
        ("我不明白这个问题。", ["我不明白这个问题"]),
    ],
)
def test_a_side_that_repeats_itself_is_found(text: str, earlier: list[str]) -> None:
    assert loops(text, earlier)


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("", []),
        ("", ["", ""]),
        ("Okay.", ["Okay."]),
        ("Okay.", ["Okay.", "I see.", "Okay."]),
        ("Yes, I see.", ["Yes, I see."]),
        ("I don't know.", ["What is that?", "I don't know."]),
        ("I do not understand that.", ["I do not understand this."]),
        ("What is 7 times 8?", ["What is 7 times 9?"]),
        ("x^2 + 3x - 4 = 0", ["x^2 - 3x + 4 = 0"]),
        ("No, no, no! No way. No way. No way.", []),
        (LONG.replace("sugar", "25 grams of sugar"), [LONG.replace("sugar", "30 grams of sugar")]),
        (
            LONG,
            [
                LONG.replace("light", "lamps").replace("sugar", "food").replace("water", "soil"),
                "Something else.",
            ],
        ),
        (LONG, [LONG.replace("green plants use light", "animals may want heat")]),
        (" ".join(reversed(LONG.split())), [LONG]),
        ("It is light. It is light. That is all.", []),
        ("Right. What comes next in the list?", ["Right. What comes first in the list?"]),
    ],
)
def test_what_only_sounds_alike_is_no_loop(text: str, earlier: list[str]) -> None:
    assert not loops(text, earlier)


@given(st.integers(0, 2**32), st.integers(20, 80), st.integers(0, 20))
@settings(deadline=None)
def test_the_share_of_words_in_order_decides(seed: int, length: int, changed: int) -> None:
    """Words that occur once each, some of them replaced: the remaining share is the similarity."""
    rng = random.Random(seed)
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(length)]
    places = set(rng.sample(range(length), changed))
    other = [f"x{word}" if i in places else word for i, word in enumerate(words)]
    if changed:
        assert loops(" ".join(other), [" ".join(words)]) == (10 * (length - changed) >= 9 * length)


def test_the_detectors_are_quick_on_a_megabyte() -> None:
    """0.4 of it takes them two seconds at most."""
    text = "the cat sat on a mat and saw. " * 13_000
    noise = " ".join(random.Random(7).choices(["ab", "cd", "ef", "gh"], k=130_000))
    other = " ".join(random.Random(8).choices(["ab", "cd", "ef", "gh"], k=130_000))
    assert takes_under(2.0, lambda: _detect(text, noise, other))


def _detect(text: str, noise: str, other: str) -> None:
    find_leak(text, ["the cat sat on a rat", "cat sat on a mat and"], [noise])
    loops(text, [text + "x"])
    loops(noise, [other])
    loops(noise + " x", [noise])
    loops("a" * 400_000, ["a" * 399_999])


@settings(max_examples=dose(50, 200))
@given(
    st.text(st.characters(max_codepoint=127), max_size=30) | st.text("aB9'`-*/+=<(_ .\n\t\x1c", max_size=30)
)
def test_the_quicker_way_finds_the_same_words(text: str) -> None:
    assert detect.words(text) == detect._WORD.findall(text.translate(detect._FOLD).casefold())
