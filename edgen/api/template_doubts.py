"""Doubts about a plan's templates of whole conversations, before the start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from edgen.config import backend_of
from edgen.core.values import Request
from edgen.planning.plan import Plan
from edgen.planning.speakers import describe_template
from edgen.providers import provider_of


def find_doubts(plans: Iterable[Plan]) -> list[str]:
    """Return a sentence for each template of whole conversations that the simulator is asked with and cannot
    answer, or in which others speak than the roles of the space."""
    found = (_explain_unanswered(plan) or describe_template(plan) for plan in plans)
    return list(dict.fromkeys(sentence for sentence in found if sentence))


def _explain_unanswered(plan: Plan) -> str | None:
    work = plan.protocol.start(plan.scenario(0), 0, plan.prompts, plan.rules)
    request = next(work, None)
    work.close()
    if not isinstance(request, Request) or not request.speakers:
        return None
    if not provider_of(backend_of(plan.job, request.role)).simulated:
        return None
    from edgen.simulator.conversation_prompt import read
    from edgen.simulator.prompt_roles import say_why_not

    if read(request.messages, request.speakers, certain=True) is not None:
        return None
    reason = say_why_not("\n".join(message.content for message in request.messages), request.speakers)
    (prompt,) = plan.prompts.values()
    names = " and ".join(name for name, *_ in request.speakers)
    return (
        f"the simulator cannot answer {Path(prompt.source).name}. {reason} Name the roles of the space ({names}) in the "
        "template, or say under `role_words` what it calls them"
    )
