"""An untrusted template costs little to refuse and little to use: its bounds and their messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgen.core.errors import TemplateError
from edgen.prompting import load_prompt
from edgen.prompting.check import MAX_NESTED, MAX_OPERANDS, MAX_PIECES
from tests.dose import dose

VALUES = {"topic": "Tides", "index": 3}


def rendered(folder: Path, text: str) -> str:
    path = folder / "mine.j2"
    path.write_text(text, encoding="utf-8")
    return load_prompt(path, VALUES).messages(VALUES)[0].content


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(TemplateError) as caught:
        rendered(folder, text)
    return str(caught.value)


def test_of_many_unknown_names_few_are_told_and_looked_up(tmp_path: Path) -> None:
    said = refusal(tmp_path, "\n".join(f"{{{{ topik{i} }}}}" for i in range(2_400)))
    assert "2400 problems:" in said
    assert "line 1: there is no variable 'topik0' (did you mean 'topic'?)" in said
    assert "… and 2,300 more" in said
    assert said.count("did you mean") == 100


def test_a_very_long_name_is_told_by_its_beginning(tmp_path: Path) -> None:
    for text in (
        "{{ " + "a" * 60_000 + " }}",
        "{{ topic|" + "a" * 60_000 + " }}",
        "{{ topic is " + "a" * 60_000 + " }}",
    ):
        assert len(refusal(tmp_path, text)) < 800


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n{{ 1" + " < 1" * (MAX_OPERANDS + 1) + " }}", "line 2: a comparison of more than 20 parts"),
        ("a\n{{ topic" + " in topic" * 1_000 + " }}", "line 2: a comparison of more than 20 parts"),
        ("a\n" + "{{topic}}" * MAX_PIECES, "line 2: up to here the template has more than 10,000 names"),
        ("{{ [" + "1," * MAX_PIECES + "]|join }}", "line 1: up to here the template has more than 10,000"),
        ("{% if topic %}" * (MAX_NESTED + 2) + "x" + "{% endif %}" * (MAX_NESTED + 2), "nested more than 10 deep"),
        ("\n{{ 1e999 }}", "line 2: the number 1e999 is too large"),
        ("\n{{ 1e999|int }}", "line 2: the number 1e999 is too large"),
        ("{% if 1_0e9_99 > 1 %}x{% endif %}", "line 1: the number 1_0e9_99 is too large"),
        ("\n{{ 1e308 * 10 }}", "line 2: this number is infinite or undefined"),
        ("\n{{ [1e308 * 10 - 1e308 * 10]|join }}", "line 2: this number is infinite or undefined"),
        ("\n{{ " + "9" * 5_000 + " }}", "line 2: a number of 5,000 characters is longer than a prompt needs"),
        ("\n{{ 0x" + "f" * 5_000 + " }}", "line 2: a number of 5,002 characters is longer than a prompt needs"),
        ("\n{{ 10**(10**10) }}", "line 2: a number above 4096 bits"),
        ("\n{{ 2**4000 / 3 }}", "line 2: "),
        ("\n{{ (-8)**0.5 }}", "line 2: only texts and numbers can be printed"),
    ],
    ids=lambda text: text[:25],
)  # fmt: skip
def test_what_is_too_much_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    problem = refusal(tmp_path, text)
    assert said in problem
    assert len(problem) < 400


def test_what_is_just_not_too_much_is_used(tmp_path: Path) -> None:
    assert rendered(tmp_path, "{{ 1" + " <= 1" * MAX_OPERANDS + " }}") == "True"
    assert rendered(tmp_path, "{% if topic %}" * MAX_NESTED + "x" + "{% endif %}" * MAX_NESTED) == "x"
    chain = (
        "{% if index == 0 %}a"
        + "".join(f"{{% elif index == {i} %}}{i}" for i in range(1, 100))
        + "{% endif %}"
    )
    assert rendered(tmp_path, chain) == "3"
    text = "Some words of a long prompt. " * 8_000
    assert rendered(tmp_path, text + "{{ topic }}") == text + "Tides"
    assert rendered(tmp_path, "{{ 1e3 }} {{ 2**64 }} {{ 1.5 }}") == "1000.0 18446744073709551616 1.5"


def test_both_messages_of_a_prompt_share_what_they_may_spend(tmp_path: Path) -> None:
    loop = "{% for a in range(1000) %}{% for b in range(120) %}{% endfor %}{% endfor %}x"
    path = tmp_path / "mine.j2"
    path.write_text(f"{{% block system %}}{loop}{{% endblock %}}{{% block user %}}{loop}{{% endblock %}}")
    prompt = load_prompt(path, VALUES)
    for _ in range(2):  # again for each request
        assert len(prompt.messages(VALUES)) == 2
    path.write_text(
        "{% block system %}" + loop * 3 + "{% endblock %}{% block user %}" + loop * 3 + "{% endblock %}"
    )
    with pytest.raises(TemplateError, match="far more than a prompt needs"):
        load_prompt(path, VALUES).messages(VALUES)


def test_a_text_read_again_is_counted_and_checked_anew(tmp_path: Path) -> None:
    """The compiled template is cached; work and names are counted for each prompt."""
    text = "{% for a in range(1000) %}{% for b in range(240) %}{% endfor %}{% endfor %}{{ topic }}"
    assert [rendered(tmp_path, text) for _ in range(3)] == ["Tides"] * 3
    path = tmp_path / "mine.j2"
    load_prompt(path, VALUES, fields={"topic": ["grade"]})
    with pytest.raises(TemplateError, match="there is no variable 'topic'"):
        load_prompt(path, ["index"])
    path.write_text("{{ topic.grade }}")
    load_prompt(path, VALUES, fields={"topic": ["grade"]})
    for _ in range(2):
        with pytest.raises(TemplateError, match="line 1: no value of topic has a 'grade'"):
            load_prompt(path, VALUES, fields={"topic": ["level"]})


PIECES = (
    "{{topic}}", "{{ topic|upper }}", "{% set a=1 %}", "{{ index < 3 }}", "{% if 1 %}", "{% endif %}", "{% for a in [1] %}",
    "{% endfor %}", "{% macro m() %}", "{% endmacro %}", "x", "{{ a }}", "{{ 1e308*1e308 }}", "{% else %}", "{% elif a %}",
    "{% for q,w in [(1,2)] %}", "{{ m() }}", "{% call m() %}", "{% endcall %}", "{{ [1,2,3]|join }}", "{{ {'a':1}.a }}",
    "{{ topic[0:2] }}", "{{ 'a' ~ 2**4095 }}", "{{ 1 if topic else 2 }}", "{{ loop.index }}", "{% block user %}",
    "{% endblock %}", "\n", "{{ 1/0 }}", "{{ 'a'*9 }}", "{{ -2**2**2 }}", "{{ topic.upper() }}", "{{", "}}", "{%", "%}", "{#",
    "#}", "---\n", "'", "|", "(", ")", "[", "]", "is even", "not ", "in ", "1", ".", "e5", "_", "\u202e", "\\",
)  # fmt: skip


@settings(
    deadline=None, max_examples=dose(10, 100), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_every_text_is_rendered_or_refused(tmp_path: Path, text: str) -> None:
    try:
        rendered(tmp_path, text)
    except TemplateError as problem:
        assert str(problem).startswith("template ")  # noqa: PT017 - it need not be raised
