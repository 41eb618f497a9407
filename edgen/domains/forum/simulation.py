"""How the simulator plays a forum: the asker asks about what its brief tells, others answer with what theirs
tell, and now and then somebody votes, passes or marks an answer.

Prompts are known by their lines: those of the shipped templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from edgen.plugin import Simulation

_MEMBER = re.compile(r"(?m)^You are a member of a forum\b")
_ABOUT = re.compile(r"(?m)^- ([^:\n]{1,80}): (.+)$")
_POST = re.compile(r"(?m)^#(\d+) (\S.*) \((User|Agent), .*\):$")
_NAMES = re.compile(r"(?m)^(\d+)\. (.+)$")

# What the simulator says; some lines are beginnings of a sentence.
_ASKS = (
    "Hello, I am stuck.",
    "Can somebody help me?",
    "I hope that this is the right place to ask.",
    "Hi all!",
)
_THANKS = (
    "Thank you, that was it:",
    "That helped, I mark",
    "Now I see, thanks for",
)
_WONDERS = (
    "I read that, and am not sure yet. What about",
    "Sorry, I do not follow. How does that go with",
    "That did not work for me. Is it because of",
    "Can you say more about",
)
_SAME = (
    "I have the same question, with",
    "Same here:",
    "I would like to know that, too. In my case:",
)
_ANSWERS = (
    "I would say:",
    "As far as I know:",
    "Have a look at this:",
    "In short:",
    "That comes up often:",
    "You asked about it, so:",
    "Try it like this:",
)


def respond(request: Simulation) -> str | None:
    """Return the answer to a prompt of forum; None where it is none."""
    if not request.messages:
        return None
    brief, last = request.messages[0].content, request.messages[-1].content
    if "\nWho posts next?" in last and (names := [*_NAMES.finditer(last.rpartition("\nWho posts next?")[2])]):
        return _garbage(request) or _choose(request, names)
    if "You are a member of a forum" not in brief or not _MEMBER.search(brief):
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    about = [(one[1], one[2].strip()) for one in _ABOUT.finditer(brief)]
    read = [
        post for one in request.messages[1:] if one.role == "user" for post in _POST.finditer(one.content)
    ]
    if '"title"' not in brief:
        post = _helper(request, about, read, user="You have the same trouble" in brief)
    elif not any(one.role == "assistant" for one in request.messages):
        post = _question(request, about)
    elif not read:
        post = {"pass": True}
    else:
        post = _follow_up(request, about, read)
    return msgspec.json.encode(post).decode()


def _garbage(request: Simulation) -> str | None:
    return request.say("garbage") if request.fault == "garbage" else None


def _choose(request: Simulation, names: Sequence[re.Match[str]]) -> str:
    """Return one of those who are named; rarely nobody, which stands last."""
    if request.random() < 0.05 and "\n#3 " in request.messages[-1].content:
        return names[-1][2]
    return request.pick([name[1] for name in names[:-1] or names])


def _question(request: Simulation, about: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a question that tells something of everything in the brief."""
    told = [f"{label}: {value.rstrip('.?')}." for label, value in about]
    title = max((value for _, value in about[:3]), key=len, default="A question")
    return {"title": title, "text": " ".join((request.pick(_ASKS), *told))}


def _follow_up(
    request: Simulation, about: Sequence[tuple[str, str]], read: Sequence[re.Match[str]]
) -> dict[str, Any]:
    """Thanks with a mark, or another question."""
    latest = int(read[-1][1])
    answers = [int(post[1]) for post in read if post[3] == "Agent"]
    drawn = request.random()
    if answers and drawn < 0.35 + 0.1 * len(answers):
        accepted = answers[int(request.random() * len(answers))]
        return {
            "text": f"{request.pick(_THANKS)} #{accepted}.",
            "votes": [accepted],
            "accept": accepted,
        }
    if drawn > 0.95:
        return {"pass": True}
    own = "\n".join([one.content for one in request.messages[2:] if one.role == "assistant"][1:])
    new = [value for _, value in about if value not in own]
    if not new:
        return {"pass": True}
    text = f"{request.pick(_WONDERS)} {request.pick(new)}?"
    return {"text": text, **({"votes": [latest]} if request.random() < 0.2 else {})}


def _helper(
    request: Simulation, about: Sequence[tuple[str, str]], read: Sequence[re.Match[str]], *, user: bool
) -> dict[str, Any]:
    """Return an answer out of what one knows; a user repeats the question."""
    votes = [int(post[1]) for post in read if int(post[1]) > 1 and request.random() < 0.15]
    marks = {"votes": votes} if votes else {}
    if request.random() < 0.12:
        return {"pass": True, **marks}
    said = "\n".join([one.content for one in request.messages[1:]])
    new = [value for _, value in about if value not in said]
    if not new and request.random() < 0.5:
        return {"pass": True, **marks}
    known = request.pick(new or [value for _, value in about] or ["the manual"])
    if user:
        return {"text": f"{request.pick(_SAME)} {known}.", "same_question": True, **marks}
    return {"text": f"{request.pick(_ANSWERS)} {known}", **marks}
