"""One session: a student works through exercises, and several tutors who do not see each other answer each
turn.

The prompts of student and tutor hold the fields of the space and of the current exercise that their roles
see, and the session so far. A missing response is left out if there is another one.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

import msgspec

from edgen.domains.tutoring import judging
from edgen.domains.tutoring.config import TutoringSettings
from edgen.domains.tutoring.exercises.model import SHOWN, Exercise, is_right
from edgen.domains.tutoring.exercises.pool import ExerciseChain, ExercisePool
from edgen.domains.tutoring.labeller import UNLABELLED, label_turns, mark_units_to_label
from edgen.domains.tutoring.pool_serving import DRY, SessionServing
from edgen.domains.tutoring.response_pool import ResponsePool
from edgen.domains.tutoring.served_turns import LABELLER
from edgen.plugin import (
    Address,
    Conversation,
    Message,
    Prompting,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    Turn,
    scenario_variables,
)
from edgen.plugin.answers import ActedTurn, make_acted_turn_form, read_acted_turn
from edgen.plugin.forms import Form
from edgen.plugin.protocols import (
    Offer,
    Session,
    SpaceRole,
    View,
    append_message,
    ask_turn,
    join_brief,
    list_utterances,
)
from edgen.protocols.labelling import make_labelling_variables, make_labels_form
from edgen.reading.answers.unit_labels import LabelChoices

# Flags of a conversation: a response is missing; an exercise was solved by the student's first turn.
MISSING = "missing_response"
AT_ONCE = "answer_at_once"


class PreparedTutoring(msgspec.Struct, frozen=True):
    """Data that all sessions of a job share. `uses`: the use of each tutor's template, by its backend."""

    pool: ExercisePool
    student: SpaceRole
    tutor: SpaceRole
    uses: Mapping[str, str]
    responses: ResponsePool | None = None
    """Responses that may be served to students of a round; None if students are not served."""


class ExerciseResult(msgspec.Struct):
    """The result of an exercise. `turns` counts the student's."""

    exercise: Exercise
    turns: int = 0
    solved: bool = False

    def as_outcome(self) -> dict[str, Any]:
        """Return the exercise's entry in the record's outcome."""
        one = self.exercise
        return {
            "tier": one.tier,
            "concepts": one.concepts,
            "question": one.question,
            "answers": list(one.answers),
            "turns": self.turns,
            "solved": self.solved,
        }


class TutoringSession(Session):
    """The session of a scenario in progress."""

    protocol = "tutoring"
    _settings: TutoringSettings
    _prepared: PreparedTutoring

    def __init__(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> None:
        super().__init__(scenario, replicate, prompts, rules)
        self._chain = ExerciseChain(self._prepared.pool, scenario, rules.seed)
        self._tiers = list(self._prepared.pool.grammar.tiers)
        self._turns: list[Turn] = []
        self._serving = None
        if (pool := self._prepared.responses) is not None:
            self._serving = SessionServing(
                pool, self._prepared.tutor.name, self._settings.named_actions["tutor"]
            )
        self._briefs: dict[tuple[str, str | None], tuple[Message, ...]] = {}
        self.results: list[ExerciseResult] = []

    @property
    def exercise(self) -> Exercise:
        """The current exercise."""
        return self.results[-1].exercise

    def play(self) -> Generator[Request, Reply, Conversation | Rejection]:
        """Return the session from its first exercise to its end."""
        turns, student = self._settings.student_turns, self._prepared.student
        self.begin()
        for turn in range(1, turns + 1):
            said = yield from self._ask(student, student.name.lower(), "student")
            if isinstance(said, Rejection):
                return said
            if said.flagged:
                self._flag_last()
                break
            self._hear(said)
            answered = yield from self._ask_tutors()
            if answered is not None:
                return answered
            result = self.results[-1]
            over = result.solved or result.turns >= self._settings.turns_per_exercise
            if turn < turns and over and not self.begin():
                break
        return self._make_conversation()

    def begin(self) -> bool:
        """Begin the next exercise: the tutor puts its question. Return False if no exercise is left."""
        following = self._choose_exercise()
        if following is None:
            return False
        self.results.append(ExerciseResult(following))
        self._briefs.clear()
        data = {"exercise": len(self.results) - 1}
        self._turns.append(Turn(self._prepared.tutor.name, following.question, data=data))
        return True

    def _choose_exercise(self) -> Exercise | None:
        """Return an exercise of the current tier, or of a later tier if none of it is left; None if all are
        used."""
        solved = sum(result.solved for result in self.results)
        due = min(solved // self._settings.solved_per_tier, len(self._tiers) - 1)
        if not self.results:
            due = 0
        return next(filter(None, (self._chain.draw_next(tier) for tier in self._tiers[due:])), None)

    # ---- the student

    def _hear(self, said: ActedTurn) -> None:
        result = self.results[-1]
        result.turns += 1
        told = self._settings.speaker_names and "Guess" in self._settings.named_actions["student"]
        right = is_right(said.text, result.exercise, self._prepared.pool.grammar.exercises)
        result.solved = right and ("Guess" in said.actions or not told)
        if result.solved and result.turns == 1:
            self._flags.setdefault(AT_ONCE)
        data = {"solved": True} if result.solved else {}
        self._turns.append(Turn(self._prepared.student.name, said.text, said.actions, data))

    def _flag_last(self) -> None:
        """Mark the last turn as nonsense, since the student says so."""
        last = self._turns.pop()
        self._turns.append(msgspec.structs.replace(last, data={**last.data, "nonsense": True}))

    # ---- the tutors

    def _ask_tutors(self) -> Generator[Request, Reply, Rejection | None]:
        """Request the responses to the last turn and add the one that continues. Return a rejection if there
        is none."""
        serving = self._serving
        closed = serving is not None and serving.is_closed(self._turns)
        found, rejection = ([], None) if closed else (yield from self._collect_responses())
        if found or serving is not None:
            found = yield from self._label(found)
        if serving is not None:  # now the student's actions are known, from the student or the labeller
            served = serving.choose_turn(self._turns[-1], self.exercise, self._make_rng("served"))
            if served is not None:
                self._turns.append(msgspec.structs.replace(served, alternatives=tuple(found)))
                return None
        if closed:
            found, rejection = yield from self._collect_responses()
            found = yield from self._label(found)
        if not found:
            return rejection
        chosen, found = yield from self._choose(found)
        goes_on = found[chosen] if serving is None else serving.take(found[chosen])
        others = tuple(turn for place, turn in enumerate(found) if place != chosen)
        self._turns.append(msgspec.structs.replace(goes_on, alternatives=others))
        return None

    def _collect_responses(self) -> Generator[Request, Reply, tuple[list[Turn], Rejection | None]]:
        """Return the tutors' responses to the last turn, and the rejection of the last missing one."""
        role, backends = self._prepared.tutor, self._settings.tutor_backends
        found: list[Turn] = []
        rejection: Rejection | None = None
        for place, backend in enumerate(backends):
            wanted = self._draw_wanted(place)
            said = yield from self._ask(role, backend, "tutor", wanted)
            if isinstance(said, Rejection):
                rejection = said
                self._flags.setdefault(MISSING)
                continue
            data = {"by": backend} if self._settings.tutors else {}
            if wanted:
                data["wanted"] = wanted
            found.append(Turn(role.name, said.text, said.actions, data))
        return found, rejection

    def _draw_wanted(self, place: int) -> str | None:
        """Return the action that a response is asked for; None if the tutor chooses."""
        weights = self._settings.find_weights(self._turns[-1].labels)
        return (
            self._make_rng(f"wanted/{place}").choices([*weights], [*weights.values()])[0] if weights else None
        )

    def _choose(self, found: list[Turn]) -> Generator[Request, Reply, tuple[int, list[Turn]]]:
        """Return the place of the response that continues, and all responses with the judge's opinion."""
        if self._settings.choose == "first":
            return 0, found
        if self._settings.choose == "judge" and len(found) > 1:
            told = self._list_variables(self._prepared.tutor, "tutor", None)
            picked = yield from judging.judge_responses(
                self._turns,
                found,
                self._make_rng("letters"),
                told,
                self._address(),
                self._prompts[judging.JUDGE],
                self._rules,
            )
            if picked is not None:
                return picked[0], judging.mark_judged(found, *picked)
            self._flags.setdefault(judging.UNJUDGED)
        return self._make_rng("choice").randrange(len(found)), found

    # ---- the labeller

    def _label(self, found: list[Turn]) -> Generator[Request, Reply, list[Turn]]:
        """Return the responses with the labeller's labels, if there is a labeller. The turn before gets its
        labels, too."""
        settings = self._settings
        if settings.labelled_by == "speaker":
            return found
        shown = mark_units_to_label(self._turns, found, settings)
        labelled = yield from label_turns(
            shown, settings.labelled_by, self._address(), self._prompts[LABELLER], self._rules
        )
        if labelled is None:
            self._flags.setdefault(UNLABELLED)
            return found
        self._turns[-1] = labelled[0]
        return labelled[1:]

    def _make_rng(self, what: str) -> random.Random:
        return self._random(f"{self._replicate}/{len(self._turns)}/{what}")

    # ---- asking

    def view(self, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person: the exercise as the role knows it, the turns, and its actions."""
        prepared = self._prepared
        if use == prepared.student.name.lower():
            seat, side = prepared.student, "student"
        elif use in prepared.uses.values():
            seat, side = prepared.tutor, "tutor"
        else:
            return None
        known = self._list_variables(seat, side, None)
        facts = [line.partition(": ")[::2] for line in known["about"]]
        facts.append(("exercise", f"{known['exercise_number']}"))
        values = {name: known.get(name) for name in SHOWN}
        facts += [
            (name, value if isinstance(value, str) else "; ".join(value))
            for name, value in values.items()
            if value
        ]
        actions = self._settings.named_actions[side] if self._settings.speaker_names else {}
        offers = tuple(Offer("actions", name, f"{name}: {what}") for name, what in actions.items())
        asked = (("actions", "What does your turn do?"),) if actions else ()
        return View(seat.name, tuple(facts), list_utterances(self._turns), offers=offers, questions=asked)

    def _ask(
        self, role: SpaceRole, backend: str, side: str, wanted: str | None = None
    ) -> Generator[Request, Reply, ActedTurn | Rejection]:
        """Ask a backend for the next turn of a role; return the turn or a rejection."""
        actions = self._settings.named_actions[side] if self._settings.speaker_names else ()
        use = self._prepared.uses[backend] if side == "tutor" else backend

        def read_reply(reply: Reply) -> ActedTurn | Rejection:
            return read_acted_turn(reply.text, role.name, actions, **self._rules.reading(reply))

        messages = self._list_messages(role, side, use, wanted)
        question = self._question(use, messages, backend, partial(make_acted_turn_form, actions))
        question = question._replace(several=side == "tutor" and len(self._settings.tutor_backends) > 1)
        said = yield from ask_turn(question, self._rules, read_reply)
        if isinstance(said, ActedTurn):
            self._note_findings(said)
        return said

    def opening(self) -> dict[str, tuple[Message, ...]]:
        """Return the first messages to student, tutors, labeller and judge, by the use of their templates.
        This begins the first exercise."""
        self.begin()
        student, tutor = self._prepared.student, self._prepared.tutor
        seats = {student.name.lower(): (student, "student")}
        seats |= dict.fromkeys(self._prepared.uses.values(), (tutor, "tutor"))
        found = {use: self._list_messages(role, side, use) for use, (role, side) in seats.items()}
        return found | self._list_opening_of_others()

    def forms(self) -> dict[str, Form]:
        """Return the forms of the answers to the messages of `opening`."""
        settings, prepared = self._settings, self._prepared
        named = settings.named_actions if settings.speaker_names else {}
        found = {prepared.student.name.lower(): make_acted_turn_form(named.get("student", ()))}
        found |= dict.fromkeys(prepared.uses.values(), make_acted_turn_form(named.get("tutor", ())))
        if LABELLER in self._prompts:
            sides = ("student", *("tutor" for _ in settings.tutor_backends))
            found[LABELLER] = make_labels_form(
                [LabelChoices(settings.make_label_set(side).names, True) for side in sides]
            )
        if judging.JUDGE in self._prompts:
            found[judging.JUDGE] = judging.judge_form(len(settings.tutor_backends))
        return found

    def _list_opening_of_others(self) -> dict[str, tuple[Message, ...]]:
        """Return the messages to labeller and judge about a first turn and responses to it, which are all
        "…"."""
        settings, address = self._settings, Address(self._scenario.index, self._replicate)
        student, tutor = self._prepared.student, self._prepared.tutor
        turns = [*self._turns, Turn(student.name, "…")]
        responses = [Turn(tutor.name, "…")] * len(settings.tutor_backends)
        found = {}
        if LABELLER in self._prompts:
            shown = mark_units_to_label(turns, responses, settings)
            variables = make_labelling_variables(shown, address, self._rules.seed)
            found[LABELLER] = self._prompts[LABELLER].messages(variables)
        if judging.JUDGE in self._prompts:
            told = self._list_variables(tutor, "tutor", None)
            found[judging.JUDGE] = self._prompts[judging.JUDGE].messages(
                {**told, **judging.judge_variables(turns, responses, address, self._rules.seed)}
            )
        return found

    def _list_messages(
        self, role: SpaceRole, side: str, use: str, wanted: str | None = None
    ) -> tuple[Message, ...]:
        """Return the messages to a role: its brief about the current exercise (by the template `use`), its
        own turns as assistant, the others' as user."""
        messages = list(self._render_brief(role, side, use, wanted))
        for turn in self._turns:
            append_message(messages, Message("assistant" if turn.role == role.name else "user", turn.text))
        return tuple(messages)

    def _render_brief(self, role: SpaceRole, side: str, use: str, wanted: str | None) -> tuple[Message, ...]:
        """Return the brief about the current exercise, rendered once for all turns of the exercise."""
        key = use, wanted
        if key not in self._briefs:
            brief = self._prompts[use].messages(self._list_variables(role, side, wanted))
            self._briefs[key] = brief if side == "tutor" else join_brief(brief)
        return self._briefs[key]

    def _list_variables(self, role: SpaceRole, side: str, wanted: str | None) -> dict[str, Any]:
        """Return a template's variables: the fields of scenario and exercise that the role sees, and its
        actions."""
        exercise, scenario, grammar = self.exercise, self._scenario, self._prepared.pool.grammar
        # The scenario has the concepts' values of the first exercise only.
        now = {**scenario_variables(scenario), **grammar.find_values(exercise)}
        shown = {name: getattr(exercise, name) for name in SHOWN}
        return {
            "index": scenario.index,
            **dict.fromkeys(("question", "picture", "mistake")),
            **{name: value for name, value in {**now, **shown}.items() if name in role.sees},
            "about": self._about(role, grammar.space, but=grammar.concepts),
            "actions": self._settings.named_actions[side],
            "labelled_by": self._settings.labelled_by,
            "wanted": wanted,
            "exercise_number": len(self.results),
        }

    def _make_conversation(self) -> Conversation:
        serving = self._serving
        if serving is not None and serving.was_exhausted:
            self._flags.setdefault(DRY)
        exercises = {"exercises": [result.as_outcome() for result in self.results]}
        return Conversation(
            tuple(self._turns),
            repairs=tuple(self._repairs),
            flags=tuple(self._flags),
            outcome=exercises if serving is None else {**exercises, **serving.as_outcome()},
        )
