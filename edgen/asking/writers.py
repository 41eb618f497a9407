"""Writers: models that write texts for the turns of a run, and the file of these texts.

A writer is a backend with a template for texts of one kind. A task is a turn of an agent with enough turns
before it. Its record has the texts with a digest of the text up to the turn. Texts for a turn that has
changed since are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.annotation.layer import read_noted
from edgen.asking.answering import Answerer
from edgen.asking.declared import DeclaredAsker
from edgen.asking.options import CandidateOptions
from edgen.asking.registered import find_asker, list_askers
from edgen.asking.runner import RunStart
from edgen.asking.units import AskedUnit, UnitAsker, grow_sample
from edgen.config import Job
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import UsageError
from edgen.core.values import Rejection, Reply, Request, Turn
from edgen.core.yaml_values import suggest_name
from edgen.prompting import Prompt
from edgen.protocols.labelled_units import digest_said
from edgen.protocols.parts import Spent
from edgen.protocols.writing import SHOWN, VARIABLES, WRITING, Written, choose_texts, write_texts
from edgen.providers import Backend
from edgen.runtime.control import Control
from edgen.store.layers import digest_text
from edgen.store.run_folder import SAMPLE
from edgen.store.run_reader import RunReader
from edgen.store.written_texts import WrittenLine

ROLE = "writer"  # the role in writers' requests
MOST = 20  # texts for one turn
_encode = msgspec.json.Encoder().encode


class WriterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for `count` texts of a kind for each turn of an agent with at least `after` turns before it.

    `kind` is the writer's name. `agent` is the role of agents, for turns without `actor_type` in their data.
    """

    kind: str
    count: int
    agent: str
    after: int

    def list_places(self, turns: Sequence[Turn]) -> list[int]:
        """Return the places of the turns for which texts are written."""
        return [
            place
            for place, turn in enumerate(turns)
            if place >= self.after
            and turn.text.strip()
            and (turn.data.get("actor_type", "Agent") == "Agent")
            and ("actor_type" in turn.data or turn.role == self.agent)
        ]


class TurnTexts(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's texts in a writer's ledger. `said` is the digest of the conversation up to the turn."""

    texts: tuple[str, ...]
    said: str
    dropped: dict[str, int] = {}
    simulated: bool = False


class WriterTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of a file: `turns` with `texts`. `short` counts the turns with fewer texts than requested,
    `dropped` the dropped parts of the answers, by reason."""

    turns: int
    texts: int
    short: int
    dropped: dict[str, int]


def make_writer(backend: Backend, prompt: Prompt, wanted: WriterRequest) -> Answerer:
    """Return a backend with a template as the writer for a request."""
    facts = {**Answerer.of(backend, prompt).facts, **msgspec.to_builtins(wanted)}
    del facts["judge"]
    name = compute_fingerprint(facts)
    return Answerer(id=name, model=backend.model, prompt=prompt, facts={"writer": name, **facts})


class WriterAsker(UnitAsker):
    """An asker about the turns for which a writer writes, in a sample of each arm's conversations or in all.

    A subclass sets `name`, which is also the name of its folder and its file, and `template`. It can override
    `variables`, `expects` (as in the template), `ask` and `choose`.
    """

    taken_by = "edgen annotate --write"
    variables, expects, shows = VARIABLES, "texts", (SHOWN,)
    protocol, why = WRITING.name, "a writer"
    role = ROLE
    of_what = "a writer for an existing run"
    nothing = "there is nothing to write for"
    outcomes = ("written for", "without texts")
    useless_help = (
        "A writer answers with a list of texts: see that its max_tokens leaves room for it, or name another "
        "backend with --backend."
    )

    def __init__(
        self, reader: RunReader, job: Job, writer: Answerer, wanted: WriterRequest, sample: int | None
    ) -> None:
        super().__init__(reader, job, writer, wanted.kind, sample)
        self.facts[SAMPLE] = sample  # the sample shapes no answer, so it is not part of the id
        self.wanted = wanted
        self.count()

    def list_places(self, index: int, name: str) -> Sequence[int | None]:
        """Return the turns for which texts are written."""
        return self.wanted.list_places(self.find_candidate(index, name).turns)

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, Written | Rejection]:
        """Ask for the texts of one turn."""
        count, prompt, rules = self.wanted.count, self.prompt, self.rules
        return write_texts(unit.turns, count, unit.address, prompt, rules, self.role, self.choose)

    def choose(self, texts: Sequence[str], turn: Turn) -> Written:
        """Return the useful texts of an answer about a turn, and count the others by reason."""
        return choose_texts(texts, turn)

    def keep(self, answer: Written, unit: AskedUnit, spent: Spent) -> TurnTexts:
        """Return the texts with a digest of the text up to the turn."""
        said = digest_said(unit.turns, unit.place)
        return TurnTexts(texts=answer.texts, said=said, dropped=answer.dropped, simulated=spent.simulated)

    def write_texts(self, ledger: Path, file: Path) -> WriterTotals:
        """Write the texts of the ledger to the run's file of the kind, in the run's order."""
        texts = short = 0
        dropped = Counter[str]()

        def iterate_lines() -> Iterator[bytes]:
            nonlocal texts, short
            for candidate, place, kept in self.list_kept(ledger, TurnTexts):
                texts += len(kept.texts)
                short += len(kept.texts) < self.wanted.count
                dropped.update(kept.dropped)
                assert place is not None, "a writer's units are turns"
                line = WrittenLine(
                    id=candidate.id,
                    turn=place,
                    role=candidate.turns[place].role,
                    texts=kept.texts,
                    writer=self.id,
                    text_sha256=digest_text(candidate.turns, place),
                )
                yield _encode(line)

        turns = self.reader.rundir.write_lines(file, iterate_lines())
        return WriterTotals(turns=turns, texts=texts, short=short, dropped=dict(sorted(dropped.items())))


class ParaphraseWriter(WriterAsker):
    """A writer of texts that say the same in other words."""

    name, template = "paraphrases", "paraphrase"


class WrongReplyWriter(WriterAsker):
    """A writer of replies that look right and are wrong."""

    name, template = "wrong", "wrong_reply"

    def choose(self, texts: Sequence[str], turn: Turn) -> Written:
        """Return the texts that differ enough from the turn's text."""
        return choose_texts(texts, turn, wrong=True)


class WriterStart(RunStart[WriterAsker]):
    """A start of a writer."""

    def __init__(self, reader: RunReader, options: CandidateOptions, control: Control) -> None:
        kind = find_asker(options.write, WriterAsker, list_askers(DeclaredAsker))  # type: ignore[type-abstract]
        for option, value, least in (("--texts", options.count, 1), ("--after", options.after, 0)):
            if value < least:
                raise UsageError(f"{option}: give a number, {least} or more.")
        if options.count > MOST:
            raise UsageError(f"--texts {options.count}: at most {MOST} texts are written for a turn.")
        if options.sample is not None and options.sample < 1:
            raise UsageError("--sample: give the number of conversations, 1 or more.")
        self.options = options
        agent = _find_agent(reader, options.agent)
        self.wanted = WriterRequest(kind=options.write, count=options.count, agent=agent, after=options.after)
        folder = reader.rundir.candidates / options.write
        super().__init__(kind, reader, options, folder, control, options.by)

    def make_asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> WriterAsker:  # noqa: ARG002
        """Return the writer."""
        options, wanted = self.options, self.wanted
        writer = make_writer(backend, prompt, wanted)
        before = read_noted(self.place.folder / f"{writer.id}.json", dict[str, Any])
        asker = self.kind(self.reader, job, writer, wanted, grow_sample(before, options.sample))
        if not asker.planned:
            raise UsageError(
                f"{self.reader.rundir.path}: no turn of {wanted.agent} has {wanted.after} turns before it. "
                "Name another role with --agent, or fewer turns with --after."
            )
        return asker


def _find_agent(reader: RunReader, named: str | None) -> str:
    """Return the role whose turns get texts. Raises UsageError."""
    roles = {role.name.casefold(): role.name for role in reader.space.roles}
    if named is None:
        return next(iter(roles.values()))
    if named.casefold() not in roles:
        raise UsageError(f"--agent {named}: no such role in this run{suggest_name(named, roles.values())}.")
    return roles[named.casefold()]
