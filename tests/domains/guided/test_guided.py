"""Guided conversations as requests and replies: what each side knows, how choices are read, what is recorded
and refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import edgen
from edgen.config import parse_job
from edgen.core.errors import EdgenError
from edgen.core.forms import turn_form
from edgen.core.values import Conversation, Rejection, RejectionReason, Reply, Request
from edgen.cost.assumptions import count_prompts
from edgen.domains.guided.events import read_seconds
from edgen.domains.guided.files import read_machine
from edgen.domains.guided.machines.dump import dump_machine
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Machine
from edgen.domains.guided.ratings import read_ratings
from edgen.domains.guided.session import KEPT, UNANSWERED
from edgen.families.dialogue import DIALOGUE
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.kept_job import make_job_for_run
from edgen.planning.load import make_plan, make_plans
from edgen.planning.plan import Plan
from edgen.plugin.answers import NOT_OFFERED
from edgen.protocols.session import CUT_OFF
from edgen.reading.answers.choice import Chosen, read_choice
from edgen.simulator.text import respond
from edgen.validation.checker import find_problems
from tests.execution.batch.desk import Desk
from tests.execution.making import make_run
from tests.execution.players import KilledError, Players
from tests.execution.service import files

JOB: dict[str, Any] = {
    "name": "g",
    "seed": 7,
    "conversations": 4,
    "protocol": "guided",
    "backends": {"default": {"type": "simulator"}},
}
SPACE: dict[str, Any] = {
    "name": "desk",
    "dimensions": {"place": ["the hall", "the store"], "mood": ["calm"], "plan": ["secret plan 77"]},
    "roles": {"Helper": {"sees": ["place", "plan"]}, "Caller": {"sees": ["place", "mood"]}},
}
HEAD: dict[str, Any] = {
    "name": "desk",
    "players": {"wizard": "Helper", "partner": "Caller"},
    "subtasks": ["begin", "finish"],
    "time_limit": 300,
    "world": {
        "code": {"initial": "hidden code 55", "sees": ["Helper"], "label": "Code"},
        "fire": {"initial": 411, "label": "Fire"},
        "door": {"initial": "shut", "sees": ["Helper", "Caller"], "label": "Door"},
    },
}
STATES: dict[str, dict[str, Any]] = {
    "start": {"transition_states": ["greet"]},
    "greet": {
        "formulations": ["Hello, you are at {place}."],
        "transition_states": ["ask", "tell"],
        "transition_probabilities": {"ask": 0.75, "tell": 0.25},
        "effects": [{"set": {"fire": 622}, "after_seconds": 3}, {"set": {"code": "other code 66"}, "after_turns": 2}],
        "act": "interaction",
    },
    "ask": {
        "formulations": ["Is the door open?"],
        "transition_states": ["tell", "bye"],
        "lock": {"says": ["yes"], "otherwise": ["tell"]},
        "act": "request",
    },
    "tell": {"formulations": ["The door is {door}."], "transition_states": ["bye", "ask"], "advances": "finish"},
    "bye": {"formulations": ["Goodbye."], "subtask": "finish", "end": {"reason": "done", "success": True}},
}  # fmt: skip


def write_machine(folder: Path, head: dict[str, Any] | None = None, **states: Any) -> str:
    """Write the desk's folder with these changes; return its name in a job."""
    at = folder / "desk"
    at.mkdir(parents=True, exist_ok=True)
    (at / "machine.yaml").write_text(yaml.safe_dump({**HEAD, **(head or {})}))
    (at / "fixed_states.yaml").write_text("okay: Okay.\n")
    for name, values in {**STATES, **states}.items():
        (at / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, **values}))
    (folder / "space.yaml").write_text(yaml.safe_dump(SPACE, sort_keys=False))
    return "./desk"


def plan_for(folder: Path, machine: str = "./desk", **changes: Any) -> Plan:
    guided = {"machine": machine, **changes.pop("guided", {})}
    job = parse_job({**JOB, "space": "./space.yaml", "guided": guided, **changes}, "job.yaml")
    return make_plan(job, AllowedFiles.of(folder / "job.yaml"))


def simulated(request: Request) -> str:
    return respond(request.messages, seed=request.seed, protocol=request.protocol).text


def in_scene(request: Request) -> str:
    known = {"protocol": request.protocol, "speakers": request.speakers, "scene": request.scene}
    return respond(request.messages, seed=request.seed, **known).text  # type: ignore[arg-type]


Answer = Callable[[Request], str | Reply]


def play(plan: Plan, answer: Answer = simulated, index: int = 0) -> tuple[Any, list[Request]]:
    """Play a conversation to its end; return the result and all of its requests."""
    session = plan.make_task(index, 0).protocol
    asked: list[Request] = []
    reply: Any = None
    try:
        while True:
            asked.append(session.send(reply))
            said = answer(asked[-1])
            reply = Reply(said) if isinstance(said, str) else said
    except StopIteration as end:
        return end.value, asked


def by_role(**answers: Any) -> Answer:
    """Answer by the role of the request, in order, and repeat the last answer; the simulator answers for
    other roles."""
    left = {role: list(said) for role, said in answers.items()}

    def answer(request: Request) -> str | Reply:
        said = left.get(request.role if _is_turn(request) else "asked")
        if not said:
            return simulated(request)
        return said.pop(0) if len(said) > 1 else said[0]  # type: ignore[no-any-return]

    return answer


def _is_turn(request: Request) -> bool:
    return "It is over." not in request.messages[-1].content


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    write_machine(folder)
    return folder


# ---- what each side knows


def test_nothing_hidden_is_in_the_partners_requests(desk: Path) -> None:
    """The partner sees neither the world that is hidden from its role, at any time, nor the hidden part of
    the scenario."""
    hidden = ("hidden code 55", "other code 66", "411", "622", "secret plan 77", "Code:", "Fire:")
    for index in range(4):
        result, asked = play(plan_for(desk), index=index)
        assert isinstance(result, Conversation)
        changed = {name for event in result.events if event["event"] == "world" for name in event["changes"]}
        assert {"fire", "code"} <= changed
        partners = [text_of(one) for one in asked if one.role == "caller"]
        assert len(partners) > 2
        assert not [word for text in partners for word in hidden if word in text]
        assert all("Door: shut" in text for text in partners if "You do not see" in text)
        helpers = [text_of(one) for one in asked if one.role == "helper"]
        assert "hidden code 55" in helpers[0]
        assert any("other code 66" in text for text in helpers)
        assert any("622" in text for text in helpers)
        assert "secret plan 77" in helpers[0]
        assert not any("calm" in text for text in helpers)


def test_each_side_is_shown_what_was_said_and_what_is_offered(desk: Path) -> None:
    result, asked = play(plan_for(desk), by_role(helper=["1"], caller=["Yes, it is."]))
    assert [turn.text for turn in result.turns[:4]] == [
        "Hello, you are at the hall."
        if result.turns[0].text.endswith("hall.")
        else "Hello, you are at the store.",
        "Yes, it is.",
        "Is the door open?",
        "Yes, it is.",
    ]
    third = text_of([one for one in asked if one.role == "helper"][1])
    assert "Caller: Yes, it is." in third
    assert "1. Is the door open?\n2. The door is shut.\n" in third
    assert "3. Okay." in third
    partner = next(one for one in asked if one.role == "caller")
    assert [message.role for message in partner.messages] == ["system", "user"]
    assert partner.messages[1].content == result.turns[0].text


def test_turns_say_how_they_came_about(desk: Path) -> None:
    answer = by_role(helper=["1", "3", "2", "Say: Well, well.", "1"], caller=["Yes."])
    result, _ = play(plan_for(desk, guided={"free_text": 0.25}), answer)
    said = [turn for turn in result.turns if turn.role == "Helper"]
    assert [turn.data["by"] for turn in said][:4] == ["state", "fixed", "state", "free"]
    assert said[0].data == {"by": "state", "state": "greet", "time": 4.4}
    assert said[0].labels == ("Interaction",)
    assert said[1].data["state"] == "okay"
    times = [turn.data["time"] for turn in result.turns]
    assert times == sorted(times)
    chosen = [event for event in result.events if event["event"] == "chosen"]
    assert [(event["by"], result.turns[event["turn"]].text) for event in chosen] == [
        (turn.data["by"], turn.text) for turn in said
    ]
    assert chosen[3]["state"] is None
    assert {event["followed_hint"] for event in chosen} <= {True, False}


def test_the_role_may_take_several_turns_while_nothing_waits(desk: Path) -> None:
    result, _ = play(plan_for(desk, guided={"turns_in_a_row": 3}), by_role(helper=["1"], caller=["Yes."]))
    assert [turn.role for turn in result.turns[:4]] == ["Helper", "Helper", "Caller", "Helper"]


def test_a_label_of_the_partners_turn_opens_a_lock(tmp_path: Path) -> None:
    write_machine(tmp_path, ask={**STATES["ask"], "lock": {"label": "agrees"}})
    answer = by_role(helper=["1"], caller=['{"text": "Do it.", "actions": ["agrees"]}'])
    result, asked = play(plan_for(tmp_path), answer)
    assert any("What it can do: agrees" in text_of(one) for one in asked if one.role == "caller")
    assert result.turns[1].labels == ("agrees",)
    assert [event["event"] for event in result.events].count("unlock") == 1


# ---- who chooses


@pytest.mark.parametrize("chooser", ["chance", "likeliest"])
def test_without_a_model_only_the_partner_is_asked(desk: Path, chooser: str) -> None:
    plan = plan_for(desk, guided={"chooser": chooser})
    assert plan.roles == ("caller",)
    result, asked = play(plan, by_role(caller=["Yes."]))
    assert {one.role for one in asked} == {"caller"}
    assert result.outcome["reason"] == "done"
    assert [*result.outcome["questionnaire"]] == ["Caller"]
    if chooser == "likeliest":
        assert [t.data["state"] for t in result.turns if t.role == "Helper"][:2] == ["greet", "ask"]


def test_the_prompt_of_a_role_played_by_chance_is_neither_shown_nor_counted(desk: Path) -> None:
    plan = plan_for(desk, guided={"chooser": "chance", "questionnaire": None})
    assert [*plan.list_first_requests(plan.scenario(0))] == ["partner"]
    assert [*count_prompts(plan, range(2), AllowedFiles(desk, None)).mean] == ["partner"]


def test_arms_may_differ_in_who_chooses(desk: Path) -> None:
    """A template that one of the arms does not use is valid."""
    prompts = {use: f"guided_{use}" for use in ("wizard", "partner", "paraphrase", "questionnaire")}
    plan = plan_for(desk, prompts=prompts, guided={"chooser": "chance", "questionnaire": None})
    assert plan.opening(plan.scenario(0)).keys() >= {"partner"}
    result, asked = play(plan)
    assert isinstance(result, Conversation)
    assert {one.role for one in asked} == {"caller"}


def test_a_number_that_is_not_there_is_asked_for_again(desk: Path) -> None:
    result, asked = play(plan_for(desk), by_role(helper=["17", "1"], caller=["Yes."]))
    assert isinstance(result, Conversation)
    assert [(one.address.step, one.address.attempt) for one in asked[:3]] == [(0, 0), (0, 1), (1, 0)]
    result, asked = play(plan_for(desk), by_role(helper=["17"]))
    assert len(asked) == 3
    assert result == Rejection(NOT_OFFERED, "it chooses number 17, and there are 2")


def test_free_text_is_limited_to_its_share(desk: Path) -> None:
    result, asked = play(plan_for(desk, guided={"free_text": 0}), by_role(helper=["Say: As I like."]))
    assert result.reason == NOT_OFFERED
    assert '"Say:"' not in text_of(asked[0])

    def writes(request: Request) -> str:
        if request.role != "helper" or not _is_turn(request):
            return "Hm." if _is_turn(request) else simulated(request)
        return "Say: As I like." if '"Say:"' in text_of(request) else "1"

    result, _ = play(plan_for(desk, guided={"free_text": 0.3, "turns": 40}), writes)
    said = [turn.data["by"] for turn in result.turns if turn.role == "Helper"]
    assert 0.2 <= said.count("free") / len(said) <= 0.3
    states = [event["to"] for event in result.events if event["event"] == "state"]
    assert said.count("state") == len(states)


def test_a_rewording_has_to_keep_the_values(desk: Path) -> None:
    where = play(plan_for(desk))[0].turns[0].text.removeprefix("Hello, you are at ").removesuffix(".")
    plan = plan_for(desk, guided={"paraphrase": True, "chooser": "likeliest"})
    assert plan.roles == ("caller", "paraphrase")
    good, asked = play(plan, by_role(paraphrase=[f"So you are in {where.upper()}?"], caller=["Yes."]))
    assert f"To the letter: “{where}”" in text_of(asked[0])
    assert good.turns[0].text == f"So you are in {where.upper()}?"
    assert next(e for e in good.events if e["event"] == "chosen")["utterance"] == good.turns[0].text
    bad, asked = play(plan, by_role(paraphrase=["So you are somewhere?"], caller=["Yes."]))
    assert [one.address.attempt for one in asked[:3]] == [0, 1, 2]
    assert bad.turns[0].text == f"Hello, you are at {where}."
    assert KEPT in bad.repairs


def test_a_rewording_that_is_cut_off_is_kept_asked_for_again_or_rejects(desk: Path) -> None:
    """The job's `too_long` decides, as for every other turn."""
    where = play(plan_for(desk))[0].turns[0].text.removeprefix("Hello, you are at ").removesuffix(".")
    cut = Reply(f"So you are in {where}. What a", "length")

    def played(reply: Reply, **changes: Any) -> tuple[Any, list[int]]:
        plan = plan_for(desk, guided={"paraphrase": True, "chooser": "likeliest"}, **changes)
        made, asked = play(plan, by_role(paraphrase=[reply, "Hm."], caller=["Yes."]))
        return made, [one.address.attempt for one in asked if one.role == "paraphrase"]

    kept, attempts = played(cut)
    assert kept.turns[0].text == f"So you are in {where}."
    assert CUT_OFF in kept.flags
    assert attempts[0] == 0
    assert attempts[1] == 0
    lost, attempts = played(Reply(f"So. You are in {where} an", "length"))
    assert lost.turns[0].text == f"Hello, you are at {where}.", "a part that must stay was cut off"
    assert attempts[:3] == [0, 1, 2]
    again, attempts = played(cut, too_long="ask")
    assert CUT_OFF not in again.flags
    assert attempts[:3] == [0, 1, 2]
    rejected, attempts = played(cut, too_long="reject")
    assert rejected.reason is RejectionReason.TRUNCATED
    assert attempts == [0]


# ---- after the conversation


def test_both_are_asked_the_questionnaire(desk: Path) -> None:
    answer = by_role(
        helper=["1"], caller=["Yes."],
        asked=['{"partner": 9, "information": 6, "task": 6, "expected": 6}',
               '{"partner": 7, "information": "6/7", "task": 6, "expected": 5, "remarks": "Fine."}'],
    )  # fmt: skip
    result, asked = play(plan_for(desk), answer)
    answers = {"partner": 7, "information": 6, "task": 6, "expected": 5, "remarks": "Fine."}
    assert result.outcome["questionnaire"] == {"Helper": answers, "Caller": answers}
    events = [event for event in result.events if event["event"] == "questionnaire"]
    assert [(event["role"], event["token"]) for event in events] == [
        ("Helper", result.outcome["token"]), ("Caller", result.outcome["token"]),
    ]  # fmt: skip
    assert [one.role for one in asked if not _is_turn(one)] == ["helper", "helper", "caller"]
    assert result.outcome["reason"] == "done"
    tokens = {play(plan_for(desk), answer, index)[0].outcome["token"] for index in range(4)}
    assert len(tokens) == 4


def test_answers_that_cannot_be_read_are_flagged(desk: Path) -> None:
    result, _ = play(plan_for(desk), by_role(helper=["1"], caller=["Yes."], asked=["I liked it."]))
    assert UNANSWERED in result.flags
    assert "questionnaire" not in result.outcome


def test_the_simulators_ratings_go_with_success() -> None:
    def lessons(turns: int) -> Plan:
        guided = {"machine": "lesson_plan", "turns": turns}
        return make_plan(
            parse_job({**JOB, "space": "lesson_plan", "guided": guided}, "job.yaml"),
            AllowedFiles.of(Path("job.yaml")),
        )

    plans = [lessons(100), lessons(14)]  # the second plan ends too early
    ratings: dict[bool, list[int]] = {True: [], False: []}
    difficulty: dict[bool, list[int]] = {True: [], False: []}
    for index in range(12):
        outcome = play(plans[index % 2], in_scene, index)[0].outcome
        answers = outcome["questionnaire"].values()
        ratings[outcome["success"]] += [said["partner"] for said in answers]
        difficulty[outcome["success"]] += [said["task"] for said in answers]
    good, bad = (sum(ratings[done]) / len(ratings[done]) for done in (True, False))
    assert good > bad + 1.5
    easy, hard = (sum(difficulty[done]) / len(difficulty[done]) for done in (True, False))
    assert hard > easy + 1.5, "7 is very difficult"


def test_no_questionnaire(desk: Path) -> None:
    result, asked = play(
        plan_for(desk, guided={"questionnaire": None}), by_role(helper=["1"], caller=["Yes."])
    )
    assert all(map(_is_turn, asked))
    assert result.outcome == {
        "reason": "done", "success": True, "seconds": result.events[-1]["time"], "state": "bye", "subtask": "finish",
    }  # fmt: skip


# ---- ends


def test_a_partner_may_leave(desk: Path) -> None:
    result, _ = play(plan_for(desk), by_role(helper=["1"], caller=["I am off. [end of conversation]"]))
    assert (result.outcome["reason"], result.ended_by) == ("partner_left", "Caller")
    assert result.turns[-1].text == "I am off."


def test_a_turn_takes_the_time_that_its_speaker_tells(desk: Path) -> None:
    players = by_role(
        helper=['{"choice": 1, "seconds": 4.5}', "1"],
        caller=['{"text": "Yes, I am here.", "seconds": 100}', "Yes."],
    )
    result, _ = play(plan_for(desk, guided={"clock": "answers"}), players)
    times = [turn.data["time"] for turn in result.turns]
    assert times[:2] == [4.5, 104.5]
    assert times[2] == 104.5 + 2 + 0.4 * len(result.turns[2].text.split())  # by its words
    by_words, _ = play(plan_for(desk), players)
    assert by_words.turns[1].data["time"] < 100


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ('{"text": "a", "seconds": 2}', 2.0), ('{"seconds": 0}', 0.0), ('{"seconds": -1}', None),
        ('{"seconds": "2"}', None), ('{"seconds": true}', None), ('{"seconds": 1e9}', None),
        ('{"text": "a"}', None), ("2 seconds", None), ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_seconds_are_read_where_an_answer_tells_them(text: str, seconds: float | None) -> None:
    assert read_seconds(Reply(text)) == seconds


def test_a_conversation_of_one_side_is_none(tmp_path: Path) -> None:
    write_machine(tmp_path, greet={"formulations": ["Bye."], "end": "done"})
    result, _ = play(plan_for(tmp_path))
    assert result.reason == RejectionReason.TOO_SHORT


def test_a_loop_without_an_end_ends_by_the_cap_on_turns(tmp_path: Path) -> None:
    write_machine(tmp_path, {"time_limit": None}, tell={**STATES["tell"], "transition_states": ["ask"]})
    result, _ = play(plan_for(tmp_path, guided={"turns": 15}), by_role(helper=["1"], caller=["Yes."]))
    assert (result.outcome["reason"], result.outcome["success"]) == ("too_many_turns", False)
    assert len(result.turns) == 15


SAID = st.sampled_from(
    ["1", "2", "3", "17", "Say: Hm.", "Say:", "yes", "Okay.", '{"choice": 1}', "{", "", "<think>", "Caller: No.", "Helper: No.",
     "Bye. [end of conversation]", "\x00\ud800", "1\n2", '{"partner": 1}', None, None, None]
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(SAID, min_size=1, max_size=9),
    st.fixed_dictionaries(
        {
            "chooser": st.sampled_from(["model", "model", "chance", "likeliest"]),
            "free_text": st.sampled_from([0, 0.3, 1]),
            "paraphrase": st.booleans(),
            "turns_in_a_row": st.sampled_from([1, 3]),
            "turns": st.sampled_from([2, 12]),
        }
    ),
)
def test_whatever_is_answered_it_ends_and_again_in_the_same_way(
    desk: Path, said: list[str | None], guided: dict[str, Any]
) -> None:
    """Any answers end the conversation, and the same answers give the same one; the simulator answers where
    none is drawn."""
    plan = plan_for(desk, guided=guided)

    def answers() -> Answer:
        following = itertools.cycle(said)
        return lambda request: next(following) or simulated(request)

    result, asked = play(plan, answers())
    assert (result, asked) == play(plan, answers())
    if isinstance(result, Conversation):
        assert [event["event"] for event in result.events].count("end") == 1
        assert plan.family.name == "dialogue"
        record = {
            "id": "a", "scenario": {"place": "x"}, "roles": ["Helper", "Caller"],
            "conversation": msgspec.to_builtins(result.turns), "events": list(result.events),
        }  # fmt: skip
        assert find_problems(record, schema=DIALOGUE.schema, begins_anew=DIALOGUE.begins_anew) == []


# ---- integration with the engine


def test_the_served_simulator_knows_each_prompt(desk: Path) -> None:
    """No request names its role, yet the simulator recognizes each prompt."""
    plan = plan_for(desk, guided={"paraphrase": True})
    _, asked = play(plan)
    assert {one.role for one in asked} == {"helper", "caller", "paraphrase"}
    for request in asked:
        assert respond(request.messages, seed=request.seed).text == simulated(request)


def test_an_estimate_reckons_with_conversations_by_chance(desk: Path) -> None:
    plan = plan_for(desk, guided={"turns": 40})
    few, some, most = (len(plan.protocol.expected(plan.job, level)) for level in range(3))
    made = [len(play(plan, index=index)[1]) for index in range(20)]
    assert few <= sorted(made)[10] <= most == 42
    assert few <= some <= most
    assert some == pytest.approx(sum(made) / len(made), rel=0.5)
    without = plan_for(desk, guided={"chooser": "chance", "questionnaire": None})
    assert {one.role for one in plan.protocol.expected(without.job, 1)} == {"caller"}


def test_who_speaks_twice_in_a_row_by_the_clock_is_valid(desk: Path) -> None:
    result, _ = play(plan_for(desk, guided={"turns_in_a_row": 3}), by_role(helper=["1"], caller=["Yes."]))
    record = {
        "id": "a", "scenario": {"place": "x"}, "roles": ["Helper", "Caller"],
        "conversation": [{"role": one.role, "text": one.text, "data": one.data} for one in result.turns],
        "events": list(result.events),
    }  # fmt: skip
    assert find_problems(record, schema=DIALOGUE.schema, begins_anew=DIALOGUE.begins_anew) == []
    found = find_problems(record, schema=DIALOGUE.schema)
    assert {one.kind for one in found} == {"alternation"}


# ---- reproducibility


def test_crwiz_own_files_run(shared_data: Path, tmp_path: Path) -> None:
    space = {
        "name": "s",
        "dimensions": {"place": ["a", "b"]},
        "roles": {"Wizard": {"sees": ["place"]}, "Operator": {"sees": []}},
    }
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    job = parse_job(
        {**JOB, "space": "./space.yaml", "guided": {"machine": str(shared_data / "crwiz_states")}}, "job.yaml"
    )
    plan = make_plan(job, AllowedFiles.of(tmp_path / "job.yaml", outside=True))
    reasons = {play(plan, index=index)[0].outcome["reason"] for index in range(10)}
    assert "dialogue_completed" in reasons


async def test_the_bytes_are_the_same_however_it_is_made(desk: Path, tmp_path: Path) -> None:
    """Online runs, batch runs and resumed runs give the same bytes."""

    async def make(name: str, players: Players, batch: Desk | None = None) -> dict[str, bytes]:
        plan = plan_for(desk, batch={"poll": "0.02s"}, conversations=3, guided={"turns": 12})
        await make_run(plan, tmp_path / name, players, batch)
        return files(tmp_path / name)

    whole = Players()
    made = await make("whole", whole)
    assert sum(len(json.loads(text)) for name, text in made.items() if name.startswith("conv")) == 3
    assert await make("batch", Players(), Desk()) == made
    for most in (whole.calls // 3, whole.calls // 2):
        with contextlib.suppress(KilledError):
            await make("killed", Players(most))
    assert await make("killed", Players()) == made


def test_a_runs_copy_of_the_job_holds_the_machine(desk: Path, tmp_path: Path) -> None:
    """The copy makes the same plan in another folder; an arm's machine is its own."""
    for folder in (tmp_path / "a", tmp_path / "b"):
        write_machine(folder)
    (tmp_path / "b" / "desk" / "tell.yaml").write_text(
        "name: tell\nformulations: [Told.]\ntransition_states: [bye]\nadvances: finish\n"
    )
    (tmp_path / "b" / "space.yaml").replace(tmp_path / "space.yaml")
    values = {
        **JOB, "space": "./space.yaml", "guided": {"machine": "./a/desk", "turns": 30},
        "arms": {"one": {}, "two": {"guided": {"machine": "./b/desk"}}},
    }  # fmt: skip
    job = parse_job(values, "job.yaml")
    copied, texts = make_job_for_run(job, AllowedFiles.of(tmp_path / "job.yaml"))
    assert [*texts]
    assert read_machine(copied["guided"]["machine"]) == load_machine(tmp_path / "a" / "desk")
    theirs = read_machine(copied["arms"]["two"]["guided"]["machine"])
    assert theirs.states["tell"].formulations == ("Told.",)
    (tmp_path / "run" / "inputs").mkdir(parents=True)
    for name, text in texts.items():
        (tmp_path / "run" / "inputs" / name).write_text(text)
    again = parse_job(yaml.safe_load(yaml.safe_dump(copied)), "job.yaml")
    ours = make_plans(job, "job.yaml", AllowedFiles.of(tmp_path / "job.yaml"))
    copies = make_plans(again, "job.yaml", AllowedFiles.of(tmp_path / "run" / "job.yaml"))
    assert {arm: plan.make_fingerprint({}) for arm, plan in ours.items()} == {
        arm: plan.make_fingerprint({}) for arm, plan in copies.items()
    }


def test_python_has_outcome_and_events_of_a_run(tmp_path: Path) -> None:
    job = {
        **JOB,
        "conversations": 2,
        "space": "incident_response",
        "guided": {"machine": "incident_response", "turns": 20},
    }
    run = edgen.generate(job, output=tmp_path / "run", progress=False)
    for one in run:
        assert one.outcome is not None
        (end,) = (event for event in one.events if event["event"] == "end")
        assert end["reason"] == one.outcome["reason"]
        assert one.turns[0].data["by"] in ("state", "fixed", "free")


def test_another_machine_is_another_run(desk: Path, tmp_path: Path) -> None:
    write_machine(tmp_path, bye={**STATES["bye"], "formulations": ["Bye."]})
    assert plan_for(desk).make_fingerprint({}) != plan_for(tmp_path).make_fingerprint({})


def test_a_machine_is_the_same_as_json_and_as_files(desk: Path, tmp_path: Path) -> None:
    machine = load_machine(desk / "desk")
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine
    for name, text in dump_machine(machine).items():
        (tmp_path / name).write_text(text)
    assert load_machine(tmp_path) == machine


# ---- refused jobs


def refusal(folder: Path, **changes: Any) -> str:
    with pytest.raises(EdgenError) as refused:
        plan_for(folder, **changes)
    assert refused.value.exit_code == 2
    return str(refused.value)


def test_a_job_needs_a_machine_that_is_there(desk: Path) -> None:
    assert "name a machine" in refusal(desk, guided={"machine": None})
    assert "no such machine" in refusal(desk, machine="incident_responce")
    assert "there is no such folder" in refusal(desk, machine="./other")
    assert "a prompt for each role" in refusal(desk, prompt="education_dialogue")
    assert "no such questionnaire" in refusal(desk, guided={"questionnaire": "other"})


@pytest.mark.parametrize(
    ("head", "states", "told"),
    [
        ({}, {"ask": {**STATES["ask"], "transition_states": ["tel"]}}, "'tel', which does not exist"),
        ({}, {"ask": {**STATES["ask"], "when": {"rain": True}}}, "rain"),
        ({}, {"ask": {**STATES["ask"], "formulations": ["What about {colour}?"]}}, "colour"),
        ({}, {"ask": {**STATES["ask"], "subtask": "middle"}}, "middle"),
        ({"players": {"wizard": "Guide", "partner": "Caller"}}, {}, "no role Guide"),
        ({"world": {**HEAD["world"], "place": {"values": ["the hall"], "initial": "the hall"}}}, {}, "place"),
        ({"initial": "begin"}, {}, "no state 'begin'"),
    ],
    ids=["dangling", "condition", "slot", "gate", "role", "value", "initial"],
)  # fmt: skip
def test_a_machine_that_cannot_run_is_named_before_anything_is_asked(
    tmp_path: Path, head: dict[str, Any], states: dict[str, Any], told: str
) -> None:
    write_machine(tmp_path, head, **states)
    assert told in refusal(tmp_path)


def test_a_dimension_with_a_name_of_the_templates(tmp_path: Path) -> None:
    write_machine(tmp_path)
    dimensions = {**SPACE["dimensions"], "hint": ["a"]}
    (tmp_path / "space.yaml").write_text(yaml.safe_dump({**SPACE, "dimensions": dimensions}, sort_keys=False))
    with pytest.raises(
        EdgenError, match="desk has a dimension hint, which means something else to templates of guided"
    ):
        plan_for(tmp_path)


def test_a_machine_of_the_jobs_project_alone(desk: Path, tmp_path: Path) -> None:
    write_machine(tmp_path / "mine")
    (tmp_path / "other.yaml").write_text("name: other\n")
    assert "outside of the job's project" in refusal(tmp_path / "mine", machine=str(desk / "desk"))
    os.symlink(tmp_path / "other.yaml", tmp_path / "mine" / "desk" / "other.yaml")
    assert "other.yaml in it leads to" in refusal(tmp_path / "mine")


def test_a_machine_that_no_job_can_hold(tmp_path: Path) -> None:
    write_machine(tmp_path, ask={**STATES["ask"], "formulations": [f"{n} {'x' * 3900}" for n in range(300)]})
    assert "larger than 1 MiB" in refusal(tmp_path)


def test_a_machine_names_a_questionnaire_beside_it(tmp_path: Path) -> None:
    write_machine(tmp_path, {"questionnaire": "../q.yaml"})
    (tmp_path / "q.yaml").write_text("name: q\nitems: [{name: fine, text: Was it fine?, scale: [0, 1]}]\n")
    result, _ = play(plan_for(tmp_path), by_role(helper=["1"], caller=["Yes."], asked=["fine: 1"]))
    assert result.outcome["questionnaire"] == {"Helper": {"fine": 1}, "Caller": {"fine": 1}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: q\nitems: []\n", "1 to 50 items"),
        ("name: q\nitems: [{name: a, text: A, scale: [7, 1]}]\n", "less than the highest"),
        ("name: q\nitems: [{name: a, text: A}, {name: a, text: B}]\n", "another item"),
        ("name: q\nitems: [{name: a, txt: A}]\n", "txt"),
        ("- 1\n", "questionnaire"),
    ],
)
def test_a_questionnaire_that_is_none(tmp_path: Path, text: str, told: str) -> None:
    write_machine(tmp_path)
    (tmp_path / "q.yaml").write_text(text)
    assert told in refusal(tmp_path, guided={"questionnaire": "./q.yaml"})


def test_education_dialogues_layout_holds_no_events(tmp_path: Path) -> None:
    write_machine(tmp_path, {"players": {"wizard": "Teacher", "partner": "Student"}, "world": {}},
                  greet={"formulations": ["Hello."]}, tell={"formulations": ["So."]})  # fmt: skip
    job = parse_job({**JOB, "space": "education_dialogue", "guided": {"machine": "./desk"}}, "job.yaml")
    with pytest.raises(EdgenError, match="family: dialogue"):
        make_plan(job, AllowedFiles.of(tmp_path / "job.yaml"))


# ---- reading choices

OFFERED = ("I am on my way.", "Where are you?", "Okay.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", 2),
        (" 2.\n", 2),
        ("**2**", 2),
        ("Option 2.", 2),
        ("I choose number 2", 2),
        ("My answer is 2.", 2),
        ('{"choice": 2}', 2),
        ('```json\n{"choice": "2"}\n```', 2),
        ("2. Where are you?", 2),
        ("2) Where are you now?", 2),
        ("<think>\nMaybe 1.\n</think>\n2", 2),
        ("They have not said where they are.\n\n2", 2),
        ("2\n\nBecause we need to know.", 2),
        ("Where are you?", 2),
        ("“where are  you?”", 2),
        ("Say: Where are you?", 2),
        ("Say: Stay there.", "Stay there."),
        ("Stay there.", "Stay there."),
        ("Desk: Stay there.", "Stay there."),
        ("3 robots are on their way.", "3 robots are on their way."),
        ('{"say": "Stay there."}', "Stay there."),
        ("17", "not_offered"),
        ("0", "not_offered"),
        ('{"choice": 4}', "not_offered"),
        ("", "empty"),
        ("{}", "empty"),
        ("Say:", "empty"),
        ("Desk: Stay.\nCaller: I will.", "speaks_for_other"),
        # A recited menu is no choice; a choice may follow it.
        ("1. I am on my way.\n2. Where are you?\n3. Okay.", "not_offered"),
        ("1. I am on my way.\n2. Where are you?", "not_offered"),
        ("You may say:\n1. I am on my way.\n2. Where are you?\n3.", "not_offered"),
        ("- I am on my way.\n- Where are you?\n- Okay.", "not_offered"),
        ("I am on my way.\nWhere are you?", "not_offered"),
        ("1) I am on my way.\n2) Where are you?\n3) Okay.\n\nI choose 2", 2),
        ("1. I am on my way.\n2. Where are you?\n\n2", 2),
        ("2. Where are you?\nBecause I need to know.", 2),
    ],
)
def test_choices_are_read_from_any_usual_form(text: str, expected: int | str) -> None:
    from edgen.protocols.base import find_role_words

    found = read_choice(text, OFFERED, "Desk", roles=find_role_words(("Desk", "Caller")))
    if isinstance(found, Rejection):
        assert found.reason == expected
    else:
        assert (found.number or found.text) == expected


def test_what_is_not_free_has_to_be_offered() -> None:
    found = read_choice("Stay there.", OFFERED, "Desk", free=False)
    assert isinstance(found, Rejection)
    assert found.reason == NOT_OFFERED
    assert read_choice("okay.", OFFERED, "Desk", free=False) == Chosen(3)
    cut = read_choice("2", OFFERED, "Desk", finish_reason="length")
    assert isinstance(cut, Rejection)
    assert cut.reason == RejectionReason.TRUNCATED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2. Where ar", 2),
        ("2. ", "truncated"),
        ("**1**. I am on", 1),
        ("1. I am on my way.\n2. Whe", "truncated"),  # it recites the menu
        ("9. I am on", "not_offered"),
        ("I am on m", "truncated"),
        ("1", "truncated"),  # perhaps the first digit of 12
    ],
)
def test_a_choice_may_be_cut_off_behind_its_number(text: str, expected: int | str) -> None:
    found = read_choice(text, OFFERED, "Desk", finish_reason="length")
    assert (found.reason if isinstance(found, Rejection) else found.number) == expected


def test_a_cut_choice_and_a_cut_turn_are_kept(desk: Path) -> None:
    cut = [Reply("1. Hello, you", "length"), Reply('{"choice": 1, "say": "So I', "length"), "1", "1", "1"]
    players = by_role(helper=cut, caller=[Reply("Yes. I am he", "length"), "Yes.", "Yes.", "Yes."])
    result, asked = play(plan_for(desk), players)
    assert [turn.text for turn in result.turns][1] == "Yes."
    assert result.flags == ("cut_off", *result.flags[1:])
    assert {request.max_tokens_scale for request in asked} == {1}


ITEMS = {"task": (1, 7), "well_being": (-2, 2), "remarks": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"task": 6, "well_being": -1, "remarks": "Good."}',
            {"task": 6, "well_being": -1, "remarks": "Good."},
        ),
        ('Here:\n```json\n{"task": "6/7", "well being": 2.0}\n```', {"task": 6, "well_being": 2}),
        (
            "task: 6 (agree)\n- **Well-being**: 0\nremarks: None at all",
            {"task": 6, "well_being": 0, "remarks": "None at all"},
        ),
        ('{"task": 8, "well_being": 0}', None),
        ('{"task": 6.5, "well_being": 0}', None),
        ('{"task": true, "well_being": 0}', None),
        ('{"task": "6/10", "well_being": 0}', None),
        ('{"task": NaN, "well_being": 0}', None),
        ('{"task": 1e999, "well_being": 0}', None),
        ('{"task": 6}', None),
        ("I liked it.", None),
        ("", None),
    ],
)
def test_ratings_are_read_where_they_are_on_the_scale(text: str, expected: dict[str, Any] | None) -> None:
    found = read_ratings(text, ITEMS)
    if expected is None:
        assert isinstance(found, Rejection)
        assert found.reason == RejectionReason.UNREAD
    else:
        assert found == expected


@pytest.mark.parametrize(("wizard", "partner"), [("schema", None), (None, "schema"), ("schema", "prose")])
def test_a_questionnaire_has_the_form_of_each_backend(
    desk: Path, wizard: str | None, partner: str | None
) -> None:
    """The questionnaire has one template, which two backends answer."""
    backends = {
        role: {"type": "simulator", **({"forms": forms} if forms else {})}
        for role, forms in (("helper", wizard), ("caller", partner))
    }
    plan = plan_for(desk, backends={"default": {"type": "simulator"}, **backends})
    prompt = plan.prompts["questionnaire"]
    stated = {role: prompt.form(turn_form(), role) is not None for role in ("helper", "caller")}
    assert stated == {"helper": wizard == "schema", "caller": partner == "schema"}
