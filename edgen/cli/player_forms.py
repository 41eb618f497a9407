"""Forms for a person who plays in the terminal: a text to agree to, and questionnaires."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.api.playing import PLAYER
from edgen.providers.human.config import HumanConfig
from edgen.runtime.players import (
    PlayerForm,
    find_form_after,
    find_form_before,
    make_task_name,
    read_person_answers,
)
from edgen.store.people import People, UnitAnswer, has_people

if TYPE_CHECKING:
    from edgen.api.playing import Game
    from edgen.cli.playing import Screen


class PlayerForms:
    """The forms of one game. Answers from before the run are held until the run has a folder (`keep`)."""

    def __init__(self, game: Game, screen: Screen) -> None:
        self._game, self._screen = game, screen
        config = game.plan.job.backends[game.role]
        assert isinstance(config, HumanConfig), "a person plays the role"
        self._config = config
        self._pending: list[tuple[PlayerForm, Any, float]] = []

    def ask_before(self) -> None:
        """Show the texts and questions before a conversation. Raises PlayerLeft if the person does not
        agree."""
        from edgen.cli.playing import PlayerLeft

        answered = self._read_answers()
        while (paper := find_form_before(self._config, answered)) is not None:
            if paper.request is None:
                if not self._screen.ask_agreement(paper.text):
                    raise PlayerLeft
                value: Any = True
            else:
                value = self._ask(paper)
            now = time.time()
            self._pending.append((paper, value, now))
            answered[paper.unit] = UnitAnswer(0, "", paper.unit, PLAYER, value, paper.shown, None, now)

    def ask_after(self) -> None:
        """Ask the questions after a conversation. Raises PlayerLeft."""
        self.keep()
        game = f"{self._game.plan.job.conversations - 1}"
        if (paper := find_form_after(self._config, self._read_answers(), game)) is not None:
            self._pending.append((paper, self._ask(paper), time.time()))
            self.keep()

    def keep(self) -> None:
        """Store the answers with the run."""
        if not self._pending:
            return
        role = self._game.role
        with People(self._game.folder) as people:
            for paper, value, now in self._pending:
                form = paper.name_form(role, PLAYER)
                people.answer(
                    make_task_name(role),
                    paper.unit,
                    PLAYER,
                    form,
                    value,
                    shown=paper.shown,
                    seconds=None,
                    now=now,
                )
        self._pending.clear()

    def _ask(self, paper: PlayerForm) -> Any:
        assert paper.request is not None
        text = self._screen.answer(paper.request, title="Some questions")
        return msgspec.json.decode(text)

    def _read_answers(self) -> dict[str, UnitAnswer]:
        if not has_people(self._game.folder):
            return {}
        with People(self._game.folder) as people:
            return read_person_answers(people, self._game.role, PLAYER)
