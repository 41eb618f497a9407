"""A job file to a typed Job: unknown keys refused, every problem named with its path.

Keys (API keys, that is) are named by environment variable and never stored. What shapes answers and
what does not is kept apart by `shaping`, so that limits, shards and logging may change on a resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from edgen.errors import FileError, JobError, Problem, UsageError
from edgen.loading import build, read_text, read_yaml

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=5)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Upper case, so that a key written here by mistake is refused, not looked up and printed.
EnvName = Annotated[str, Meta(pattern=r"^[A-Z_][A-Z0-9_]*\Z", max_length=64)]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?\Z")]
Text = Annotated[str, Meta(min_length=1)]


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens."""

    prompt: Annotated[float, Meta(ge=0)]
    completion: Annotated[float, Meta(ge=0)]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What every backend can be told about how to answer. None: the service's own default."""

    temperature: Temperature | None = None
    top_p: Share | None = None
    max_tokens: Positive | None = None
    stop: tuple[Text, ...] = ()
    # "auto" sends a seed made from the job's seed and the call's address; a number is sent as it is.
    seed: Literal["auto"] | Seed | None = None
    price: Price | None = None


class OpenAIConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    model: Text
    base_url: Url = "https://api.openai.com/v1"
    api_key_env: EnvName = "OPENAI_API_KEY"
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    extra_body: dict[str, Any] = {}


class GeminiConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. With no `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    model: Text
    base_url: Url = "https://generativelanguage.googleapis.com"
    api_key_env: EnvName | None = None
    top_k: Positive | None = None
    safety_settings: dict[str, str] = {}
    extra_body: dict[str, Any] = {}


class GoogleGenerativeAIConfig(
    Sampling, frozen=True, kw_only=True, tag_field="type", tag="google-generativeai"
):
    """The Gemini API through the google-generativeai SDK, which is past its end of life."""

    model: Text
    endpoint: str | None = None
    api_key_env: EnvName | None = None
    top_k: Positive | None = None
    safety_settings: dict[str, str] = {}


class SimulatorConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="simulator"):
    """The embedded simulator. `faults` like "refusal=0.02,429=0.1"; see `edgen simulator --help`."""

    model: Text = "edgen-simulator"
    faults: str = ""
    latency_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0


BackendConfig = OpenAIConfig | GeminiConfig | GoogleGenerativeAIConfig | SimulatorConfig


class Limits(msgspec.Struct, frozen=True):
    """How fast and how far a run may go. Nothing here shapes an answer."""

    in_flight: Annotated[int, Meta(ge=1, le=10_000)] = 256
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6  # network attempts per call
    give_up_after: Annotated[float, Meta(gt=0)] = 600.0  # seconds per call, waits included
    timeout: Annotated[float, Meta(gt=0)] = 120.0  # seconds per attempt
    stop_after_failures: Positive = 25  # failed conversations in a row that stop the run
    max_tokens: Positive | None = None  # tokens the whole run may use
    max_cost: Annotated[float, Meta(gt=0)] | None = None  # US dollars the whole run may cost


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
    twice as many as there are candidates."""

    votes: Annotated[int, Meta(ge=1, le=100)] = 1
    matches: Positive | None = None
    compare: Literal["conversation", "response"] = "conversation"
    min_margin: Share = 0.0
    max_per_scenario: Positive | None = None


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
    asks: Annotated[int, Meta(ge=1, le=20)] = 3
    backends: dict[str, BackendConfig]
    arms: dict[str, dict[str, Any]] = {}
    pairs: Pairs = Pairs()
    limits: Limits = Limits()
    split: Split = Split()
    shards: Shards = Shards()
    resolved: Resolved | None = None


BACKEND_ROLES = ("default", "teacher", "student", "judge")
PROMPT_ROLES = ("teacher", "student", "closing", "oracle")  # what `prompts` may name
ARM_STRIDE = 64  # replicates of one arm, at most, where there are arms
MAX_ARMS = 20
# Job keys that shape no answer: they may differ between two starts of one run.
KNOBS = (
    "name",
    "conversations",
    "top_up",
    "replicates",
    "limits",
    "split",
    "shards",
    "pairs",
    "arms",
    "resolved",
)
# What an arm cannot change: its scenarios would not be the others' any more, or its files.
_NOT_IN_ARMS = ("name", "seed", "conversations", "replicates", "top_up", "space", "design", "split", "limits",
                "shards", "pairs", "arms", "resolved")  # fmt: skip


def load_job(path: Path, overrides: Iterable[str] = ()) -> Job:
    """The job in the file at `path`, with `key.path=value` overrides applied on top.

    Raises JobError with every problem found, UsageError for an override that is no assignment.
    """
    source = str(path)
    value = read_yaml(read_text(path, JobError), source, JobError)
    return parse_job(value, source, overrides)


def parse_job(value: Any, source: str, overrides: Iterable[str] = ()) -> Job:
    """A job from plain values. `source` is what error messages call it."""
    if not isinstance(value, dict):
        raise JobError(source, "a job is a mapping of keys to values, and this file holds none.")
    for override in overrides:
        _override(value, override)
    job = _checked(value, source)
    arm_jobs(job, source)
    return job


def _checked(value: Any, source: str) -> Job:
    job = build(value, Job, source, JobError)
    check(job, source)
    return job


def check(job: Job, source: str) -> None:
    """Raise JobError where the keys of a job do not go together."""
    if problems := _cross_field(job):
        raise JobError(source, f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)


def arm_jobs(job: Job, source: str) -> dict[str, Job]:
    """The job of each arm, by name: the job itself with the arm's keys laid over it; empty without arms.

    Raises JobError as `load_job` does.
    """
    plain = msgspec.json.decode(msgspec.json.encode(resolved(job)))
    arms = plain.pop("arms")
    jobs = {}
    for name, changes in arms.items():
        where = f"{source}, arm {name}"
        if refused := sorted(set(changes) & set(_NOT_IN_ARMS)):
            raise JobError(
                where,
                "1 problem:",
                (Problem(f"$.arms.{name}.{refused[0]}", "an arm cannot change this: all arms share it"),),
            )
        try:
            jobs[name] = _checked({**_laid_over(plain, changes), "name": f"{job.name}.{name}"}, where)
        except JobError as error:
            own = [Problem(f"$.arms.{name}{p.path.removeprefix('$')}", p.message) for p in error.problems]
            raise JobError(source, error.summary, own) from None
    return jobs


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above` on top of `below`, mapping by mapping; a backend of another type starts afresh."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if (
            isinstance(value, dict)
            and isinstance(under, dict)
            and value.get("type", under.get("type")) == under.get("type")
        ):
            result[key] = _laid_over(under, value)
        else:
            result[key] = value
    return result


# What would let an answer be longer, or more than one, behind the budget's back.
_ROOM_KEYS = {
    "max_tokens", "max_completion_tokens", "n", "best_of", "maxOutputTokens", "candidateCount", "n_predict",
}  # fmt: skip


def _keys(body: dict[str, Any]) -> set[str]:
    """The keys of a body and of the mappings right inside it."""
    inner = [value for value in body.values() if isinstance(value, dict)]
    return set(body).union(*inner)


def _cross_field(job: Job) -> list[Problem]:
    return [*_protocol_problems(job), *_arm_problems(job), *_backend_problems(job)]


def _protocol_problems(job: Job) -> list[Problem]:
    problems = [
        Problem(f"$.prompts.{role}", f"unknown prompt (known: {', '.join(PROMPT_ROLES)})")
        for role in job.prompts
        if role not in PROMPT_ROLES
    ]
    if job.protocol == "oneshot" and job.prompt is None:
        problems.append(Problem("$.prompt", "this key is missing; the oneshot protocol asks with it"))
    if job.protocol == "selfplay" and job.prompt is not None:
        problems.append(
            Problem("$.prompt", "selfplay has a prompt for each side: `prompts: {teacher: …, student: …}`")
        )
    if job.branch is not None and job.protocol != "selfplay":
        problems.append(Problem("$.branch", "only selfplay can branch: `protocol: selfplay`"))
    if job.branch is not None and isinstance(job.branch.at, int):
        opens = job.branch.role == job.selfplay.first
        turn = 2 * job.branch.at - (1 if opens else 0)  # counted from 1
        if turn > job.selfplay.max_turns:
            problems.append(
                Problem(
                    "$.branch.at", f"that is turn {turn}, and selfplay.max_turns is {job.selfplay.max_turns}"
                )
            )
    if job.branch is not None and job.replicates < 2:
        problems.append(
            Problem("$.replicates", "a branch needs at least 2: replicate 0 and one that leaves it")
        )
    return problems


def _arm_problems(job: Job) -> list[Problem]:
    problems = [
        Problem(f"$.arms.{name}", "an arm's name is made of letters, digits, - and _, 40 at most")
        for name in job.arms
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name)
    ]
    if len(job.arms) > MAX_ARMS:
        problems.append(Problem("$.arms", f"there are {len(job.arms)}; {MAX_ARMS} are the most"))
    if job.arms and job.replicates > ARM_STRIDE:
        problems.append(Problem("$.replicates", f"with arms {ARM_STRIDE} are the most"))
    if job.arms and job.top_up:
        problems.append(Problem("$.top_up", "arms share their scenarios, so none of them can plan more"))
    return problems


def roles_asked(job: Job) -> tuple[str, ...]:
    """The roles that the job's conversations ask."""
    if job.protocol == "oneshot":
        return ("default",)
    return ("teacher", "student", "judge") if job.selfplay.closing == "judge" else ("teacher", "student")


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


def _backend_problems(job: Job) -> list[Problem]:
    problems = []
    missing = [role for role in roles_asked(job) if backend_name(job, role) not in job.backends]
    if missing:
        key = missing[0] if len(missing) < len(roles_asked(job)) else "default"
        problems.append(
            Problem(f"$.backends.{key}", "this key is missing; `default` answers where no other role does")
        )
    for role, backend in job.backends.items():
        if role not in BACKEND_ROLES:
            problems.append(
                Problem(f"$.backends.{role}", f"unknown role (known: {', '.join(BACKEND_ROLES)})")
            )
        capped = job.limits.max_cost is not None or job.limits.max_tokens is not None
        if capped and backend.max_tokens is None:
            problems.append(
                Problem(f"$.backends.{role}.max_tokens", "a run under max_cost or max_tokens needs it set")
            )
        hidden = _ROOM_KEYS & _keys(getattr(backend, "extra_body", {}))
        if capped and hidden:
            problems.append(
                Problem(
                    f"$.backends.{role}.extra_body",
                    f"a run under max_cost or max_tokens cannot let it set {', '.join(sorted(hidden))}; "
                    "use the backend's max_tokens",
                )
            )
        if job.limits.max_cost is not None and backend.price is None:
            problems.append(
                Problem(
                    f"$.backends.{role}.price",
                    "a run under max_cost needs it: {prompt: …, completion: …} in US dollars per million tokens",
                )
            )
    return problems


def _override(value: dict[str, Any], assignment: str) -> None:
    """Apply one `a.b=c` to the plain values, the right side read as YAML."""
    key, equals, text = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in parts):
        raise UsageError(f"--set {assignment}: expected key=value, as in --set limits.in_flight=8.")
    node = value
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise UsageError(f"--set {assignment}: '{part}' is no mapping in this job.")
        node = child
    node[parts[-1]] = read_yaml(text, f"--set {assignment}", _SetError)


class _SetError(FileError):
    what = "option"


def resolved(job: Job) -> dict[str, Any]:
    """The job as plain values, every default written out."""
    plain: dict[str, Any] = msgspec.to_builtins(job)
    del plain["resolved"]
    return plain


def shaping(job: Job) -> dict[str, Any]:
    """What of the job shapes answers, as plain values."""
    plain = {key: value for key, value in resolved(job).items() if key not in KNOBS}
    # What a protocol does not use shapes nothing.
    if job.protocol != "selfplay":
        del plain["selfplay"]
    if job.branch is None:
        del plain["branch"]
    for backend in plain["backends"].values():
        backend.pop("price", None)
        backend.pop("api_key_env", None)
        backend.pop("latency_ms", None)
    return plain
