"""Complete parts of a reply that a token limit cut off: sentences, and members of a JSON object."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.reading.cut_off import keep_whole_sentences, without_end


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hello there. Let us", "Hello there."),
        ("Really?! I thou", "Really?!"),
        ('She said "stop." And th', 'She said "stop."'),
        ("Look (it is done.) An", "Look (it is done.)"),
        ("**Well done!** Now w", "**Well done!**"),
        ("Well… I do not", "Well…"),
        ("It is 3.14 or so. Then", "It is 3.14 or so."),
        ("See example.com for it. Th", "See example.com for it."),
        ("Ask Dr. Silva. She wi", "Ask Dr. Silva."),
        ("Take two, e.g. these. Bu", "Take two, e.g. these."),
        ("你好。我们今天学", "你好。"),
        ("準備はいいですか？それで", "準備はいいですか？"),
        ("すごい！」と言い", "すごい！」"),
        ("هل فهمت؟ دعنا ن", "هل فهمت؟"),
        ("یہ ٹھیک ہے۔ اب ہم", "یہ ٹھیک ہے۔"),
        ("यह सही है। अब ह", "यह सही है।"),
        ("Το κατάλαβες; Τότ", "Το κατάλαβες;"),
        ("Bien joué ! Alors", "Bien joué !"),
        ("„Gut gemacht.“ Jetzt", "„Gut gemacht.“"),
        ("Хорошо. Теперь", "Хорошо."),
        ("Steps:\n1. Add them up.\n2. Di", "Steps:\n1. Add them up."),
        ("Yes. No. May", "Yes. No."),
        ("Well done! [end of conv", "Well done!"),
        ("Well done. [end of conversation]", "Well done. [end of conversation]"),
    ],
)
def test_a_text_is_kept_up_to_its_last_sentence(text: str, kept: str) -> None:
    assert keep_whole_sentences(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "Hello ther",
        "Dr. Silv",
        "It is 3.",
        "1. Add them u",
        "Add:\n1. On",
        "[end of conv",
        "Mr. T",
    ],
)
def test_there_may_be_no_whole_sentence(text: str) -> None:
    assert keep_whole_sentences(text) == ""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"text": "Hello there. Let us', {"text": "Hello there."}),
        ('{"text": "Say \\"one.\\" Then \\u00e', {"text": 'Say "one."'}),
        ('{"text": "One.\\nTwo\\', {"text": "One."}),
        ('{"text": "Hello."', {"text": "Hello."}),
        ('{"text": "Hello.", "acti', {"text": "Hello."}),
        ('{"text": "Hello.", "actions": ["Hint", "Quest', {"text": "Hello."}),
        ('{"text": "Hello.", "actions": ["Hint"', {"text": "Hello."}),
        ('{"actions": ["Hint"], "text": "Hello. Th', {"actions": ["Hint"], "text": "Hello."}),
        ('{"text": "Hello.", "votes": [1, 2', {"text": "Hello."}),
        ('{"choice": {"say": "I will. Th', {"choice": {"say": "I will."}}),
        ('{"turn": {"role": "Teacher", "text": "Hello. Th', {"turn": {"role": "Teacher", "text": "Hello."}}),
        ('[{"role": "Teacher", "text": "Hello. Th', [{"role": "Teacher", "text": "Hello."}]),
        ('```json\n{"text": "Hello. Th', {"text": "Hello."}),
        ('Sure! Here it is:\n{"text": "Hello. Th', {"text": "Hello."}),
    ],
)
def test_json_that_breaks_off_is_closed_behind_what_is_whole(text: str, kept: object) -> None:
    found = without_end(text)
    assert found is not None
    assert json.loads(found.kept[min(at for c in "{[" if (at := found.kept.find(c)) >= 0) :]) == kept


@pytest.mark.parametrize(
    "text", ['{"text": "Hello ther', '{"text', "{", '{"choice": 1', '["Hello. Th', '{"n": 12']
)
def test_json_may_hold_nothing_whole(text: str) -> None:
    assert without_end(text) is None


@given(st.text(max_size=80))
def test_any_text_cut_anywhere_closes_to_json_and_never_raises(said: str) -> None:
    without_end(said)
    whole = json.dumps({"text": said, "actions": ["Hint"], "of": {"it": said}})
    for end in range(len(whole)):
        if (found := without_end(whole[:end])) is not None:
            value = json.loads(found.kept)
            assert said.startswith(value.get("text", "")) or value["text"].strip() in said
            assert value.get("actions", ["Hint"]) == ["Hint"]
