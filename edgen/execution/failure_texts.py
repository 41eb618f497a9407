"""Sentences about services that fail or are silent."""

from __future__ import annotations

from edgen.core.errors import CallError, FailureKind, FailuresError, ProviderError
from edgen.execution.client.model_client import ModelClient

GO_ON = "Then run the same command again to resume."
ADVICE = {
    FailureKind.AUTHENTICATION: "The key is missing or not accepted: check the environment variable that the "
    "job names.",
    FailureKind.PERMISSION: "The key may not use this model or service: check its project and permissions.",
    FailureKind.QUOTA: "The account's quota or credit is used up: raise it, or wait until it is renewed.",
    FailureKind.NOT_FOUND: "The model or the path does not exist there: check `model` and `base_url` in the "
    "job.",
    FailureKind.BAD_REQUEST: "The request as it stands is not taken: check the backend's parameters and "
    "`extra_body`.",
    FailureKind.BAD_OUTPUT: "The server cannot read what its own model wrote: look at its chat template and "
    "parser, and give the model room with `max_tokens`.",
    FailureKind.CONTEXT_OVERFLOW: "The prompt is too long for the model: shorten the template, or give it "
    "more context.",
}


def make_backend_prefix(role: str) -> str:
    """Return the prefix of a sentence about a role's backend; empty if a job has only one backend."""
    return "" if role == "default" else f"Backend {role}: "


def describe_failure(failure: CallError) -> str:
    """Return a failure without its full stop."""
    return str(failure).rstrip(" .?!")


def make_silence_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    """Return the error for a service that has answered nothing for some seconds."""
    waiting = client.out + client.admission.waiting if client.admission.unreachable else client.out
    return FailuresError(
        f"{make_backend_prefix(role)}The service has answered nothing for {seconds:g} s, with "
        f"{waiting} {'call' if waiting == 1 else 'calls'} waiting for it."
        f"{_describe_last_failure(client)} The run stopped rather than wait for ever. If the service is "
        f"only slow, raise limits.give_up_after. {GO_ON}"
    )


def make_unreachable_error(role: str, client: ModelClient, seconds: float) -> ProviderError:
    """Return the error for a service that has never answered, and could not be reached for some seconds."""
    return FailuresError(
        f"{make_backend_prefix(role)}The service could not be reached for {seconds:g} s, and has not answered "
        f"once.{_describe_last_failure(client)} "
        f"Start the server, or correct the address in the job; `edgen doctor JOB` tries it. {GO_ON}"
    )


def _describe_last_failure(client: ModelClient) -> str:
    failure = client.last_failure
    return "" if failure is None else f" The last failure was {describe_failure(failure)}."


def write_away_note(role: str, client: ModelClient, seconds: float) -> str:
    """Return the note on a service that became unreachable."""
    said = describe_failure(client.last_failure) if client.last_failure is not None else "no connection"
    return (
        f"{make_backend_prefix(role)}The service is away ({said}). edgen retries until it answers, for "
        f"{seconds:g} s at most."
    )


def add_advice(failure: CallError) -> str:
    """Return a sentence about a failure, with advice for the user."""
    what = ADVICE.get(failure.kind, "Check that the service runs and that `base_url` is right.")
    happened = "The service refused" if failure.kind in ADVICE else "The call failed"
    return f"{happened}: {describe_failure(failure)}. {what}"
