"""Spoiled layouts, as models write them, one function per family.

A defect changes the form of an answer and keeps its content, so a good reader gets the same turns. Faults
specifications name the families.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import msgspec

from edgen.core.values import END_MARKER
from edgen.simulator.conversation.dialogue import Entries, as_published
from edgen.simulator.prompts.answer_form import Json


class CleanAnswer(NamedTuple):
    """An answer before it is spoiled: its content, and its text in the requested layout."""

    entries: Entries
    probability: float
    clean: str


Defect = Callable[[CleanAnswer, Random], str]

_PREAMBLES = (
    "Sure! Here is the conversation:",
    "Certainly. Below is a simulated conversation between the two.",
    "Here's the dialogue you asked for, in the requested format.",
    "Okay, here we go:",
)
_CLOSINGS = (
    "Let me know if you would like another version!",
    "I hope this helps.",
    "Note: the probability is an estimate.",
)
_THOUGHTS = (
    "The teacher prefers one way, the student another. I need ten to fifteen turns and a probability.",
    "Let me plan this. First the opening, then some friction, then an end that fits.",
    "The user wants a conversation in a list. I should end with the marker.",
)
_NAMES = (("Ms. R", "S1"), ("Mr. K", "Alex"), ("Mrs. T", "Sam"))


def _pick(options: tuple[str, ...], rng: Random) -> str:
    return options[int(rng.random() * len(options))]


def code_fence(answer: CleanAnswer, rng: Random) -> str:
    """Put the whole answer into a Markdown code block."""
    language = "json" if answer.clean.startswith("{") else _pick(("", "text", "plaintext"), rng)
    return f"```{language}\n{answer.clean}\n```"


def preamble(answer: CleanAnswer, rng: Random) -> str:
    """Add a sentence before the answer, and sometimes one after it."""
    after = f"\n\n{_pick(_CLOSINGS, rng)}" if rng.random() < 0.4 else ""
    return f"{_pick(_PREAMBLES, rng)}\n\n{answer.clean}{after}"


def thinking(answer: CleanAnswer, rng: Random) -> str:
    """Add a reasoning block that a service should not have sent."""
    tag = _pick(("think", "thinking", "reasoning"), rng)
    return f"<{tag}>\n{_pick(_THOUGHTS, rng)}\n</{tag}>\n\n{answer.clean}"


def json_shapes(answer: CleanAnswer, rng: Random) -> str:
    """Return JSON without request, or in another shape than requested."""
    shapes: tuple[object, ...] = (
        {
            "conversation": [{"role": r, "text": t} for r, t in answer.entries],
            "probability": str(answer.probability),
        },
        {"Conversation": [{r: t} for r, t in answer.entries], "Probability": answer.probability},
        {
            "dialogue": [{"speaker": r.lower(), "content": t} for r, t in answer.entries],
            "probability": answer.probability,
        },
        {"conversation": [f"{r}: {t}" for r, t in answer.entries], "probability": answer.probability},
        [{"role": r, "content": t} for r, t in answer.entries],
        {"result": {"turns": [[r, t] for r, t in answer.entries], "probability": answer.probability}},
    )
    shape = msgspec.json.encode(shapes[int(rng.random() * len(shapes))])
    return msgspec.json.format(shape, indent=2 if rng.random() < 0.5 else 0).decode()


def _list_turns(answer: CleanAnswer, line: Callable[[int, str, str], str]) -> str:
    turns = [line(i, role, text) for i, (role, text) in enumerate(answer.entries, 1)]
    return "\n".join(["Conversation:", *turns, "", f"Probability: {answer.probability}"])


def _bracket(turns: list[str], probability: str) -> str:
    return "\n".join(["Conversation:", "[", *turns, "]", probability])


def numbered(answer: CleanAnswer, rng: Random) -> str:
    """Number the turns."""
    form = _pick(("{}. {}: {}", "{}) {}: {}", '[{}] {}: "{}"', "Turn {} - {}: {}"), rng)
    return _list_turns(answer, form.format)


def bulleted(answer: CleanAnswer, rng: Random) -> str:
    """Write the turns as a bulleted list."""
    mark = _pick(("-", "*", "•"), rng)
    return _list_turns(answer, lambda _, role, text: f"{mark} {role}: {text}")


def bold_roles(answer: CleanAnswer, rng: Random) -> str:
    """Write roles in Markdown's bold, the colon inside or outside."""
    form = _pick(("**{}:** {}", "**{}**: {}", '__{}:__ "{}"'), rng)
    return _list_turns(answer, lambda _, role, text: form.format(role, text))


def named_roles(answer: CleanAnswer, rng: Random) -> str:
    """Add a name or a state of mind to the roles."""
    teacher, student = _NAMES[int(rng.random() * len(_NAMES))]
    form = _pick(("{} ({}): {}", "**{} ({}):** {}", "{} [{}]: {}"), rng)
    return _list_turns(
        answer, lambda _, role, text: form.format(role, teacher if role == "Teacher" else student, text)
    )


def quoting(answer: CleanAnswer, rng: Random) -> str:
    """Use other quotation marks than requested, or no marks."""
    opening, closing = (("“", "”"), ("'", "'"), ("«", "»"), ("", ""), ('"', ""))[int(rng.random() * 5)]
    turns = [f"   {role}: {opening}{text}{closing}," for role, text in answer.entries]
    return _bracket(turns, f"Probability: {opening}{answer.probability}{closing}")


def inner_quotes(answer: CleanAnswer, rng: Random) -> str:
    """Put quotation marks inside the turns, escaped or not."""
    mark = _pick(('"', '\\"'), rng)
    turns = []
    for role, text in answer.entries:
        words = text.split(" ")
        at = int(rng.random() * len(words))
        in_marker = END_MARKER in text and at >= len(words) - len(END_MARKER.split())
        if rng.random() < 0.4 and words[at].isalpha() and not in_marker:
            words[at] = f"{mark}{words[at]}{mark}"
        turns.append(f'   {role}:  "{" ".join(words)}",')
    return _bracket(turns, f'Probability:  "{answer.probability}",')


def missing_parts(answer: CleanAnswer, rng: Random) -> str:
    """Leave brackets or headings out."""
    body = as_published(answer.entries, answer.probability).split("\n")
    kinds = ("no brackets", "no opening", "no closing", "no heading", "nothing", "no probability")
    kind = _pick(kinds, rng)
    if kind in ("no brackets", "nothing"):
        body = [line for line in body if line not in ("[", "]")]
    if kind in ("no heading", "nothing"):
        body = body[1:]
    if kind in ("no opening", "no closing"):
        body.remove("[" if kind == "no opening" else "]")
    return "\n".join(body[:-1] if kind == "no probability" else body)


def multi_line(answer: CleanAnswer, rng: Random) -> str:
    """Continue turns over several lines."""
    gap = _pick(("\n", "\n\n", "\n      "), rng)
    return as_published(
        [(role, text.replace(". ", f".{gap}")) for role, text in answer.entries], answer.probability
    )


def probability_forms(answer: CleanAnswer, rng: Random) -> str:
    """Write the probability as a percentage, a fraction, a phrase, or without a number."""
    percent = round(answer.probability * 100)
    form = _pick(
        (
            f"Probability: {percent}%",
            f'Probability:  "about {percent}%",',
            f"Probability: {percent}/100",
            f"**Probability:** {answer.probability} (out of 1)",
            f"Probability that the student understood the material: {answer.probability}",
            'Probability:  "low",',
            f'Probability:  "{percent}",',
        ),
        rng,
    )
    return "\n".join([*as_published(answer.entries, answer.probability).split("\n")[:-1], form])


def debris(answer: CleanAnswer, rng: Random) -> str:
    r"""Leave quotes and commas at the ends of turns, as in ED's released files (`?\"\",`)."""
    tail = _pick(('"",', '\\",', '"'), rng)
    turns = [f'   {role}:  "{text}{tail if rng.random() < 0.5 else ""}",' for role, text in answer.entries]
    return _bracket(turns, f'Probability:  "{answer.probability}",')


def empty_turns(answer: CleanAnswer, rng: Random) -> str:
    """Insert empty turns before the last one."""
    hollow = _pick(("", "...", "…", " "), rng)
    at = 1 + int(rng.random() * (len(answer.entries) - 1))
    roles = (answer.entries[at][0], answer.entries[at - 1][0])
    spoiled = [*answer.entries[:at], (roles[0], hollow), (roles[1], hollow), *answer.entries[at:]]
    return as_published(spoiled, answer.probability)


def after_marker(answer: CleanAnswer, rng: Random) -> str:
    """Continue talking after the end marker."""
    spoken = list(answer.entries)
    role, text = spoken[-1]
    if END_MARKER not in text:
        spoken[-1] = (role, text := f"{text} {END_MARKER}")
    if rng.random() < 0.5:
        spoken[-1] = (role, f"{text} (The bell rings.)")
    else:
        spoken.append(("Teacher" if role == "Student" else "Student", "Wait, one more thing."))
    return as_published(spoken, answer.probability)


def marker_forms(answer: CleanAnswer, rng: Random) -> str:
    """Write the end marker in another spelling or place."""
    form = _pick(
        ("[End of conversation]", "[END OF CONVERSATION]", "(end of conversation)", "[end of conversation]."),
        rng,
    )
    if rng.random() < 0.5:
        spoken = [(role, text.replace(END_MARKER, form)) for role, text in answer.entries]
        return as_published(spoken, answer.probability)
    spoken = [(role, text.replace(END_MARKER, "").rstrip()) for role, text in answer.entries]
    spoken = [(role, text) for role, text in spoken if text]
    return as_published(spoken, answer.probability).replace("\n]", f"\n   {form}\n]")


def loose_json(answer: CleanAnswer, rng: Random) -> str:
    """Return JSON that a strict parser rejects: trailing commas, or cut brackets at the end."""
    text = Json().render(answer.entries, answer.probability)
    return text.replace("\n  ],", ",\n  ],") if rng.random() < 0.5 else text.rstrip("\n}")


FAMILIES: dict[str, Defect] = {
    family.__name__: family
    for family in (
        code_fence, preamble, thinking, json_shapes, loose_json, numbered, bulleted, bold_roles, named_roles,
            quoting,
        inner_quotes, missing_parts, multi_line, probability_forms, debris, empty_turns, after_marker,
            marker_forms,
    )
}  # fmt: skip
NAMES = tuple(FAMILIES)


def add_defect(name: str, answer: CleanAnswer, rng: Random) -> str:
    """Return the answer with the defect `name`; `defects` means any of them."""
    family = NAMES[int(rng.random() * len(NAMES))] if name == "defects" else name
    return FAMILIES[family](answer, rng)
