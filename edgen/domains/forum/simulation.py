"""The simulator's forum threads: the asker asks about the contents of its brief, and others answer from their
briefs. Now and then a member votes, passes or marks an answer.

Prompts are recognised by lines of the shipped templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.plugin import Message, Simulation

if TYPE_CHECKING:
    from edgen.protocols.simulation import RoleTalk
    from edgen.space.model import Scene

_MEMBER = re.compile(r"(?m)^You are a member of a forum\b")
_ABOUT = re.compile(r"(?m)^- ([^:\n]{1,80}): (.+)$")
_POST = re.compile(r"(?m)^#(\d+) (\S.*) \((User|Agent), .*\):$")
_NAMES = re.compile(r"(?m)^(\d+)\. (.+)$")

# The simulator's phrases; some are beginnings of a sentence.
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
_BUMPS = ("Does anybody have an idea?", "I am still stuck with this one.")
_BUMPS_ANSWERED = (_BUMPS[1], "Can somebody say more about it?")  # after somebody had an idea
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
    """Return the answer to a prompt of forum; None for any other prompt."""
    if not request.messages:
        return None
    brief, last = request.messages[0].content, request.messages[-1].content
    if "\nWho posts next?" in last and (names := [*_NAMES.finditer(last.rpartition("\nWho posts next?")[2])]):
        return _make_garbage(request) or _choose(request, names)
    if "You are a member of a forum" not in brief or not _MEMBER.search(brief):
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    talk = request.talk()
    about = [
        (one[1], one[2].strip())
        for one in _ABOUT.finditer(brief)
        if talk is None or one[1] not in talk.persona_labels
    ]
    read = [
        post for one in request.messages[1:] if one.role == "user" for post in _POST.finditer(one.content)
    ]
    if '"title"' not in brief:
        post = _write_answer(request, about, read, talk, user="You have the same trouble" in brief)
    elif not any(one.role == "assistant" for one in request.messages):
        post = _write_question(request, about, talk)
    elif not read:
        post = {"pass": True}
    else:
        post = _follow_up(request, about, read, talk)
    return msgspec.json.encode(post).decode()


def _make_garbage(request: Simulation) -> str | None:
    return request.say("garbage") if request.fault == "garbage" else None


def _choose(request: Simulation, names: Sequence[re.Match[str]]) -> str:
    """Return one of the named members; rarely nobody, which stands last."""
    if request.random() < 0.05 and "\n#3 " in request.messages[-1].content:
        return names[-1][2]
    return request.pick([name[1] for name in names[:-1] or names])


def _write_question(
    request: Simulation, about: Sequence[tuple[str, str]], talk: RoleTalk | None
) -> dict[str, Any]:
    """Return a question about the contents of the brief."""
    values = [value for _, value in about[:3]]
    title = max(values, key=len, default="A question")
    if talk is not None and (text := talk.choose_phrasing(talk.phrases.opens, [], [])):
        said = request.scene.book.phrases.said if request.scene is not None else {}
        reworded = {value for phrasings in said.values() for value in phrasings}
        title = max(
            (value for value in values if value in text and value not in reworded), key=len, default=title
        )
        return {"title": f"{title[:1].upper()}{title[1:]}", "text": text}
    told = "; ".join(value.rstrip(".") for _, value in about)
    return {"title": title, "text": f"{request.pick(_ASKS)} It is about this: {told}."}


def _follow_up(
    request: Simulation,
    about: Sequence[tuple[str, str]],
    read: Sequence[re.Match[str]],
    talk: RoleTalk | None,
) -> dict[str, Any]:
    """Return thanks with a mark, or another question. A wrong answer is rarely marked."""
    latest = int(read[-1][1])
    posts = _read_posts(read)
    answers = [int(post[1]) for post in read if post[3] == "Agent"]
    good = [number for number in answers if _is_good(request.scene, posts.get(number, ""))]
    drawn, answered = request.random(), _has_answer(request.messages)
    ready = 0.35 if request.scene is None or not request.scene.book.phrases.right else 0.6
    # A member who has just asked back waits for the answer.
    if answered and ((good and drawn < ready + 0.1 * len(good)) or (answers and drawn < 0.02)):
        pool = good if good and request.random() >= _DECEIVED else answers
        accepted = _find_informative_post(request.scene, posts, pool) if pool is good else pool[-1]
        thanks = talk.choose_phrasing(talk.phrases.closes, [], []) if talk is not None else None
        thanks = thanks or f"{request.pick(_THANKS)} #"
        return {"text": f"{thanks}{accepted}.", "votes": [accepted], "accept": accepted}
    if drawn > 0.95:
        return {"pass": True}
    own = [one.content for one in request.messages[2:] if one.role == "assistant"]
    votes = {"votes": [latest]} if request.random() < 0.2 else {}
    if talk is not None and talk.phrases.says:
        if not answered:  # there is nothing to ask back about
            bumps = _BUMPS_ANSWERED if answers else _BUMPS
            bump = next((words for words in bumps if words not in "\n".join(own)), None)
            return {"text": bump} if bump else {"pass": True}
        text = talk.choose_turn(own, [*posts.values()], last=False, opened=True)
        return {"pass": True} if text in own else {"text": text, **votes}
    new = [value for _, value in about if value not in "\n".join(own[1:])]
    if not new:
        return {"pass": True}
    return {"text": f"{request.pick(_WONDERS)} “{request.pick(new).rstrip('.?!')}”?", **votes}


def _write_answer(
    request: Simulation,
    about: Sequence[tuple[str, str]],
    read: Sequence[re.Match[str]],
    talk: RoleTalk | None,
    *,
    user: bool,
) -> dict[str, Any]:
    """Return an answer from the member's own knowledge; a user repeats the question."""
    posts = _read_posts(read)
    votes = [
        int(post[1])
        for post in read
        if int(post[1]) > 1
        and request.random() < 0.15
        and not _is_wrong(request.scene, posts.get(int(post[1]), ""))
    ]
    marks: dict[str, Any] = {"votes": votes} if votes else {}
    if request.random() < 0.12:
        return {"pass": True, **marks}
    if user:
        marks["same_question"] = True
    said = "\n".join([one.content for one in request.messages[1:]])
    if talk is not None and talk.phrases.says:
        own = [one.content for one in request.messages if one.role == "assistant"]
        if len(own) >= len(talk.phrases.says):
            return {"pass": True, **({"votes": votes} if votes else {})}
        return {"text": talk.choose_turn(own, [*posts.values()], last=False, opened=False), **marks}
    known = [value for _, value in about]
    new = [value for value in known if value not in said]
    if not new and request.random() < 0.5:
        return {"pass": True, **({"votes": votes} if votes else {})}
    told = request.pick(new or known or ["the manual"])
    if user:
        return {"text": f"{request.pick(_SAME)} {told}.", **marks}
    return {"text": f"{request.pick(_ANSWERS)} {told}", **marks}


_DECEIVED = 0.08  # share of marks that go to any answer, even a wrong one


def _read_posts(read: Sequence[re.Match[str]]) -> dict[int, str]:
    """Return the text of each post in the thread, by number."""
    ends = [post.start() if post.string is one.string else None for one, post in pairwise(read)]
    return {
        int(post[1]): post.string[post.end() : end].strip()
        for post, end in zip(read, [*ends, None], strict=False)
    }


def _is_wrong(scene: Scene | None, text: str) -> bool:
    """Return whether a post contains a value that the space calls wrong."""
    if scene is None:
        return False
    values = scene.scenario.values
    return any(values[name] in text for name in scene.book.phrases.wrong if name in values)


def _is_good(scene: Scene | None, text: str) -> bool:
    """Return whether a post may answer the question: it contains a value that the space calls right. In a
    space without right values, every post qualifies that is not wrong."""
    if scene is None or not (right := scene.book.phrases.right):
        return not _is_wrong(scene, text)
    values = scene.scenario.values
    return any(values[name] in text for name in right if name in values)


def _has_answer(messages: Sequence[Message]) -> bool:
    """Return whether somebody answered after the member's last post."""
    for message in reversed(messages):
        if message.role == "assistant":
            return False
        if any(post[3] == "Agent" for post in _POST.finditer(message.content)):
            return True
    return False


def _find_informative_post(scene: Scene | None, posts: Mapping[int, str], numbers: Sequence[int]) -> int:
    """Return the first post with a value that the asker does not know; else the first post."""
    if scene is not None and scene.role is not None:
        values, sees = scene.scenario.values, scene.list_visible(scene.role)
        new = [value for name, value in values.items() if name not in sees and name not in scene.book.persona]
        for number in numbers:
            if any(value in posts.get(number, "") for value in new):
                return number
    return numbers[0]
