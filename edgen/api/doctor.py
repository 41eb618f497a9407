"""Problems of a job's environment, with advice: its files, keys, endpoints and models."""

from __future__ import annotations

import contextlib
import difflib
import platform
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.config import ANNOTATOR, BackendConfig, Job, Limits, check_budget, find_backend_name
from edgen.config.backends import find_features
from edgen.core.errors import CallError, EdgenError, FailureKind, ProviderError
from edgen.core.plugins.faults import blame, require_value
from edgen.core.text import join_first
from edgen.core.values import Address, Message, Reply, Request
from edgen.core.version import __version__
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget
from edgen.execution.client.budget_lease import BudgetLease
from edgen.execution.client.fleet import SameModel
from edgen.execution.client.model_client import ModelClient
from edgen.execution.failure_texts import add_advice
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plans, wants_logprobs
from edgen.planning.plan import Plan
from edgen.planning.unused_variables import find_unused
from edgen.prompting import Prompt
from edgen.prompting.answer_schema import fits_schema
from edgen.prompting.prompt import find_schema_file
from edgen.providers import Backend, find_calls, list_servers, make
from edgen.providers.trust import Allowed, NoKey
from edgen.reading.text.thinking import drop_thinking
from edgen.runtime.backends import CLOSING, await_in_time, close_backend, require_backend
from edgen.runtime.control import Trust, run_in_own_loop
from edgen.runtime.loading import Loading
from edgen.store.budget_book import BudgetBook
from edgen.store.call_times import CallTime, note_call_time

_REFUSED = 5  # exit code if a service refuses
_COUNT = "Count from one to ten, in words."  # an answer with enough tokens to measure its speed


class DoctorCheck(msgspec.Struct, frozen=True):
    """One check: whether it passed, and a sentence."""

    check: str
    well: bool
    detail: str


class Diagnosis(msgspec.Struct):
    """All checks, in order. `exit_code` is the highest of failed checks: 2 for the job or the command line, 4
    for a used-up shared budget, 5 for a service."""

    checks: list[DoctorCheck] = []
    exit_code: int = 2

    @property
    def well(self) -> bool:
        return all(check.well for check in self.checks)

    def add(self, name: str, detail: str, *, well: bool = True) -> None:
        self.checks.append(DoctorCheck(name, well, detail))

    def fail(self, name: str, detail: str, exit_code: int) -> None:
        self.add(name, detail, well=False)
        self.exit_code = max(self.exit_code, exit_code)


def diagnose(
    job: Path,
    trust: Trust,
    *,
    overrides: Sequence[str] = (),
    allow_outside: bool = False,
    call: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Check a job's files, keys, endpoints and models. `call`: make one tiny call to each backend, one more
    for each schema of its answers, and one for log probabilities if the job requests them. The calls count in
    the budget that the job shares with others; they are left out if that budget cannot be used. The check
    waits for a server that is loading its model, and passes a sentence about it to `note`. `edgen estimate`
    uses the seconds of the tiny call.

    Raises the errors of a job that cannot be loaded.
    """
    diagnosis = Diagnosis()
    system = f"edgen {__version__}, Python {platform.python_version()}, {platform.system()}"
    diagnosis.add("versions", system)
    allowed = AllowedFiles.of(job, overrides, outside=allow_outside)
    whole, plans = load_plans(job, list(overrides), allowed)
    arms = f" in each of {len(whole.arms)} arms" if whole.arms else ""
    diagnosis.add("job", f"{whole.conversations:,} scenarios{arms}, protocol {whole.protocol}")
    cells = next(iter(plans.values())).cells
    diagnosis.add("space", f"{whole.space}: {'more' if cells is None else f'{cells:,}'} cells")
    budget = None
    if whole.limits.budget is not None:
        budget = _check_shared_budget(diagnosis, [whole, *(plan.job for plan in plans.values())], call=call)
        call = call and budget is not None
    try:
        _check_arms(diagnosis, plans, trust, budget, call=call, note=note)
    finally:
        if budget is not None:
            budget.close()
    return diagnosis


def _check_shared_budget(diagnosis: Diagnosis, jobs: Sequence[Job], *, call: bool) -> Budget | None:
    """Report the use of the shared budget, and return the budget for calls; None if it cannot be used.
    `jobs`: the job and its arms, whose backends the budget must be able to count."""
    named = jobs[0].limits.budget
    assert named is not None
    try:
        for job in jobs:
            check_budget(job.backends, job.limits)
        book = BudgetBook(Path(named), create=call)
        stands = book.list_current_use()
    except EdgenError as error:
        diagnosis.fail("budget", str(error), error.exit_code)
        return None
    used = "; ".join(
        f"{one.format_amount(one.used)} of {one.format_amount(one.most)} {one.cap}" for one in stands
    )
    diagnosis.add("budget", f"{named}: {used} used")
    # Doctor has no ledger: if it is killed, all reserved amounts count as spent.
    return Budget(None, None, lease=BudgetLease(book, f"doctor {secrets.token_hex(8)}"))


def _check_arms(
    diagnosis: Diagnosis,
    plans: Mapping[str, Plan],
    trust: Trust,
    budget: Budget | None,
    *,
    call: bool,
    note: Callable[[str], None],
) -> None:
    """Check the templates of each arm, and each backend once."""
    tried: list[BackendConfig] = []
    for arm, plan in plans.items():
        prefix = f"{arm}: " if arm else ""
        _check_templates(diagnosis, prefix, plan)
        for role, config in plan.job.backends.items():
            if config not in tried:
                tried.append(config)
                schemas = _list_schemas(config, plans.values())
                each = config.each_server
                for server in each:
                    checked = _Checked(prefix + role, server, plan.job, schemas, budget, Loading(note))
                    run_in_own_loop(_check_backend(diagnosis, checked, trust, call=call))
                if len(each) > 1:
                    run_in_own_loop(_check_same_model(diagnosis, prefix + role, config, trust))


async def _check_same_model(diagnosis: Diagnosis, role: str, config: BackendConfig, trust: Trust) -> None:
    """Check that the servers of a backend list the same model. A server that does not answer is left out: its
    own check reports it."""
    try:
        consents = trust.settle([config])
        backend = make(config, timeout=60.0, connections=2, environ=trust.environ, consents=consents)
    except EdgenError:
        return
    try:
        each = list_servers(backend)
        same = SameModel(each, backend.model)
        for address in each:
            with contextlib.suppress(CallError):
                await same.check_model_list(address)
        diagnosis.add(role, f"{len(each)} servers share the calls")
    except ProviderError as error:
        diagnosis.fail(role, str(error), error.exit_code)
    finally:
        await close_backend(config.provider, backend)


class _Checked(NamedTuple):
    """A backend under check."""

    role: str  # its role in the job
    config: BackendConfig  # settings of one of its servers
    job: Job  # the job, or one arm of it
    schemas: list[Prompt]  # templates with schemas that it gets
    budget: Budget | None  # the budget in which its calls count
    loading: Loading  # the wait for a server that loads its model


def _list_schemas(config: BackendConfig, plans: Iterable[Plan]) -> list[Prompt]:
    """Return the templates with schemas for a backend, in any arm; one for each schema."""
    found: dict[bytes, Prompt] = {}
    for plan in plans:
        asked = {use: plan.templates[use].asked for use in plan.prompts} | {ANNOTATOR: ANNOTATOR}
        # Every other prompt that shapes no conversation goes to the judge.
        for use, prompt in {**plan.prompts, **plan.extra_prompts}.items():
            backend = plan.job.backends.get(find_backend_name(plan.job, asked.get(use, "judge")))
            if prompt.schema is not None and backend == config:
                found.setdefault(prompt.schema, prompt)
    return [*found.values()]


def _check_templates(diagnosis: Diagnosis, prefix: str, plan: Plan) -> None:
    missed = find_unused(plan)
    for use, prompt in {**plan.prompts, **plan.extra_prompts}.items():
        name = "template" if use == "default" else use
        used = ", ".join(sorted(prompt.variables_used)) or "nothing"
        never = ", ".join(variable for variable, where, _ in missed if where == use)
        rest = f"; never uses {never}" if never else ""
        fits = "" if prompt.schema is None else f"; answers have to fit {_describe_schema(prompt)}"
        diagnosis.add(prefix + name, f"{prompt.name}: uses {used}{rest}{fits}")


def _describe_schema(prompt: Prompt) -> str:
    return find_schema_file(Path(prompt.source)).name


async def _check_backend(diagnosis: Diagnosis, checked: _Checked, trust: Trust, *, call: bool) -> None:
    """Check one backend of a job."""
    role, config, job, schemas, budget, loading = checked
    try:
        consents, timeout = trust.settle([config]), min(job.limits.timeout, 60.0)
        backend = make(config, timeout=timeout, connections=2, environ=trust.environ, consents=consents)
        require_backend(config.provider, backend)
    except EdgenError as error:
        diagnosis.fail(role, str(error), error.exit_code)
        return
    try:
        identity = backend.identity
        address = getattr(config, "base_url", None) or identity.get("base_url", "")
        diagnosis.add(role, f"{identity['type']} {backend.model} {address}".rstrip())
        for decision in trust.judge(config):
            match decision:
                case (variable, Allowed(place)):
                    diagnosis.add("key", f"{variable.removeprefix('!')} goes to {place.name}")
                case (_, NoKey(hint)):
                    diagnosis.add("key", hint)
        diagnosis.add("models", await _describe_models(config, backend, loading))
        if call:
            seed, limits = job.seed % 2**31, Limits()
            client = ModelClient(role, config, backend, Admission(limits), limits, budget, None)
            await _call(diagnosis, client, checked, trust)
            for prompt in schemas:
                await _call_with_schema(diagnosis, config, client, seed, prompt)
            if wants_logprobs(job, config):
                await _call_for_logprobs(diagnosis, checked, client, seed)
    except CallError as failure:
        diagnosis.fail("call", add_advice(failure), _REFUSED)
    except EdgenError as error:  # the shared budget
        diagnosis.fail("call", str(error), error.exit_code)
    finally:
        await close_backend(config.provider, backend)


_PATIENCE = 65.0  # seconds for an answer; a plugin's backend has at most 60


async def _call(diagnosis: Diagnosis, client: ModelClient, checked: _Checked, trust: Trust) -> None:
    """Make one tiny call, and note the result and its time. Raises CallError."""
    request = Request(Address(0, 0), (Message("user", _COUNT),), seed=checked.job.seed % 2**31)
    started = 0.0

    async def ask() -> Reply:
        nonlocal started
        await client.servers.learn()
        started = time.monotonic()
        work = client.ask_once(request)
        return await await_in_time(checked.config.provider, "complete", work, _PATIENCE)

    reply = await checked.loading.answer(ask)
    seconds, usage = time.monotonic() - started, reply.usage
    if checked.loading.waited is not None:
        diagnosis.add("loading", f"the server had loaded its model after {checked.loading.waited:.0f} s")
    if (slots := client.admission.slots) is not None:
        calls = "1 call" if slots == 1 else f"{slots} calls"
        diagnosis.add("slots", f"it answers {calls} at once; a run begins with that many")
    tokens = f"{usage.prompt_tokens}+{usage.completion_tokens} tokens" if usage else "no token counts"
    if not find_calls(checked.config).simulated:
        completion = usage.completion_tokens if usage else len(reply.text) // 4
        note_call_time(checked.config, CallTime(seconds, completion, slots, time.time()), trust.environ)
    answered = f"answered in {seconds:.2f} s, {tokens}"
    if reply.text.strip():
        diagnosis.add("call", f"{answered}: {reply.text[:60]!r}")
    else:
        diagnosis.fail("call", f"{answered}: {_explain_blank(reply)}", _REFUSED)


async def _call_with_schema(
    diagnosis: Diagnosis, config: BackendConfig, client: ModelClient, seed: int, prompt: Prompt
) -> None:
    """Make the same call with the schema of a template, and note whether the service obeyed it.

    The call without it succeeded, so a bad request is the schema's fault. Raises CallError for any other
    failure.
    """
    assert prompt.schema is not None
    name, field = _describe_schema(prompt), find_features(config).schema_field
    if (wrong := find_features(config).schema_problem(config, prompt.schema)) is not None:
        diagnosis.fail("schema", f"{name} cannot be sent: {wrong}; change it, or remove the schema", 2)
        return
    messages = (Message("user", "Say hello, in the form that is asked for."),)
    try:
        reply = await client.ask_once(Request(Address(0, 0), messages, seed=seed, schema=prompt.schema))
    except CallError as failure:
        if failure.kind is not FailureKind.BAD_REQUEST:
            raise
        diagnosis.fail(
            "schema",
            f"the service refuses {name}, sent as {field}: {str(failure).rstrip(' .')}. It accepts the call "
            "without the schema: change the schema, or remove it",
            _REFUSED,
        )
        return
    text = drop_thinking(reply.text, []).strip()
    if fits_schema(text, prompt.schema):
        diagnosis.add("schema", f"{name}, sent as {field}: the answer fits")
    elif reply.finish_reason == "length":
        diagnosis.add("schema", f"{name}, sent as {field}: accepted; the answer was cut off by max_tokens")
    else:
        said = repr(text[:60]) if text else _explain_blank(reply)
        diagnosis.fail(
            "schema",
            f"the service accepts {name}, sent as {field}, but does not follow it: {said}. Its answers are "
            "still read; look up how the service takes a schema, or remove the schema",
            _REFUSED,
        )


async def _call_for_logprobs(diagnosis: Diagnosis, checked: _Checked, client: ModelClient, seed: int) -> None:
    """Make a call for log probabilities, and note whether the service returned any.

    The call without them succeeded, so they cause a bad or forbidden request. Raises CallError for any other
    failure.
    """
    config, top = checked.config, checked.job.pairs.logprobs
    asked, rest = f"pairs.logprobs: {top}", "choose another judge, or leave pairs.logprobs out"
    if (wrong := find_features(config).logprobs_problem(config)) is not None:
        diagnosis.fail("logprobs", f"{asked}, and {wrong}: {rest}", 2)
        return
    messages = (Message("user", "Which number is larger? Output 1 or 2."),)
    try:
        reply = await client.ask_once(Request(Address(0, 0), messages, seed=seed, logprobs=top))
    except CallError as failure:
        if failure.kind not in (FailureKind.BAD_REQUEST, FailureKind.PERMISSION):
            raise
        said = str(failure).rstrip(" .")
        diagnosis.fail("logprobs", f"the service refuses {asked}: {said}. Ask for fewer, {rest}", _REFUSED)
        return
    if reply.tokens is None:
        said = f"the service accepts {asked} but returns none; verdicts get no probability"
        diagnosis.fail("logprobs", f"{said}: {rest}", _REFUSED)
        return
    likely = max(len(token.top) for token in reply.tokens)
    diagnosis.add("logprobs", f"{asked}: {likely} likely tokens at each of {len(reply.tokens)} places")


def _explain_blank(reply: Reply) -> str:
    """Return the advice for an answer without a word."""
    if reply.refusal:
        return f"the service refuses: {reply.refusal[:200]}"
    if reply.finish_reason == "length":
        return (
            "nothing but white space; all of max_tokens went into thoughts: raise it, or lower "
            "reasoning_effort"
        )
    return (
        "nothing but white space; check the model's chat template, and whether it is a model for "
        "conversations"
    )


async def _describe_models(config: BackendConfig, backend: Backend, loading: Loading) -> str:
    try:
        names = await loading.answer(
            lambda: await_in_time(config.provider, "models", backend.models(), CLOSING)
        )
    except CallError as failure:
        return f"the list of models is not available ({failure}); the call shows more"
    except Exception as error:  # noqa: BLE001 - raised again
        blame("provider", config.provider, error, "in `models`")
    if names is None:
        return "the service does not list its models"
    require_value("provider", config.provider, names, list[str], "a list of models, or None, from `models`")
    return find_model(backend.model, names)


def find_model(model: str, names: list[str]) -> str:
    """Describe whether the service lists the model, and the closest names if it does not."""
    if model in names:
        return f"{model} is listed, one of {len(names)}"
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(model.lower(), by_lower, n=3, cutoff=0.5)
    if near:
        return f"{model} is not listed; did you mean {', '.join(by_lower[name] for name in near)}?"
    return f"{model} is not listed, nor anything like it (listed: {join_first(names, 5) or 'none'})"
