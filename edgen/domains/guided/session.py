"""A guided conversation as requests and replies: who answers, and the effects of the answers on the course.

The guided role gets the conversation and the offered utterances, and answers with a number or with free text;
or chance chooses for it, without a call. Its partner answers freely, with its role's view of scenario and
world.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

from edgen.domains.guided.config import PARAPHRASER, Guided
from edgen.domains.guided.course import NOTHING_LEFT, PARTNER_LEFT, Course, GuidedOffer, draw, pick_best
from edgen.domains.guided.events import read_seconds
from edgen.domains.guided.files import PreparedMachine
from edgen.domains.guided.machines.slots import as_text
from edgen.domains.guided.ratings import make_token, read_ratings
from edgen.plugin import Conversation, Message, Prompting, Rejection, Reply, Request, Rules, Scenario, ask
from edgen.plugin.answers import (
    ActedTurn,
    Chosen,
    choice_form,
    make_acted_turn_form,
    read_acted_turn,
    read_choice,
    read_turn,
)
from edgen.plugin.forms import Form, turn_form
from edgen.plugin.protocols import (
    Offer,
    RejectionReason,
    Session,
    SpaceRole,
    View,
    append_message,
    ask_turn,
    describe_ending,
    fence_turns,
    join_brief,
    list_utterances,
    reject_too_little,
    transcript_of,
)

KEPT = "kept_formulation"  # a repair: an utterance could not be reworded and was said unchanged
UNANSWERED = "unanswered_questionnaire"  # a flag: a role's answers to the questionnaire were unreadable
_NO_ANSWER = "(Nobody says anything.)"
T = TypeVar("T")


class GuidedSession(Session):
    """The conversation of a scenario in progress."""

    protocol = "guided"
    _settings: Guided
    _prepared: PreparedMachine

    def __init__(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> None:
        super().__init__(scenario, replicate, prompts, rules)
        seed = f"{rules.seed}/{scenario.index}/{replicate}"
        self._chance = self._random(f"{replicate}/choice")
        self._token = make_token(rules.seed, scenario.index, replicate)
        self.course = Course(
            self._prepared.machine,
            scenario.as_row(),
            seed,
            most_turns=self._settings.turns,
            hints=self._settings.hints,
        )
        self._said = self._free = 0  # turns of the guided role, and its free texts
        self._ended_by: str | None = None
        self._seconds: float | None = None  # duration of the last answer, if answers set the clock

    def play(self) -> Generator[Request, Reply, Conversation | Rejection]:
        """Return the conversation from its first turn to its end."""
        course = self.course
        while course.end is None:
            rejection = yield from self._play_wizards_turns()
            if rejection is None and course.end is None:
                rejection = yield from self._play_partners_turn()
            if rejection is not None:
                return rejection
        if (rejection := reject_too_little(course.turns)) is not None:
            return rejection
        answers = yield from self._ask_questionnaire()
        return self._make_conversation(answers)

    def _make_conversation(self, answers: dict[str, dict[str, int | str]]) -> Conversation:
        course = self.course
        assert course.end is not None
        outcome: dict[str, Any] = {
            "reason": course.end.reason,
            "success": course.end.success,
            "seconds": course.now,
            "state": course.state,
            "subtask": course.subtask,
        }
        if answers:
            outcome |= {"token": self._token, "questionnaire": answers}
        return Conversation(
            tuple(course.turns),
            ended_by=self._ended_by,
            repairs=tuple(self._repairs),
            flags=tuple(self._flags),
            outcome=outcome,
            events=tuple(course.events),
        )

    # ---- the guided role

    def _play_wizards_turns(self) -> Generator[Request, Reply, Rejection | None]:
        """Yield the guided role's turns until it is the partner's turn. Return a rejection, or None."""
        course = self.course
        for _ in range(self._settings.turns_in_a_row):
            if course.stuck:
                course.finish(NOTHING_LEFT, course.success)
            said = course.end is None and (yield from self._play_wizards_turn())
            if isinstance(said, Rejection):
                return said
            if not said or course.end is not None or course.lock is not None:
                break
        return None

    def _play_wizards_turn(self) -> Generator[Request, Reply, bool | Rejection]:
        """Yield one turn; return False if nothing can be said."""
        self._seconds, offer = None, self.course.offer()
        free, role = self._may_write, self._prepared.wizard.name
        if self._settings.chooser != "model":
            return (yield from self._choose_by_chance(offer))
        if not offer.options and not offer.fixed and not free:
            return False
        utterances = [*(option.utterance for option in offer.options), *offer.fixed.values()]

        def read(reply: Reply) -> Chosen | Rejection:
            return read_choice(reply.text, utterances, role, free=free, **self._rules.reading(reply))

        form = choice_form(len(utterances), free=free)
        question = self._question("wizard", self.list_choice_messages(), role.lower(), form, role)
        chosen = yield from ask_turn(question, self._rules, self._note_seconds(read))
        if isinstance(chosen, Rejection):
            return chosen
        self._note_findings(chosen)
        self._said += 1
        if chosen.number is None:
            self._free += 1
            self.course.say_freely(chosen.text, self._seconds)
        elif chosen.number <= len(offer.options):
            return (yield from self._say(offer.options[chosen.number - 1].state)) or True
        else:
            self.course.say_fixed([*offer.fixed][chosen.number - 1 - len(offer.options)], self._seconds)
        return True

    @property
    def _may_write(self) -> bool:
        """True if another free text keeps within the allowed share."""
        settings = self._settings
        return settings.chooser == "model" and self._free + 1 <= settings.free_text * (self._said + 1)

    def _choose_by_chance(self, offer: GuidedOffer) -> Generator[Request, Reply, bool | Rejection]:
        """Say a drawn utterance, or the most probable one; a fixed reply if no other is offered."""
        by_chance = self._settings.chooser == "chance"
        if offer.options:
            state = draw(offer.options, self._chance.random()) if by_chance else pick_best(offer.options)
            return (yield from self._say(state)) or True
        if offer.fixed:
            names = [*offer.fixed]
            self.course.say_fixed(self._chance.choice(names) if by_chance else names[0])
        return bool(offer.fixed)

    def _say(self, state: str) -> Generator[Request, Reply, Rejection | None]:
        """Say an offered state, reworded if the settings ask for it. Return a rejection if the rewording is
        cut off and the rules reject that."""
        words, seconds = None, self._seconds
        if self._settings.paraphrase:
            said = yield from self._reword(state)
            if not isinstance(said, Rejection):
                words = said.text
                self._flags |= dict.fromkeys(said.flags)
            elif said.reason is RejectionReason.TRUNCATED and self._rules.too_long == "reject":
                return said
            else:
                self._repairs.setdefault(KEPT)
        self.course.say_state(state, words, seconds)
        return None

    def _reword(self, state: str) -> Generator[Request, Reply, ActedTurn | Rejection]:
        """Return a state's utterance in other words that keep the values of its slots."""
        role, keep = self._prepared.wizard.name, self.course.list_slot_values(state)

        def read(reply: Reply) -> ActedTurn | Rejection:
            said = read_turn(reply.text, role, **self._rules.reading(reply))
            if isinstance(said, Rejection):
                return said
            text = said.text.casefold()
            lost = next((value for value in keep if value.casefold() not in text), None)
            if lost is None and text:
                return ActedTurn(said.text, (), said.ended)
            return Rejection(RejectionReason.UNREAD, f"it does not say {lost or 'anything'}")

        question = self._question("paraphrase", self.list_rewording_messages(state), PARAPHRASER, turn_form)
        return (yield from ask_turn(question, self._rules, self._note_seconds(read)))

    def list_rewording_messages(self, state: str) -> tuple[Message, ...]:
        """Return the messages that ask for an offered state in other words."""
        options = self.course.offer().options
        return self._prompts["paraphrase"].messages(
            {
                "index": self._scenario.index,
                "role": self._prepared.wizard.name,
                **self._show_conversation("paraphrase"),
                "utterance": next(one.utterance for one in options if one.state == state),
                "keep": list(self.course.list_slot_values(state)),
            }
        )

    def list_choice_messages(self) -> tuple[Message, ...]:
        """Return the messages that ask the guided role for its choice."""
        offer, limit = self.course.offer(), self._prepared.machine.time_limit
        options = [option.utterance for option in offer.options]
        states = [option.state for option in offer.options]
        left = None if limit is None else max(0, round(limit - self.course.now))
        return self._prompts["wizard"].messages(
            {
                **self._list_known_variables(self._prepared.wizard),
                **self._show_conversation("wizard"),
                "options": options,
                "replies": [*offer.fixed.values()],
                "hint": states.index(offer.hint) + 1 if offer.hint is not None else None,
                "free": self._may_write,
                "subtask": self.course.subtask,
                "seconds_left": left,
            }
        )

    # ---- its partner

    def _play_partners_turn(self) -> Generator[Request, Reply, Rejection | None]:
        role = self._prepared.partner.name

        def read(reply: Reply) -> ActedTurn | Rejection:
            labels = self._prepared.labels
            if labels:
                return read_acted_turn(reply.text, role, labels, **self._rules.reading(reply))
            turn = read_turn(reply.text, role, **self._rules.reading(reply))
            if isinstance(turn, Rejection):
                return turn
            return ActedTurn(turn.text, (), turn.ended, repairs=turn.repairs)

        form = make_acted_turn_form(self._prepared.labels)
        question = self._question("partner", self.list_partners_messages(), role.lower(), form, role)
        said = yield from ask_turn(question, self._rules, self._note_seconds(read))
        if isinstance(said, Rejection):
            return said
        self._note_findings(said)
        if said.text:
            self.course.answer(said.text, said.actions, self._seconds)
        if said.ended and self.course.end is None:
            self._ended_by = role
            self.course.finish(PARTNER_LEFT, self.course.success)
        return None

    def list_partners_messages(self) -> tuple[Message, ...]:
        """Return the messages to the partner: its current brief, its own turns as assistant, the others as
        user."""
        role = self._prepared.partner
        variables = {**self._list_known_variables(role), "labels": list(self._prepared.labels)}
        messages = list(join_brief(self._prompts["partner"].messages(variables)))
        for turn in self.course.turns:
            append_message(messages, Message("assistant" if turn.role == role.name else "user", turn.text))
        if messages[-1].role != "user":
            messages.append(Message("user", _NO_ANSWER))
        return tuple(messages)

    # ---- questionnaires

    def _ask_questionnaire(self) -> Generator[Request, Reply, dict[str, dict[str, int | str]]]:
        """Return the readable answers of each role that a model or a person plays, by role."""
        prepared, found = self._prepared, {}
        if prepared.questionnaire is None:
            return {}
        asked = [prepared.wizard] if self._settings.chooser == "model" else []
        for role in (*asked, prepared.partner):
            scales = prepared.questionnaire.scales

            def read(reply: Reply, scales: Any = scales) -> dict[str, int | str] | Rejection:
                return read_ratings(reply.text, scales, **describe_ending(reply))

            messages, form = self.list_question_messages(role), prepared.questionnaire.answer_form
            question = self._question("questionnaire", messages, role.name.lower(), form)
            answers = yield from ask(question, self._rules, self._note_seconds(read))
            if isinstance(answers, Rejection):
                self._flags.setdefault(UNANSWERED)
                self.course.tell("unanswered", role=role.name, token=self._token)
            else:
                found[role.name] = answers
                self.course.tell("questionnaire", role=role.name, token=self._token, answers=answers)
        return found

    def list_question_messages(self, role: SpaceRole) -> tuple[Message, ...]:
        """Return the messages that ask a role the questionnaire after the conversation."""
        asked, end = self._prepared.questionnaire, self.course.end
        assert asked is not None
        return self._prompts["questionnaire"].messages(
            {
                **self._list_known_variables(role),
                **self._show_conversation(f"questionnaire/{role.name}"),
                "items": asked.lines(),
                "form": asked.form,
                "reason": None if end is None else end.reason,
                "success": None if end is None else end.success,
            }
        )

    # ---- asking

    def view(self, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person: the role's knowledge, and the guided role's offer."""
        prepared, course = self._prepared, self.course
        seat = next((one for one in (prepared.wizard, prepared.partner) if one.name.lower() == backend), None)
        if seat is None:
            return None
        known = self._list_known_variables(seat)
        facts = tuple(line.partition(": ")[::2] for line in (*known["about"], *known["world"]))
        view = View(seat.name, facts, list_utterances(course.turns))
        if use == "questionnaire" and prepared.questionnaire is not None:
            asked = tuple((item.name, item.text + item.ends) for item in prepared.questionnaire.items)
            return view.with_(text="The conversation is over. Some questions about it:", questions=asked)
        if use != "wizard":
            return view
        offer = course.offer()
        states = {option.utterance: option.state for option in offer.options}
        utterances = [*(option.utterance for option in offer.options), *offer.fixed.values()]
        offers = (
            Offer("choice", number, words, offer.hint is not None and states.get(words) == offer.hint)
            for number, words in enumerate(utterances, 1)
        )
        return view.with_(offers=tuple(offers))

    def _show_conversation(self, use: str) -> dict[str, str]:
        """Return the conversation so far for templates, plain and fenced; empty before the first turn."""
        turns = self.course.turns
        task = f"{use}/{self._replicate}/{len(turns)}"
        return {
            "conversation": transcript_of(turns),
            **fence_turns(self._rules.seed, self._scenario.index, task, turns),
        }

    def _list_known_variables(self, role: SpaceRole) -> dict[str, Any]:
        """Return the template variables that a role may know: the scenario's values, a line for each value,
        and a line for each variable of the world."""
        prepared = self._prepared
        other = prepared.partner if role is prepared.wizard else prepared.wizard
        return {
            **self._seen(role),
            "role": role.name,
            "partner": other.name,
            "about": self._about(role, prepared.space, but=prepared.machine.world),
            "world": [
                f"{prepared.machine.world[name].label or name.replace('_', ' ')}: {as_text(value)}"
                for name, value in self.course.sees(role.name).items()
            ],
        }

    def _note_seconds(self, read: Callable[[Reply], T | Rejection]) -> Callable[[Reply], T | Rejection]:
        """Return a reader that also stores the duration that an answer states."""

        def read_timed(reply: Reply) -> T | Rejection:
            self._seconds = read_seconds(reply) if self._settings.clock == "answers" else None
            return read(reply)

        return read_timed

    def forms(self) -> dict[str, Form]:
        """Return the forms of the answers to the messages of `opening`."""
        prepared, offer = self._prepared, self.course.offer()
        found = {
            "partner": make_acted_turn_form(prepared.labels),
            "paraphrase": turn_form(),
            "wizard": choice_form(max(1, len(offer.options) + len(offer.fixed)), free=self._may_write),
        }
        if prepared.questionnaire is not None:
            found["questionnaire"] = prepared.questionnaire.answer_form
        return found

    def opening(self) -> dict[str, tuple[Message, ...]]:
        """Return each template's first request. Requests after the wizard's assume that the likeliest option
        was said."""
        found = {"wizard": self.list_choice_messages()} if "wizard" in self._prompts else {}
        if options := self.course.offer().options:
            state = pick_best(options)
            if "paraphrase" in self._prompts:
                found["paraphrase"] = self.list_rewording_messages(state)
            self.course.say_state(state)
        found["partner"] = self.list_partners_messages()
        if self._prepared.questionnaire is not None:
            found["questionnaire"] = self.list_question_messages(self._prepared.partner)
        return found
