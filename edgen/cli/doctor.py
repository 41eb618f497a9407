"""`edgen doctor`: what is wrong with a job's surroundings, and what to do about it."""

from __future__ import annotations

import asyncio
import difflib
import platform
import time
from typing import TYPE_CHECKING, Annotated

import typer

from edgen import __version__
from edgen.cli.options import JobArgument, JsonOption, OutsideOption, SetOption, TrustOption
from edgen.cli.output import print_json, print_line
from edgen.cli.trusting import Trust
from edgen.errors import EdgenError

if TYPE_CHECKING:
    from edgen.backends import Backend
    from edgen.config import BackendConfig
    from edgen.engine.plan import Plan

_REFUSED = 5  # by the service


class Checks:
    """What was looked at, in order: name, whether it is well, and a sentence."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, bool, str]] = []
        self.exit_code = 2  # of what the job or the command line says; a service's is 5

    def add(self, name: str, well: bool, detail: str) -> bool:
        self.rows.append((name, well, detail))
        return well


def command(
    job: JobArgument,
    set_: SetOption = None,
    trust_host: TrustOption = None,
    allow_outside: OutsideOption = False,
    call: Annotated[bool, typer.Option("--call/--no-call", help="Make one tiny call.")] = True,
    json: JsonOption = False,
) -> None:
    """Check a job's keys, endpoint and model with one tiny call, and say what to do.

    Example: edgen doctor jobs/quickstart.yaml
    """
    checks, trust = Checks(), Trust(trust_host)
    checks.add(
        "versions", True, f"edgen {__version__}, Python {platform.python_version()}, {platform.system()}"
    )
    from edgen.engine.load import load_plans
    from edgen.engine.reach import Reach

    whole, plans = load_plans(job, set_, Reach.of(job, set_ or (), outside=allow_outside))
    arms = f" in each of {len(whole.arms)} arms" if whole.arms else ""
    checks.add("job", True, f"{whole.conversations} scenarios{arms}, protocol {whole.protocol}")
    space = next(iter(plans.values())).space
    checks.add("space", True, f"{whole.space}: {space.cells} cells")
    tried: list[BackendConfig] = []
    for arm, plan in plans.items():
        _templates(checks, arm, plan)
        for role, config in plan.job.backends.items():
            if config not in tried:
                tried.append(config)
                name = role if arm is None else f"{arm}: {role}"
                asyncio.run(_backend(checks, plan, name, config, trust, call=call))
    well = all(row[1] for row in checks.rows)
    if json:
        print_json(
            {"well": well, "checks": [{"check": n, "well": ok, "detail": d} for n, ok, d in checks.rows]}
        )
    else:
        for name, ok, detail in checks.rows:
            print_line(f"{'ok  ' if ok else 'FAIL'}  {name:<10} {detail}")
    if not well:
        raise typer.Exit(checks.exit_code)


def _templates(checks: Checks, arm: str | None, plan: Plan) -> None:
    from edgen.engine.unused import unused

    missed = unused(plan)
    for use, prompt in {**plan.prompts, **plan.extra_prompts}.items():
        name = "template" if use == "default" else use
        used = ", ".join(sorted(prompt.variables_used)) or "nothing"
        never = ", ".join(variable for variable, where, _ in missed if where == use)
        told = f"{prompt.name}: uses {used}" + (f"; never uses {never}" if never else "")
        checks.add(name if arm is None else f"{arm}: {name}", True, told)


async def _backend(
    checks: Checks, plan: Plan, role: str, config: BackendConfig, trust: Trust, *, call: bool
) -> None:
    from edgen.backends import make
    from edgen.engine.walk import advice
    from edgen.errors import CallError

    try:
        consents = trust.settle([config])
        timeout = min(plan.job.limits.timeout, 60.0)
        backend = make(config, timeout=timeout, connections=2, environ=trust.environ, consents=consents)
    except EdgenError as error:
        checks.add(role, False, str(error))
        checks.exit_code = max(checks.exit_code, error.exit_code)
        return
    try:
        identity = backend.identity
        checks.add(role, True, f"{identity['type']} {backend.model} {identity.get('base_url', '')}".rstrip())
        if (key := _key(config, trust)) is not None:
            checks.add("key", True, key)
        try:
            names = await backend.models()
            if names is None:
                checks.add("models", True, "the service does not list its models")
            else:
                checks.add("models", True, _listed(backend.model, names))
        except CallError as failure:
            checks.add("models", True, f"the list of models cannot be had ({failure}); the call tells more")
        if call:
            checks.add("call", *await _tiny_call(plan, backend))
    except CallError as failure:
        checks.add("call", False, advice(failure))
        checks.exit_code = _REFUSED
    finally:
        await backend.aclose()


def _key(config: BackendConfig, trust: Trust) -> str | None:
    """Where the backend's key goes, or why it does not; None where there is none."""
    from edgen.backends.keys import asked, verdict
    from edgen.trust import Allowed, NoKey

    ask = asked(config)
    found = None if ask is None else verdict(ask, trust.environ, trust.consents)
    match found:
        case (variable, Allowed(place)):
            return f"{variable} goes to {place.name}"
        case (_, NoKey(hint)):
            return hint
        case _:
            return None


def _listed(model: str, names: list[str]) -> str:
    """Whether the service lists the model, and which of its names come closest where it does not."""
    if model in names:
        return f"{model} is listed, one of {len(names)}"
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(model.lower(), by_lower, n=3, cutoff=0.5)
    if near:
        return f"{model} is not listed; did you mean {', '.join(by_lower[name] for name in near)}?"
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"{model} is not listed, nor anything like it (listed: {listed or 'none'})"


async def _tiny_call(plan: Plan, backend: Backend) -> tuple[bool, str]:
    from edgen.model import Address, Message, Request

    request = Request(Address(0, 0), (Message("user", "Say hello in one word."),), seed=plan.job.seed % 2**31)
    started = time.monotonic()
    reply = await backend.complete(request)
    seconds = time.monotonic() - started
    usage = reply.usage
    tokens = f"{usage.prompt_tokens}+{usage.completion_tokens} tokens" if usage else "no token counts"
    return True, f"answered in {seconds:.2f} s, {tokens}: {reply.text[:60]!r}"
