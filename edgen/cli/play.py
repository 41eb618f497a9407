"""`edgen play`: play a role of a conversation in the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from edgen.cli import options as o
from edgen.core.options import AllowOutside, Overrides, declare_output, option

if TYPE_CHECKING:
    from edgen.api.playing import Game, GameRun
    from edgen.cli.player_forms import PlayerForms
    from edgen.cli.playing import Screen
    from edgen.store.people.mailbox import Mailbox

_EVERY = 0.1  # seconds between two looks for a waiting request


class PlayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of playing a role."""

    role: Annotated[
        str | None,
        option("The role to play.  [default: the one that learns, else the last one]", metavar="ROLE"),
    ] = None
    games: Annotated[
        int | None,
        option("Conversations to play.  [default: as many as you like]", metavar="N", ge=1),
    ] = None
    output: Annotated[
        Path | None, declare_output("RUN", "The run's folder.  [default: outputs/play-<name>-<role>]")
    ] = None
    overrides: Overrides = ()  # further keys of the job
    allow_outside: AllowOutside = False


def command(job: o.JobArgument, options: PlayOptions) -> None:
    """Play a role of a job in the terminal, against its models.

    You see the role's part of the scenario and write its turns; the job's backends play the other roles. The
    conversation becomes a normal run, and the same command resumes it. /end says goodbye, /quit leaves.

    Example: edgen play jobs/selfplay.yaml --role student

    Example: edgen play jobs/incident_response.yaml --role operator --games 1
    """
    from edgen.api.playing import open_game
    from edgen.cli.player_forms import PlayerForms
    from edgen.cli.playing import PlayerLeft, Screen
    from edgen.core.errors import StoppedError

    screen, played = Screen(), 0
    while options.games is None or played < options.games:
        game = open_game(
            job, options.role, options.overrides, options.output, allow_outside=options.allow_outside
        )
        screen.begin()
        try:
            papers = PlayerForms(game, screen)
            _play(game, screen, papers)
            papers.ask_after()
        except PlayerLeft:
            screen.note(f"The conversation waits in {game.folder}; the same command continues it.")
            raise StoppedError("You left the conversation.") from None
        played += 1
        if options.games is None and not screen.ask_yes_no("Another conversation?"):
            break


def _play(game: Game, screen: Screen, papers: PlayerForms) -> None:
    """Play one conversation to its end. Raises PlayerLeft."""
    from edgen.api.playing import PLAYER, GameRun
    from edgen.cli.playing import PlayerLeft

    papers.ask_before()
    performance = GameRun(game)
    performance.start()
    mailbox: Mailbox | None = None
    try:
        while performance.is_alive():
            with screen.show_waiting("…"):
                mailbox = _wait(game, performance, mailbox)
            waiting = mailbox.list_waiting(game.role) if mailbox is not None else []
            if mailbox is not None and waiting:
                papers.keep()
                pending = waiting[0].request
                mailbox.note_seen(pending.key, time.time())
                mailbox.answer(pending.key, screen.answer(pending), PLAYER, time.time())
    except (PlayerLeft, KeyboardInterrupt):
        performance.interrupt()
        performance.join()
        raise PlayerLeft from None
    finally:
        if mailbox is not None:
            mailbox.close()
    _end(game, screen, performance)


def _wait(game: Game, performance: GameRun, mailbox: Mailbox | None) -> Mailbox | None:
    """Wait for a request to the person, or for the end of the conversation."""
    from edgen.store.people.mailbox import Mailbox, has_mailbox

    while performance.is_alive():
        if mailbox is None and has_mailbox(game.folder):
            mailbox = Mailbox(game.folder)
        if mailbox is not None and mailbox.list_waiting(game.role):
            break
        time.sleep(_EVERY)
    return mailbox


def _end(game: Game, screen: Screen, performance: GameRun) -> None:
    """Show how a conversation ended, and what the other roles knew."""
    from edgen.store.run_reader import RunReader

    made = performance.find_result()
    if made.ended is not None:
        raise made.ended
    with RunReader(made.folder) as reader:
        conversations = sorted(reader.conversations(), key=lambda one: one.scenario.index)
        index = made.status.planned - 1
        last = next((one for one in conversations if one.scenario.index == index), None)
        if last is None:
            why = ", ".join(made.status.rejected) or "no reason"
            screen.note(f"The conversation was not accepted: {why}.", "yellow")
            return
        shown = screen.turns
        own = next((one.name for one in game.plan.rules.roles if one.name.lower() == game.role), game.role)
        for turn in last.candidate.turns[shown:]:
            screen.show_turn(turn.role, turn.text, own=turn.role == own)
        by = f" by {last.candidate.ended_by}" if last.candidate.ended_by else ""
        screen.note(f"The conversation ended{by}, after {len(last.candidate.turns)} turns.")
        screen.show_secrets(game.list_secrets(last.scenario, own))
    screen.note(f"It is in {made.folder}. Look at it with `edgen show {made.folder} {index}`.")
