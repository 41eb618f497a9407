"""The simulator's texts for a turn: with varied openings and endings, some of them useless.

About one text in eight repeats the turn or another text, as models do, so that a rehearsal has dropped texts.
"""

from __future__ import annotations

import msgspec

from edgen.core.text import compile_later
from edgen.protocols.base import Simulation
from edgen.protocols.labelling_simulated import read_shown_units

_ASKED = compile_later(r"(?m)^Write (\d{1,3}) (paraphrases|wrong replies) ")
_MOST = 100
_AGAIN = 1 / 8
_OPENINGS = (
    "In other words:", "To put it differently,", "Let me say it another way:", "What I mean is this:", ("Put "
    "simply,"),
    "Said otherwise,", "If I may rephrase that:", "That is to say,", "Or, in my own words,", ("The same once "
    "more:"),
)  # fmt: skip
_ENDINGS = ("", "", "That is what I mean.", "That is how I would put it.", "So much for that.")
_WORD = compile_later(r"[^\W\d_]{4,}")


def answer(request: Simulation) -> str | None:
    """Return a JSON list of texts; None if the prompt requests none."""
    if " paraphrases " not in request.text and " wrong replies " not in request.text:  # most prompts
        return None
    asked = _ASKED.search(request.text)
    said = read_shown_units(request.text).get("1")
    if asked is None or said is None:
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    one = _write_small_talk if asked[2] == "wrong replies" else _write_paraphrase
    count = min(int(asked[1]), _MOST)
    return msgspec.json.encode([one(request, said[1], place) for place in range(count)]).decode()


def _write_paraphrase(request: Simulation, said: str, place: int) -> str:
    if request.random() < _AGAIN:
        return said.upper()
    first = int(request.random() * len(_OPENINGS)) + place
    ending = _ENDINGS[int(request.random() * len(_ENDINGS))]
    return f"{_OPENINGS[first % len(_OPENINGS)]} {said} {ending}".strip()


def _write_small_talk(request: Simulation, said: str, place: int) -> str:
    """Return small talk about two words of the reply."""
    if request.random() < _AGAIN:
        return f"{said} Right?"
    words = [*dict.fromkeys(_WORD.findall(said.lower()))] or ["that"]
    first, second = (words[int(request.random() * len(words))] for _ in range(2))
    return request.say("talk", word=f"“{first}”", other=f"point {place + 1}, “{second}”")
