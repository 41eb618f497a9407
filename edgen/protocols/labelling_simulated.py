"""The simulator's labels: true, except for planted mistakes.

The truth of a turn by the simulator is known to its protocol (`SimulatedAnswers.simulated_labels`). The truth
of any other turn is drawn from its words and the labels, so that planted mistakes have a known truth. A
backend's `confusion` says how often a label is taken for another; `*` is any. Draws come from the request's
seed: two labellers with the same request, at one address, make the same mistakes unless their backends have a
`seed` of their own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from edgen.core import registry
from edgen.core.text import compile_later
from edgen.protocols.base import SimulatedAnswers, Simulation
from edgen.protocols.fence import CONTINUED
from edgen.reading.answers.unit_labels import Labels

ANY = "*"
_SET = compile_later(
    r"(?m)^Labels for (the whole conversation, number )?([\d, ]+) \((one or several|exactly one)\):\n"
)
_LABEL = compile_later(r"- ([^:\n]+): ")
_UNIT = compile_later(r"\((\d{1,6})\) ([^:\n]{1,200}): (.*)", re.DOTALL)
_SECOND = 64  # of 256: share of turns with a second label, if several labels are allowed


def answer(request: Simulation) -> str | None:
    """Return the labels of each number as JSON; None if the prompt requests none."""
    text = request.text
    sets = list(_SET.finditer(text)) if "Labels for " in text else []
    if not sets:
        return None
    if request.fault == "garbage":
        return request.say("garbage")
    units = read_shown_units(text)
    found: dict[str, list[str] | str] = {}
    for one in sets:
        names = _list_labels(text[one.end() :])
        several = one[3] == "one or several"
        for number in one[2].replace(" ", "").split(","):
            role, said = units.get(number, ("", "\n".join([said for _, said in units.values()])))
            true = find_true_labels(role, said, names, several=several)
            given = list(draw_mistaken(true, names, request))
            found[number] = given if several else given[0]
    return msgspec.json.encode(dict(sorted(found.items(), key=lambda item: int(item[0])))).decode()


def find_true_labels(role: str, text: str, names: Sequence[str], *, several: bool) -> Labels:
    """Return the true labels of a turn; `names` are the labels of the set. Without a role, the text is a
    whole conversation."""
    for protocol in _list_protocols(tuple(registry.list_names("protocol"))):
        said = [label for label in protocol.simulated_labels(role, text) or () if label in names]
        if said:
            return tuple(said if several else said[:1])
    digest = blake2b(
        "\0".join([" ".join(text.split()), *names]).encode("utf-8", "surrogatepass"), digest_size=9
    ).digest()
    first = int.from_bytes(digest[:4], "big") % len(names)
    if not several or digest[8] >= _SECOND or len(names) < 2:
        return (names[first],)
    second = (first + 1 + int.from_bytes(digest[4:8], "big") % (len(names) - 1)) % len(names)
    return tuple(names[place] for place in sorted((first, second)))


def draw_mistaken(labels: Labels, names: Sequence[str], request: Simulation) -> Labels:
    """Return the labels with a labeller's mistakes: each label is taken for another at the rate of
    `request.confusion`."""
    confusion = request.confusion
    if not confusion:
        return labels
    taken = {_draw_mistake(label, names, confusion, request.random()) for label in labels}
    return tuple(name for name in names if name in taken)


def _draw_mistake(
    label: str, names: Sequence[str], confusion: Mapping[str, Mapping[str, float]], draw: float
) -> str:
    others = [name for name in names if name != label]
    for given, share in confusion.get(label, confusion.get(ANY, {})).items():
        if draw < share:
            if given != ANY:
                return given if given in names else label
            return others[min(int(draw / share * len(others)), len(others) - 1)]
        draw -= share
    return label


def read_shown_units(text: str) -> dict[str, tuple[str, str]]:
    """Return the role and the text of every numbered unit; a unit without a number has a separate key."""
    found: dict[str, tuple[str, str]] = {}
    body = re.search(r"(?ms)^\[([0-9a-f]{16})\] Conversation begins\n(.*)\n\[\1\] Conversation ends$", text)
    turns: list[str] = []
    for line in body[2].split("\n") if body else ():
        if line.startswith(CONTINUED) and turns:
            turns[-1] += "\n" + line.removeprefix(CONTINUED)
        else:
            turns.append(line)
    for place, turn in enumerate(turns):
        unit = _UNIT.match(turn)
        role, _, said = turn.partition(": ")
        found[unit[1] if unit else f"at {place}"] = (unit[2], unit[3]) if unit else (role, said)
    return found


def _list_labels(text: str) -> list[str]:
    """Return the labels in the list at the beginning of the text."""
    names = []
    for line in text.split("\n"):
        if (found := _LABEL.match(line)) is None:
            break
        names.append(found[1])
    return names


@functools.cache
def _list_protocols(names: tuple[str, ...]) -> list[SimulatedAnswers]:
    """Return the protocols that may know the labels of their turns."""
    found: list[SimulatedAnswers] = []
    for name in names:
        try:
            protocol = registry.find("protocol", name)
        except registry.PluginError:
            continue
        if isinstance(protocol, SimulatedAnswers):
            found.append(protocol)
    return found
