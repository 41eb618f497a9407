"""Optional methods of protocols that make conversations, in a class for each purpose, with their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from edgen.config import Job
from edgen.core.errors import Problem
from edgen.core.values import Role, Scenario
from edgen.protocols.parts import FindFile, Prompting, Rounds, Rules, Starter
from edgen.space.model import Space

if TYPE_CHECKING:
    from edgen.families.base import Recorded


class JobChecks:
    """Refuse a job before anything is asked."""

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield the contradictions in a job that its file alone shows."""
        yield from ()

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """Yield the problems of a job with its `speakers`, the roles of its space."""
        yield from ()


class SeveralRoles:
    """Ask more than one backend of the job, and send the schemas of templates with requests."""

    sends_schemas: ClassVar[bool] = False
    """Whether requests carry the schemas of their templates."""

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the roles that conversations ask, as in `backends`; the role that a record names comes
        first."""
        return ("default",)

    def role_of(self, job: Job, step: int) -> str:
        """Return the role that is most likely asked at a step."""
        return self.roles(job)[0]


class NamedFiles:
    """Read files that the protocol's settings name."""

    def with_files(self, job: Job, find: FindFile) -> Job:
        """Return the job with the content of the files that its settings name in place of the names.

        So a run's copy of the job is self-contained and has everything that shapes answers. Raises
        FileErrors.
        """
        return job

    def guide(self, job: Job) -> Any:
        """Return the guide of a job's conversations, for the protocol's own measures and formats, which alone
        know its type; None without one."""
        return None


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


class Branching:
    """Let replicates leave the first one at a turn (the job's key `branch`)."""

    branches: ClassVar[bool] = False
    """Whether a job may say `branch`."""

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """Return the calls, of so many, at which a replicate may leave the first one in a branching job."""
        return (0,)


class Staged:
    """Let somebody else play one of the agents: a policy under training."""

    def trained(self, job: Job) -> Role | None:
        """Return the role that exports train by default; None for the space's first. The job has its
        `speakers`."""
        return None

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Any:
        """Return the agents of a scenario, turn by turn (`edgen.protocols.stage.Stage`); None if no single
        one of them can be played by others."""
        return None


class SelfDescription:
    """Texts about the conversations of a protocol for users, cards and reports."""

    name: ClassVar[str]
    starter: ClassVar[Starter | None] = None
    """Start of `edgen init --protocol NAME`."""
    about_leaks: ClassVar[str] = ""
    """Meaning of a leak under this protocol, for a reader of a report."""
    about_probability: ClassVar[str] = ""
    """Advice for conversations without a probability."""

    def probability_by(self, settings: Any) -> str:
        """Return who states the probability of a conversation: runs that differ in it cannot be compared in
        it."""
        return self.name

    def caveats(self, settings: Any) -> Iterator[str]:
        """Yield the sentences of a card about conversations of this protocol."""
        yield f"The conversations were made under the protocol {self.name}."
