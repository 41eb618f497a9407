"""Counting tokens before a service has counted any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.text import count_utf8_bytes
from edgen.core.values import Message
from edgen.execution.client.charges import count_least_prompt_tokens, count_least_text_tokens
from edgen.prompting.token_bound import count_most_prompt_tokens, estimate_prompt_tokens

pytestmark = pytest.mark.unit

TEXTS = ["", "a", "The teacher wants to teach the student.", "分数の足し算", "🙂" * 50, "\ud800"]


@pytest.mark.parametrize("text", TEXTS)
def test_bound_is_above_bytes_and_estimate_near_a_quarter(text: str) -> None:
    size = len(text.encode(errors="surrogatepass"))
    messages = (Message("system", text), Message("user", text))
    assert count_most_prompt_tokens(messages) >= 2 * size + 8
    assert 2 * size / 4 <= estimate_prompt_tokens(messages) <= 2 * size / 4 + 12


@settings(max_examples=25)
@given(st.lists(st.text(), min_size=1, max_size=6))
def test_the_estimate_is_never_above_the_bound(texts: list[str]) -> None:
    messages = [Message("user", text) for text in texts]
    assert 0 < estimate_prompt_tokens(messages) <= count_most_prompt_tokens(messages)


@given(st.text())
def test_the_floor_is_a_sixteenth_of_the_bytes(text: str) -> None:
    size = len(text.encode(errors="surrogatepass"))
    assert count_least_text_tokens(text) == count_least_prompt_tokens([Message("user", text)]) == size // 16
    assert count_utf8_bytes(text) == size


LANGUAGES = {
    "Hindi": "शिक्षक छात्र को प्रकाश संश्लेषण के बारे में पढ़ाना चाहता है और छात्र प्रश्न पूछता है। ",
    "Tamil": "ஆசிரியர் மாணவருக்கு ஒளிச்சேர்க்கை பற்றி கற்பிக்க விரும்புகிறார். ",
    "Thai": "ครูต้องการสอนนักเรียนเกี่ยวกับการสังเคราะห์ด้วยแสง นักเรียนถามคำถามมากมาย ",
    "Georgian": "მასწავლებელს სურს ასწავლოს მოსწავლეს ფოტოსინთეზის შესახებ. ",
    "English": "The teacher wants to teach the student about photosynthesis, and the student asks. ",
}


def test_no_honest_count_of_a_language_is_below_the_floor() -> None:
    """The vocabulary used here has the most bytes per token of the available ones."""
    vocabulary = pytest.importorskip("bpe_openai").get_encoding("o200k_base")
    for language, sentence in LANGUAGES.items():
        text = sentence * 10
        assert len(vocabulary.encode_ordinary(text)) >= 1.3 * count_least_text_tokens(text), language
