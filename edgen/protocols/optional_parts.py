"""Optional parts of protocols (see `edgen.core.registry`).

`SeveralRoles` and `JobSettings`, which checking a job uses, are in `edgen.config.plugin_parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from edgen.config import Job, protocol_of
from edgen.core.forms import Form
from edgen.core.registry import part_of
from edgen.core.values import Role, Scenario
from edgen.families.parts import Recorded
from edgen.protocols.parts import Prompting, Rounds, Rules, Simulation, Starter
from edgen.space.model import Space


class SimulatedAnswers:
    """Let the simulator answer the protocol's requests."""

    def simulated(self, request: Simulation) -> str | None:
        """Return the simulator's answer; None if the prompt does not belong to this protocol."""
        return None

    def simulated_labels(self, role: str, text: str) -> tuple[str, ...] | None:
        """Return the labels of a turn that the simulator wrote under this protocol; None for any other
        turn."""
        return None


class SelfDescription:
    """Texts about the conversations of a protocol for users, cards and reports."""

    starter: ClassVar[Starter | None] = None
    """Start of `edgen init --protocol NAME`."""
    about_leaks: ClassVar[str] = ""
    """Meaning of a leak under this protocol, for a reader of a report."""

    def probability_by(self, settings: Any) -> str | None:
        """Return who states the probability of a conversation: runs that differ in it cannot be compared in
        it. None for the protocol's name."""
        return None

    def caveats(self, settings: Any) -> Iterator[str]:
        """Yield the sentences of a card about conversations of this protocol; without any, the card names the
        protocol."""
        yield from ()


class AnswerForms:
    """Request structured answers: by the schema next to a template, or by a form of the protocol."""

    sends_schemas: ClassVar[bool] = False
    """Whether requests carry the schemas of their templates."""

    def forms(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Mapping[str, Form]:
        """Return the forms of the answers to the messages of `opening`, by use; none if it states none."""
        return {}


class SharedPreparation:
    """Prepare what conversations share: once for a job, or anew for each of several rounds."""

    def prepare(self, job: Job, space: Space) -> Any:
        """Return the data shared by all conversations of a job, made once; each finds it in its rules. Raises
        JobError if the space does not suit the protocol."""
        return None

    def rounds(self, job: Job) -> Rounds:
        """Return the rounds of a job; most jobs have one."""
        return Rounds()

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """Return the data shared by the conversations of the next round, made of that of the last round and
        its accepted conversations, in the order of scenarios.

        Pure; memory does not grow with their number.
        """
        return prepared


def rounds_of(job: Job) -> Rounds:
    """Return the rounds of a job."""
    return part_of(protocol_of(job), SharedPreparation).rounds(job)


class TurnByTurn:
    """Make conversations of agents whose turns are calls: replicates may leave at a turn, exports train one
    of the agents, and a policy under training may play it."""

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """Return the calls, of so many, at which a replicate may leave the first one in a branching job
        (`JobSettings.branches`)."""
        return (0,)

    def trained(self, job: Job) -> Role | None:
        """Return the role that exports train by default; None for the space's first. The job has its
        `speakers`."""
        return None

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Any:
        """Return the agents of a scenario, turn by turn (`edgen.protocols.stage.Stage`); None if no single
        one of them can be played by others."""
        return None
