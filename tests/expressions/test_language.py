"""The language of expressions: results equal Python's, and refusals are one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.expressions.language import MAX_LENGTH, Expression, ExpressionError, Kind, NamedTerm
from tests.dose import dose

_KINDS: dict[str, Kind] = {
    "turns": "number", "probability": "number", "topic": "text", "simulated": "truth", "flags": "list", "loose": "any",
}  # fmt: skip


class Names:
    """The names above, looked up in a mapping; with `loose`, any name."""

    def find(self, path: tuple[str, ...]) -> NamedTerm | None:
        name = ".".join(path)
        return NamedTerm(_KINDS[name], lambda about: about[name]) if name in _KINDS else None

    def list_names(self) -> Iterable[str]:
        return _KINDS


def holds(text: str, **about: Any) -> bool:
    return Expression(text, Names()).holds(dict.fromkeys(_KINDS) | about)


_numbers = st.recursive(
    st.sampled_from(
        ["turns", "probability", "3", "0.5", "0", "len(flags)", "len(topic)", "count(flags, 'x')"]
    ),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("abs(-{})".format, inner),
    ),
    max_leaves=4,
)
_orders = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
_texts = st.sampled_from(["topic", "'x'", "'y y'", "lower(topic)"])
_within = st.sampled_from(["in", "not in"])
_clauses = st.one_of(
    st.builds("{} {} {}".format, _numbers, _orders, _numbers),
    st.builds("{} {} {} {} {}".format, _numbers, _orders, _numbers, _orders, _numbers),
    st.builds("{} {} {}".format, _texts, _orders, _texts),
    st.builds("{} {} {}".format, _texts, _within, st.sampled_from(["flags", "topic", "['x', 'z']"])),
    st.builds("{} {} [1, 3]".format, _numbers, _within),
    st.sampled_from(["simulated", "any(flags)", "simulated == True", "turns is None", "loose is not None"]),
)
_expressions = st.recursive(
    _clauses,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=5,
)
_about = st.fixed_dictionaries(
    {
        "turns": st.integers(-3, 30),
        "probability": st.floats(0, 1),
        "topic": st.sampled_from(["x", "X", "y y", ""]),
        "simulated": st.booleans(),
        "flags": st.lists(st.sampled_from(["x", "z", ""])).map(tuple),
        "loose": st.none() | st.integers(),
    }
)


@settings(max_examples=dose(10, 60))
@given(_expressions, _about)
def test_an_expression_says_what_python_says_of_the_same_values(text: str, about: dict[str, Any]) -> None:
    theirs = {"lower": str.lower, "count": lambda several, one: several.count(one)}
    try:
        expected = eval(text, {}, theirs | about)  # of the values made above
    except ZeroDivisionError:
        return
    assert Expression(text, Names()).holds(about) is bool(expected)


@settings(max_examples=dose(10, 60))
@given(
    st.text(max_size=60)
    | st.text(alphabet="turnsflagopic()[]{}<>=!+-*/'\"., andotr0123456789\\\n", max_size=60)
    | _expressions.map(lambda text: text[1:]),
    st.dictionaries(st.sampled_from([*_KINDS]), st.none() | st.integers() | st.text() | st.booleans()),
)
def test_nothing_is_raised_but_an_errors_own_sentence(text: str, about: dict[str, Any]) -> None:
    try:
        assert holds(text, loose=about.get("loose")) in (True, False)
    except ExpressionError as problem:
        error = problem
    else:
        return
    assert error.column >= 1
    assert error.clause in str(error)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("probability >= .5", False),
        ("probability < .5", False),
        ("not probability < .5", False),  # unknown
        ("probability is None", True),
        ("probability < .5 or turns == 3", True),
        ("probability < .5 and turns == 4", False),
        ("not (probability < .5 and turns == 4)", True),  # for any probability
        ("turns / (turns - 3) > 0", False),  # no such number exists
        ("probability + 1 is None", True),
    ],
)
def test_a_clause_about_a_missing_value_is_not_met(text: str, met: bool) -> None:
    assert holds(text, turns=3) is met


@pytest.mark.parametrize(
    ("text", "column", "clause"),
    [
        ("turns < 'a'", 9, "this compares a number with a text"),
        ("turns >= 3 and open('x') == 1", 16, "this function is unknown"),
        ("tirns > 3", 1, "there is no tirns here (did you mean 'turns'?)"),
        ("'é' == topic and trns > 1", 18, "there is no trns here (did you mean 'turns'?)"),
        ("turns = 3", 7, "this cannot be read ("),
        ("turns ** 9 > 1", 1, "powers are not computed here"),
        ("turns", 1, "this is a number, and an expression must be true or false"),
        (
            "turns and simulated",
            1,
            "this is a number, where a condition is expected; compare it with something",
        ),
        ("topic == None", 10, "write `is None` to check for a missing value"),
        ("flags == 'x'", 10, "use a list with `in`, len(…) or count(…)"),
        ("turns in topic", 10, "a number cannot be in a text"),
        ("topic.__class__ == 'x'", 1, "there is no topic.__class__ here"),
        ("(lambda: 1)() > 0", 1, "this function is unknown"),
        ("not " * 60 + "simulated", 165, "this is nested deeper than 40 levels"),
        ("", 1, "this is empty; write a condition, as in turns < 20"),
        ("turns > 1 " * 100_000, 1, f"an expression is at most {MAX_LENGTH:,} characters long"),
    ],
)
def test_a_refusal_says_where_and_what(text: str, column: int, clause: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text, Names())
    assert caught.value.column == column
    assert caught.value.clause.startswith(clause)
    assert str(caught.value).splitlines()[-1].strip() == "^"


def test_what_only_values_tell_is_refused_when_they_are_there() -> None:
    compared = Expression("loose >= 3", Names())
    assert compared.holds({"loose": 4})
    assert not compared.holds({"loose": None})
    with pytest.raises(ExpressionError, match="this compares a text with a number"):
        compared.holds({"loose": "four"})
    with pytest.raises(ExpressionError, match="this is a number, and an expression must be true or false"):
        Expression("loose", Names()).holds({"loose": 4})
