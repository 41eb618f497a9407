"""What a protocol may add to its required methods, a class for each purpose. Each has defaults that suit most
protocols.

`ConversationProtocol` inherits from all of them. A protocol overrides a method of the group that it needs;
the others need not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from edgen.config import Job
from edgen.core.errors import Problem
from edgen.core.values import Scenario
from edgen.protocols.parts import FindFile, Prompting, Rounds, Rules, Starter
from edgen.space.model import Space

if TYPE_CHECKING:
    from edgen.families.base import Recorded
    from edgen.protocols.stage import Stage


class JobChecks:
    """Refuse a job before anything is asked."""

    def problems(self, job: Job) -> Iterator[Problem]:
        """What of a job does not go together, as far as its file tells."""
        yield from ()

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """What of a job does not fit its `speakers`, the roles of its space."""
        yield from ()


class SeveralRoles:
    """Ask more than one backend of the job, and send the schemas of templates with requests."""

    sends_schemas: ClassVar[bool] = False
    """Whether requests carry the schemas of their templates."""

    def roles(self, job: Job) -> tuple[str, ...]:
        """The roles that conversations ask, as `backends` names them; the one that a record names comes
        first."""
        return ("default",)

    def role_of(self, job: Job, step: int) -> str:
        """The role that is asked at a step, most likely."""
        return self.roles(job)[0]


class NamedFiles:
    """Read files that the protocol's settings name."""

    def with_files(self, job: Job, find: FindFile) -> Job:
        """The job with what its settings name by file in place of the names, so that a run's copy of it
        stands by itself and all that shapes answers is in it. Raises FileErrors."""
        return job

    def guide(self, job: Job) -> Any:
        """What guides a job's conversations (a state machine), for the protocol's own measures and formats,
        which alone know its type; None where nothing guides them."""
        return None


class SharedPreparation:
    """Prepare what conversations share: once for a job, or anew for each of several rounds."""

    def prepare(self, job: Job, space: Space) -> Any:
        """What all conversations of a job share, made once; each finds it in its rules. Raises JobError where
        the space is none for the protocol."""
        return None

    def rounds(self, job: Job) -> Rounds:
        """The rounds that a job is made in; most are made in one."""
        return Rounds()

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """What the conversations of the next round share, out of what those of the last one shared and the
        accepted ones that it made, in the order of scenarios. Pure; memory does not grow with how many there
        are."""
        return prepared


class Branching:
    """Let replicates leave the first one at a turn (the job's key `branch`)."""

    branches: ClassVar[bool] = False
    """Whether a job may say `branch`."""

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """At which of so many calls a replicate may leave the first one, where the job branches."""
        return (0,)


class Staged:
    """Let somebody else play one of the agents: a policy under training."""

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Stage | None:
        """The agents of a scenario, turn by turn; None where no single one of them can be played by
        others."""
        return None


class SelfDescription:
    """Say what users, cards and reports tell of conversations that were made so."""

    name: ClassVar[str]
    starter: ClassVar[Starter | None] = None
    """What `edgen init --protocol NAME` begins with."""
    about_leaks: ClassVar[str] = ""
    """What a leak means under this protocol, for a reader of a report."""
    about_probability: ClassVar[str] = ""
    """What to do where conversations have no probability."""

    def probability_by(self, settings: Any) -> str:
        """Who states the probability of a conversation: runs that differ in it cannot be compared in it."""
        return self.name

    def caveats(self, settings: Any) -> Iterator[str]:
        """What a card has to say of conversations that were made so."""
        yield f"The conversations were made under the protocol {self.name}."
