"""The keys of a job file, their types and defaults.

`RolesAndSettings` is the part of protocols that reading and checking a job uses; the others are in
`edgen.protocols.base`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import BackendConfig, Forms, Seed, Text
from edgen.config.job_parts import (
    BatchSettings,
    Branch,
    LabelsAsked,
    PairSettings,
    Resolved,
    RoleWord,
    Shards,
    Split,
)
from edgen.core.errors import Problem
from edgen.core.options import (
    Conversations,
    On,
    Partitions,
    Positive,
    Workers,
    declare_protocol,
    declare_space,
    declare_template,
)
from edgen.core.plugins.faults import refuse_value, require_type
from edgen.core.registry import find, part_of
from edgen.core.resources import Folder
from edgen.core.text import shorten
from edgen.core.values import ROLES, Role

TooLong = Literal["cut", "ask", "reject"]


class Limits(msgspec.Struct, frozen=True):
    """Speed and size limits of a run. They shape no answer."""

    in_flight: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """Maximum concurrent calls; fewer if the service is slow."""
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Maximum calls per minute; null: none."""
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Maximum tokens per minute; null: none."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6
    """Maximum attempts of one call."""
    give_up_after: Annotated[float, Meta(gt=0)] = 600.0
    """Seconds after which retries end, and a silent service ends the run."""
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    """Seconds per attempt."""
    stop_after_failures: Positive = 25
    """Failed conversations in a row that stop the run."""
    max_tokens: Positive | None = None
    """Maximum tokens of the run; backends then need `max_tokens`."""
    max_cost: Annotated[float, Meta(gt=0)] | None = None
    """Maximum US dollars of the run; backends then need `max_tokens` and a price."""
    budget: Text | None = None
    """A file of caps for several runs; null: none."""
    arms_at_once: Annotated[int, Meta(ge=1, le=20)] | None = None
    """Concurrent arms; null: all if they use different services, else one."""

    @property
    def capped(self) -> bool:
        """True if the limits set a budget."""
        return not (self.max_tokens is None and self.max_cost is None and self.budget is None)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job, one YAML file: the run to make."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100)]
    """Name of the run's folder; `{date}`: today's date."""
    seed: Seed = 0
    """Seed of the scenarios."""
    conversations: Annotated[Conversations, Meta(le=2**40)]
    """With `replicates`: scenarios."""
    top_up: bool = False
    """Plan more scenarios until `conversations` are accepted."""
    replicates: Annotated[int, Meta(ge=1, le=2**20)] = 1
    """Conversations per scenario."""
    space: Annotated[Text, declare_space()]
    design: Literal["even", "balanced", "random", "pairwise"] = "balanced"
    """Draw of scenarios; see docs/spaces.md."""
    strength: Annotated[int, Meta(ge=2, le=3)] = 2
    """For `pairwise`: 2 for pairs, 3 for triples."""
    protocol: Annotated[Text, declare_protocol()] = "oneshot"
    family: Text | None = None
    """Layout of records; null: by the space."""
    prompt: Annotated[Text, declare_template("that of the protocol")] | None = None
    """For `oneshot`; null: `education_dialogue` for its space, else `plain_conversation`."""
    prompts: dict[str, Text] = {}
    """Templates of other protocols and of the judge, by use."""
    branch: Branch | None = None
    """Replicates that share their first turns."""
    role_words: dict[str, list[RoleWord]] = {}
    """Other names of roles in replies: `{Teacher: [Tutor]}`."""
    asks: Annotated[int, Meta(ge=1, le=20)] = 3
    """Maximum requests for one answer."""
    forms: Forms | None = None
    """Whether requests carry a JSON Schema; see docs/providers.md."""
    too_long: TooLong = "cut"
    """A turn cut off by `max_tokens`: `cut` keeps its complete sentences (flag `cut_off`), `ask` retries,
    `reject` rejects the conversation."""
    stop_when_useless: bool = True
    """Stop early if under 5% of answers are usable."""
    gates: dict[str, Text] = {}
    """Conditions for accepting a conversation: `{long: turns >= 8, new: not near_duplicate}`."""
    measures: tuple[Text, ...] | Text = ()
    """Python functions, as `./mine.py:words`; need `--trust-code FILE`."""
    labels: dict[str, LabelsAsked] = {}
    """Labels made during generation, for gates such as `labels.quality >= 3`."""
    backends: dict[str, BackendConfig]
    """Backends by role; `default` serves all others."""
    arms: dict[str, dict[str, Any]] = {}
    """Variants on the same scenarios, by name."""
    pairs: PairSettings = PairSettings()
    """Preference pairs."""
    limits: Limits = Limits()
    """Limits of speed and cost."""
    batch: BatchSettings = BatchSettings()
    """Batches (`--via batch`)."""
    on: On = None
    """Null: in this process."""
    workers: Workers = None
    """Null: one a core."""
    partitions: Partitions = None
    """Null: one ledger."""
    split: Split = Split()
    """Split into train and test."""
    shards: Shards = Shards()
    """Files of each side."""
    resolved: Resolved | None = None
    """Written by edgen; ignored when read."""
    # Not keys of a file: the keys named after a protocol, each as the protocol's own Config; and the roles of
    # the space, which planning fills in.
    protocol_settings: dict[str, Any] = {}
    speakers: tuple[Role, ...] = ROLES  # roles of the space, filled in by planning

    @property
    def measure_references(self) -> tuple[str, ...]:
        """The references under `measures`, as a list."""
        return (self.measures,) if isinstance(self.measures, str) else self.measures

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of its arms: at least one. The only arm of a job without `arms:` is ""."""
        return tuple(self.arms) or ("",)


class CallSettings(msgspec.Struct, frozen=True):
    """The parts of a job that a scheduler needs."""

    name: str  # name of the run
    limits: Limits  # of speed and size
    batch: BatchSettings  # of provider batches
    backends: dict[str, BackendConfig]  # by role
    stop_when_useless: bool = True  # as in the job
    top_up: bool = False  # as in the job

    @classmethod
    def of(cls, job: Job) -> CallSettings:
        return cls(job.name, job.limits, job.batch, job.backends, job.stop_when_useless, job.top_up)


MAX_ARMS = 20
ANNOTATOR = "annotator"  # the labelling role


def list_own_words(job: Job) -> tuple[tuple[Role, tuple[str, ...]], ...]:
    """Return the job's further names of each role in replies, in the order of the roles."""
    return tuple((role, tuple(job.role_words[role])) for role in job.speakers if job.role_words.get(role))


def find_backend_name(job: Job | CallSettings, role: str) -> str:
    """Return the name of a role's backend: its own, else the default one."""
    return role if role in job.backends else "default"


def find_backend(job: Job, role: str) -> BackendConfig:
    """Return the backend of a role."""
    return job.backends[find_backend_name(job, role)]


def find_job_protocol(job: Job) -> Any:
    """Return the job's protocol (`edgen.protocols.base.ConversationProtocol`)."""
    return find("protocol", job.protocol)


def list_templates(job: Job, space: Any) -> dict[str, Any]:
    """Return the templates that the job's protocol asks with, by use; `space` is None where it is not read.
    Raises FaultyPluginError for a plugin's protocol that returns anything else."""
    found: dict[str, Any] = find_job_protocol(job).templates(job, space)
    if not isinstance(found, dict):
        require_type("protocol", job.protocol, found, dict, "a dict of templates")
    if wrong := next((one for one in found.values() if not hasattr(one, "expects")), None):
        said = f"returned {shorten(repr(wrong), 80)} from `templates`, where a Template has to be"
        refuse_value("protocol", job.protocol, said)
    return found


def settings_of(job: Job) -> Any:
    """Return the settings of the job's protocol: its Config."""
    given = job.protocol_settings.get(job.protocol)
    return find_job_protocol(job).Config() if given is None else given


# Job keys that shape no answer: they may differ between two starts of one run.
KNOBS = (
    "name", "conversations", "top_up", "replicates", "limits", "batch", "on", "workers", "partitions",
    "split", "shards", "pairs", "arms", "resolved", "stop_when_useless",
)  # fmt: skip


def resolve_values(job: Job) -> dict[str, Any]:
    """Return the job as plain values, with every default."""
    plain: dict[str, Any] = msgspec.to_builtins(job)
    del plain["resolved"]
    del plain["speakers"]
    settings = plain.pop("protocol_settings")
    return plain | {name: given for name, given in settings.items() if given}


def select_shaping_values(job: Job) -> dict[str, Any]:
    """Return the part of the job that shapes answers, as plain values."""
    plain = {key: value for key, value in resolve_values(job).items() if key not in KNOBS}
    # Settings that the protocol does not use shape nothing.
    for name in job.protocol_settings:
        if name != job.protocol:
            plain.pop(name, None)
    if job.branch is None:
        del plain["branch"]
    for key in ("gates", "labels", "measures"):
        if not plain[key]:
            del plain[key]
    for key in ("role_words", "forms"):
        if not getattr(job, key):
            del plain[key]
    if job.too_long == "cut":
        del plain["too_long"]
    for name, backend in job.backends.items():
        for key in ("forms", "retry_max_tokens"):
            if getattr(backend, key) is None:
                plain["backends"][name].pop(key, None)
        if (known := getattr(backend, "known_as", None)) is not None:
            plain["backends"][name]["base_url"] = known
        for knob in backend.KNOBS:
            plain["backends"][name].pop(knob, None)
    return plain


FindFile = Callable[[Folder, str, str], Path]
"""A function for the path of a file that a job names: the shipped folder of its kind, the name, the job's
key. It raises a FileError for a file that the job may not read."""


class RolesAndSettings:
    """An optional part of protocols: ask several backends of the job, check its settings, and read the
    files that the settings name."""

    branches: ClassVar[bool] = False
    """Whether a job may have the key `branch`."""

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the roles that conversations ask, as in `backends`; the role that a record names comes
        first."""
        return ("default",)

    def role_of(self, job: Job, step: int) -> str | None:
        """Return the role that is most likely asked at a step; None for the first of `roles`."""
        return None

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield the contradictions in a job that its file alone shows."""
        yield from ()

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """Yield the problems of a job with its `speakers`, the roles of its space."""
        yield from ()

    def with_files(self, job: Job, find: FindFile) -> Job:
        """Return the job with the files that its settings name replaced by their content.

        So a run's copy of the job is self-contained and has everything that shapes answers. Raises
        FileErrors.
        """
        return job

    def guide(self, job: Job) -> Any:
        """Return the guide of a job's conversations, for the protocol's own measures and formats, the only
        code that knows its type; None without a guide."""
        return None


def list_asked_roles(job: Job) -> tuple[str, ...]:
    """Return the roles called for the job's conversations, including the one that labels."""
    roles = part_of(find_job_protocol(job), RolesAndSettings).roles(job)
    if not (isinstance(roles, tuple | list) and roles and all(isinstance(one, str) for one in roles)):
        refuse_value("protocol", job.protocol, f"returned {roles!r} from `roles`, not a tuple of names")
    return (*roles, ANNOTATOR) if job.labels and ANNOTATOR not in roles else roles


def make_role_finder(job: Job) -> Callable[[int], str]:
    """Return a function from a step of a conversation to the role that is most likely asked."""
    part = part_of(find_job_protocol(job), RolesAndSettings)
    return lambda step: part.role_of(job, step) or part.roles(job)[0]


def guide_of(job: Job) -> Any:
    """Return the guide of a job's conversations; None without one (`RolesAndSettings.guide`)."""
    return part_of(find_job_protocol(job), RolesAndSettings).guide(job)
