"""Annotators: which units of a run one of them labels, and what is kept of its labels.

An annotator is a backend with a template, a label set and a name of its own in the layer. A task is a turn,
or a conversation, whose units are labelled in one request; its record has the labels of each unit with a
digest of what was said up to it. A turn is shown with what was said before it. Annotators of one backend draw
with seeds of their own, which their requests carry where the service takes a seed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from edgen.annotation.annotator import ROLE, StoredLabels
from edgen.annotation.identical import SEEDS
from edgen.asking.answering import Answerer
from edgen.asking.units import AskedUnit, UnitAsker
from edgen.config import Job
from edgen.core.digest import fingerprint, hash64
from edgen.core.values import Rejection, Reply, Request
from edgen.prompting import Prompt
from edgen.protocols.labelled_units import LabelledUnit, LabellingTask, digest_said
from edgen.protocols.labelling import label_units
from edgen.protocols.task import Spent
from edgen.providers import Backend
from edgen.reading.answers.unit_labels import Labels
from edgen.store.run_folder import SAMPLE
from edgen.store.run_reader import RunReader


def annotator_of(
    name: str,
    backend: Backend,
    prompt: Prompt,
    asking: LabellingTask,
    sample: int | None = None,
    *,
    seeded: bool = False,
) -> Answerer:
    """Return a backend with a template as the annotator of that name. Its facts are everything that shapes
    its answers except the run; and the sample, which shapes none. `seeded`: its calls carry seeds though the
    job states none."""
    facts = Answerer.of(backend, prompt).facts
    way = {"annotator": name, "labels": msgspec.to_builtins(asking.labels), "unit": asking.unit}
    own = {SEEDS: "auto"} if seeded else {}
    facts = {**way, "together": asking.together, **facts, **own, SAMPLE: sample}
    return Answerer(id=name, model=backend.model, prompt=prompt, facts=facts)


class AnnotatorAsker(UnitAsker):
    """The units of a run that one annotator labels, in a sample of the conversations of each arm or in
    all."""

    outcomes = ("labelled", "without labels")
    role = ROLE
    useless_help = (
        "A labeller answers with one JSON object of numbers and labels: see that its max_tokens leaves room "
        "for it, or name another backend with --backend."
    )

    def __init__(
        self,
        reader: RunReader,
        job: Job,
        annotator: Answerer,
        asking: LabellingTask,
        layer: str,
        like: AnnotatorAsker | None = None,
    ) -> None:
        """`like`: an annotator that is asked in the same way; what it counted is not counted again."""
        super().__init__(reader, job, annotator, f"{layer} {annotator.id}", annotator.facts[SAMPLE])
        self.part = annotator.id
        # Annotators that are asked the very same draw each for itself.
        seed = hash64(f"annotator/{job.seed}/{annotator.id}") >> 1
        self.rules = msgspec.structs.replace(self.rules, seed=seed, several=SEEDS in annotator.facts)
        facts = {key: fact for key, fact in annotator.facts.items() if key != SAMPLE}
        self.shaping = {"annotator": fingerprint(facts)}
        self._asking = asking
        self.count(like)

    def places(self, index: int, name: str) -> Sequence[int | None]:
        """Return the labelled turns; None for all of them in one request, or for the conversation."""
        units = self._asking.units(self.turns(index, name))
        if self._asking.unit == "conversation" or self._asking.together:
            return [None] if units else []
        return units

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, tuple[Labels, ...] | Rejection]:
        """Ask for the labels of one turn, or conversation."""
        shown = self._asking.select_content(unit.turns, self.find_units(unit))
        return label_units(shown, unit.address, self.prompt, self.rules, ROLE)

    def keep(self, answer: tuple[Labels, ...], unit: AskedUnit, spent: Spent) -> StoredLabels:
        """Return the labels of each unit with a digest of what was said up to it."""
        labelled = (
            LabelledUnit(place, digest_said(unit.turns, place), labels)
            for place, labels in zip(self.find_units(unit), answer, strict=True)
        )
        return StoredLabels(units=tuple(labelled), simulated=spent.simulated)

    def find_units(self, unit: AskedUnit) -> list[int | None]:
        """Return what is labelled of the turns of a request."""
        return self._asking.units(unit.turns) if unit.place is None else [unit.place]
