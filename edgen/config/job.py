"""The keys of a job file, their types and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import BackendConfig, Forms, Seed, Text
from edgen.config.label_set import LabelSet
from edgen.core.options import (
    Annotators,
    Conversations,
    MaxPerScenario,
    MinMargin,
    On,
    Partitions,
    Positive,
    Rollouts,
    Together,
    TurnsLeft,
    Workers,
    declare_label_set,
    declare_protocol,
    declare_space,
    declare_template,
    declare_unit,
)
from edgen.core.plugin_faults import require_type
from edgen.core.registry import PluginError, find, names
from edgen.core.values import ROLES, Role

MOST_LAYERS, MOST_ANNOTATORS = 10, 9  # per job, and per layer
Span = Annotated[str, Meta(pattern=r"^\s*(\d+(\.\d+)?\s*[smhdSMHD]\s*)+\Z", max_length=40)]


TooLong = Literal["cut", "ask", "reject"]


class Limits(msgspec.Struct, frozen=True):
    """Speed and size limits of a run. They shape no answer."""

    in_flight: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """Maximum concurrent calls; fewer if the service is slow or refuses."""
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Maximum calls a minute; null: no limit."""
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Maximum tokens a minute; null: no limit."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6
    """Maximum network attempts of one call."""
    give_up_after: Annotated[float, Meta(gt=0)] = 600.0
    """Seconds after which a call is not retried, and a silent service ends the run."""
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    """Maximum seconds of one attempt."""
    stop_after_failures: Positive = 25
    """Failed conversations in a row that stop the run."""
    max_tokens: Positive | None = None
    """Maximum tokens of the run; every backend then needs its own `max_tokens`."""
    max_cost: Annotated[float, Meta(gt=0)] | None = None
    """Maximum cost of the run in US dollars; every backend then needs `max_tokens` and a price."""
    budget: Text | None = None
    """A file with daily and monthly caps for all runs that name it; null: none."""
    arms_at_once: Annotated[int, Meta(ge=1, le=20)] | None = None
    """Concurrent arms; null: all if they use different services, else one."""

    @property
    def capped(self) -> bool:
        """True if they set a budget."""
        return not (self.max_tokens is None and self.max_cost is None and self.budget is None)


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of provider batch jobs (`--via batch`). Spans are written like `6h`, `90m` or `45s`. They
    shape no answer."""

    online_after: Span | None = None
    """Time after which the rest is sent as single calls; null: never."""
    poll: Span = "60s"
    """Maximum pause between two checks of a batch."""
    max_requests: Positive | None = None
    """Maximum requests of one batch; null: the provider's maximum."""


class Split(msgspec.Struct, frozen=True):
    """The split into train and test; groups are never split."""

    test: Annotated[float, Meta(ge=0, lt=1)] = 0.15
    """Test side's share of accepted conversations."""
    by: Text | tuple[Text, ...] = "scenario"
    """Values that are never on both sides: `scenario`, `persona` (preferences and reactions), a dimension, or
    a list of dimensions."""

    @property
    def words(self) -> str:
        """The split's criterion, for people."""
        return self.by if isinstance(self.by, str) else " with ".join(self.by)


class Shards(msgspec.Struct, frozen=True):
    """Number of files of each side."""

    train: Annotated[int, Meta(ge=1, le=10_000)] = 5
    """Files of the training side."""
    test: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Files of the test side."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """Branching of replicates: all but the first leave replicate 0 at one of the turns of `role`."""

    at: Literal["sampled"] | Annotated[int, Meta(ge=1, le=1000)] = "sampled"
    """The role's turn, from 1, at which the others leave replicate 0; `sampled` draws it."""
    role: Text | None = None
    """Role whose turn differs; null: the first."""


class PairSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for judging and choosing preference pairs."""

    votes: Annotated[int, Meta(ge=1, le=100)] = 1
    """Judge calls per pair in each order."""
    matches: Positive | None = None
    """Pairs judged per scenario; null: at most twice the number of candidates."""
    compare: Literal["conversation", "response"] | None = None
    """Compared texts: whole conversations, or the next turns; null: responses, but conversations for arms and
    rewards."""
    min_margin: MinMargin = 0.0
    max_per_scenario: MaxPerScenario = None
    """Null: all."""
    logprobs: Annotated[int, Meta(ge=2, le=20)] | None = None
    """Likely tokens requested at each place of the judge's answers, for soft preferences; null: none."""
    min_turns_left: TurnsLeft = None
    """Null: no minimum."""
    rollouts: Rollouts = None
    """Null: no rollouts."""
    judge_directed: Literal["unlabelled", "label"] = "unlabelled"
    """Whether a pair with a text that addresses the judge is labelled."""

    @property
    def compared(self) -> Literal["conversation", "response"]:
        """The texts that the judge of a reward compares."""
        return self.compare or "conversation"


class LabelsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Labelling of conversations during generation, for gates: one layer."""

    set: Annotated[Text, declare_label_set()] | LabelSet | None = None
    """Null: the shipped one with the layer's name."""
    unit: Annotated[Literal["turn", "conversation"], declare_unit()] | None = None
    """Null: the conversation if all labels are numbers, else each turn."""
    annotators: Annotated[Annotators, Meta(le=MOST_ANNOTATORS)] = 1
    """The majority counts."""
    together: Together = False


RoleWord = Annotated[str, Meta(min_length=1, max_length=40)]


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of a run in its own copy of the job; ignored when read."""

    edgen: str
    """The version of edgen that made the run."""
    space: str
    """The space as named in the job."""
    space_sha256: str
    """The digest of the space's content."""
    prompts: dict[str, str] = {}
    """The templates by use, as named in the job."""
    prompt: str | None = None
    """The template as named in the job."""
    template_sha256: str
    """The digest of the template, or of all of them."""
    fingerprint: str
    """The digest of everything that shapes an answer."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job, one YAML file: the run to make."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100)]
    """Name of the run and of its folder in outputs/; `{date}` becomes today's date."""
    seed: Seed = 0
    """Seed of the scenarios."""
    conversations: Annotated[Conversations, Meta(le=2**40)]
    """With `replicates`: number of scenarios."""
    top_up: bool = False
    """Whether to plan more scenarios until `conversations` are accepted."""
    replicates: Annotated[int, Meta(ge=1, le=2**20)] = 1
    """Conversations per scenario."""
    space: Annotated[Text, declare_space()]
    design: Literal["even", "balanced", "random", "pairwise"] = "balanced"
    """Draw of scenarios. `balanced`: every combination equally often; `even`: every value, or by its weight;
    `random`: by weight; `pairwise`: first every pair of values, then balanced."""
    strength: Annotated[int, Meta(ge=2, le=3)] = 2
    """For `pairwise`: 2 covers pairs of values, 3 triples."""
    protocol: Annotated[Text, declare_protocol()] = "oneshot"
    family: Text | None = None
    """Layout of records; null: the first that fits the space."""
    prompt: Annotated[Text, declare_template("that of the protocol")] | None = None
    """For `oneshot`; null: `education_dialogue` for its space, else `plain_conversation`."""
    prompts: dict[str, Text] = {}
    """Templates of the other protocols and of the judge, by use."""
    branch: Branch | None = None
    """Replicates that share the first turns (`selfplay`)."""
    role_words: dict[str, list[RoleWord]] = {}
    """Further names of roles in replies, as in `{Teacher: [Tutor]}`."""
    asks: Annotated[int, Meta(ge=1, le=20)] = 3
    """Maximum requests for one answer."""
    forms: Forms | None = None
    """Whether a JSON Schema of the answer is sent: `auto` if the service takes one, `schema` always, `prose`
    never; null: `auto` for shipped templates, `prose` for your own."""
    too_long: TooLong = "cut"
    """Treatment of a turn that `max_tokens` cuts off: `cut` keeps its complete sentences (flag `cut_off`),
    `ask` retries it, `reject` rejects the conversation."""
    stop_when_useless: bool = True
    """Whether the run stops early if under 5% of its answers are usable."""
    gates: dict[str, Text] = {}
    """Conditions for accepting a conversation, by name, as in `{long: turns >= 8, new: not
    near_duplicate}`."""
    measures: tuple[Text, ...] | Text = ()
    """Python functions that measure a conversation, as in `./mine.py:words`; run only after consent
    (`--trust-code FILE`)."""
    labels: dict[str, LabelsAsked] = {}
    """Layers of labels made during generation, for gates such as `labels.quality >= 3`, by the backend
    `annotator`, else `default`."""
    backends: dict[str, BackendConfig]
    """Backends by role; `default` for all others."""
    arms: dict[str, dict[str, Any]] = {}
    """Variants of the job on the same scenarios, by name."""
    pairs: PairSettings = PairSettings()
    """Settings of preference pairs (`edgen pairs`)."""
    limits: Limits = Limits()
    """Speed and size limits of the run."""
    batch: BatchSettings = BatchSettings()
    """Settings of batches (`--via batch`)."""
    on: On = None
    """Null: in this process."""
    workers: Workers = None
    """Null: one a core."""
    partitions: Partitions = None
    """Null: one ledger."""
    split: Split = Split()
    """Split into train and test."""
    shards: Shards = Shards()
    """Number of files of each side."""
    resolved: Resolved | None = None
    """Notes of a run in its own copy of the job; ignored when read."""
    # Not keys of a file: the keys named after a protocol, each as the protocol's own Config; and the roles of
    # the space, filled in by planning.
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


def backend_name(job: Job | CallSettings, role: str) -> str:
    """Return the name of a role's backend: its own, else the default one."""
    return role if role in job.backends else "default"


def backend_of(job: Job, role: str) -> BackendConfig:
    """Return the backend of a role."""
    return job.backends[backend_name(job, role)]


def protocol_of(job: Job) -> Any:
    """Return the job's protocol (`edgen.protocols.base.ConversationProtocol`)."""
    return find("protocol", job.protocol)


def templates_of(job: Job, space: Any) -> dict[str, Any]:
    """Return the templates that the job's protocol asks with, by use; `space` is None where it is not read.
    Raises FaultyPluginError for a plugin's protocol that returns anything else."""
    found: dict[str, Any] = protocol_of(job).templates(job, space)
    if not isinstance(found, dict):
        require_type("protocol", job.protocol, found, dict, "a dict of templates")
    return found


def find_protocol(name: str) -> Any:
    """Return the conversation protocol with this name; None if there is no usable one."""
    try:
        protocol = find("protocol", name)
    except PluginError:
        return None
    return protocol if hasattr(protocol, "Config") else None


def conversation_protocols() -> list[str]:
    """Return the names of the protocols for jobs."""
    return [name for name in names("protocol") if find_protocol(name) is not None]


def settings_of(job: Job) -> Any:
    """Return the settings of the job's protocol: its Config."""
    given = job.protocol_settings.get(job.protocol)
    return protocol_of(job).Config() if given is None else given


def roles_asked(job: Job) -> tuple[str, ...]:
    """Return the roles called for the job's conversations, including the one that labels."""
    roles: tuple[str, ...] = protocol_of(job).roles(job)
    return (*roles, ANNOTATOR) if job.labels and ANNOTATOR not in roles else roles


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


def shaping_values(job: Job) -> dict[str, Any]:
    """Return the part of the job that shapes answers, as plain values."""
    plain = {key: value for key, value in resolve_values(job).items() if key not in KNOBS}
    # Settings that a protocol does not use shape nothing.
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
