"""The first of Advising's two kinds of test sets: paraphrased training conversations (`--tests 1`).

The second kind is the conversations of the run's test side. The first half of each turn's paraphrases is for
training (sub-task 3), the rest for tests, so no answer of a test occurs in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import asdict, replace

from edgen.domains.retrieval.export.msdialog import join_lines
from edgen.plugin import RunReader, Turn
from edgen.plugin.errors import ShortError
from edgen.plugin.formats import AcceptedConversation, WrittenTexts
from edgen.plugin.texts import hash64

T = TypeVar("T")


class Paraphrased(AcceptedConversation, frozen=True):
    """A paraphrased training conversation, on the test side. `places` maps each paraphrased turn to its
    paraphrases for tests, the one in the turn first. The alternatives of such a turn are all other right
    answers."""

    places: Mapping[int, tuple[str, ...]] = {}

    def may_be_chosen(self, place: int) -> bool:
        """Return whether a turn may be the answer: it and an earlier turn are paraphrased."""
        return place in self.places and any(other < place for other in self.places)


def select_for_training(texts: Sequence[T]) -> Sequence[T]:
    """Return the part of a turn's paraphrases that is for training if tests are paraphrased."""
    return texts[: len(texts) // 2]


def open_paraphrases(run: RunReader) -> WrittenTexts | None:
    """Return the paraphrases of a run's turns; None if there are none."""
    path = run.rundir.locate_written_texts("paraphrases")
    return WrittenTexts(path) if path.exists() and path.stat().st_size else None


def list_paraphrases(written: WrittenTexts, conversation: str, place: int, turn: Turn) -> list[str]:
    """Return a turn's paraphrases, each on one line and once, without the turn's own text."""
    texts = dict.fromkeys(map(join_lines, written.of(conversation, place, turn.text)))
    return [text for text in texts if text not in ("", join_lines(turn.text))]


class ParaphrasedTests:
    """The paraphrased training conversations of a run. Raises ShortError if the run has no paraphrases."""

    def __init__(self, run: RunReader) -> None:
        self._run = run
        if (written := open_paraphrases(run)) is None:
            raise self.make_no_paraphrases_error()
        self._written = written

    def make_no_paraphrases_error(self) -> ShortError:
        """Return the error for missing paraphrases."""
        path = self._run.rundir.path
        return ShortError(
            f"{self._run.name}: --tests 1 needs a turn to choose with paraphrases, after another turn with "
            f"paraphrases, and no conversation has them. `edgen annotate {path} --write paraphrases --after 0` "
            "makes a model write them."
        )

    def of(self, conversation: AcceptedConversation) -> Paraphrased | None:
        """Return the paraphrased conversation; None if fewer than two turns have paraphrases."""
        one = conversation.candidate
        turns, places = [*one.turns], {}
        for place, turn in enumerate(one.turns):
            lines = list_paraphrases(self._written, one.id, place, turn)
            if not lines:
                turns[place] = replace(turn, alternatives=())
                continue
            kept = lines[len(select_for_training(lines)) :]
            first = hash64(f"{self._run.job.seed}/paraphrase/{one.id}/{place}") % len(kept)
            said, *others = places[place] = (kept[first], *kept[:first], *kept[first + 1 :])
            right = [
                turn.text,
                *(other.text for other in turn.alternatives),
                *select_for_training(lines),
                *others,
            ]
            turns[place] = replace(
                turn, text=said, alternatives=tuple(Turn(turn.role, text) for text in right)
            )
        if len(places) < 2:
            return None
        told = asdict(conversation)
        told |= {"candidate": replace(one, id=f"{one.id}-paraphrased", turns=tuple(turns)), "split": "test"}
        return Paraphrased(**told, places=places)

    def iterate_conversations(self, train: Iterator[AcceptedConversation]) -> Iterator[Paraphrased]:
        """Yield the paraphrased conversations of those in `train` that have enough paraphrases."""
        yield from filter(None, map(self.of, train))
