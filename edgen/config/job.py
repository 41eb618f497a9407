"""The job as it is written: its keys, their types and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import BackendConfig, Positive, Seed, Share, Text
from edgen.model import ROLES, Role

Span = Annotated[str, Meta(pattern=r"^\s*(\d+(\.\d+)?\s*[smhdSMHD]\s*)+\Z", max_length=40)]


class Limits(msgspec.Struct, frozen=True):
    """How fast and how far a run may go. Nothing here shapes an answer."""

    in_flight: Annotated[int, Meta(ge=1, le=10_000)] = 256
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6  # network attempts per call
    give_up_after: Annotated[float, Meta(gt=0)] = (
        600.0  # seconds after which no call is tried again, and silence ends a run
    )
    timeout: Annotated[float, Meta(gt=0)] = 120.0  # seconds per attempt
    stop_after_failures: Positive = 25  # failed conversations in a row that stop the run
    max_tokens: Positive | None = None  # tokens the whole run may use
    max_cost: Annotated[float, Meta(gt=0)] | None = None  # US dollars the whole run may cost


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """How provider batch jobs are made (`--via batch`). Spans are like `6h`, `90m` or `45s`. Nothing here shapes
    an answer."""

    online_after: Span | None = (
        None  # since the run's first batch: what is not answered by then is asked online
    )
    poll: Span = "60s"  # the longest wait between two looks at a batch
    max_requests: Positive | None = None  # of one batch; None: as many as the provider takes


class Split(msgspec.Struct, frozen=True):
    """`test` is the share of accepted conversations; nothing of one group is on both sides."""

    test: Annotated[float, Meta(ge=0, lt=1)] = 0.15
    by: Literal["scenario", "topic", "persona"] = "scenario"


class Shards(msgspec.Struct, frozen=True):
    """How many files each side is written to."""

    train: Annotated[int, Meta(ge=1, le=10_000)] = 5
    test: Annotated[int, Meta(ge=1, le=10_000)] = 1


class Selfplay(msgspec.Struct, frozen=True, kw_only=True):
    """How two agents talk. `closing` is who is asked for the probability of understanding at the end.
    A detector that rejects has the turn asked for again; one that flags lets it stand, and says so."""

    first: Literal["teacher", "student"] = "teacher"
    max_turns: Annotated[int, Meta(ge=2, le=1000)] = 20
    closing: Literal["student", "judge"] | None = None
    leaked_secret: Literal["reject", "flag"] = "reject"  # noqa: S105 - no password
    loop: Literal["reject", "flag"] = "reject"


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """Replicates beyond the first leave replicate 0 at one of the turns of `role`: its `at`-th, counted
    from 1, or one drawn from those it has."""

    at: Literal["sampled"] | Annotated[int, Meta(ge=1, le=1000)] = "sampled"
    role: Literal["teacher", "student"] = "teacher"


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """How pairs are judged and chosen. `matches`: pairs judged per scenario; None: all, but no more than
    twice as many as there are candidates. `judge_directed`: what becomes of a pair with a text that speaks to
    whoever judges it."""

    votes: Annotated[int, Meta(ge=1, le=100)] = 1
    matches: Positive | None = None
    compare: Literal["conversation", "response"] = "conversation"
    min_margin: Share = 0.0
    max_per_scenario: Positive | None = None
    judge_directed: Literal["unlabelled", "label"] = "unlabelled"


RoleWord = Annotated[str, Meta(min_length=1, max_length=40)]


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a run notes in its copy of the job; read back, it means nothing."""

    edgen: str
    space: str
    space_sha256: str
    prompts: dict[str, str] = {}
    prompt: str | None = None
    template_sha256: str
    fingerprint: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One YAML file: what to make."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100)]
    seed: Seed = 0
    conversations: Annotated[int, Meta(ge=1, le=2**40)]
    top_up: bool = False
    replicates: Annotated[int, Meta(ge=1, le=2**20)] = 1
    space: Text
    design: Literal["balanced", "random"] = "balanced"
    protocol: Literal["oneshot", "selfplay"] = "oneshot"
    prompt: Text | None = None  # the one prompt of oneshot
    prompts: dict[str, Text] = {}  # those of selfplay and of the judge, by what they are for
    selfplay: Selfplay = Selfplay()
    branch: Branch | None = None
    role_words: dict[str, list[RoleWord]] = {}  # what replies call Teacher and Student besides these
    asks: Annotated[int, Meta(ge=1, le=20)] = 3
    backends: dict[str, BackendConfig]
    arms: dict[str, dict[str, Any]] = {}
    pairs: Pairs = Pairs()
    limits: Limits = Limits()
    batch: Batch = Batch()
    split: Split = Split()
    shards: Shards = Shards()
    resolved: Resolved | None = None


BACKEND_ROLES = ("default", "teacher", "student", "judge")
PROMPT_ROLES = ("teacher", "student", "closing", "oracle")  # what `prompts` may name
ARM_STRIDE = 64  # replicates of one arm, at most, where there are arms
MAX_ARMS = 20


def roles_asked(job: Job) -> tuple[str, ...]:
    """The roles that the job's conversations ask."""
    if job.protocol == "oneshot":
        return ("default",)
    return ("teacher", "student", "judge") if job.selfplay.closing == "judge" else ("teacher", "student")


def own_words(job: Job) -> tuple[tuple[Role, tuple[str, ...]], ...]:
    """What the job's replies may call each side besides its role, in the order of the roles."""
    return tuple((role, tuple(job.role_words[role])) for role in ROLES if job.role_words.get(role))


def backend_name(job: Job, role: str) -> str:
    """Which of the job's backends answers for a role: its own, else the default one."""
    return role if role in job.backends else "default"


def prompt_names(job: Job) -> dict[str, str]:
    """The templates that the job's conversations are asked with, by what they are for."""
    if job.protocol == "oneshot":
        return {"default": job.prompt or ""}
    names = {role: job.prompts.get(role, f"selfplay_{role}") for role in ("teacher", "student")}
    if job.selfplay.closing is not None:
        names["closing"] = job.prompts.get("closing", f"closing_{job.selfplay.closing}")
    return names
