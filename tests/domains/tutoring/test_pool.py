"""Students served from a pool: matching responses, responses that are never served, and turns without a
match."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from edgen.core.errors import JobError
from edgen.core.values import Conversation, Request, Turn
from edgen.domains.tutoring.config import read_cima_actions
from edgen.domains.tutoring.pool_config import TEMPLATES, PoolSettings, read_template
from edgen.domains.tutoring.pool_serving import DRY
from edgen.domains.tutoring.response_pool import PoolQuery, ResponsePool, ValueFinder
from edgen.domains.tutoring.served_turns import list_responses
from edgen.families.base import Recorded
from edgen.planning.plan import Plan
from edgen.protocols.parts import AnsweringModel, Spent
from edgen.reading.answers.acted_turn import ActedTurn
from tests.domains.tutoring import test_tutoring
from tests.domains.tutoring.test_rounds import plan_for
from tests.domains.tutoring.test_tutoring import said, simulated

POOL: dict[str, Any] = {"choose": "pool", "rounds": 3, "student_turns": 4, "responses": 2}
CAT = {"preposition": "under", "object": "cat", "colour": "red"}
DOG = {**CAT, "object": "dog"}
HINTS = {name: ["[Hint] a"] for name in TEMPLATES}


def pooled(seed: int = 7, **pool: Any) -> Plan:
    tutoring = {**POOL, "pool": pool}
    plan = plan_for(space="italian_prepositions", conversations=6, seed=seed, tutoring=tutoring)
    plan.forget_rounds()
    return plan


def play(
    plan: Plan, index: int, answer: Callable[[Request], str] = simulated
) -> tuple[Recorded, list[Request]]:
    """Play a session of its round; return its record and its requests."""
    result, asked = test_tutoring.play(plan, answer, index)
    settled = plan.make_task(index, 0).settled(
        result, Spent(asks=1, by_role={"tutor": AnsweringModel("simulator", "m")})
    )
    assert settled.record is not None, settled
    return plan.family.read(settled.record), asked


def tutors_turns(recorded: Recorded) -> list[Turn]:
    return [turn for turn in recorded.conversation.turns if "served" in turn.data]


def session(name: str, *turns: Turn, concepts: Mapping[str, str] = CAT) -> Recorded:
    """Return a recorded session of one exercise."""
    made = play(pooled(), 0)[0]
    opening = Turn("Tutor", "What is it?", data={"exercise": 0})
    outcome = {"exercises": [{"concepts": concepts}]}
    conversation = Conversation((opening, *turns), outcome=outcome)
    return Recorded(name, made.scenario, conversation, made.provenance)


def guess(text: str, **data: Any) -> Turn:
    return Turn("Student", text, ("Guess",), data)


def served(*texts: str, **data: Any) -> Turn:
    """Return a templated turn with tutors' responses."""
    others = tuple(Turn("Tutor", text, ("Hint",)) for text in texts)
    return Turn("Tutor", "Not quite.", ("Correction",), {"served": "template", **data}, others)


@pytest.fixture(scope="module")
def naming() -> ValueFinder:
    grammar = pooled().rules.prepared.pool.grammar
    return ValueFinder(grammar.space, grammar.concepts)


def pool_of(naming: ValueFinder, *made: Recorded, **settings: Any) -> ResponsePool:
    return ResponsePool(PoolSettings(**settings), naming).grow(made)


def found(pool: ResponsePool, turn: Turn, concepts: Mapping[str, str], *shown: str) -> str | None:
    response = pool.find(PoolQuery.of(turn, concepts), shown, random.Random(1))
    return None if response is None else response.text


# ---- matches


def test_what_fits_best_is_found_and_nothing_twice(naming: ValueFinder) -> None:
    pool = pool_of(
        naming,
        session("a", guess("Is it sotto il gatto?"), served("Nearly: look at the colour.")),
        session("b", guess("sotto?"), served("What comes behind it?")),
        session("c", Turn("Student", "sotto il gatto?", ("Question",)), served("Try it.")),
    )
    assert len(pool) == 3
    turn = guess("I say sotto il gatto")
    assert found(pool, turn, CAT) == "Nearly: look at the colour."
    assert found(pool, turn, CAT, "Nearly: look at the colour.") == "What comes behind it?"
    assert found(pool, turn, CAT, "Nearly: look at the colour.", "What comes behind it?") is None
    assert found(pool, guess("so"), {"object": "bed"}) is None, "nothing is shared"


def test_a_response_that_names_another_value_does_not_fit(naming: ValueFinder) -> None:
    cat = session("a", guess("sotto?"), served("“cat” is “gatto”."))
    pool = pool_of(naming, cat, session("b", guess("sotto?"), served("Say il cane."), concepts=DOG))
    assert found(pool, guess("sotto?"), CAT) == "“cat” is “gatto”."
    assert found(pool, guess("sotto?"), DOG) == "Say il cane."
    assert found(pool, guess("sotto?"), {**CAT, "object": "bed"}) is None


def test_right_answers_have_responses_of_their_own(naming: ValueFinder) -> None:
    pool = pool_of(naming, session("a", guess("sotto!", solved=True), served("Bravo!")))
    assert found(pool, guess("sotto!"), CAT) is None
    assert found(pool, guess("sotto!", solved=True), CAT) == "Bravo!"


def test_what_was_served_least_comes_first(naming: ValueFinder) -> None:
    pool = pool_of(naming, session("a", guess("sotto?"), served("One.", "Two.")))
    taken = Turn("Tutor", "One.", ("Hint",), {"served": "pool", "from": "a", "turn": 2, "response": 0})
    grown = pool.grow([session("b", guess("sotto?"), taken)])
    assert {found(grown, guess("sotto?"), CAT) for _ in range(9)} == {"Two."}
    assert found(grown, guess("sotto?"), CAT, "Two.") == "One."


def test_nonsense_is_in_no_later_pool_nor_are_the_others_of_its_exercise(naming: ValueFinder) -> None:
    pool = pool_of(naming, session("a", guess("sotto?"), served("One.", "Two.")))
    taken = Turn(
        "Tutor", "One.", ("Hint",), {"served": "pool", "from": "a", "turn": 2, "response": 0, "nonsense": True},
        (Turn("Tutor", "Three.", ("Hint",)),),
    )  # fmt: skip
    grown = pool.grow([session("b", guess("sotto?"), served("Four."), guess("sotto?"), taken)])
    assert len(grown) == 1
    assert found(grown, guess("sotto?"), CAT) == "Two."


def test_a_pool_holds_the_same_few_in_whatever_order_and_pieces_they_come(naming: ValueFinder) -> None:
    made = [session(f"s{n}", guess(f"word{n} sotto?"), served(f"Response {n}.")) for n in range(40)]
    kept = []
    for order in (made, made[::-1]):
        pool = ResponsePool(PoolSettings(most=7), naming)
        for start in range(0, 40, 13):
            pool = pool.grow(order[start : start + 13])
        kept.append({response.text for response in pool._responses})
    assert kept[0] == kept[1]
    assert len(kept[0]) == 7


def test_odd_records_make_no_pool_fall(naming: ValueFinder) -> None:
    turns = (guess("x"), Turn("Tutor", "y", (), {"served": "pool", "from": 3, "turn": "z"}))
    for outcome in (None, {}, {"exercises": "none"}, {"exercises": [7]}, {"exercises": [{"concepts": []}]}):
        odd = session("a", *turns)
        odd = Recorded(
            odd.id, odd.scenario, Conversation(odd.conversation.turns, outcome=outcome), odd.provenance
        )
        assert len(pool_of(naming, odd)) == 0


# ---- a session


def test_the_first_round_has_templates_and_tutors_who_respond_all_the_same() -> None:
    recorded, asked = play(pooled(), 0)
    assert {turn.data["served"] for turn in tutors_turns(recorded)} <= {"template", "dry"}
    assert all(len(turn.alternatives) == 2 == len(list_responses(turn)) for turn in tutors_turns(recorded))
    assert DRY not in recorded.conversation.flags
    outcome = recorded.conversation.outcome
    assert outcome is not None
    assert outcome["round"] == 1
    assert sum(outcome["served"].values()) == 4
    assert [request.role for request in asked] == ["student", "tutor", "tutor"] * 4
    students = [request for request in asked if request.role == "student"]
    heard = [message.content for message in students[-1].messages if message.role == "user"]
    assert [turn.text for turn in tutors_turns(recorded)[:-1]] == heard[-3:]


def test_the_share_of_templates_is_by_action() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for share, seed in itertools.product((0.0, 1.0), (7, 8, 9)):
        plan = pooled(seed, fallback={"Question": share, "Guess": 1 - share})
        plan.prepare_round([play(plan, index)[0] for index in (0, 1)])
        for index in (2, 3):
            turns = play(plan, index)[0].conversation.turns
            for before, turn in itertools.pairwise(turns):
                if "served" in turn.data and len(before.labels) == 1:
                    counts[before.labels[0], turn.data["served"]] += 1
                    if turn.data["served"] == "template":
                        assert (before.labels[0] == "Question") is bool(share)
    assert counts["Question", "template"]
    assert counts["Question", "pool"]


def test_a_pool_that_runs_dry_is_told() -> None:
    plan = pooled(shared=20, fallback={})
    plan.prepare_round([play(plan, 0)[0]])
    conversation = play(plan, 2)[0].conversation
    assert conversation.outcome is not None
    assert conversation.outcome["served"] == {"dry": 4}
    assert DRY in conversation.flags


def test_without_templates_left_a_new_response_goes_on() -> None:
    one = {name: ["[Hint] Go on."] for name in TEMPLATES}
    recorded, _ = play(pooled(templates=one), 0)
    turns = tutors_turns(recorded)
    assert [turn.data["served"] for turn in turns][1:] == ["new"] * 3
    assert len({turn.text for turn in turns}) >= 2
    assert all(len(list_responses(turn)) == 2 for turn in turns)


def test_long_conversations_are_shown_to_no_tutor() -> None:
    def answer(request: Request) -> str:
        return said("Hm.", "Other") if request.role == "student" else said("Think.", "Hint")

    recorded, asked = play(pooled(longest=4), 0, answer)
    assert [len(turn.alternatives) for turn in tutors_turns(recorded)] == [2, 2, 0, 0]
    assert sum(request.role == "tutor" for request in asked) == 4


def test_a_labeller_says_what_the_turn_does_before_it_is_served() -> None:
    settings = {**POOL, "labelled_by": "labeller", "pool": {"longest": 4, "fallback": {}}}
    plan = plan_for(space="italian_prepositions", conversations=6, seed=10, tutoring=settings)
    plan.prepare_round([play(plan, index)[0] for index in (0, 1)])
    recorded, asked = play(plan, 2)
    assert [request.role for request in asked[-4:]] == ["student", "labeller"] * 2
    turns = tutors_turns(recorded)
    assert any(turn.data["served"] == "pool" for turn in turns)
    assert all(turn.data["served"] != "new" for turn in turns)
    assert all(turn.labels for turn in recorded.conversation.turns[1:])


def test_a_flag_ends_a_session_that_is_served() -> None:
    plan = pooled(fallback={})
    plan.prepare_round([play(plan, index)[0] for index in (0, 1)])

    def answer(request: Request) -> str:
        flags = request.role == "student" and request.address.step > 3
        return '{"nonsense": true}' if flags else simulated(request)

    recorded, _ = play(plan, 2, answer)
    last = recorded.conversation.turns[-1]
    assert last.data["nonsense"] is True
    assert last.data["served"] in ("pool", "dry")


def test_the_shipped_templates_are_read_whole() -> None:
    assert TEMPLATES.keys() == {*read_cima_actions()["student"], "solved"}
    for text in (text for several in TEMPLATES.values() for text in several):
        read = read_template(text, read_cima_actions()["tutor"])
        assert isinstance(read, ActedTurn)
        assert f"[{', '.join(read.actions)}] {read.text}" in (
            text,
            text.replace("[Correction, Hint]", "[Hint, Correction]").replace(
                "[Question, Hint]", "[Question, Hint]"
            ),
        )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rounds": 1}, "$.tutoring.rounds: the pool of one round is empty"),
        ({"choose": "draw"}, "$.tutoring.rounds: only `choose: pool` takes more rounds than one"),
        ({"rounds": 0}, "$.tutoring.rounds"),
        ({"sessions_per_round": 0}, "$.tutoring.sessions_per_round"),
        ({"pool": {"fallback": {"Guess": 1.5}}}, "$.tutoring.pool.fallback.Guess"),
        ({"pool": {"fallback": {"Gues": 0.5}}}, "$.tutoring.pool.fallback.Gues: the student has no such action"),
        ({"pool": {"templates": {"Guess": ["[Hint] a"]}}}, "$.tutoring.pool.templates: there is none for Question"),
        ({"pool": {"templates": {**HINTS, "Dance": ["[Hint] b"]}}}, "templates.Dance: the student has no"),
        ({"pool": {"templates": {**HINTS, "Guess": ["Not quite."]}}}, "templates.Guess[0]: expected some of"),
        ({"pool": {"templates": {**HINTS, "Guess": ["[Jump] no"]}}}, "templates.Guess[0]: expected some of"),
        ({"pool": {"size": 3}}, "$.tutoring.pool.size: unknown key"),
        ({"actions": {"student": {"Try": "tries"}, "tutor": {"Help": "helps"}}}, "there is none for Try"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_with_a_sentence(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(JobError) as caught:
        plan_for(tutoring={**POOL, **changes})
    assert told in str(caught.value)


def test_a_record_with_all_this_is_read_back() -> None:
    plan = pooled(seed=10)
    plan.prepare_round([play(plan, index)[0] for index in (0, 1)])
    recorded, _ = play(plan, 3)
    assert plan.family.read(plan.family.record(recorded)) == recorded
    assert any(turn.data["served"] == "pool" for turn in tutors_turns(recorded))
    json.dumps(recorded.conversation.outcome)
