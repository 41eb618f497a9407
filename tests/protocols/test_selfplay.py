"""Two agents: the order of speakers, their prompts, retries, and the turn at which replicates part."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.config import Branch
from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Conversation, Message, Rejection, RejectionReason, Reply, Request
from edgen.prompting import load_prompt
from edgen.protocols.selfplay import CLOSING_STEP
from edgen.simulator.text import respond
from tests.protocols.play import SCENARIO, VARIABLES, play, prompts
from tests.scenarios import ROLES, scenario_of

LINES = [
    "Good morning, let us begin.",
    "All right, what is it about?",
    "Leaves make sugar from light.",
    "How do they do that?",
]


def numbered(request: Request) -> str:
    return f"Sentence number {request.address.step} of conversation {request.address.task}, said calmly."


class TestTurns:
    def test_the_teacher_opens_and_they_take_turns(self) -> None:
        result, asked = play([*LINES, "That is all for today. [end of conversation]"])
        assert isinstance(result, Conversation)
        assert [turn.role for turn in result.turns] == ["Teacher", "Student", "Teacher", "Student", "Teacher"]
        assert [turn.text for turn in result.turns] == [*LINES, "That is all for today."]
        assert result.ended_by == "Teacher"
        assert [request.role for request in asked] == ["teacher", "student", "teacher", "student", "teacher"]
        assert [request.address.step for request in asked] == [0, 1, 2, 3, 4]

    def test_the_student_may_open(self) -> None:
        result, asked = play([*LINES, "Bye. [end of conversation]"], first="student")
        assert isinstance(result, Conversation)
        assert result.turns[0].role == "Student"
        assert asked[0].messages[-1] == Message("user", "The lesson begins.")
        assert result.ended_by == "Student"

    def test_a_marker_alone_ends_it_without_a_turn(self) -> None:
        result, _ = play([*LINES, "[end of conversation]"])
        assert isinstance(result, Conversation)
        assert len(result.turns) == 4
        assert result.ended_by == "Teacher"

    def test_the_cap_on_turns_ends_it(self) -> None:
        result, asked = play(numbered, max_turns=6)
        assert isinstance(result, Conversation)
        assert len(result.turns) == len(asked) == 6
        assert result.ended_by is None

    def test_each_side_hears_the_other_as_user_and_itself_as_assistant(self) -> None:
        _, asked = play([*LINES, "Bye. [end of conversation]"])
        teacher, student = asked[4].messages, asked[3].messages
        assert [message.role for message in teacher] == [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
        ]
        assert [message.content for message in teacher[2:]] == LINES
        assert [message.role for message in student] == ["system", "user", "assistant", "user"]
        assert [message.content for message in student[1:]] == LINES[:3]

    def test_a_template_without_a_system_block_never_gives_two_user_messages_in_a_row(
        self, tmp_path: Path
    ) -> None:
        templates = {}
        for side in ("teacher", "student"):
            path = tmp_path / f"{side}.j2"
            path.write_text(
                f"You are the {side}. Topic: {{{{ topic }}}}. You like {{{{ {side}_preference }}}}."
            )
            templates[side] = load_prompt(path, VARIABLES[side])
        _, asked = play([*LINES, "Bye. [end of conversation]"], templates=templates)
        for request in asked:
            roles = [message.role for message in request.messages]
            assert roles[0] == "user"
            assert all(one != other for one, other in itertools.pairwise(roles))
        assert asked[1].messages[0].content.endswith(f"\n\n{LINES[0]}")

    def test_a_conversation_of_one_turn_is_none(self) -> None:
        result, _ = play(["Good morning and goodbye. [end of conversation]"])
        assert isinstance(result, Rejection)
        assert result.reason is RejectionReason.TOO_SHORT


words = st.text(st.characters(whitelist_categories=("Ll", "Nd")), min_size=9, max_size=20)


class TestSecrets:
    @settings(max_examples=30)
    @given(
        st.lists(words, min_size=4, max_size=4, unique=True),
        st.sampled_from(["teacher", "student"]),
        st.sampled_from(["student", None]),
    )
    def test_no_request_holds_what_its_side_cannot_know(
        self, secrets: list[str], first: str, closing: str | None
    ) -> None:
        """Checked on the rendered requests of a whole conversation, for any secrets."""
        marked = [f"{name}-{secret}" for name, secret in zip(("sp", "sr", "tp", "tr"), secrets, strict=True)]
        scenario = scenario_of(5, "Cells", *marked)
        _, asked = play(
            lambda request: "0.5" if request.address.step == CLOSING_STEP else numbered(request),
            scenario=scenario, first=first, closing=closing, max_turns=8,
        )  # fmt: skip
        assert len(asked) == 8 + (closing is not None)
        for request in asked:
            text = "\n".join(message.content for message in request.messages)
            for role in ROLES:
                for name in role.sees[1:]:  # both know the topic
                    known = role.name.lower() == request.role
                    assert (scenario[name] in text) is known, (request.role, name)

    @pytest.mark.parametrize(("side", "other"), [("teacher", "student"), ("student", "teacher")])
    def test_a_template_that_asks_for_the_others_secret_is_refused(
        self, tmp_path: Path, side: str, other: str
    ) -> None:
        path = tmp_path / "mine.j2"
        path.write_text(f"Topic {{{{ topic }}}}, and they like {{{{ {other}_preference }}}}.")
        with pytest.raises(Exception, match=f"there is no variable '{other}_preference'"):
            load_prompt(path, VARIABLES[side])

    def test_a_secret_said_by_who_cannot_know_it_is_asked_for_again(self) -> None:
        leak = "Since you like hands-on work/experiments, take this leaf."
        result, asked = play([leak, *LINES, "Bye. [end of conversation]"])
        assert isinstance(result, Conversation)
        assert result.turns[0].text == LINES[0]
        assert [request.address.attempt for request in asked[:3]] == [0, 1, 0]
        assert leak not in str(asked[1].messages), "never with the wreck in the prompt"

    def test_a_side_that_cannot_stop_leaking_ends_it_by_name(self) -> None:
        result, asked = play(["You like hands-on work/experiments!"] * 3)
        assert result == Rejection(
            RejectionReason.LEAKED_SECRET,
            "the teacher says “hands-on work/experiments”, and cannot know it",
        )
        assert len(asked) == 3

    def test_what_the_other_side_said_is_no_secret_any_more(self) -> None:
        told = [
            "Good morning, how do you learn best?",
            "I like hands-on work/experiments.",
            "Then we do hands-on work/experiments.",
        ]
        result, asked = play([*told, "Good. [end of conversation]"])
        assert isinstance(result, Conversation)
        assert len(asked) == 4
        assert result.flags == ()

    def test_a_leak_can_be_let_stand_and_is_named(self) -> None:
        leak = "Since you like hands-on work/experiments, take this leaf."
        result, _ = play([leak, "Bye. [end of conversation]"], leaked_secret="flag")
        assert isinstance(result, Conversation)
        assert result.flags == ("leaked_secret",)


class TestTurnsThatAreNone:
    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            ("Good morning.\nStudent: Hello!\nTeacher: Now then.", "speaks_for_other"),
            ("Teacher: Good morning.\nTeacher: Now then, the leaf.", "two_turns"),
            (Reply("Good mor", finish_reason="length"), "truncated"),
            (Reply("", refusal="I will not."), "refused"),
            ("   ", "empty"),
        ],
    )
    def test_they_are_asked_for_again_and_then_reject_by_name(self, reply: str | Reply, reason: str) -> None:
        result, asked = play([reply, *LINES, "Bye. [end of conversation]"])
        assert isinstance(result, Conversation)
        assert asked[1].address.attempt == 1
        assert asked[1].max_tokens_scale == (2 if reason == "truncated" else 1)
        result, asked = play([reply] * 3)
        assert isinstance(result, Rejection)
        assert str(result.reason) == reason
        assert [request.address.attempt for request in asked] == [0, 1, 2]

    def test_a_loop_is_rejected_or_flagged(self) -> None:
        line = "Please listen carefully to what I say."
        looping = [line, "Yes, I do listen.", line]
        result, _ = play([*looping, line, line])
        assert isinstance(result, Rejection)
        assert result.reason is RejectionReason.LOOP
        result, _ = play([*looping, "Bye. [end of conversation]"], loop="flag")
        assert isinstance(result, Conversation)
        assert result.flags == ("loop",)

    def test_no_more_room_to_give_ends_a_truncated_turn(self) -> None:
        result, asked = play(
            [Reply("Good mor", finish_reason="length"), CallError(FailureKind.BAD_REQUEST, "too many tokens")]
        )
        assert isinstance(result, Rejection)
        assert result.reason is RejectionReason.TRUNCATED
        assert len(asked) == 2


class TestClosing:
    def test_the_student_is_asked_behind_its_own_conversation(self) -> None:
        result, asked = play([*LINES, "Bye. [end of conversation]", "About 0.3"], closing="student")
        assert isinstance(result, Conversation)
        assert result.probability == 0.3
        last = asked[-1]
        assert (last.role, last.address.step) == ("student", CLOSING_STEP)
        roles = [message.role for message in last.messages]
        assert all(one != other for one, other in itertools.pairwise(roles))
        assert "photosynthesis" in last.messages[-1].content
        assert SCENARIO["teacher_preference"] not in str(last.messages)

    def test_a_judge_sees_the_transcript_without_marker_and_secrets(self) -> None:
        result, asked = play([*LINES, "Bye. [end of conversation]", "0.75"], closing="judge")
        assert isinstance(result, Conversation)
        assert result.probability == 0.75
        (message,) = asked[-1].messages
        assert asked[-1].role == "judge"
        assert f"Teacher: {LINES[0]}\nStudent: {LINES[1]}" in message.content
        assert "[end of conversation]" not in message.content
        assert not any(
            secret in message.content
            for secret in (SCENARIO["student_preference"], SCENARIO["teacher_preference"])
        )

    def test_an_answer_without_a_number_is_asked_for_again_and_is_null_in_the_end(self) -> None:
        result, asked = play([*LINES, "Bye. [end of conversation]", "Hard to say.", "0.2"], closing="student")
        assert isinstance(result, Conversation)
        assert result.probability == 0.2
        result, asked = play([*LINES, "Bye. [end of conversation]", *["Who knows"] * 3], closing="student")
        assert isinstance(result, Conversation)
        assert result.probability is None
        assert [request.address.attempt for request in asked[-3:]] == [0, 1, 2]


class TestBranch:
    @pytest.mark.parametrize(
        ("first", "role", "at", "turn"),
        [
            ("teacher", "teacher", 1, 0),
            ("teacher", "teacher", 3, 4),
            ("student", "teacher", 2, 3),
            ("teacher", "student", 2, 3),
        ],
    )
    def test_it_leaves_replicate_0_at_the_turn_that_was_chosen(
        self, first: str, role: str, at: int, turn: int
    ) -> None:
        branch = Branch(at=at, role=role)
        base, _ = play(numbered, first=first, max_turns=8)
        other, asked = play(numbered, replicate=2, branch=branch, first=first, max_turns=8)
        assert isinstance(base, Conversation)
        assert isinstance(other, Conversation)
        assert other.branch == turn
        assert other.turns[:turn] == base.turns[:turn]
        assert other.turns[turn] != base.turns[turn]
        assert other.turns[turn].role.lower() == role
        assert [request.address.task for request in asked] == [0] * turn + [2] * (8 - turn)
        assert base.branch is None

    def test_a_sampled_turn_is_one_of_the_teachers_the_same_for_all_replicates(self) -> None:
        left = set()
        for index in range(40):
            scenario = scenario_of(index, "Cells", "a b", "c d", "e f", "g h")
            ones = [
                play(numbered, scenario=scenario, replicate=r, branch=Branch(), max_turns=9)[0]
                for r in (1, 2)
            ]
            assert all(isinstance(one, Conversation) for one in ones)
            turns = {one.branch for one in ones}  # type: ignore[union-attr]
            assert len(turns) == 1
            left |= turns
        assert left == {0, 2, 4, 6, 8}

    def test_what_replicate_0_asks_is_asked_in_the_very_same_way(self) -> None:
        _, base = play(numbered, max_turns=8)
        _, other = play(numbered, replicate=1, branch=Branch(at=3), max_turns=8)
        assert other[:4] == base[:4]

    def test_a_conversation_too_short_to_branch_is_rejected_by_name(self) -> None:
        result, _ = play([*LINES, "Bye. [end of conversation]"], replicate=1, branch=Branch(at=5))
        assert isinstance(result, Rejection)
        assert result.reason is RejectionReason.NO_BRANCH

    def test_a_base_that_broke_off_can_still_be_left_before_that(self) -> None:
        def broken(request: Request) -> Reply:
            if request.address.task == 0 and request.address.step >= 5:
                return Reply("", refusal="no")
            return Reply(numbered(request))

        assert isinstance(play(broken, max_turns=8)[0], Rejection)
        result, _ = play(broken, replicate=1, branch=Branch(), max_turns=8)
        assert isinstance(result, Conversation)
        assert result.branch in (0, 2, 4)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(0, 3))
@pytest.mark.integration
def test_with_the_simulator_it_depends_on_nothing_but_its_arguments(index: int, replicate: int) -> None:
    def simulated(request: Request) -> Reply:
        return respond(request.messages, seed=request.seed, protocol=request.protocol)

    scenario = scenario_of(
        index,
        "Cells",
        "hands-on activities",
        "and gets rude otherwise",
        "formative assessment",
        "and gives up otherwise",
    )
    one, other = (
        play(simulated, scenario=scenario, replicate=replicate, branch=Branch(), templates=prompts())
        for _ in "12"
    )
    assert one == other
    assert isinstance(one[0], Conversation)
