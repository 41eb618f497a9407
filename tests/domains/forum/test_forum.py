"""Forum threads: what each member knows, who posts next, votes and marks, ends, and refused jobs."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import edgen
from edgen.config import parse_job
from edgen.core.errors import EdgenError, ShortError
from edgen.core.values import Conversation, Rejection, RejectionReason, Reply, Request
from edgen.domains.forum.post import TITLE_FROM_TEXT, UNKNOWN_POST, Post, read_post
from edgen.families.dialogue import DIALOGUE
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.planning.unused_variables import find_unused
from edgen.plugin.answers import NOT_OFFERED
from edgen.simulator.text import respond
from edgen.validation.checker import find_problems
from tests.cli.command import Command
from tests.dose import dose
from tests.execution.batch.desk import Desk
from tests.execution.making import make_run
from tests.execution.players import KilledError, Players
from tests.execution.service import files

JOB: dict[str, Any] = {
    "name": "f",
    "seed": 7,
    "conversations": 2,
    "protocol": "forum",
    "backends": {"default": {"type": "simulator"}},
}
SHIPPED = ("homework_help", "tech_support")


def plan_for(folder: Path, people: int, **changes: Any) -> Plan:
    """Plan a forum with this number of members, each with its own secret."""
    secrets = {f"of_{number}": [f"secret number {number}{number}"] for number in range(people)}
    space = {
        "name": "s",
        "dimensions": {"subject": ["maths", "history"], **secrets},
        "roles": {f"Member{number}": {"sees": ["subject", f"of_{number}"]} for number in range(people)},
    }
    (folder / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    job = parse_job({**JOB, "space": "./space.yaml", **changes}, "job.yaml")
    return make_plan(job, AllowedFiles.of(folder / "job.yaml"))


def simulated(request: Request) -> str:
    return respond(request.messages, seed=request.seed, protocol=request.protocol).text


def play(
    plan: Plan, answer: Callable[[Request], str | Reply] = simulated, index: int = 0, replicate: int = 0
) -> tuple[Conversation | Rejection, list[Request]]:
    """Play a thread to its end; return the result and all of its requests."""
    thread = plan.make_task(index, replicate).protocol
    asked: list[Request] = []
    reply: Any = None
    try:
        while True:
            asked.append(thread.send(reply))
            said = answer(asked[-1])
            reply = Reply(said) if isinstance(said, str) else said
    except StopIteration as end:
        return end.value, asked


def thread_of(result: Conversation | Rejection) -> Conversation:
    assert isinstance(result, Conversation), result
    assert result.outcome is not None
    return result


def outcome_of(result: Conversation | Rejection) -> dict[str, Any]:
    return thread_of(result).outcome or {}


def script(plan: Plan, **said: list[Any]) -> tuple[Conversation | Rejection, list[Request]]:
    """Play a thread in which each role posts the listed texts, then passes."""
    left = {role: [*posts] for role, posts in said.items()}

    def answer(request: Request) -> str:
        posts = left.get(request.role, [])
        post = posts.pop(0) if posts else {"pass": True}
        return post if isinstance(post, str) else json.dumps(post)

    return play(plan, answer)


QUESTION = {"title": "Why?", "text": "Why is that so?"}
TWO = {"forum": {"members": {"Member1": {"affiliation": "Staff"}}}}


def test_a_cut_post_is_kept_and_an_echo_is_none(tmp_path: Path) -> None:
    posts = {
        "member0": [
            QUESTION,
            {"text": "This is the thread."},
            {"text": "I see now, thank you.", "accept": 2},
        ],
        "member1": ["cut"],
    }
    left = {role: [*said] for role, said in posts.items()}

    def answer(request: Request) -> str | Reply:
        said = left[request.role].pop(0) if left.get(request.role) else {"pass": True}
        cut = Reply('{"text": "It is so by law. And tha', "length")
        return cut if said == "cut" else json.dumps(said)

    made, asked = play(plan_for(tmp_path, 2), answer)
    result = thread_of(made)
    assert [turn.text for turn in result.turns] == [
        QUESTION["text"],
        "It is so by law.",
        "I see now, thank you.",
    ]
    assert "cut_off" in result.flags
    assert [request.retry_reason for request in asked if request.retry_reason] == ["echo"]


# ---- what each member knows


@pytest.mark.parametrize("people", [2, 4, 6])
def test_nobody_is_told_what_only_another_knows(tmp_path: Path, people: int) -> None:
    """An unposted secret occurs in its owner's requests only, and never in the moderator's."""
    plan = plan_for(tmp_path, people, forum={"chooser": "moderator", "silence": people})

    def answer(request: Request) -> str:
        words = " ".join(filter(str.isalpha, "abcdefghij"[request.address.step % 10] * 3))
        return "1" if request.role == "moderator" else json.dumps({"title": "t", "text": f"I say {words}."})

    _, asked = play(plan, answer)
    secrets = {f"member{number}": f"secret number {number}{number}" for number in range(people)}
    roles = set()
    for request in asked:
        text = "\n".join(message.content for message in request.messages)
        told = {role for role, secret in secrets.items() if secret in text}
        assert told == {request.role} - {"moderator"}
        roles.add(request.role)
    assert len(asked) > 10
    assert "moderator" in roles


@pytest.mark.parametrize("name", SHIPPED)
def test_the_wrong_one_and_the_right_one_of_shipped_spaces_are_apart(name: str) -> None:
    """The wrong member and the asker learn the right answer only from posts in the thread."""
    job = parse_job(yaml.safe_load((Path("jobs") / f"{name}.yaml").read_text("utf-8")), "job.yaml")
    plan = make_plan(job, AllowedFiles.of(Path("jobs") / f"{name}.yaml"))
    assert find_unused(plan) == []
    right, wrong = {
        "homework_help": ("solution", "mistake"), "tech_support": ("cause", "rumour"),
    }[name]  # fmt: skip
    knows = {"homework_help": ("tutor", "classmate"), "tech_support": ("expert", "passerby")}[name]
    for index in range(5):
        scenario = plan.scenario(index)
        _, asked = play(plan, index=index)
        for request in asked:
            for dimension, who in zip((right, wrong), knows, strict=True):
                brief = "" if request.role == "moderator" else request.messages[0].content
                assert (scenario[dimension] in brief) == (request.role == who)


def test_each_hears_the_others_by_number_and_affiliation(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 2, **TWO)
    _, asked = script(plan, member0=[QUESTION, {"text": "And then?"}], member1=[{"text": "So."}])
    heard = asked[1].messages[-1].content
    assert "(User, Common User):\nTitle: Why?\nWhy is that so?" in heard
    assert heard.partition("#")[2].startswith("1 user_")
    assert [message.role for message in asked[2].messages] == ["system", "user", "assistant", "user"]
    assert "(Agent, Staff):\nSo." in asked[2].messages[-1].content


# ---- votes, marks, ends


def test_votes_and_marks_come_to_what_the_record_says(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 2, **TWO)
    result, _ = script(
        plan,
        member0=[QUESTION, {"text": "No.", "votes": [2]}, {"text": "Thanks", "votes": ["#2", 4], "accept": 4}],
        member1=[{"text": "So.", "same_question": True, "votes": [1]}, {"text": "Or so."}],
    )  # fmt: skip
    thread = thread_of(result)
    assert [turn.data["vote"] for turn in thread.turns] == [1, 1, 0, 1, 0]  # a member votes once for a post
    assert [turn.data["is_answer"] for turn in thread.turns] == [0, 0, 0, 1, 0]
    outcome = outcome_of(result)
    assert (outcome["reason"], outcome["answers"], outcome["frequency"]) == ("accepted_answer", [4], 1)
    assert (outcome["title"], outcome["category"]) == ("Why?", "maths")
    kinds = [event["event"] for event in thread.events]
    assert kinds == ["vote", "same_question", "vote", "vote", "accepted", "end"]
    assert [event["time"] for event in thread.events] == sorted(event["time"] for event in thread.events)
    first = thread.turns[0].data
    assert first["utterance_time"] == outcome["dialog_time"]
    assert (first["actor_type"], first["affiliation"]) == ("User", "Common User")


def test_a_mark_alone_ends_a_thread_and_is_no_turn(tmp_path: Path) -> None:
    result, _ = script(plan_for(tmp_path, 2), member0=[QUESTION, {"accept": 2}], member1=[{"text": "So."}])
    assert [turn.text for turn in thread_of(result).turns] == ["Why is that so?", "So."]
    assert outcome_of(result)["reason"] == "accepted_answer"


def test_only_the_asker_accepts(tmp_path: Path) -> None:
    result, _ = script(plan_for(tmp_path, 2), member0=[QUESTION], member1=[{"text": "So.", "accept": 1}])
    assert outcome_of(result)["reason"] == "silence"
    assert outcome_of(result)["accepted"] is False


def test_silence_and_limits_end_a_thread(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 2, forum={"silence": 2, "turns": 4})
    result, asked = script(plan, member0=[QUESTION], member1=[{"text": "So."}])
    assert outcome_of(result)["reason"] == "silence"
    assert len(asked) == 4
    words = iter("abcdefgh")
    result, _ = play(plan, lambda _: json.dumps({"title": "t", "text": f"I say {next(words) * 5} now."}))
    assert outcome_of(result)["reason"] == "too_many_turns"
    assert len(thread_of(result).turns) == 4
    result, _ = script(plan, member0=[QUESTION, "I give up. [end of conversation]"], member1=["So."])
    assert outcome_of(result)["reason"] == "asker_left"
    assert thread_of(result).ended_by == "Member0"
    result, _ = script(plan, member0=[QUESTION])
    assert isinstance(result, Rejection)
    assert result.reason is RejectionReason.ONE_SPEAKER


def test_names_become_the_placeholder(tmp_path: Path) -> None:
    members = {"Member1": {"name": "Ada Example"}, "Member0": {"name": "subject"}}
    plan = plan_for(tmp_path, 2, forum={"members": members})
    result, asked = script(
        plan,
        member0=[QUESTION, "Thanks, Ada! @Member1 is right, adapted or not. Ada Example knows."],
        member1=[{"text": "Hi maths, so."}],
    )
    assert "#2 Ada Example (Agent" in asked[2].messages[-1].content
    assert [turn.text for turn in thread_of(result).turns][1:] == [
        "Hi PERSON_PLACEHOLDER, so.",
        "Thanks, PERSON_PLACEHOLDER! PERSON_PLACEHOLDER is right, adapted or not. PERSON_PLACEHOLDER knows.",
    ]
    data = json.dumps([turn.data for turn in thread_of(result).turns])
    assert "Ada" not in data


# ---- who posts next


def test_chance_follows_the_weights_and_is_alike_for_replicates(tmp_path: Path) -> None:
    members = {"Member1": {"weight": 0}, "Member2": {"weight": 5}}
    plan = plan_for(tmp_path, 4, forum={"members": members}, conversations=20, replicates=2)
    orders = [
        [one.role for one in play(plan, index=index)[1] if not one.address.attempt] for index in range(20)
    ]
    again = [one.role for one in play(plan, index=0, replicate=1)[1] if not one.address.attempt]
    same = min(len(again), len(orders[0]))
    assert again[:same] == orders[0][:same]
    asked = [role for order in orders for role in order]
    assert "member1" not in asked
    assert asked.count("member2") > asked.count("member3")
    assert all(a != b for order in orders for a, b in itertools.pairwise(order))


def test_a_moderator_who_names_nobody_that_there_is_is_asked_again(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 3, forum={"chooser": "moderator"})
    replies = iter([json.dumps(QUESTION), "Barbara, please", "2", json.dumps({"text": "So."}), "nobody"])
    result, asked = play(plan, lambda _: next(replies))
    assert [one.role for one in asked] == ["member0", "moderator", "moderator", asked[3].role, "moderator"]
    second = next(line for line in asked[1].messages[-1].content.split("\n") if line.startswith("2. "))
    with_names = "\n".join(message.content for message in asked[3].messages)
    assert second.removeprefix("2. ").partition(" (")[0] in with_names
    assert [one.address.attempt for one in asked] == [0, 0, 1, 0, 0]
    assert outcome_of(result)["reason"] == "silence"
    result, _ = play(plan, lambda one: "Barbara" if one.role == "moderator" else json.dumps(QUESTION))
    assert isinstance(result, Rejection)
    assert result.reason == NOT_OFFERED


def test_a_moderator_who_always_says_the_first_number_lets_everybody_post(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 4, forum={"chooser": "moderator", "turns": 8})

    def answer(one: Request) -> str:
        place = f"{one.address.scenario} {one.address.step}"
        return (
            "1" if one.role == "moderator" else json.dumps({"title": "t", "text": f"Here I say {place} now."})
        )

    posted = [turn.role for index in range(6) for turn in thread_of(play(plan, answer, index=index)[0]).turns]
    assert {*posted} == {"Member0", "Member1", "Member2", "Member3"}


# ---- replies


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So it is.", Post("So it is.")),
        ('```json\n{"text": "So.", "votes": [1, 1, "#2"], "accept": 2}\n```', Post("So.", votes=(1, 2), accept=2)),
        ('{"pass": true, "votes": 2}', Post("", votes=(2,))),
        ('{"text": "So.", "votes": [3, 9, null, true], "accept": null}', Post("So.", votes=(), repairs=(UNKNOWN_POST,))),
        ('{"text": "So\nlong", "votes": [2,],}', Post("So\nlong", votes=(2,))),
        ('Here it is: {"text": "So."}', Post("So.")),
        ('Here it is:\n{"text": "So\nlong"}', Post("So\nlong")),
        ("Write {x} there.", Post("Write {x} there.")),
        ('{"text": "", "same_question": true}', Post("", same_question=True)),
        ('{"text": "", "votes": []}', Post("")),
    ],
)  # fmt: skip
def test_what_a_post_is_read_as(text: str, expected: Post) -> None:
    found = read_post(text, "Member0", {1, 2}, may_accept=True)
    assert isinstance(found, Post)
    assert found.repairs[-1:] == expected.repairs
    assert (found.text, found.votes, found.accept) == (expected.text, expected.votes, expected.accept)
    assert found.same_question == expected.same_question


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ('{"text": "It is cut o', "length", RejectionReason.TRUNCATED),
        ('{"text": "It is cut o', "stop", RejectionReason.UNREAD),
        ('{"error": null, "items": [[], {}], "next":', "stop", RejectionReason.UNREAD),
        ("", "stop", RejectionReason.EMPTY),
        ('{"votes": []}', "stop", RejectionReason.EMPTY),
    ],
)
def test_what_is_no_post(text: str, finish: str, reason: RejectionReason) -> None:
    found = read_post(text, "Member0", {1, 2}, finish_reason=finish)
    assert isinstance(found, Rejection)
    assert found.reason is reason


def test_a_question_has_a_title_of_its_own() -> None:
    asked = read_post("Title: A line\nAnd a text.", "Member0", (), titled=True)
    assert asked == Post("And a text.", "A line")
    asked = read_post("I have a question. It is long.", "Member0", (), titled=True)
    assert asked == Post("I have a question. It is long.", "I have a question.", repairs=(TITLE_FROM_TEXT,))
    for silent in ('{"pass": true}', "[end of conversation]", '{"title": "A line"}'):
        assert isinstance(read_post(silent, "Member0", (), titled=True), Rejection)


@settings(max_examples=dose(10, 50))
@given(st.one_of(st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["text", "votes", "accept", "title"]), inner),
    max_leaves=8,
).map(json.dumps)), st.booleans())  # fmt: skip
def test_no_reply_breaks_the_reader(text: str, titled: bool) -> None:
    found = read_post(text, "Member0", {1, 2}, titled=titled, may_accept=True)
    if isinstance(found, Post):
        assert {*found.votes, *([found.accept] if found.accept else [])} <= {1, 2}
        assert not titled or (found.text and found.title)


# ---- records and files


class Heard(Players):
    """A backend that keeps its requests."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__(most)
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return await super().complete(request)


class HeardDesk(Desk):
    """A batch service that keeps its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def line(self, name: str, request: Request) -> bytes:
        self.requests.append(request)
        return super().line(name, request)


def assert_nobody_is_told(asked: list[Request], records: list[Any], people: int) -> None:
    """Assert that no brief holds another member's secret, and that other messages hold it only after its
    owner posted it."""
    posted = {
        record["provenance"]["scenario"]: {
            number
            for turn in record["conversation"]
            for number in range(people)
            if f"secret number {number}{number}" in turn["text"] and turn["role"] == f"Member{number}"
        }
        for record in records
    }
    for request in asked:
        for number in range(people):
            secret, own = f"secret number {number}{number}", request.role == f"member{number}"
            in_brief, *in_thread = [secret in message.content for message in request.messages]
            assert in_brief == own or (
                request.role == "moderator" and number in posted[request.address.scenario]
            )
            assert own or not any(in_thread) or number in posted[request.address.scenario]


@pytest.mark.parametrize("people", [2, 5, 6])
async def test_the_bytes_are_the_same_however_it_is_made(tmp_path: Path, people: int) -> None:
    """Online runs at two concurrencies, batch runs and resumed runs give the same bytes, for 2 to 6 members,
    with random and moderated turns. No member learns another's secret."""
    chooser = "moderator" if people % 2 else "chance"
    asked: list[Request] = []

    async def make(
        name: str, players: Heard, desk: HeardDesk | None = None, in_flight: int = 8
    ) -> dict[str, bytes]:
        shape = {"turns": 4, "chooser": chooser}
        plan = plan_for(
            tmp_path, people, batch={"poll": "0.02s"}, forum=shape, limits={"in_flight": in_flight}
        )
        try:
            await make_run(plan, tmp_path / name, players, desk)
        finally:
            asked.extend(players.asked if desk is None else desk.requests)
        return files(tmp_path / name)

    whole = Heard()
    made = await make("whole", whole, in_flight=1)
    found = [one for name, text in made.items() if name.startswith("conv") for one in json.loads(text)]
    assert len(found) == 2
    for record in found:
        assert not [*find_problems(record, schema="dialogue", begins_anew=DIALOGUE.begins_anew)]
        read = DIALOGUE.read(json.dumps(record).encode())
        assert json.loads(DIALOGUE.record(read)) == record
    assert await make("side by side", Heard()) == made
    assert await make("batch", Heard(), HeardDesk()) == made
    with contextlib.suppress(KilledError):
        await make("killed", Heard(whole.calls // 2))
    assert await make("killed", Heard()) == made
    assert len(asked) >= 4 * whole.calls
    assert_nobody_is_told(asked, found, people)


# ---- refused jobs


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"forum": {"members": {"Member1": {"weight": 0}, "Member2": {"weight": 0}}}}, "nobody may answer"),
        ({"forum": {"members": {"Membr1": {"weight": 1}}}}, "the space has no role 'Membr1'"),
        ({"forum": {"asker": "Nobody"}}, "the space has no role 'Nobody'"),
        ({"forum": {"begins": "2024-02-30"}}, "expected a day"),
        ({"forum": {"begins": "9999-12-31"}}, "expected a day"),
        ({"forum": {"chooser": "someone"}}, "forum.chooser"),
        ({"prompt": "education_dialogue"}, "a prompt for each role"),
        ({"space": "education_dialogue"}, "family: dialogue"),
    ],
)
def test_a_job_that_makes_no_sense_is_told_so(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(EdgenError) as caught:
        plan_for(tmp_path, 3, **changes)
    assert told in str(caught.value)


def test_one_role_alone_is_no_forum(tmp_path: Path) -> None:
    with pytest.raises(EdgenError, match="expected 2 to"):
        plan_for(tmp_path, 1)


@pytest.mark.parametrize(
    ("people", "forum", "code", "told"),
    [
        (3, {"members": {f"Member{one}": {"weight": 0} for one in range(3)}}, 2, "nobody may answer"),
        (1, {}, 2, "expected 2 to 20 roles"),
        (3, {"asker": "Member7"}, 2, "the space has no role 'Member7' (did you mean"),
        (3, {"asker": "Nobody"}, 2, "the space has no role 'Nobody' (known: Member0, Member1, Member2)\n"),
    ],
)
def test_a_forum_in_which_nobody_may_speak_is_refused_by_command(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    people: int,
    forum: dict[str, Any],
    code: int,
    told: str,
) -> None:
    with contextlib.suppress(EdgenError):
        plan_for(tmp_path, people)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({**JOB, "space": "./space.yaml", "forum": forum}))
    ended = Command(capsys)("generate", tmp_path / "job.yaml", "-o", tmp_path / "run")
    assert (ended.code, told in ended.err) == (code, True), ended.err
    assert not (tmp_path / "run").exists()


def test_a_moderator_who_always_names_nobody_leaves_no_thread(tmp_path: Path) -> None:
    """Every thread consists of the question alone, so all are rejected and the run reports it."""

    async def nobody(_: Request) -> str:
        return "nobody"

    plan_for(tmp_path, 3)
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump({**JOB, "space": "./space.yaml", "forum": {"chooser": "moderator"}})
    )
    with pytest.raises(ShortError, match="one_speaker"):
        edgen.generate(tmp_path / "job.yaml", output=tmp_path / "run", backends={"moderator": nobody})
    status = edgen.open(tmp_path / "run").status
    assert (status.accepted, status.rejected) == (0, {"one_speaker": 2})
