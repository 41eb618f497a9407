"""Exercises by a grammar: the shipped ones against tables, their order in a session, answers, and refused
grammars."""

from __future__ import annotations

import functools
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import edgen
from edgen.cli.app import app
from edgen.core import resources
from edgen.core.errors import SpaceError
from edgen.core.values import Scenario
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.model import (
    Exercise,
    find_exercises,
    find_numbers,
    is_right,
    split_words,
)
from edgen.domains.tutoring.exercises.pool import (
    ExerciseChain,
    ExercisePool,
    check_exercises,
    iterate_values,
)
from edgen.space import Space, digest_content, dump_space, load_space, parse_space
from edgen.space.sampling import Sampler

SHIPPED = {
    "italian_shapes": {"shapes": 30},
    "italian_prepositions": {"phrases": 360},
    "fractions": {"comparing": 132, "adding": 132},
}


@functools.cache
def shipped(name: str) -> Space:
    return load_space(resources.find("preference_space", name))


@functools.cache
def grammar_of(name: str) -> Grammar:
    return Grammar(shipped(name))


@functools.cache
def every(name: str, tier: str) -> list[Exercise]:
    grammar = grammar_of(name)
    return [grammar.tiers[tier].make(values) for values in iterate_values(grammar, tier)]


# ---- shipped exercises


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_exercise_can_be_asked_and_answered(name: str) -> None:
    assert check_exercises(grammar_of(name)) == SHIPPED[name]


def test_every_italian_phrase_is_that_of_the_table() -> None:
    """The table was written from a separate list of articulated nouns, one line an exercise."""
    lines = (Path(__file__).parent / "italian_prepositions.tsv").read_text("utf-8").splitlines()[1:]
    table = {tuple(line.split("\t")[:3]): line.split("\t")[3] for line in lines}
    made = every("italian_prepositions", "phrases")
    assert {tuple(one.concepts.values()): one.answer for one in made} == table
    assert len(table) == 360


def test_another_right_form_has_its_own_contraction() -> None:
    made = every("italian_prepositions", "phrases")
    found = {tuple(one.concepts.values()): one.answers for one in made}
    assert found["next to", "tree", "red"] == ("è vicino all'albero rosso", "è accanto all'albero rosso")
    assert found["next to", "bed", "red"] == ("è accanto al letto rosso", "è vicino al letto rosso")
    assert found["on top of", "box", "red"] == ("è in cima alla scatola rossa", "è sopra la scatola rossa")
    assert found["in front of", "bag", "red"] == (
        "è di fronte alla borsa rossa",
        "è davanti alla borsa rossa",
    )
    assert found["behind", "tree", "pink"] == ("è dietro l'albero rosa",)


def test_every_coloured_shape() -> None:
    made = every("italian_shapes", "shapes")
    answers = {one.answer for one in made}
    assert {"quadrato rosso", "stella rossa", "stella gialla", "stella viola", "cuore blu"} <= answers
    assert len(answers) == 30


def test_fractions_are_right_and_mistakes_are_wrong() -> None:
    mistakes = 0
    for tier, right in (("comparing", max), ("adding", lambda a, b: a + b)):
        for one in every("fractions", tier):
            first, second = (Fraction(one.concepts[name]) for name in ("first", "second"))
            assert Fraction(one.answer) == right(first, second)  # type: ignore[operator]
            assert one.mistake is None or Fraction(one.mistake) != Fraction(one.answer)
            mistakes += one.mistake is not None
    assert mistakes > 400, "most exercises show the misconception"


def test_points_are_those_of_the_cases_that_applied() -> None:
    points = {
        tuple(one.concepts.values()): " ".join(one.points) for one in every("italian_prepositions", "phrases")
    }
    assert "Before a vowel" in points["behind", "tree", "pink"]
    assert "Before a vowel" not in points["behind", "box", "pink"]
    assert "becomes “rossa”" in points["behind", "box", "red"]
    assert "becomes" not in points["behind", "bed", "red"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_space_with_exercises_is_dumped_and_read(name: str) -> None:
    space = shipped(name)
    assert parse_space(dump_space(space), name) == space
    other = parse_space(
        dump_space(space).replace("Words for colours", "Colours").replace("larger", "bigger"), name
    )
    assert digest_content(other) != digest_content(space), "other exercises are another space"


def test_the_example_in_the_documents_is_sound() -> None:
    page = (resources.find_folder("preference_space").parent / "docs" / "spaces.md").read_text("utf-8")
    text = next(block for block in page.split("```yaml\n") if block.startswith("name: spanish_houses"))
    assert check_exercises(Grammar(parse_space(text.partition("```")[0], "docs/spaces.md"))) == {"words": 4}


# ---- a session


def session(name: str, index: int, count: int, seed: int = 7, tier: str | None = None) -> list[Exercise]:
    space = shipped(name)
    sampler = Sampler(space, seed, "balanced")
    chain = ExerciseChain(ExercisePool(grammar_of(name)), sampler.scenario(index), seed)
    tier = tier or next(iter(SHIPPED[name]))
    return list(itertools.takewhile(bool, (chain.draw_next(tier) for _ in range(count))))  # type: ignore[arg-type]


def test_the_next_exercise_shares_a_value_with_the_last() -> None:
    for index in range(20):
        made = session("italian_prepositions", index, 20)
        assert len({one.question for one in made}) == 20, "none comes twice"
        for before, after in itertools.pairwise(made):
            assert before.concepts.items() & after.concepts.items()


def test_a_session_is_the_same_tomorrow_and_another_elsewhere() -> None:
    assert session("italian_prepositions", 3, 10) == session("italian_prepositions", 3, 10)
    assert (
        session("italian_prepositions", 3, 10)
        != session("italian_prepositions", 3, 10, seed=8)[:1] + session("italian_prepositions", 3, 10)[1:]
    )
    assert session("italian_prepositions", 3, 5) == session("italian_prepositions", 3, 10)[:5]


def test_a_session_begins_with_the_scenario_and_ends_when_none_is_left() -> None:
    space = shipped("italian_shapes")
    scenario = Sampler(space, 1, "balanced").scenario(4)
    chain = ExerciseChain(ExercisePool(Grammar(space)), scenario, 1)
    first = chain.draw_next("shapes")
    assert first is not None
    assert first.concepts == {name: scenario[name] for name in ("shape", "colour")}
    made = [first, *[one for _ in range(29) if (one := chain.draw_next("shapes")) is not None]]
    assert len({one.question for one in made}) == 30
    assert chain.draw_next("shapes") is None


def test_the_mistake_stays_that_of_the_scenario_and_tiers_share_concepts() -> None:
    space = shipped("fractions")
    scenario = Sampler(space, 1, "balanced").scenario(4)
    chain = ExerciseChain(ExercisePool(Grammar(space)), scenario, 1)
    made = [chain.draw_next(tier) for tier in ("comparing", "comparing", "adding", "adding")]
    assert [one.tier for one in made if one] == ["comparing", "comparing", "adding", "adding"]
    for before, after in itertools.pairwise(made):
        assert before is not None
        assert after is not None
        assert before.concepts.items() & after.concepts.items()


# ---- answers


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("è dietro l'albero rosa", True),
        ("Is it “E DIETRO L’ALBERO ROSA”?", True),
        ("e dietro l' albero rosa is my guess then.", True),
        ("è dietro il albero rosa", False),
        ("è dietro l'albero rosato", False),
        ("dietro l'albero rosa", False),
        ("", False),
    ],
)
def test_words_are_compared_without_case_punctuation_and_accents(said: str, right: bool) -> None:
    space = shipped("italian_prepositions")
    made = next(
        one for one in every("italian_prepositions", "phrases") if one.answer == "è dietro l'albero rosa"
    )
    assert find_exercises(space) is not None
    assert is_right(said, made, find_exercises(space)) is right


def test_accents_count_where_the_space_says_so() -> None:
    assert split_words("È già “così”") == ["è", "già", "così"]
    assert split_words("È già “così”", accents=False) == ["e", "gia", "cosi"]


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("I think it is 5/6.", True),
        ("10/12", True),
        ("1/2 is 3/6 and 1/3 is 2/6, so ⅚", True),
        ("5/6! I made both sixths, so 3/6 + 2/6", True),
        ("Is it 2/5?", False),
        ("15/6", False),
        ("nothing at all", False),
        ("5/0", False),
    ],
)
def test_numbers_are_compared_by_value(said: str, right: bool) -> None:
    space = shipped("fractions")
    made = next(one for one in every("fractions", "adding") if one.question == "What is 1/2 + 1/3?")
    assert find_exercises(space) is not None
    assert is_right(said, made, find_exercises(space)) is right


def test_where_the_question_names_the_answer_the_last_number_counts() -> None:
    space = shipped("fractions")
    made = next(
        one for one in every("fractions", "comparing") if one.question == "Which is larger, 1/2 or 1/3?"
    )
    assert find_exercises(space) is not None
    assert not is_right("Which is larger, 1/2 or 1/3?", made, find_exercises(space))
    assert is_right("Not 1/3, it is 1/2", made, find_exercises(space))


def test_numbers_in_a_text() -> None:
    assert find_numbers("1 1/2, -3/4, 0.25, 2½ and 7") == [
        Fraction(3, 2),
        Fraction(-3, 4),
        Fraction(1, 4),
        Fraction(5, 2),
        Fraction(7),
    ]


@given(st.text(max_size=200))
def test_any_text_is_compared(said: str) -> None:
    for name in ("fractions", "italian_shapes"):
        space = shipped(name)
        assert find_exercises(space) is not None
        tier = next(iter(find_exercises(space).tiers))
        made = Exercise(tier=tier, concepts={}, question="1/3?", answers=("5/6 stella",))
        assert is_right(said, made, find_exercises(space)) in (True, False)
        assert is_right(f"{said} = 5/6 stella", made, find_exercises(space))


# ---- refused grammars

BASE: dict[str, Any] = {
    "name": "own",
    "dimensions": {
        "word": [{"value": "house", "es": "casa", "f": True}, {"value": "dog", "es": "perro", "f": False}],
        "size": ["big", "small"],
        "learner": ["shy", "bold"],
    },
    "roles": {"Tutor": {"sees": ["answer", "points"]}, "Student": {"sees": ["learner", "question"]}},
    "exercises": {
        "rules": {
            "article": [
                {"gives": "la", "when": {"word.f": True}},
                {"gives": "el", "when": {"word.f": False}},
            ],
        },
        "tiers": {
            "words": {
                "concepts": ["word", "size"],
                "question": "{{ size }} {{ word }}?",
                "answers": "{{ article }} {{ word.es }} {{ size }}",
            }
        },
    },
}


def changed(path: str, value: Any) -> Any:
    """Return the base with one value changed; None removes it."""
    base = json.loads(json.dumps(BASE))
    *above, last = path.split("/")
    at = base
    for key in above:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) and last != "+" else last] = value
    return base


def refused(space: Any) -> str:
    with pytest.raises(SpaceError) as caught:
        check_exercises(Grammar(parse_space(json.dumps(space), "own.yaml")))
    return str(caught.value)


def test_the_base_is_sound() -> None:
    assert check_exercises(Grammar(parse_space(json.dumps(BASE), "own.yaml"))) == {"words": 4}


RULE = "exercises/rules/article"
WORDS = "exercises/tiers/words"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        # a missing case, two answers, an unused rule, a circle
        (RULE, [{"gives": "la", "when": {"word.f": True}}], "$.exercises.rules.article: no case applies with word.f False"),
        (RULE, [{"gives": "la", "when": {"word.f": True}}, {"gives": "el", "when": {"word": ["dog", "house"]}}],
         "$.exercises.rules.article[1]: this case and the one at [0] both apply with word.f True, word 'house'"),
        (RULE, [{"gives": "la", "when": {"word.f": True}}, {"gives": "el"}, {"gives": "lo", "when": {"word": "dog", "word.f": True}}],
         "$.exercises.rules.article[2]: this case never applies"),
        ("exercises/rules", {"article": [{"gives": "{{ other }}"}], "other": [{"gives": "{{ article }}"}]},
         "these rules need each other in a circle (article → other → article)"),
        (f"{WORDS}/answers", "{{ word.es }} {{ size }}", "$.exercises.rules.article: no text of any tier uses this rule"),
        # exercises whose questions or answers cannot be distinguished
        (f"{WORDS}/question", "{{ word }}?", "house + big and house + small ask the same ('house?') and have different answers"),
        (f"{WORDS}/answers", "{{ article if size == 'big' else '' }}", "$.exercises.tiers.words.answers: it is empty for word 'house', size 'small'"),
        (f"{WORDS}/answers", "{{ '?!' if article else '!' }}", "cannot be distinguished from other text"),
        (f"{WORDS}/mistake", "{{ article }} {{ word.es }} {{ size }}", "is right for word 'house', size 'big'"),
        (f"{WORDS}/concepts", ["word", "size", "learner"], "learner changes nothing in an exercise"),
        # unknown names
        (f"{WORDS}/question", "{{ colour }}?", "$.exercises.tiers.words.question: there is no variable 'colour'"),
        (f"{WORDS}/question", "{{ word.fr }}?", "no value of word has a 'fr'"),
        (f"{WORDS}/question", "{{ word", "$.exercises.tiers.words.question: "),
        (f"{WORDS}/question", "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}{{ word }}{{ size }}", "far more than a prompt needs"),
        (f"{WORDS}/concepts", ["word", "sizes"], "$.exercises.tiers.words.concepts[1]: there is no dimension sizes (did you mean 'size'?)"),
        (f"{WORDS}/concepts", [], "$.exercises.tiers.words.concepts: expected one dimension or more"),
        (f"{WORDS}/answers", [], "$.exercises.tiers.words.answers: expected a list of 1 to 1,000"),
        (f"{WORDS}/answers", 3, "$.exercises.tiers.words.answers: expected a list, got a whole number"),
        (f"{WORDS}/answer", "x", "$.exercises.tiers.words.answer: unknown key (did you mean 'answers'?)"),
        (f"{WORDS}/answer_kind", "digits", "unknown value 'digits'"),
        (RULE, [{"gives": "la", "when": {"word.gender": "f"}}], "$.exercises.rules.article[0].when.word.gender: no value of word has a 'gender'"),
        (RULE, [{"gives": "la", "when": {"word.f": "true"}}], "$.exercises.rules.article[0].when.word.f: word.f is never 'true'"),
        (RULE, [{"gives": "la", "when": {"wrd": "dog"}}], "there is no dimension or rule wrd (did you mean 'word'?)"),
        (RULE, [{"gives": "la"}, {"gives": "el"}], "more than one case has no condition"),
        (RULE, [], "$.exercises.rules.article: expected a list of 1 to 1,000"),
        ("exercises/rules", {"word": [{"gives": "x"}]}, "$.exercises.rules.word: a dimension has this name, too"),
        ("exercises/rules", {"answer": [{"gives": "x"}]}, "$.exercises.rules.answer: every exercise has this name, too"),
        ("exercises/tiers", {}, "$.exercises.tiers: this is empty"),
        ("exercises", [], "$.exercises: expected a mapping"),
        ("dimensions/question", ["a", "b"], "$.dimensions.question: every exercise has a question of its own"),
        ("roles/Tutor", {"sees": ["answers"]}, "$.roles.Tutor.sees[0]: there is no dimension answers (did you mean 'answer'?)"),
        ("dimensions/size", [f"size {number}" for number in range(20_000)], "40,000 exercises are too many"),
    ],
)  # fmt: skip
def test_a_grammar_that_is_wrong_is_refused_with_the_place(path: str, value: Any, told: str) -> None:
    assert told in refused(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (RULE, [{"gives": "la", "when": {"word.f": True}}], "$.exercises.rules.article: no case applies"),
        ("exercises/rules", {"article": [{"gives": "{{ other }}"}], "other": [{"gives": "{{ article }}"}]}, "in a circle"),
        (f"{WORDS}/question", "{{ word }}?", "$.exercises.tiers.words.question: house + big and house + small ask the same"),
        (RULE, [{"gives": "la"}, {"gives": "lo", "when": {"word": "dog", "word.f": True}}], "$.exercises.rules.article[1]: this case never"),
    ],
    ids=["hole", "circle", "two answers", "never applies"],
)  # fmt: skip
def test_commands_refuse_such_a_grammar_before_anything_is_made(
    path: str, value: Any, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(json.dumps(changed(path, value)), "utf-8")
    shown = CliRunner().invoke(app, ["space", "show", str(file)]).exception
    job = {
        "name": "t",
        "conversations": 2,
        "space": str(file),
        "protocol": "tutoring",
        "backends": {"default": {"type": "simulator"}},
    }
    with pytest.raises(SpaceError) as made:
        edgen.generate(job, output=tmp_path / "run", progress=False)
    for error in (shown, made.value):
        assert isinstance(error, SpaceError)
        assert error.exit_code == 2
        assert told in str(error)
    assert not (tmp_path / "run").exists()


def test_conditions_and_exclusions_rule_exercises_out() -> None:
    space = {
        **changed(RULE, [{"gives": "la", "when": {"word": "house"}}, {"gives": "el"}]),
        "exclude": [{"word": "dog", "size": "big"}],
    }
    grammar = Grammar(parse_space(json.dumps(space), "own"))
    assert check_exercises(grammar) == {"words": 3}
    scenario = Scenario(
        0, {"word": "dog", "size": "small", "learner": "shy"}, {"word": {"es": "perro", "f": False}}
    )
    chain = ExerciseChain(ExercisePool(grammar), scenario, 1)
    made = [one.question for _ in range(4) if (one := chain.draw_next("words")) is not None]
    assert made[0] == "small dog?"
    assert sorted(made) == ["big house?", "small dog?", "small house?"]
