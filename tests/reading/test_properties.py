"""Properties of every text: no exception, the promised invariants, and `read(dump(x)) == x`."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import END_MARKER, ROLES, Conversation, Rejection, Role, Turn
from edgen.reading import Repair, dump, read
from edgen.reading.text.quotes import is_silent
from tests.dose import dose

MARKER = re.compile(r"\[\s*end\s+of\s+(?:the\s+)?conversation\s*\]", re.IGNORECASE)

TOKENS = [
    "Teacher:", "Student:", "Teacher", "student", "**", "__", "(Ms. R)", "[", "]", "{", "}", "(", ")", ":", ",",
    '"', '\\"', "\\", "“", "”", "'", "«", "»", "`", "```", "```json", "~~~", "\n", "\n\n", "\r\n", " ", "   ",
    "Conversation:", "Probability:", "probability", "0.2", "20%", "1/5", "-", "1. ", "- ", "#", "|", "<think>",
    "</think>", "<", ">", END_MARKER, "[End of conversation].", "(end of conversation)", "End of conversation.",
    "...", "…", '"role"', '"text"', '"conversation"', '"Teacher"', '{"role": "Teacher", "text": "', '"}', "null",
    "hello", "I can't", "Note:", "\ufeff", "\u200b", "\x00", "\ud800", "é", "\\n", "\\frac", "Tutor:", "---",
]  # fmt: skip


def spoken() -> st.SearchStrategy[str]:
    words = st.lists(st.sampled_from([t for t in TOKENS if "end of" not in t.lower()]), max_size=8).map(
        "".join
    )
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    return (
        st.one_of(anything, words, st.tuples(words, anything).map(" ".join))
        .map(str.strip)
        .filter(lambda text: text != "" and "\ud800" not in text and not MARKER.search(text))
    )


@st.composite
def conversations(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> Conversation:
    roles: list[Role] = draw(
        st.lists(st.sampled_from(ROLES), min_size=2, max_size=6).filter(lambda r: len(set(r)) == 2)
    )
    turns = tuple(Turn(role, draw(texts)) for role in roles)
    probability = draw(st.none() | st.floats(0, 1))
    return Conversation(turns, probability, draw(st.sampled_from([None, *ROLES])))


def check(result: Conversation | Rejection) -> None:
    """Check the invariants of any result of `read`."""
    if isinstance(result, Rejection):
        assert 0 < len(result.detail) < 200
        return
    assert {turn.role for turn in result.turns} == set(ROLES)
    for turn in result.turns:
        assert turn.text == turn.text.strip()
        assert not is_silent(turn.text)
        assert not MARKER.search(turn.text)
    assert result.probability is None or 0 <= result.probability <= 1
    assert result.ended_by in (None, *ROLES)
    assert len(set(result.repairs)) == len(result.repairs)
    assert set(result.repairs) <= {str(name) for name in Repair}
    msgspec.json.encode(result)


@given(conversations(spoken()))
@settings(deadline=None, max_examples=dose(15, 50))
def test_what_was_dumped_reads_back(conversation: Conversation) -> None:
    assert read(dump(conversation)) == conversation


@given(st.text(st.characters(), max_size=200))
@settings(deadline=None)
def test_any_text_is_read_without_an_exception(text: str) -> None:
    check(read(text))


@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
@settings(deadline=None, max_examples=dose(50, 200))
def test_any_heap_of_layout_is_read_without_an_exception(text: str) -> None:
    result = read(text)
    check(result)
    assert read(text) == result


PLAIN = (
    st.text(st.sampled_from("abc XYZ.?!,:;'()-é\\\u00a0√"), min_size=1, max_size=30)
    .map(str.strip)
    .filter(
        lambda text: (
            not is_silent(text)
            and not text.endswith(("\\", ","))
            and not text.startswith(("\\", "'"))
            and "\\\\" not in text  # where all are doubled, two may stand for one
        )
    )
)


@given(conversations(PLAIN))
@settings(deadline=None, max_examples=dose(15, 50))
def test_the_published_layout_reads_back(conversation: Conversation) -> None:
    """Plain texts are recovered from the requested layout, with any marks."""
    lines = [f'   {turn.role}:  "{turn.text}",' for turn in conversation.turns]
    if conversation.ended_by is not None:
        lines.append(f'   {conversation.ended_by}:  "{END_MARKER}",')
    tail = [] if conversation.probability is None else [f'Probability:  "{conversation.probability:.6f}",']
    text = "\n".join(["Conversation:", "[", *lines, "]", *tail])
    result = read(text)
    assert isinstance(result, Conversation)
    assert result.turns == conversation.turns
    assert result.ended_by == conversation.ended_by
    assert result.repairs == ()
    if conversation.probability is not None:
        assert result.probability == round(conversation.probability, 6)


@given(conversations(PLAIN))
@settings(deadline=None, max_examples=dose(15, 50))
def test_plain_lines_read_back(conversation: Conversation) -> None:
    """Without quotation marks or brackets, the sentences' own marks stay."""
    result = read("\n".join(f"{turn.role}: {turn.text}" for turn in conversation.turns))
    assert isinstance(result, Conversation)
    assert result.turns == conversation.turns


@given(conversations(spoken().filter(lambda text: not is_silent(text))))
@settings(deadline=None, max_examples=dose(15, 50))
def test_json_texts_stay_to_the_letter(conversation: Conversation) -> None:
    """In plain JSON, too, nothing is taken for layout: quotation marks, role names and commas stay."""
    value = {"conversation": [{"role": t.role, "text": t.text} for t in conversation.turns]}
    encoded = msgspec.json.encode(value).decode()
    if not re.search(r"\\[bfrtn][a-zA-Z]", encoded):
        result = read(encoded)
        assert isinstance(result, Conversation)
        assert [t.text.strip("\u200b\ufeff").strip() for t in result.turns] == [
            t.text.strip("\u200b\ufeff").strip() for t in conversation.turns
        ]
