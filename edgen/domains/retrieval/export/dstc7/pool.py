"""The shared pool of sub-task 2: the right answers, filled up with other utterances of agents."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from edgen.domains.retrieval.export.dstc7.collect import CutConversation, KnownUtterances
from edgen.domains.retrieval.export.dstc7.paraphrased import open_paraphrases
from edgen.domains.retrieval.export.msdialog import find_actor, join_lines
from edgen.domains.retrieval.near_duplicates import NearDuplicateIndex
from edgen.plugin import RunReader
from edgen.plugin.errors import ShortError, UsageError
from edgen.plugin.formats import RunFolder
from edgen.plugin.texts import hash64

SUBMITTED = 100  # candidates in a ranking of the pool
# Sources of a pool's texts.
SOURCES = {
    "right": "right answers",
    "run": "other turns of the run's agents",
    "others": "turns of agents in other runs",
    "paraphrases": "paraphrases of the run's turns",
}


class SharedPool:
    """The texts of the pool, by their numbers among the run's candidates, with their sources."""

    def __init__(self, known: KnownUtterances) -> None:
        """Build the pool. Raises UsageError if the pool's size is below the number of right answers,
        ShortError if it has too few texts for a ranking, and the errors of reading other runs."""
        self.known = known
        self.sources: dict[int, str] = {}
        self._reworded: dict[int, list[int]] = {}  # paraphrases of each turn's text
        self._found: dict[int, list[int]] = {}
        candidates, wanted = known.candidates, known.options.pool
        right = (one.cut.reply for one in known.iterate_examples() if isinstance(one, CutConversation))
        self.sources |= dict.fromkeys(map(candidates.add, right), "right")
        if len(self.sources) > wanted:
            raise UsageError(
                f"--pool {wanted}: the right answers alone are {len(self.sources):,}; take --pool "
                f"{len(self.sources)} or more."
            )
        self._fill(
            "run", (number for side in ("train", "dev", "test") for number in candidates.list_group(side))
        )
        for path in known.options.pool_from:
            self._fill("others", [candidates.add(text) for text in self._read_utterances(Path(path))])
        if len(self.sources) < wanted:
            self._fill("paraphrases", self._iterate_paraphrases())
        if self.sources and len(self.sources) < SUBMITTED:
            raise ShortError(
                f"{known.run.name}: a ranking has {SUBMITTED} candidates of the pool, and the pool has "
                f"{len(self.sources)}; "
                f"{SUBMITTED - len(self.sources)} more are needed. Generate more conversations, or name "
                "other runs with --pool-from."
            )
        self._index = NearDuplicateIndex(candidates, self.sources)

    def list_right_texts(self, one: CutConversation) -> list[str]:
        """Return the texts of the pool that are right in an example's context, the true one first: those
        equal or nearly equal to any continuation of the context, or to a paraphrase of one."""
        found = {self.known.candidates.add(one.cut.reply): None}
        for number in self.known.answers.of(one.cut.key):
            for same in (number, *self._reworded.get(number, ())):
                found |= dict.fromkeys(self._find_near_duplicates(same))
        return [self.known.candidates.texts[number] for number in found]

    def _find_near_duplicates(self, number: int) -> list[int]:
        if number not in self._found:
            self._found[number] = self._index.find_near_duplicates(self.known.candidates.texts[number])
        return self._found[number]

    def _fill(self, source: str, numbers: Iterable[int]) -> None:
        """Add texts that are not in the pool, drawn by the seed, while there is room."""
        room = self.known.options.pool - len(self.sources)
        new = list(dict.fromkeys(number for number in numbers if number not in self.sources))
        if len(new) > room:
            rng = random.Random(hash64(f"{self.known.run.job.seed}/pool/{source}"))  # noqa: S311 - no secret
            new = rng.sample(new, room)
        self.sources |= dict.fromkeys(new, source)

    def _read_utterances(self, path: Path) -> Iterator[str]:
        """Yield the agents' utterances in another run."""
        with RunFolder(path).lock_for_reading(), RunReader(path) as run:
            roles = [role.name for role in run.space.roles]
            agent = self.known.agent if self.known.agent in roles else roles[0]
            for conversation in run.conversations():
                for turn in conversation.candidate.turns:
                    if find_actor(turn, agent) == "Agent" and (text := join_lines(turn.text)):
                        yield text

    def _iterate_paraphrases(self) -> Iterator[int]:
        """Yield models' paraphrases of the run's turns, if there are any."""
        if (written := open_paraphrases(self.known.run)) is None:
            return
        candidates = self.known.candidates
        for conversation in self.known.run.conversations():
            for place, turn in enumerate(conversation.candidate.turns):
                for text in map(join_lines, written.of(conversation.candidate.id, place, turn.text)):
                    if text:
                        number = candidates.add(text)
                        self._reworded.setdefault(candidates.add(join_lines(turn.text)), []).append(number)
                        yield number
