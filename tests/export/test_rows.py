"""The rows of each format for a few conversations, exactly."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import msgspec
import pytest

from edgen.core.errors import UsageError
from edgen.core.pair import LogprobSignal, ProbabilitySignal, Signals
from edgen.export.chat import make_chat
from edgen.export.rows import LeftOut, Row
from edgen.store.run_parts import ComparedPair
from tests.export.runs import FORMATS, NO_LABELS, MemoryRun, chat, compared, human, lesson, oracle, turns

HELLO = {"role": "user", "content": "Hello! I am here for our lesson on fractions."}
SYSTEM = {
    "role": "system",
    "content": "You are a teacher at school, in a lesson with one student. The topic is fractions.\n\nAbout you:\n"
    "- you like to teach like this: long lectures\n- when the student does not go along: speaks louder",
}
ASK = {"role": "assistant", "content": "What is half of 4?"}
DUNNO = {"role": "user", "content": "No idea."}
DRAW = {"role": "assistant", "content": "Draw four dots."}
TWO = {"role": "user", "content": "Two!"}
THINK = {"role": "assistant", "content": "Think."}

GOOD = turns("T What is half of 4?", "S No idea.", "T Draw four dots.", "S Two!")
BAD = turns("T What is half of 4?", "S No idea.", "T Think.")
STUDENT_FIRST = turns("S What is half of 4?", "T Draw four dots.", "T Now halve them.", "S Two!", "S Thanks.")


def _rows(name: str, run: MemoryRun, **how: Any) -> list[Row]:
    return [item for item in FORMATS[name].rows(run, chat(**how)) if isinstance(item, Row)]


def _values(name: str, run: MemoryRun, **how: Any) -> list[dict[str, Any]]:
    return [row.value for row in _rows(name, run, **how)]


def _left_out(name: str, run: MemoryRun, **how: Any) -> dict[str, int]:
    return Counter(item.reason for item in FORMATS[name].rows(run, chat(**how)) if isinstance(item, LeftOut))


ONE_PAIR = MemoryRun(pairs=[compared(0, BAD, GOOD, chosen="b", p=0.75)])
TAUGHT = MemoryRun(taught=[lesson(0, 0, GOOD), lesson(1, 0, STUDENT_FIRST, split="test")])


@pytest.mark.parametrize("name", ["trl-sft", "verl", "sharegpt"])
def test_a_conversation_in_which_the_trained_side_is_silent_gives_no_row(name: str) -> None:
    run = MemoryRun(
        taught=[lesson(0, 0, turns("S Is anybody there?", "S Hello?")), lesson(1, 0, STUDENT_FIRST)]
    )
    assert [row.value["id"] for row in _rows(name, run)] == [run.taught[1].candidate.id]
    assert _left_out(name, run) == {"untrained": 1}


class TestTurnLevel:
    def test_dpo(self) -> None:
        assert _values("trl-dpo", ONE_PAIR) == [
            {
                "prompt": [HELLO, ASK, DUNNO],
                "chosen": [DRAW],
                "rejected": [THINK],
                "margin": 0.5,
                "id": "tiny-000000-r0-r1",
            }
        ]

    def test_kto(self) -> None:
        assert _values("trl-kto", ONE_PAIR) == [
            {
                "prompt": [HELLO, ASK, DUNNO],
                "completion": [message],
                "label": label,
                "id": f"tiny-000000-r0-r1-{word}",
            }
            for message, label, word in ((DRAW, True, "chosen"), (THINK, False, "rejected"))
        ]

    def test_openrlhf(self) -> None:
        rows = _rows("openrlhf", ONE_PAIR)
        assert [(row.table, row.split) for row in rows] == [
            ("pairs", "train"),
            ("scored", "train"),
            ("scored", "train"),
        ]
        assert rows[0].value == {
            "chosen": [HELLO, ASK, DUNNO, DRAW],
            "rejected": [HELLO, ASK, DUNNO, THINK],
            "margin": 0.5,
            "id": "tiny-000000-r0-r1",
        }
        assert rows[1].value == {
            "in_text": "User: Hello! I am here for our lesson on fractions.\nAssistant: What is half of 4?\n"
            "User: No idea.\nAssistant: ",
            "out_text": "Draw four dots.",
            "score": 1.0,
            "id": "tiny-000000-r0-r1-chosen",
        }
        assert (rows[2].value["out_text"], rows[2].value["score"]) == ("Think.", 0.0)

    def test_refuel(self) -> None:
        (value,) = _values("refuel", ONE_PAIR)
        assert value == {
            "chosen": [HELLO, ASK, DUNNO, DRAW],  # the last message by the user is cut
            "reject": [HELLO, ASK, DUNNO, THINK],
            "chosen_reward": 0.75,
            "reject_reward": 0.25,
            "h": 1,
            "id": "tiny-000000-r0-r1",
        }

    def test_refuel_takes_the_probabilities_where_they_gave_the_label(self) -> None:
        own = Signals(probability=ProbabilitySignal(a=0.1, b=0.7, p=0.2, tie=False, abstain=False))
        run = MemoryRun(pairs=[compared(0, BAD, GOOD, chosen="b", p=0.8, signals=own, by="probability")])
        (value,) = _values("refuel", run)
        assert (value["chosen_reward"], value["reject_reward"]) == (0.7, 0.1)

    def test_refuel_needs_the_user_to_begin(self) -> None:
        assert _left_out("refuel", ONE_PAIR, opening="system") == {"system_message": 1}
        assert _left_out("refuel", ONE_PAIR, opening="both") == {"system_message": 1}

    def test_sweet(self) -> None:
        rows = _rows("sweet", ONE_PAIR)
        assert [row.table for row in rows] == ["trajectories", "critic", "turns", "trajectories"]
        trajectory, critic, turn, other = (row.value for row in rows)
        before = f"User: {HELLO['content']}\n\nAssistant: "
        later = f"{before}What is half of 4?\n\nUser: No idea.\n\nAssistant: "
        assert turn == {
            "chosen": f"{later}Draw four dots.",
            "rejected": f"{later}Think.",
            "id": "tiny-000000-r0-r1",
        }
        hidden = "student preference: drawings; student reaction: sulks in a corner"
        assert critic["chosen"] == f"In light that the final answer is: {hidden}.{turn['chosen']}"
        assert trajectory == {
            "task": {
                "problem_description": "topic: fractions; teacher preference: long lectures; teacher reaction: speaks louder",
                "ground_truth": hidden,
            },
            "dialogue_history": [
                HELLO,
                {**ASK, "input": before, "output": ASK["content"]},
                DUNNO,
                {**DRAW, "input": later, "output": DRAW["content"]},  # the last message by the user is cut
            ],
            "answer": "Draw four dots.",
            "reward": 1.0,
            "id": "tiny-000000-r0-r1",
        }
        assert (other["task"], other["answer"], other["reward"]) == (trajectory["task"], "Think.", 0.0)

    def test_sweet_reads_the_rejected_in_the_order_of_the_chosen(self) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD), compared(1, GOOD, GOOD), compared(2, BAD, GOOD)])
        found = [
            (row.value["id"], row.value["reward"])
            for row in _rows("sweet", run)
            if row.table == "trajectories"
        ]
        assert found == [
            (name, reward) for reward in (1.0, 0.0) for name in ("tiny-000000-r0-r1", "tiny-000002-r0-r1")
        ]
        assert _left_out("sweet", run) == {"identical": 1}

    def test_sweet_keeps_the_trajectories_of_a_pair_without_two_turns(self) -> None:
        run = MemoryRun(
            pairs=[compared(0, turns("T Hi.", "S Yes.", "T A."), turns("T Hi.", "S No.", "T B."))]
        )
        assert [row.table for row in _rows("sweet", run)] == ["trajectories", "critic", "trajectories"]
        assert _left_out("sweet", run) == {"differs_at_other_side": 1}

    def test_the_opening_can_be_the_whole_prompt(self) -> None:
        run = MemoryRun(pairs=[compared(0, turns("T One.", "S Ok."), turns("T Two.", "S Ok."))])
        assert [v["prompt"] for v in _values("trl-dpo", run)] == [[HELLO]]
        assert [v["prompt"] for v in _values("trl-dpo", run, opening="system")] == [[SYSTEM]]
        assert [v["prompt"] for v in _values("trl-dpo", run, opening="both")] == [[SYSTEM, HELLO]]

    def test_the_student_can_be_trained(self) -> None:
        (value,) = _values(
            "trl-dpo",
            MemoryRun(pairs=[compared(0, turns("T Hi.", "S Yes."), turns("T Hi.", "S No."))]),
            train="Student",
        )
        assert value["prompt"] == [{"role": "user", "content": "Hi."}]
        assert value["chosen"] == [{"role": "assistant", "content": "Yes."}]

    @pytest.mark.parametrize(
        ("a", "b", "reason"),
        [
            (("T Hi.", "S Yes.", "T A."), ("T Hi.", "S No.", "T B."), "differs_at_other_side"),
            (("T Hi.", "S Yes."), ("T Hi.", "S Yes.", "T More."), "one_ends"),
            (("T Hi.", "S Yes."), ("T Hi.", "S Yes."), "identical"),
            (("T Hi.", "S Yes.", "T A."), ("T Hi.", "S Yes.", "T A. "), "identical"),
            (("T Hi. ", "S Yes.", "T A."), ("T Hi.", "S Yes.", "T B."), "identical"),
            (("S Hi.", "T A."), ("T Hi.", "S B."), "differs_at_other_side"),
        ],
    )
    @pytest.mark.parametrize("name", ["trl-dpo", "trl-kto", "openrlhf", "refuel"])
    def test_what_a_turn_cannot_tell(
        self, name: str, a: tuple[str, ...], b: tuple[str, ...], reason: str
    ) -> None:
        run = MemoryRun(pairs=[compared(0, turns(*a), turns(*b))])
        assert _values(name, run) == []
        assert _left_out(name, run) == {reason: 1}

    def test_one_side_going_on_in_the_same_breath_is_another_message(self) -> None:
        run = MemoryRun(pairs=[compared(0, turns("T Hi.", "T You.", "S A."), turns("T Hi.", "S B."))])
        (value,) = _values("trl-dpo", run)
        assert value["chosen"] == [{"role": "assistant", "content": "Hi.\n\nYou."}]
        assert value["rejected"] == [{"role": "assistant", "content": "Hi."}]

    @pytest.mark.parametrize("reason", ["tie", "abstained", "surplus", "something_new"])
    def test_a_pair_without_a_label_says_why(self, reason: str) -> None:
        run = MemoryRun(pairs=[compared(0, GOOD, BAD, chosen=None, left_out=reason)])
        for name in ("trl-dpo", "trl-kto", "trl-conversation", "openrlhf", "refuel", "sweet"):
            assert _values(name, run) == []
            assert _left_out(name, run) == {reason: 1}, name


@pytest.mark.parametrize(
    "name", ["trl-dpo", "trl-conversation", "openrlhf", "llamafactory", "sweet", "refuel"]
)
def test_a_preference_is_written_once_and_not_if_another_pair_reverses_it(name: str) -> None:
    """Replicates that say the same are different pairs with the same row."""
    end = "" if name in ("trl-conversation", "refuel") else "!"  # there, later turns count
    x, y, z, other = (turns("S Hi.", f"T {word}.", f"S Bye{end}") for word in ("x", "y", "z", "x"))
    other = [*other[:-1], *turns(f"S Bye{end and '?'}")]
    run = MemoryRun(
        pairs=[
            compared(0, x, y, numbers=(0, 1)),
            compared(0, z, x, numbers=(2, 0)),
            compared(0, y, other, numbers=(1, 3)),
            compared(0, z, other, numbers=(2, 3)),
            compared(1, x, y, numbers=(0, 1)),
        ]
    )
    table = {"openrlhf": "pairs", "llamafactory": "preference", "sweet": "turns"}.get(name, "default")
    rows = [row.value["id"] for row in _rows(name, run) if row.table == table]
    assert rows == [run.pairs[place].pair.id for place in (1, 4)]
    found = Counter(item.reason for item in FORMATS[name].rows(run, chat()) if isinstance(item, LeftOut))
    assert found["contradictory"] >= 2
    assert found["repeated"] >= 1


class TestCompletions:
    def test_contradictory_and_repeated(self) -> None:
        x, y, z = (turns("T Hi.", "S Ok.", f"T {word}.", "S Bye.") for word in ("x", "y", "z"))
        run = MemoryRun(
            pairs=[
                compared(0, x, y, chosen="a", numbers=(0, 1)),
                compared(0, y, z, chosen="a", numbers=(1, 2)),
                compared(0, x, z, chosen="a", numbers=(0, 2)),
            ]
        )
        said = [(v["completion"][0]["content"], v["label"]) for v in _values("trl-kto", run)]
        assert said == [("x.", True), ("z.", False)]
        assert _left_out("trl-kto", run) == {"contradictory": 2, "repeated": 2}
        assert _left_out("openrlhf", run) == {"contradictory": 2, "repeated": 2}
        assert [r.value["score"] for r in _rows("openrlhf", run) if r.table == "scored"] == [1.0, 0.0]

    @staticmethod
    def _ranked(*strengths: float, index: int = 0) -> list[ComparedPair]:
        """Return each completion against each weaker one, as an oracle that never errs labels them."""
        said = [turns("T Hi.", "S Ok.", f"T word {n}.", "S Bye.") for n in range(len(strengths))]
        return [
            compared(index, said[a], said[b], numbers=(a, b), strengths=(strengths[a], strengths[b]))
            for a, b in itertools.combinations(range(len(strengths)), 2)
        ]

    @pytest.mark.parametrize(
        ("strengths", "labels", "middling"),
        [
            ((2.0, 1.0, -1.0, -2.0), {"0": True, "1": True, "2": False, "3": False}, 0),
            ((2.0, 0.0, -2.0), {"0": True, "2": False}, 2),  # the one in the middle, in two pairs
            ((0.5, -0.5), {"0": True, "1": False}, 0),
            ((0.19, -0.19), {}, 2),
            ((9.0, 1.0, 1.0, 1.0), {"0": True, "1": False, "2": False, "3": False}, 0),  # by the mean
        ],
    )
    def test_strengths_decide_where_there_are_any(
        self, strengths: tuple[float, ...], labels: dict[str, bool], middling: int
    ) -> None:
        run = MemoryRun(pairs=self._ranked(*strengths))
        found = {v["completion"][0]["content"][5]: v["label"] for v in _values("trl-kto", run)}  # "word 3."
        assert found == labels
        counted = _left_out("trl-kto", run)
        assert counted.get("middling", 0) == middling
        assert set(counted) <= {"middling", "repeated"}
        assert len(found) + sum(counted.values()) == 2 * len(run.pairs or ())
        assert {k: v for k, v in _left_out("openrlhf", run).items() if v} == counted

    def test_a_completion_of_several_conversations_has_the_mean_of_their_strengths(self) -> None:
        x, y, z = (turns("T Hi.", "S Ok.", f"T {word}.", "S Bye.") for word in ("x", "y", "z"))
        run = MemoryRun(
            pairs=[
                compared(0, x, y, numbers=(0, 2), strengths=(3.0, 1.0)),
                compared(0, y, x, numbers=(2, 1), strengths=(1.0, -2.0)),
                compared(0, x, z, numbers=(0, 3), strengths=(3.0, -2.0)),
            ]
        )  # x is 0.5, y is 1.0, z is -2.0; the middle is -0.17
        found = {v["completion"][0]["content"]: v["label"] for v in _values("trl-kto", run)}
        assert found == {"x.": True, "y.": True, "z.": False}

    def test_each_scenario_has_a_middle_of_its_own(self) -> None:
        run = MemoryRun(pairs=[*self._ranked(5.0, 3.0), *self._ranked(1.0, 3.0, index=1)])
        # the first is good in one scenario and bad in the other
        assert _values("trl-kto", run) == []
        assert _left_out("trl-kto", run) == {"contradictory": 4}

    def test_the_same_words_after_another_prompt_are_no_contradiction(self) -> None:
        run = MemoryRun(
            pairs=[
                compared(0, turns("T Hi.", "S A.", "T x.", "S."), turns("T Hi.", "S A.", "T y.", "S.")),
                compared(0, turns("T Hi.", "S B.", "T y.", "S."), turns("T Hi.", "S B.", "T x.", "S.")),
            ]
        )
        assert len(_values("trl-kto", run)) == 4


class TestConversations:
    @pytest.mark.parametrize(
        ("name", "column"), [("trl-sft", "messages"), ("verl", "messages"), ("sharegpt", "conversations")]
    )
    def test_masks_can_be_left_out(self, name: str, column: str) -> None:
        with_masks, without = (
            [
                row.value[column]
                for row in FORMATS[name].rows(
                    TAUGHT, make_chat(FORMATS[name].read({"masks": masks}), TAUGHT.space)
                )
                if isinstance(row, Row)
            ]
            for masks in (True, False)
        )
        assert without
        assert all(isinstance(value, str) for said in without for one in said for value in one.values())
        assert [
            [{k: v for k, v in one.items() if k != "train"} for one in said] for said in with_masks
        ] == without
        assert all(one["train"] in (True, False) for said in with_masks for one in said)

    @pytest.mark.parametrize("name", ["trl-dpo", "csv", "trl-prompts"])
    def test_formats_without_masks_say_so(self, name: str) -> None:
        with pytest.raises(
            UsageError, match=r"does not take --no-masks; sharegpt, trl-sft, verl do. Leave --no-masks out."
        ):
            FORMATS[name].read({"masks": False})

    def test_reward_model_rows_are_whole_and_without_a_margin(self) -> None:
        assert _values("trl-conversation", ONE_PAIR) == [
            {
                "chosen": [HELLO, ASK, DUNNO, DRAW, TWO],
                "rejected": [HELLO, ASK, DUNNO, THINK],
                "p": 0.75,
                "id": "tiny-000000-r0-r1",
            }
        ]

    def test_reward_model_rows_may_differ_anywhere(self) -> None:
        run = MemoryRun(
            pairs=[
                compared(0, turns("T Hi.", "S Yes."), turns("T Hi.", "S No.")),
                compared(1, turns("T Hi.", "S Yes."), turns("T Hi.", "S Yes.", "T More.")),
                compared(2, turns("T Hi.", "S Yes."), turns("T Hi.", "S Yes. ")),
            ]
        )
        assert len(_values("trl-conversation", run)) == 2
        assert _left_out("trl-conversation", run) == {"identical": 1}

    @pytest.mark.parametrize("name", ["trl-sft", "verl"])
    def test_sft(self, name: str) -> None:
        rows = _rows(name, TAUGHT)
        assert [row.split for row in rows] == ["train", "test"]
        assert rows[0].value == {
            "messages": [
                {**HELLO, "train": False},
                {**ASK, "train": True},
                {**DUNNO, "train": False},
                {**DRAW, "train": True},
                {**TWO, "train": False},
            ],
            "id": "tiny-000000-r0",
        }
        assert rows[1].value["messages"] == [  # the student begins, so there is no opening line
            {"role": "user", "content": "What is half of 4?", "train": False},
            {"role": "assistant", "content": "Draw four dots.\n\nNow halve them.", "train": True},
            {"role": "user", "content": "Two!\n\nThanks.", "train": False},
        ]

    def test_sharegpt(self) -> None:
        values = _values("sharegpt", TAUGHT, opening="both")
        assert values[0]["conversations"] == [
            {"from": "system", "value": SYSTEM["content"], "train": False},
            {"from": "human", "value": HELLO["content"], "train": False},
            {"from": "gpt", "value": "What is half of 4?", "train": True},
            {"from": "human", "value": "No idea.", "train": False},
            {"from": "gpt", "value": "Draw four dots.", "train": True},
        ]
        assert len(values[1]["conversations"]) == 3

    def test_sharegpt_cannot_begin_with_the_assistant(self) -> None:
        assert _left_out("sharegpt", TAUGHT, opening="system") == {"assistant_first": 1}

    def test_prompts(self) -> None:
        other = turns("T What is half of 4?", "S No idea.", "T Think.", "S Two?", "T Yes.")
        run = MemoryRun(taught=[lesson(0, 0, GOOD), lesson(0, 1, other), lesson(1, 0, GOOD)])
        values = _values("trl-prompts", run)
        assert [(v["id"], v["turn"], len(v["prompt"])) for v in values] == [
            ("tiny-000000-r0", 0, 1),
            ("tiny-000000-r0", 1, 3),
            ("tiny-000000-r1", 2, 5),
            ("tiny-000001-r0", 0, 1),
            ("tiny-000001-r0", 1, 3),
        ]
        assert values[1]["prompt"] == [HELLO, ASK, DUNNO]
        assert _left_out("trl-prompts", run) == {"repeated": 2}

    def test_ed_holds_two_keys_and_the_marker(self) -> None:
        values = _values("ed", TAUGHT)
        assert [list(value) for value in values] == [["background_info", "conversation"]] * 2
        assert values[0]["conversation"][-1] == {"role": "Student", "text": "Two! [end of conversation]"}

    def test_ed_leaves_out_what_breaks_the_schema(self) -> None:
        run = MemoryRun(taught=[lesson(0, 0, GOOD)])
        run.taught[0].record["conversation"][0]["role"] = "Headmaster"
        assert _left_out("ed", run) == {"invalid": 1}


class TestMtpo:
    def test_a_row(self) -> None:
        assert _values("mtpo", ONE_PAIR) == [
            {
                "first": [HELLO, ASK, DUNNO, THINK],
                "second": [HELLO, ASK, DUNNO, DRAW, TWO],
                "p": 0.25,
                "scenario": {
                    "index": 0,
                    "topic": "fractions",
                    "student_preference": "drawings",
                    "student_reaction": "sulks in a corner",
                    "teacher_preference": "long lectures",
                    "teacher_reaction": "speaks louder",
                    "subject": "",
                    "level": "",
                },
                "id": "tiny-000000-r0-r1",
            }
        ]

    def test_ties_are_in_and_abstentions_are_not(self) -> None:
        run = MemoryRun(
            pairs=[
                compared(0, GOOD, BAD, chosen=None, p=0.7, left_out="tie"),
                compared(1, GOOD, BAD, chosen=None, left_out="abstained"),
                compared(3, GOOD, GOOD, chosen=None, left_out="tie"),
            ]
        )
        assert [value["p"] for value in _values("mtpo", run)] == [0.5]
        assert _left_out("mtpo", run) == {"abstained": 1, "identical": 1}

    @pytest.mark.parametrize("p", [0.9, 0.1])
    def test_a_contradicted_verdict_counts_by_the_judge_of_the_labels(self, p: float) -> None:
        signals = Signals(
            probability=ProbabilitySignal(a=0.8, b=0.5, p=0.65, tie=False, abstain=False),
            oracle=(oracle(0.3, judge="another"), oracle(p)),
            human=human(0.6),
        )
        against = compared(0, GOOD, BAD, chosen=None, left_out="contradicted", signals=signals)
        labelled = compared(1, GOOD, BAD)
        run = MemoryRun(pairs=[against, labelled])
        assert [value["p"] for value in _values("mtpo", run)] == [p, 0.75]
        assert _values("trl-dpo", run)[0]["id"] == labelled.pair.id
        assert _left_out("trl-dpo", run) == {"contradicted": 1}

    def test_a_contradicted_verdict_in_a_run_without_labels(self) -> None:
        """A contradicted verdict keeps its strengths only if the run has one judge."""
        alone = compared(0, GOOD, BAD, chosen=None, left_out="contradicted", p=0.7)
        both = Signals(probability=NO_LABELS, oracle=(oracle(0.3, judge="another"), oracle(0.9)))
        unknown = compared(1, GOOD, BAD, chosen=None, left_out="contradicted", signals=both)
        run = MemoryRun(pairs=[alone, unknown])
        assert [value["p"] for value in _values("mtpo", run)] == [0.7]
        assert _left_out("mtpo", run) == {"contradicted": 1}

    def test_log_probabilities_go_before_verdicts(self) -> None:
        def told(p: float | None) -> Signals:
            signal = LogprobSignal(p_ab=p, p_ba=p, p=p, known=2)
            heard = msgspec.structs.replace(oracle(0.75), logprobs=signal)
            return Signals(probability=NO_LABELS, oracle=(heard,))

        run = MemoryRun(
            pairs=[
                compared(0, GOOD, BAD, signals=told(0.62)),
                compared(1, GOOD, BAD, chosen=None, left_out="tie", signals=told(0.54)),
                compared(2, GOOD, BAD, signals=told(None)),
                compared(3, GOOD, BAD, chosen=None, left_out="margin", signals=told(0.54)),
            ]
        )
        assert [value["p"] for value in _values("mtpo", run)] == [0.62, 0.54, 0.75]
        assert _left_out("mtpo", run) == {"margin": 1}

    @pytest.mark.parametrize("reason", ["margin", "surplus", "not_judged"])
    def test_what_was_asked_to_stay_out_stays_out(self, reason: str) -> None:
        weak = compared(0, GOOD, BAD, chosen=None, p=0.55, left_out=reason)
        run = MemoryRun(pairs=[weak, compared(1, GOOD, BAD)])
        assert len(_values("mtpo", run)) == 1
        assert _left_out("mtpo", run) == {reason: 1}


class TestRepeats:
    """Arms and branches with identical texts."""

    @pytest.mark.parametrize("name", ["trl-sft", "verl", "sharegpt"])
    def test_the_same_conversation_of_a_scenario_is_there_once(self, name: str) -> None:
        run = MemoryRun(
            taught=[
                lesson(0, 0, GOOD),
                lesson(0, 1, BAD),
                lesson(0, 2, GOOD),
                lesson(0, 3, BAD),
                lesson(0, 4, GOOD),
                lesson(1, 0, GOOD),
            ]
        )
        assert [value["id"] for value in _values(name, run)] == [
            "tiny-000000-r0",
            "tiny-000000-r1",
            "tiny-000001-r0",
        ]
        assert _left_out(name, run) == {"repeated": 3}

    def test_what_differs_in_the_last_words_of_the_user_differs_where_they_are_kept(self) -> None:
        other = (*GOOD[:-1], *turns("S Four!"))
        run = MemoryRun(taught=[lesson(0, 0, GOOD), lesson(0, 1, other)])
        assert len(_values("trl-sft", run)) == 2
        assert _left_out("sharegpt", run) == {"repeated": 1}  # it cuts them


class TestOpening:
    @pytest.mark.parametrize("train", ["Teacher", "Student"])
    def test_tells_only_what_the_trained_side_may_know(self, train: Any) -> None:
        first = "T" if train == "Teacher" else "S"
        second = "S" if first == "T" else "T"
        messages = chat(train, "both").messages(
            turns(f"{first} Hi.", f"{second} Ho."), lesson(0, 0, GOOD).scenario
        )
        text = " ".join(message["content"] for message in messages)
        teacher, student = ("long lectures", "speaks louder"), ("drawings", "sulks in a corner")
        own, others = (teacher, student) if train == "Teacher" else (student, teacher)
        assert all(secret in text for secret in own)
        assert not any(secret in text for secret in others)
        # text that the other side was made to say reveals no secret
        assert not any(secret in messages[1]["content"] for secret in own + others)

    def test_follows_the_scenario(self) -> None:
        speaker = chat()
        one, two = lesson(0, 0, GOOD).scenario, lesson(1, 0, GOOD).scenario
        from msgspec.structs import replace

        two = replace(two, values={**two.values, "topic": "volcanoes"})
        assert "fractions" in speaker.messages(GOOD, one)[0]["content"]
        assert "volcanoes" in speaker.messages(GOOD, two)[0]["content"]
        assert "fractions" in speaker.messages(GOOD, one)[0]["content"]
