"""The agents of a conversation: each role's knowledge, the requests to it, and the reading of its replies.

A role's brief is rendered from the dimensions that it sees; it knows of the others only what they said.
`Stage` yields requests, as protocols do; `play` and the environment for online methods drive it.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

from edgen.config import Branch
from edgen.core.forms import turn_form
from edgen.core.people.requests import View
from edgen.core.space_layouts import map_bare_fields
from edgen.core.values import (
    Address,
    Conversation,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Role,
    Scenario,
    TaskId,
    Turn,
)
from edgen.prompting import scenario_variables
from edgen.prompting.prompt import PICTURE, find_picture
from edgen.protocols.base import Conversing, Prompting, Question, Rules, ask, transcript_of, unread
from edgen.protocols.fence import fence_turns
from edgen.protocols.parts import make_turn_variables
from edgen.protocols.selfplay_settings import CLOSING, CLOSING_STEP, MOST_TURNS, Selfplay
from edgen.protocols.session import append_message, ask_turn, join_brief
from edgen.protocols.views import CLOSING as CLOSING_MARK
from edgen.protocols.views import list_facts, list_utterances
from edgen.reading.detect import find_leak, loops
from edgen.reading.one_turn.reader import TurnReply, read_turn
from edgen.reading.probability import read_probability


class PlayedTurn(msgspec.Struct, frozen=True):
    """A turn, with its repairs and findings. `ended`: the side closes the conversation with this turn, whose
    text is empty if it says nothing else."""

    turn: Turn
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    ended: bool = False

    @property
    def text(self) -> str:
        return self.turn.text


class Played(msgspec.Struct, frozen=True):
    """The progress of a conversation. `rejection`: the reason why the next turn is missing."""

    entries: list[PlayedTurn]
    ended_by: Role | None = None
    rejection: Rejection | None = None

    @property
    def turns(self) -> list[Turn]:
        return [entry.turn for entry in self.entries]


class Stage:
    """The agents of a scenario: the initial knowledge of each, and its prompt."""

    def __init__(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> None:
        self.scenario = scenario
        self.rules = rules
        self.settings: Selfplay = rules.settings
        self._prompts = prompts
        self._names = {role.name.lower(): role.name for role in rules.roles}
        self._speakers = self.settings.speakers([*self._names.values()], rules.seed, scenario.index)
        self._order: list[Role] = []
        self._sees = {role.name: role.sees for role in rules.roles}
        self._known = scenario_variables(scenario)
        self._brief: dict[Role, tuple[Message, ...]] = {}
        self._secret: dict[Role, list[str]] = {}
        seen_by_any = {name for role in rules.roles for name in role.sees}
        for one in rules.roles:
            role, sees = one.name, one.sees
            told = make_turn_variables(scenario, rules.roles, one, rules.prepared or {})
            brief = prompts[role.lower()].messages({**told, **self._list_variables(sees)})
            self._brief[role] = brief if role == self.speaker(0) else join_brief(brief)
            known = _fold(" ".join([message.content for message in brief]))
            hidden = [
                value for name, value in scenario.values.items() if name in seen_by_any and name not in sees
            ]
            self._secret[role] = [text for text in hidden if _fold(text) not in known]

    def _list_variables(self, sees: Collection[str]) -> dict[str, Any]:
        """Return the template variables on the scenario for a reader of these dimensions."""
        known = {PICTURE: find_picture(self.scenario, sees)} | {
            name: value for name, value in self._known.items() if name == "index" or name in sees
        }
        for field, dimension in map_bare_fields().items():
            if dimension in sees and field not in self.scenario.values:
                known[field] = self._known[field]
        return known

    @property
    def branch_role(self) -> str:
        """The role, by its name in `backends`, at whose turns other replicates leave the first one."""
        branch = self.rules.branch
        return ((branch and branch.role) or next(iter(self._names))).lower()

    def play(
        self, task: TaskId, start: list[PlayedTurn], until: int | None = None, before_role: Role | None = None
    ) -> Generator[Request, Reply, Played]:
        """Play the conversation from `start`: to its end, to `until` turns, or to the first turn of role
        `before_role`."""
        entries = list(start)
        most = self.settings.max_turns if until is None else min(self.settings.max_turns, until)
        while len(entries) < most and self.speaker(len(entries)) != before_role:
            said = yield from self.speak(task, entries)
            if isinstance(said, Rejection):
                return Played(entries, rejection=said)
            if said.turn.text:
                entries.append(said)
            if said.ended:
                return Played(entries, ended_by=said.turn.role)
        return Played(entries)

    def speaker(self, number: int) -> Role:
        """Return the speaker of turn `number`, counted from 0."""
        while number >= len(self._order):
            self._order.append(next(self._speakers))
        return self._order[number]

    def speak(
        self, task: TaskId, entries: Sequence[PlayedTurn]
    ) -> Generator[Request, Reply, PlayedTurn | Rejection]:
        """Return the turn after `entries`, by the side that speaks next."""
        role = self.speaker(len(entries))

        def read_reply(reply: Reply) -> PlayedTurn | Rejection:
            said = read_turn(reply.text, role, **self.rules.reading(reply))
            return said if isinstance(said, Rejection) else self.hear(role, entries, said)

        address = Address(self.scenario.index, task, step=len(entries))
        side = role.lower()
        prompt = self._prompts[side]
        question = Question(
            address,
            self.messages(role, entries),
            "selfplay",
            side,
            prompt.schema,
            form=prompt.form(turn_form),
            scene=self.rules.scene(self.scenario, role),
            view=self.view(role, entries) if self.rules.by_people(side) else None,
        )
        return (yield from ask_turn(question, self.rules, read_reply))

    def view(self, role: Role, entries: Sequence[PlayedTurn]) -> View:
        """Return what a person who plays a role sees."""
        facts = list_facts(self.scenario, self._sees[role], self.rules.prepared or {})
        return View(role, facts, list_utterances(entry.turn for entry in entries), closing=CLOSING_MARK)

    def hear(self, role: Role, entries: Sequence[PlayedTurn], reply: TurnReply) -> PlayedTurn | Rejection:
        """Return a turn in its final form with the detectors' findings, or a rejection."""
        side = role.lower()
        found: list[tuple[str, Literal["reject", "flag"], str]] = []
        secret = find_leak(reply.text, self._secret[role], [entry.turn.text for entry in entries])
        policy = self.settings
        if secret is not None:
            detail = f"the {side} says “{secret}”, and cannot know it"
            found.append((RejectionReason.LEAKED_SECRET, policy.leaked_secret, detail))
        if loops(reply.text, [entry.turn.text for entry in entries if entry.turn.role == role]):
            found.append((RejectionReason.LOOP, policy.loop, f"the {side} repeats: {reply.text[:80]}"))
        for reason, action, detail in found:
            if action == "reject":
                return Rejection(reason, detail)
        flags = tuple(str(reason) for reason, _, _ in found)
        return PlayedTurn(Turn(role, reply.text), reply.repairs, flags, reply.ended)

    def messages(self, role: Role, entries: Sequence[PlayedTurn]) -> tuple[Message, ...]:
        """Return the messages to a role: its brief, its own turns as assistant, the others' turns as user.

        With more than two roles, each turn of another begins with the name of its speaker.
        """
        messages = list(self._brief[role])
        named = len(self._names) > 2
        for entry in entries:
            own, text = entry.turn.role == role, entry.turn.text
            heard = f"{entry.turn.role}: {text}" if named and not own else text
            append_message(messages, Message("assistant" if own else "user", heard))
        return tuple(messages)

    def closing(self, turns: Sequence[Turn]) -> tuple[Message, ...]:
        """Return the messages of the closing question: the judge's prompt, or the history of the answering
        role and the question."""
        prompt = self._prompts["closing"]
        asked = self._names.get((self.settings.closing or "").lower())
        if asked is None:
            shown = fence_turns(self.rules.seed, self.scenario.index, "closing", turns)
            return prompt.messages({**self._known, **shown, "conversation": transcript_of(turns)})
        history = list(self.messages(asked, [PlayedTurn(turn) for turn in turns]))
        question = prompt.messages(self._list_variables(self._sees[asked]))
        append_message(history, Message("user", "\n\n".join([message.content for message in question])))
        return tuple(history)

    def close(self, task: TaskId, played: Played) -> Generator[Request, Reply, float | None]:
        """Return the answer to the closing question; None without a question or a readable answer."""
        asked = self.settings.closing
        if asked is None:
            return None
        address = Address(self.scenario.index, task, step=CLOSING_STEP)
        prompt = self._prompts["closing"]
        role, view = self._names.get(asked.lower()), None
        if role is not None and self.rules.by_people(asked.lower()):
            asks = prompt.messages(self._list_variables(self._sees[role]))
            text = "\n\n".join([message.content for message in asks])
            view = msgspec.structs.replace(self.view(role, played.entries), text=text, closing="")
        question = Question(
            address,
            self.closing(played.turns),
            "selfplay",
            asked.lower(),
            prompt.schema,
            form=prompt.form(CLOSING),
            view=view,
        )
        answer = yield from ask(question, self.rules, _read_probability)
        return None if isinstance(answer, Rejection) else answer


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _read_probability(reply: Reply) -> float | Rejection:
    value = None if reply.refusal else read_probability(reply.text)
    return unread(reply, "the answer holds no probability") if value is None else value


def play(stage: Stage, replicate: int) -> Conversing:
    """Yield the request of each turn; return the conversation, or a rejection.

    Replicates beyond the first may leave replicate 0 at a turn. Up to that turn they make its requests, which
    the ledger answers; then their own.
    """
    start: list[PlayedTurn] = []
    branch = None
    if replicate > 0 and stage.rules.branch is not None:
        turn = _choose_branch_turn(stage.rules.branch, stage)
        base = yield from stage.play(0, [], until=turn)
        branch = _draw_branch_turn(stage, base) if turn is None else _check_branch_turn(turn, base, stage)
        if branch is None:
            if base.rejection is not None:
                return base.rejection
            detail = f"replicate 0 has {len(base.entries)} turns, and ended before the one to branch at"
            return Rejection(RejectionReason.NO_BRANCH, detail)
        start = base.entries[:branch]
    played = yield from stage.play(replicate, start)
    if played.rejection is not None:
        return played.rejection
    if (rejection := reject_too_little(played.turns)) is not None:
        return rejection
    probability = yield from stage.close(replicate, played)
    return Conversation(
        tuple(played.turns),
        probability,
        played.ended_by,
        repairs=_merge_names(entry.repairs for entry in played.entries),
        flags=_merge_names(entry.flags for entry in played.entries),
        branch=branch,
    )


def _merge_names(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def reject_too_little(turns: Sequence[Turn]) -> Rejection | None:
    """Return the rejection of a conversation that is too short; None if it is long enough."""
    if len(turns) < 2:
        return Rejection(RejectionReason.TOO_SHORT, f"it has {len(turns)} turns")
    if len({turn.role for turn in turns}) < 2:
        return Rejection(RejectionReason.ONE_SPEAKER, "only one side speaks")
    return None


def _choose_branch_turn(branch: Branch, stage: Stage) -> int | None:
    """Return the turn, from 0, at which the job leaves replicate 0; None if the turn will be drawn."""
    if branch.at == "sampled":
        return None
    turns = (number for number in range(MOST_TURNS) if stage.speaker(number).lower() == stage.branch_role)
    return next(islice(turns, branch.at - 1, None), MOST_TURNS)


def _check_branch_turn(turn: int, base: Played, stage: Stage) -> int | None:
    """Return the turn; None if replicate 0 ended before it."""
    goes_on = base.ended_by is None and base.rejection is None
    return turn if goes_on and turn == len(base.entries) < stage.settings.max_turns else None


def _draw_branch_turn(stage: Stage, base: Played) -> int | None:
    """Return a turn of the branching role in replicate 0; None if it has no such turn. All replicates of a
    scenario get the same turn, so that each can be compared with each."""
    turns = [i for i, entry in enumerate(base.entries) if entry.turn.role.lower() == stage.branch_role]
    rng = random.Random(f"{stage.rules.seed}/{stage.scenario.index}/branch")  # noqa: S311 - reproducible, not secret
    return rng.choice(turns) if turns else None


def play_on(stage: Stage, task: TaskId, turns: Sequence[Turn], ended_by: Role | None) -> Conversing:
    """Yield the requests of the turns after `turns`, then of the closing question if there is one; return the
    whole conversation, or a rejection.

    `ended_by`: the role that ended the conversation with the last of `turns`; None if it continues. Each role
    gets the same brief and history as before.

    To estimate the value of an outcome for one turn, the conversation is played on from it several times and
    the mean is taken, as in Monte Carlo methods (Sutton and Barto 2018, chapter 5). Math-Shepherd (Wang et
    al. 2024, arXiv 2312.08935) does so for the steps of a proof, VinePPO (Kazemnejad et al. 2024, arXiv
    2410.01679) for those of any long answer. REFUEL (Gao et al. 2024, arXiv 2410.04612) draws two responses
    at a turn and plays on from each.
    """
    played = Played([PlayedTurn(turn) for turn in turns], ended_by)
    if ended_by is None:
        played = yield from stage.play(task, played.entries)
    if played.rejection is not None:
        return played.rejection
    probability = yield from stage.close(task, played)
    return Conversation(tuple(played.turns), probability, played.ended_by)
