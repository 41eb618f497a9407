"""Speakers other than the roles of the space: in a template before the first call, and in a rejected reply.

For example, with a template in which a doctor and a patient talk, and a space with an agent and a customer,
no turn of the answers can be read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from edgen.config import ANNOTATOR, find_backend
from edgen.core.forms import list_answer_kinds
from edgen.core.registry import find_plugin
from edgen.core.text import compile_later, join_list
from edgen.core.values import Rejection, RejectionReason, Request
from edgen.planning.plan import Plan
from edgen.planning.request_check import RequestCheck
from edgen.protocols.base import find_role_words
from edgen.protocols.parts import close_generator
from edgen.providers import find_calls

_WHO_MAY_SPEAK = frozenset({RejectionReason.NO_TURNS, RejectionReason.ONE_SPEAKER, RejectionReason.TOO_SHORT})
_MOST = 4  # maximum names in a sentence
_EXAMINED = 20_000  # maximum examined characters of a reply
_NAME = r"[^\W\d_][\w'’-]{0,30}(?: [^\W\d_][\w'’-]{0,30})?"
_LABEL = compile_later(rf"(?m)^[^\w\n]{{0,8}}({_NAME})[*_\])>\"]{{0,3}}[ ]?[:：]")
_SHOWN = compile_later(
    rf"(?m)^[\s>*_#\d.\-]{{0,8}}({_NAME})[*_]{{0,3}}[ ]?[:：]"
)  # in a template; does not match keys in JSON
_KEYED = compile_later(
    rf"[\"'](?:role|speaker|name|who|from|author|character)[\"'][ ]?[:=][ ]?[\"']({_NAME})[\"']", re.I
)


def find_doubts(plans: Iterable[Plan]) -> list[str]:
    """Return a sentence for each template in which others than the roles of the space speak, that the
    simulator cannot answer, or that no protocol uses."""
    plans = list(plans)
    found = dict.fromkeys(sentence for plan in plans for sentence in describe_templates(plan))
    return [*found, *_describe_unused_prompts(plans)]


def _describe_unused_prompts(plans: Iterable[Plan]) -> list[str]:
    """Return a sentence for each template under `prompts` that no plan uses. Templates of judges and
    annotators count as used."""
    used: set[str] = {ANNOTATOR}
    named: dict[str, str] = {}  # protocol by template's name
    for plan in plans:
        used |= {*plan.templates, *plan.extra_prompts}
        used |= {template.key.removeprefix("prompts.") for template in plan.templates.values()}
        named |= dict.fromkeys(plan.job.prompts, plan.job.protocol)
    return [
        f"`prompts.{name}` is never used: the {protocol} protocol asks with no such template"
        for name, protocol in named.items()
        if name not in used
    ]


def describe_templates(plan: Plan) -> list[str]:
    """Return sentences on doubtful templates of a plan whose answers contain turns."""
    found = _describe_conversation(plan)
    return [*_describe_turns(plan)] if found is None else found


def _describe_turns(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each template of single turns that shows turns of speakers who are no roles."""
    from edgen.simulator.prompts.prompt_roles import find_unknown_speakers

    own = dict(plan.rules.words)
    speakers = tuple((role, *own.get(role, ())) for role in plan.job.speakers)
    own_kinds = {kind.name: kind for kind in plan.protocol.answers}
    for use, messages in plan.opening(plan.scenario(0)).items():
        template = plan.templates.get(use)
        if template is None or template.expects is None:
            continue
        kind = own_kinds.get(template.expects) or list_answer_kinds().get(template.expects)
        if kind is None or not kind.spoken:
            continue
        text = "\n".join(message.content for message in messages)
        shown = {*_SHOWN.findall(text), *_KEYED.findall(text)}
        strangers = [name for name in find_unknown_speakers(text, speakers) if name in shown]
        if names := list(dict.fromkeys([*strangers, *_find_names(text, speakers)])):
            yield (
                f"{Path(plan.prompts[use].source).name}: {_describe_speakers(names, speakers)}. Answers may speak "
                "for them: name the "
                "roles of the space in the template, or say under `role_words` what it calls them"
            )


def _describe_conversation(plan: Plan) -> list[str] | None:
    """Return sentences on a plan's template of whole conversations; None if the protocol has no such
    template."""
    work = plan.converse(plan.scenario(0), 0, plan.rules)
    request = next(work, None)
    close_generator("protocol", plan.job.protocol, work)
    if not isinstance(request, Request) or not request.speakers:
        return None
    if find_plugin("protocol", plan.job.protocol) is not None:
        request = RequestCheck(plan.job.protocol, request.address.scenario, 1)(request)
    simulated = find_calls(find_backend(plan.job, request.role)).simulated
    found = (_explain_unanswered(plan, request) if simulated else None) or _explain_strangers(plan, request)
    return [] if found is None else [found]


def _explain_unanswered(plan: Plan, request: Request) -> str | None:
    from edgen.simulator.prompts.conversation_prompt import read
    from edgen.simulator.prompts.prompt_roles import explain_unknown_speakers

    if read(request.messages, request.speakers, certain=True) is not None:
        return None
    reason = explain_unknown_speakers(
        "\n".join(message.content for message in request.messages), request.speakers
    )
    (prompt,) = plan.prompts.values()
    names = join_list(role for role, *_ in request.speakers)
    return (
        f"the simulator cannot answer {Path(prompt.source).name}. {reason} Name the roles of the space "
        f"({names}) in the template, or say under `role_words` what it calls them"
    )


def _explain_strangers(plan: Plan, request: Request) -> str | None:
    from edgen.simulator.prompts.prompt_roles import find_unknown_speakers

    text = "\n".join(message.content for message in request.prose or request.messages)
    names = find_unknown_speakers(text, request.speakers)
    if not names:
        return None
    (prompt,) = plan.prompts.values()
    known = find_role_words(tuple(name for name, *_ in request.speakers))
    if request.schema is not None and prompt.schema is None:
        advice = "The form of the answer names the roles; name them in the template, too"
    elif all(known.alias(name) for name in names):
        advice = "Replies are read as if these roles spoke; name the roles in the template to be sure"
    else:
        advice = (
            "Their turns cannot be read: name the roles in the template, or say under `role_words` what it "
            "calls them"
        )
    return f"{Path(prompt.source).name}: {_describe_speakers(names, request.speakers)}. {advice}"


def describe_reply(text: str, request: Request) -> str:
    """Return a clause that names the speakers of a reply who are not among the request's roles; empty without
    any."""
    names = _find_names(text[:_EXAMINED], request.speakers) if request.speakers else []
    return _describe_speakers(names, request.speakers) if names else ""


def explain_rejection(rejection: Rejection, text: str, request: Request) -> Rejection:
    """Return a rejection whose detail also names the speakers of the reply who are no roles."""
    if rejection.reason not in _WHO_MAY_SPEAK or not (said := describe_reply(text, request)):
        return rejection
    return msgspec.structs.replace(rejection, detail=f"{said} ({rejection.detail})")


def _describe_speakers(names: Sequence[str], speakers: Sequence[tuple[str, ...]]) -> str:
    shown = [*names[:_MOST], "others"] if len(names) > _MOST else names
    speak = "speaks" if len(shown) == 1 else "speak"
    return f"{join_list(shown)} {speak}; this space has {join_list(role for role, *_ in speakers)}"


def _find_names(text: str, speakers: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the names of speakers who are no roles, in order: names that begin several turns, or are under
    keys such as `role` in JSON."""
    from edgen.simulator.prompts.shown_names import is_name

    own = {word.lower() for words in speakers for word in words}
    labels = Counter(name for name in _LABEL.findall(text) if is_name(name))
    keyed = Counter(_KEYED.findall(text))
    # If nearly all lines are turns, a speaker may have only one.
    lines = sum(1 for line in text.split("\n") if line.strip())
    alone = labels.total() > 1 and labels.total() >= 0.8 * lines
    found = [*keyed, *(name for name, count in labels.items() if (count > 1 or alone) and not keyed)]
    return [name for name in dict.fromkeys(found) if name.lower() not in own]
