"""A search that tries only the forms that can match finds the same as trying all of them."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.preferences import evaluator_appeals, judge_directed
from edgen.preferences.text_forms import Forms, find_needs, read_sections
from tests.dose import dose
from tests.preferences.test_directed import LESSONS, SPEAKING, listed
from tests.simulator import lessons

FORMS: dict[str, Callable[[], Forms]] = {
    "lines": lambda: judge_directed._LINES, "phrases": lambda: judge_directed._PHRASES,
    "gates": lambda: evaluator_appeals._read_classes()[0], "others": lambda: evaluator_appeals._read_classes()[1],
}  # fmt: skip


@functools.cache
def every_form() -> list[Forms]:
    return [forms() for forms in FORMS.values()]


@functools.cache
def matching() -> list[tuple[str, re.Pattern[str], st.SearchStrategy[str]]]:
    """Return every form with texts that it matches, made once: that takes longer than an example."""
    return [(name, form, st.from_regex(form)) for forms in every_form() for name, _, form in forms._forms]


TEXTS = [
    *SPEAKING,
    *LESSONS,
    *(text for name in ("development", "held_out", "ordinary") for _, text in listed(name)),
]


@pytest.mark.long
@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS)
def test_every_form_that_matches_is_chosen(forms: Callable[[], Forms]) -> None:
    """The form is chosen in any letter case, with the Turkish letters that case folding maps to i."""
    searched = forms()
    for text in TEXTS[:: dose(4, 1)]:
        for one in (text, text.upper(), text.title(), text.replace("i", "İ"), text.replace("I", "ı")):
            shown = "\n".join(unicodedata.normalize("NFKC", one).splitlines())
            chosen = searched.choose(shown)
            for name, _, form in searched._forms:
                if form.search(shown) or form.search(" ".join(shown.split())):
                    assert form in chosen[name], (form.pattern, shown)


@pytest.mark.long
@settings(max_examples=dose(40, 400))
@given(st.data())
def test_what_a_form_was_made_to_match_holds_what_it_needs(data: st.DataObject) -> None:
    name, form, texts = data.draw(st.sampled_from(matching()))
    made = unicodedata.normalize("NFKC", data.draw(texts))
    if form.search(made):
        assert any(form in forms.choose(made).get(name, ()) for forms in every_form()), made


def test_a_greek_word_is_found_in_any_case() -> None:
    """The last letter of a word has a form of its own in lower case."""
    name, form = next((name, form) for name, form, _ in matching() if "συζήτησ" in form.pattern)
    for text in ("αυτή τη συζήτηση", "ΑΥΤΉ ΤΗ ΣΥΖΉΤΗΣ", "αυτή τη συζήτης"):
        assert form.search(text)
        assert any(form in forms.choose(text).get(name, ()) for forms in every_form()), text


def test_few_forms_are_tried_on_ordinary_turns() -> None:
    texts = [
        text for i, known in enumerate(lessons.scenarios(20, seed=3)) for _, text in lessons.play(known, i)[0]
    ]
    forms = [FORMS[name]() for name in ("lines", "phrases", "gates")]
    tried = sum(len(found) for text in texts for one in forms for found in one.choose(text).values())
    assert sum(len(one._forms) for one in forms) > 120
    assert tried < 3 * len(texts)


@pytest.mark.parametrize(
    ("form", "needs"),
    [
        ("judges?", [{"judge"}]), ("(?:grade|mark) us", [{"grade", "mark"}, {"us"}]), ("(?:grade)? us", [{"us"}]), ("(?:a|an)+", []),
        (r"\bthe\b\W{0,3}(?:best|most)", [{"best", "most"}, {"the"}]), (r"\d+|ten", []), ("[选選]择", [{"择"}, {"选", "選"}]), ("I", []), ("İYİ", [{"iyi"}]),
    ],
)  # fmt: skip
def test_needs_are_read_off_a_form(form: str, needs: list[set[str]]) -> None:
    assert sorted(map(sorted, find_needs(form))) == sorted(map(sorted, needs))


def test_names_stand_for_earlier_sections(tmp_path: Path) -> None:
    path = tmp_path / "forms.txt"
    path.write_text("# note\n[noun]\ntalk\nchat|call\n\n[lines]\n# note\nmy <NOUN>s\n")
    assert read_sections(path)["lines"] == ["my (?:(?:talk)|(?:chat|call))s"]
    assert re.fullmatch(read_sections(path)["lines"][0], "my calls")
