"""Texts of others in Markdown: they read as they are, and have no effect."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.text import escape_markdown

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("student_preference, 5.5% (a-b)", "student_preference, 5.5% (a-b)"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("![i](https://x.example/p.png)", "\\!\\[i\\](https&#58;//x.example/p.png)"),
        ("[x](javascript:alert(1))", "\\[x\\](javascript&#58;alert(1))"),
        ("www.x.example", "www&#46;x.example"),
        ("a | b\n---\nc", "a &#124; b --- c"),
        ("**b** _e_ `c` ~~s~~ $m$", "\\*\\*b\\*\\* \\_e\\_ &#96;c&#96; \\~\\~s\\~\\~ &#36;m&#36;"),
        ("&lt;b&gt; \u202e \ud800 \x1b\u2028x", "&amp;lt;b&amp;gt; \\\\u202e \\\\ud800 \\\\x1b x"),
    ],
)
def test_nothing_in_it_means_anything(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@given(st.text())
def test_it_is_one_line_without_tags_links_or_columns(text: str) -> None:
    escaped = escape_markdown(text)
    assert not re.search(r"[<>|`\r\n\u2028]|https?://|(?<!\\)[*\[\]]", escaped)
    escaped.encode()  # no lone surrogate remains
    if text.isascii() and text.isprintable():
        read = html.unescape(re.sub(r"\\([\\*~\[\]!_])", r"\1", escaped))
        assert read == " ".join(text.split())
