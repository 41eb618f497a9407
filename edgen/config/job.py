"""The job as it is written: its keys, their types and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import BackendConfig, Positive, Seed, Share, Text
from edgen.config.label_set import LabelSet
from edgen.core.registry import PluginError, find, names
from edgen.core.values import ROLES, Role

MOST_LAYERS, MOST_ANNOTATORS = 10, 9  # of a job, and of a layer
Span = Annotated[str, Meta(pattern=r"^\s*(\d+(\.\d+)?\s*[smhdSMHD]\s*)+\Z", max_length=40)]


class Limits(msgspec.Struct, frozen=True):
    """How fast and how far a run may go. Nothing here shapes an answer."""

    in_flight: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """Calls at once, at most; fewer where the service is slow or refuses."""
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Calls a minute, at most; null: no such limit."""
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    """Tokens a minute, of prompts and answers, at most; null: no such limit."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6
    """How often one call is tried over the network before it counts as failed."""
    give_up_after: Annotated[float, Meta(gt=0)] = 600.0
    """Seconds after which no call is tried again, and a service that says nothing ends the run."""
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    """Seconds that one attempt may take."""
    stop_after_failures: Positive = 25
    """Failed conversations in a row that stop the run."""
    max_tokens: Positive | None = None
    """Tokens that the whole run may use; every backend then needs its own `max_tokens`."""
    max_cost: Annotated[float, Meta(gt=0)] | None = None
    """US dollars that the whole run may cost; every backend then needs `max_tokens` and a known price."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """How provider batch jobs are made (`--via batch`). Spans are like `6h`, `90m` or `45s`. Nothing here shapes
    an answer."""

    online_after: Span | None = None
    """Time since the run's first batch after which the rest is asked call by call; null: never."""
    poll: Span = "60s"
    """The longest wait between two looks at a batch."""
    max_requests: Positive | None = None
    """Requests of one batch, at most; null: as many as the provider takes."""


class Split(msgspec.Struct, frozen=True):
    """`test` is the share of accepted conversations; nothing of one group is on both sides."""

    test: Annotated[float, Meta(ge=0, lt=1)] = 0.15
    """The share of accepted conversations that goes to the test side."""
    by: Text | tuple[Text, ...] = "scenario"
    """What is never on both sides: `scenario`, `persona` (all preferences and reactions), a dimension, or a list of dimensions."""

    @property
    def words(self) -> str:
        """What it is split by, as people read it."""
        return self.by if isinstance(self.by, str) else " with ".join(self.by)


class Shards(msgspec.Struct, frozen=True):
    """How many files each side is written to."""

    train: Annotated[int, Meta(ge=1, le=10_000)] = 5
    """Files of the training side."""
    test: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Files of the test side."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """Replicates beyond the first leave replicate 0 at one of the turns of `role`: its `at`-th, counted
    from 1, or one drawn from those it has."""

    at: Literal["sampled"] | Annotated[int, Meta(ge=1, le=1000)] = "sampled"
    """At which of the role's turns the others leave replicate 0, counted from 1; `sampled` draws it."""
    role: Text | None = None
    """Whose turn it is that differs; null: the first role's."""


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """How pairs are judged and chosen. `matches`: pairs judged per scenario; None: all, but no more than
    twice as many as there are candidates. `judge_directed`: what becomes of a pair with a text that speaks to
    whoever judges it."""

    votes: Annotated[int, Meta(ge=1, le=100)] = 1
    """How often the judge is asked about a pair in each order."""
    matches: Positive | None = None
    """Pairs judged of a scenario; null: all, but at most twice as many as there are candidates."""
    compare: Literal["conversation", "response"] = "conversation"
    """What the judge compares: whole conversations, or what one side said next."""
    min_margin: Share = 0.0
    """How sure a label has to be: pairs whose preference is closer to even than this stay unlabelled."""
    max_per_scenario: Positive | None = None
    """Labelled pairs of one scenario, at most; null: all of them."""
    logprobs: Annotated[int, Meta(ge=2, le=20)] | None = None
    """How many likely tokens the judge tells at each place of its answers, for a soft preference beside each verdict; null: none."""
    min_turns_left: Annotated[int, Meta(ge=0)] | None = None
    """Turns that have to follow the one at which two conversations part, in both; pairs with fewer are neither judged nor labelled. null: any number will do."""
    rollouts: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How often the conversation is played on from each of the two turns at which a pair parts; labels then rest on the mean. null: they rest on what is compared."""
    judge_directed: Literal["unlabelled", "label"] = "unlabelled"
    """What becomes of a pair with a text that speaks to whoever judges it."""


class LabelsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """How conversations are labelled while they are made, for gates to look at: one layer."""

    set: Text | LabelSet | None = None
    """The label set: a shipped one's name, or the path of a file; null: the shipped one that is called as the layer."""
    unit: Literal["turn", "conversation"] | None = None
    """What is labelled; null: the conversation where all labels are numbers, else each turn."""
    annotators: Annotated[int, Meta(ge=1, le=MOST_ANNOTATORS)] = 1
    """How often each unit is labelled, each time with a seed of its own; what most of them say counts."""
    together: bool = False
    """Whether one request labels all turns of a conversation; else each turn is a request."""


RoleWord = Annotated[str, Meta(min_length=1, max_length=40)]


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a run notes in its copy of the job; read back, it means nothing."""

    edgen: str
    """The version of edgen that made the run."""
    space: str
    """The space as the job named it."""
    space_sha256: str
    """The digest of the space's content."""
    prompts: dict[str, str] = {}
    """The templates of each use as the job named them."""
    prompt: str | None = None
    """The template as the job named it."""
    template_sha256: str
    """The digest of the template, or of all of them."""
    fingerprint: str
    """The digest of all that shapes an answer."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One YAML file: what to make."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100)]
    """The run's name, and its folder's in outputs/; `{date}` in it is today's date."""
    seed: Seed = 0
    """With an index and the space's content, this decides each scenario."""
    conversations: Annotated[int, Meta(ge=1, le=2**40)]
    """How many scenarios are planned."""
    top_up: bool = False
    """Whether more are planned until so many conversations are accepted."""
    replicates: Annotated[int, Meta(ge=1, le=2**20)] = 1
    """Conversations of each scenario."""
    space: Text
    """What scenarios are drawn from: the name of a shipped space, or the path of a file."""
    design: Literal["balanced", "random", "pairwise"] = "balanced"
    """`balanced` uses every combination of values equally often, `random` draws by weight, `pairwise` begins with few scenarios in which every pair of values occurs, and goes on balanced."""
    strength: Annotated[int, Meta(ge=2, le=3)] = 2
    """Of `pairwise`: 2 for every pair of values, 3 for every triple."""
    protocol: Text = "oneshot"
    """`oneshot`: one prompt plays both sides. `selfplay`: agents talk turn by turn. `tutoring`: a student goes through exercises, several tutors respond to each turn. `guided`: a state machine offers what one role may say, while a world changes. `forum`: one asks, several who know different things answer."""
    family: Text | None = None
    """What kind of conversations these are, which says how records look; null: the first that fits the space."""
    prompt: Text | None = None
    """The template of `oneshot`: the name of a shipped one, or the path of a file."""
    prompts: dict[str, Text] = {}
    """The templates of the other protocols and of the judge, by what they are for."""
    branch: Branch | None = None
    """Replicates beyond the first leave replicate 0 at a turn and go on by themselves (`selfplay`)."""
    role_words: dict[str, list[RoleWord]] = {}
    """What replies call the roles besides their names, as in `{Teacher: [Tutor], Student: [Learner]}`."""
    asks: Annotated[int, Meta(ge=1, le=20)] = 3
    """How often a scenario is asked for before its answer counts as rejected."""
    gates: dict[str, Text] = {}
    """What a conversation has to meet to be accepted, by names: expressions, as in `{short: turns >= 8, new: not near_duplicate}`."""
    labels: dict[str, LabelsAsked] = {}
    """Labels that are put on each conversation while it is made, by layers: a gate that names `labels.quality` asks for them by itself. The backend `annotator` gives them, else the default one."""
    backends: dict[str, BackendConfig]
    """What answers, by role; `default` answers where no other role does."""
    arms: dict[str, dict[str, Any]] = {}
    """Variants of the job on the same scenarios, by name: the keys that each changes."""
    pairs: Pairs = Pairs()
    """How preference pairs are judged and chosen (`edgen pairs`)."""
    limits: Limits = Limits()
    """How fast and how far the run may go; nothing here shapes an answer."""
    batch: Batch = Batch()
    """How a provider's batch jobs are made (`--via batch`); nothing here shapes an answer."""
    split: Split = Split()
    """What goes to the test side."""
    shards: Shards = Shards()
    """How many files each side is written to."""
    resolved: Resolved | None = None
    """What a run notes in its own copy of the job; read back, it means nothing."""
    # No keys of a file: the keys that are named after a protocol, each as the protocol's own Config; and the roles of
    # the space, which planning fills in.
    protocol_settings: dict[str, Any] = {}
    speakers: tuple[Role, ...] = ROLES

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of its arms: at least one. The only arm of a job without `arms:` is ""."""
        return tuple(self.arms) or ("",)


class CallSettings(msgspec.Struct, frozen=True):
    """What a scheduler has to know of a job."""

    name: str
    limits: Limits
    batch: Batch
    backends: dict[str, BackendConfig]

    @classmethod
    def of(cls, job: Job) -> CallSettings:
        return cls(job.name, job.limits, job.batch, job.backends)


MAX_ARMS = 20
ANNOTATOR = "annotator"  # the role that labels


def own_words(job: Job) -> tuple[tuple[Role, tuple[str, ...]], ...]:
    """What the job's replies may call each role besides its name, in the order of the roles."""
    return tuple((role, tuple(job.role_words[role])) for role in job.speakers if job.role_words.get(role))


def backend_name(job: Job | CallSettings, role: str) -> str:
    """Which of the job's backends answers for a role: its own, else the default one."""
    return role if role in job.backends else "default"


def backend_of(job: Job, role: str) -> BackendConfig:
    """What answers for a role."""
    return job.backends[backend_name(job, role)]


def protocol_of(job: Job) -> Any:
    """The protocol that the job names (`edgen.protocols.base.ConversationProtocol`)."""
    return find("protocol", job.protocol)


def find_protocol(name: str) -> Any:
    """The protocol of conversations that has the name; None where there is none that can be used."""
    try:
        protocol = find("protocol", name)
    except PluginError:
        return None
    return protocol if hasattr(protocol, "Config") else None


def conversation_protocols() -> list[str]:
    """The names of the protocols that a job can use."""
    return [name for name in names("protocol") if find_protocol(name) is not None]


def settings_of(job: Job) -> Any:
    """The settings of the job's protocol: its Config."""
    given = job.protocol_settings.get(job.protocol)
    return protocol_of(job).Config() if given is None else given


def roles_asked(job: Job) -> tuple[str, ...]:
    """The roles that the job's conversations ask, and who labels them."""
    roles: tuple[str, ...] = protocol_of(job).roles(job)
    return (*roles, ANNOTATOR) if job.labels and ANNOTATOR not in roles else roles
