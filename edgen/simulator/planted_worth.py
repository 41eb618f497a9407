"""Planted worth: a world with known contributions of a teacher's turns to the outcome.

With `planted: SEED` a simulator draws the worth of a turn from that seed and the turn's words. The answer to
the closing question is the sum over the teacher's turns, with noise. A judge sees each turn's worth with an
error, which is also drawn from its words and so is constant. A goodbye is worth 0, with the usual error for a
judge. So labels of pairs can be compared with the truth (`python -m bench credit`). The results say nothing
about real lessons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from random import Random

from edgen.simulator.judge import label_turns
from edgen.simulator.phrases.book import BOOK
from edgen.simulator.prompts.agent_prompt import AgentPrompt
from edgen.simulator.prompts.conversation_prompt import is_teaching_role

JUDGE_ERROR = 1.2  # maximum error of a judge on a turn; triangular, so its standard deviation is 0.49
STEP = 0.15  # increase of the probability that the student understood, per worth of 1
CHANCE = 0.25  # maximum noise on that probability; triangular
_LABEL = re.compile(r"([^\W\d_][\w-]{0,30}): ?")


def compute_worth(seed: int, text: str) -> float:
    """Return the contribution of a teacher's turn, uniform in [-1, 1]; 0 for a goodbye."""
    return 0.0 if is_goodbye(text) else 2 * _draw_share(seed, "worth", text) - 1


@lru_cache(maxsize=8_192)
def is_goodbye(text: str) -> bool:
    """Return whether a turn is one of the teacher's goodbyes."""
    return any(part in text for part in _list_goodbyes())


@lru_cache(maxsize=1)
def _list_goodbyes() -> tuple[str, ...]:
    """Return an identifying part of each goodbye. Its first letter may be a capital."""
    phrasings = [
        phrasing for rule, phrasings in BOOK.items() if rule.startswith("t.close.") for phrasing in phrasings
    ]
    return tuple({max(phrasing[::2], key=len)[1:] for phrasing in phrasings})


def rate_quality(seed: int, shown: str) -> float:
    """Return a judge's rating of a transcript or single response: the sum of the worths that it sees in the
    teacher's turns."""
    return sum(_judge_worth(seed, text) for text in _split_teacher_turns(shown))


def _judge_worth(seed: int, text: str) -> float:
    error = _draw_share(seed, "error", text) + _draw_share(seed, "further error", text) - 1
    return compute_worth(seed, text) + JUDGE_ERROR * error


def _split_teacher_turns(shown: str) -> list[str]:
    """Return the teacher's turns of a transcript in lines like `Teacher: …`; a text without such lines is one
    teacher's turn."""
    turns = label_turns(shown, _LABEL)
    if not any(label for label, _ in turns):
        return [shown.strip()]
    return [text for label, text in turns if label is not None and is_teaching_role(label[1])]


def answer_probability(seed: int, taught: Iterable[str], rng: Random) -> str:
    """Return the answer to the closing question, with two decimals, in [0.01, 0.99]."""
    added = STEP * sum(compute_worth(seed, text.strip()) for text in taught)
    return f"{min(0.99, max(0.01, 0.5 + added + CHANCE * (rng.random() + rng.random() - 1))):.2f}"


def pick_teacher_turns(turns: Sequence[str], place: AgentPrompt | None) -> list[str]:
    """Return the teacher's turns among the turns of a closing question. `place`: the messages as a side's
    prompt, with the question as the last heard turn. Without it, the teacher has every other turn, from the
    first."""
    if place is None:
        return [text for text in turns if any(map(str.isalnum, text))][::2]  # a rule precedes the first turn
    own = [own for own, _ in place.said[:-1]]
    flags = [*own, *[False] * (len(turns) - len(own))]  # the text before the question is the other side's
    teaches = place.side.role == "Teacher"
    return [text for text, own in zip(turns, flags, strict=True) if own == teaches]


def _draw_share(seed: int, what: str, text: str) -> float:
    """Draw a number in [0, 1) from the seed and a text."""
    data = f"{seed}\0{what}\0{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") / 2**64
