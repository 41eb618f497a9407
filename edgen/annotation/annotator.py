"""An annotator at work on a run: which units it is asked about, and what is kept of its labels.

An annotator is a backend with a template, a label set and a name of its own in the layer; its answers have a ledger of their
own. A task is a turn, or a conversation, whose units are labelled in one request; its record has the labels of each unit with a
digest of what was said up to it. A turn is shown with what was said before it. Annotators of one backend draw with seeds of
their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.annotation.unit_tasks import SAMPLE, UnitTasks, name_task, read_task
from edgen.config import ANNOTATOR, Job
from edgen.core.digest import fingerprint, hash64
from edgen.core.values import Address, Turn
from edgen.preferences.judge import Judge
from edgen.prompting import Prompt
from edgen.protocols.base import Rules
from edgen.protocols.labelled_units import Asking, LabelledUnit, said_digest
from edgen.protocols.labelling import label_units
from edgen.protocols.task import Spent, Task
from edgen.providers import Backend
from edgen.reading.answers.unit_labels import Labels
from edgen.store.run_reader import RunReader

ROLE = ANNOTATOR  # whom its tasks ask

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """What an annotator's ledger keeps of a task."""

    units: tuple[LabelledUnit, ...]
    simulated: bool = False


def is_name(name: str) -> bool:
    """Whether an annotator or a layer can be called so."""
    return _NAME.fullmatch(name) is not None


def annotator_of(
    name: str, backend: Backend, prompt: Prompt, asking: Asking, sample: int | None = None
) -> Judge:
    """A backend with a template as the annotator of that name. Its facts are all that shapes its answers but the run; and the
    sample, which shapes none."""
    facts = Judge.of(backend, prompt).facts
    way = {"annotator": name, "labels": msgspec.to_builtins(asking.labels), "unit": asking.unit}
    facts = {**way, "together": asking.together, **facts, SAMPLE: sample}
    return Judge(id=name, model=backend.model, prompt=prompt, facts=facts)


class AnnotatorTasks(UnitTasks):
    """The units of a run that one annotator labels, in a sample of the conversations of each arm or in all."""

    unread_means = (
        "A labeller answers with one JSON object of numbers and labels: see that its max_tokens leaves room for it, or "
        "name another backend with --by."
    )

    def __init__(
        self,
        reader: RunReader,
        job: Job,
        annotator: Judge,
        asking: Asking,
        like: AnnotatorTasks | None = None,
    ) -> None:
        """`like`: an annotator that is asked in the same way; what it counted is not counted again."""
        super().__init__(reader, job, annotator)
        # Annotators that are asked the very same draw each for itself.
        self.rules = Rules(asks=job.asks, seed=hash64(f"annotator/{job.seed}/{annotator.id}") >> 1)
        facts = {key: fact for key, fact in annotator.facts.items() if key != SAMPLE}
        self.shaping = {"annotator": fingerprint(facts)}
        self._asking = asking
        self.count(like)

    def tasks_in(self, name: str, turns: Sequence[Turn]) -> list[str]:
        """The tasks of one conversation."""
        if self._asking.unit == "conversation" or self._asking.together:
            return [name] if self._asking.units(turns) else []
        return [name_task(name, place) for place in self._asking.units(turns)]

    def task(self, index: int, task: str) -> Task:
        """The work on one turn, or conversation."""
        turns, units = self.labelled(index, task)
        shown = self._asking.shown(turns, units)
        protocol = label_units(shown, Address(index, task), self.judge.prompt, self.rules, ROLE)

        def record(said: tuple[Labels, ...], spent: Spent) -> Labelled:
            labelled = (
                LabelledUnit(place, said_digest(turns, place), labels)
                for place, labels in zip(units, said, strict=True)
            )
            return Labelled(units=tuple(labelled), simulated=spent.simulated)

        return self.work(index, protocol, record)

    def labelled(self, index: int, task: str) -> tuple[Sequence[Turn], list[int | None]]:
        """The turns of the conversation that a task is about, and what of it is labelled."""
        name, place = read_task(task)
        turns = self.candidate(index, name).turns
        return turns, self._asking.units(turns) if place is None else [place]
