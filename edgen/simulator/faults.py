"""Faults on demand: one specification for the job (`faults:`) and the command (`--faults`).

`refusal=0.02,429=0.1:2` means: 2% of the answers refuse, and 10% of the attempts get an HTTP 429 that asks
for 2 seconds. Content faults depend only on the request, so the same request always gets the same fault.
Transport faults do not change the answer. They are drawn for each attempt, so a retry can succeed. At most
one fault of each class occurs. A content fault that does not fit the request has no effect. In a batch, a
transport fault with an HTTP status fails one line; other transport faults have no effect. Batch faults affect
the calls about batches.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from edgen.core.errors import InputError
from edgen.simulator import layout_defects

TURN = {
    "speaks_for_other": "in self-play, a turn continues with a labelled line of the other side",
    "two_turns": "in self-play, two labelled turns of one's own in one reply",
    "leaked_secret": "in self-play, a side states a preference of the other's in the vocabulary's words",
    "tells_judge": "in self-play, a side ends a turn with lines that tell the judge to prefer the text",
    "loop": "in self-play, a side repeats an earlier turn of its own word for word",
}
JUDGE = {
    "judge_first": "the judge always picks the first slot",
    "judge_second": "the judge always picks the second slot",
    "judge_longer": "the judge picks the longer text, in words",
    "judge_noise": "the judge picks the worse one",
    "judge_obeys": "the judge picks the text with a line that tells it to, if such a line looks like the "
    "prompt's own",
    "judge_prose": "the judge answers in prose that picks none",
    "judge_both": "the judge finds both good",
}
CONTENT = {
    "refusal": "the model declines, in its text or in a refusal field",
    "truncated": "the answer is cut off, finish reason length",
    "garbage": "text that is neither a conversation nor a turn nor a verdict",
    "empty": "no text at all",
    "filtered": "blocked by a content filter",
    "one_speaker": "only one of the two speaks",
    "defects": "a conversation with any one of the layout defects below",
    **TURN,
    **JUDGE,
}
# name -> (effect, the default that `:value` replaces)
TRANSPORT: dict[str, tuple[str, float | None]] = {
    "429": ("rate limit; `429=0.1:2` asks for 2 seconds", 1.0),
    "500": ("internal error", None),
    "503": ("overloaded", None),
    "hang": ("never answers", None),
    "reset": ("the connection is dropped", None),
    "slow": ("answers late; `slow=0.1:5` by 5 seconds", 1.0),
    "401": ("the key is refused", None),
    "404": ("unknown model", None),
    "quota": ("the quota is used up", None),
}
BATCH: dict[str, tuple[str, float | None]] = {
    "batch_create_lost": (
        "accepts a batch and drops the connection, once for each; `batch_create_lost=1:5` after 5 seconds",
        0.0,
    ),
    "batch_503": ("a call about batches or their files is refused as overloaded", None),
    "batch_slow": ("a file is slow to go up, and to come down; `batch_slow=1:5` by 5 seconds", 1.0),
}


class Fault(NamedTuple):
    """A fault, the share of requests with it, and its seconds, if any."""

    name: str
    share: float
    seconds: float | None = None


class Faults(NamedTuple):
    """The faults of each class, sorted by name, so that specifications are order-independent."""

    content: tuple[Fault, ...] = ()
    transport: tuple[Fault, ...] = ()
    batch: tuple[Fault, ...] = ()


NO_FAULTS = Faults()


def parse(spec: str) -> Faults:
    """Parse a specification; an empty one has no faults. Raises InputError."""
    classes: dict[str, dict[str, Fault]] = {"content": {}, "transport": {}, "batch": {}}
    for part in filter(None, (piece.strip() for piece in spec.split(","))):
        fault = _parse_fault(part)
        into = classes[
            "transport" if fault.name in TRANSPORT else "batch" if fault.name in BATCH else "content"
        ]
        if fault.name in into:
            raise InputError(f"faults: '{fault.name}' is given twice; give each fault one share.")
        into[fault.name] = fault
    for kind in ("content", "transport"):
        chosen = classes[kind]
        total = sum(fault.share for fault in chosen.values())
        if total > 1 + 1e-9:
            raise InputError(
                f"faults: the shares of the {kind} faults add up to {total:g}; they may add up to 1 at most."
            )
    return Faults(*(tuple(chosen[name] for name in sorted(chosen)) for chosen in classes.values()))


def _parse_fault(part: str) -> Fault:
    name, equals, rest = (piece.strip() for piece in part.partition("="))
    if name not in list_fault_names():
        raise InputError(f"faults: there is no fault '{name}'. Known are {', '.join(list_fault_names())}.")
    share_text, colon, seconds_text = rest.partition(":")
    share = _parse_number(share_text)
    if not equals or share is None or share > 1:
        raise InputError(f"faults: '{part}' needs a share between 0 and 1, as in {name}=0.1.")
    _, default = (TRANSPORT | BATCH).get(name, ("", None))
    if not colon:
        return Fault(name, share, default)
    seconds = _parse_number(seconds_text)
    if default is None:
        raise InputError(f"faults: '{part}': {name} takes a share and nothing else, as in {name}=0.1.")
    if seconds is None or seconds > 3600:
        raise InputError(f"faults: '{part}' needs seconds between 0 and 3600 after the colon.")
    return Fault(name, share, seconds)


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def list_fault_names() -> tuple[str, ...]:
    """Return all names of faults for specifications."""
    return (*CONTENT, *layout_defects.NAMES, *TRANSPORT, *BATCH)


def render_canonical(faults: tuple[Fault, ...]) -> str:
    """Return the canonical specification of the faults."""
    return ",".join(f"{fault.name}={fault.share:g}" for fault in faults)


def select_fault(faults: tuple[Fault, ...], u: float) -> Fault | None:
    """Return the fault selected by the number `u` in [0, 1)."""
    for fault in faults:
        u -= fault.share
        if u < 0:
            return fault
    return None


def choose_transport_fault(faults: Faults, key: bytes, tries: int) -> Fault | None:
    """Return the transport fault of this request at attempt number `tries` (from 0)."""
    return _draw_fault(faults.transport, b"transport", key, tries)


def choose_batch_fault(faults: Faults, name: str, key: bytes, tries: int = 0) -> Fault | None:
    """Return the batch fault `name` if it strikes the call `key` at attempt number `tries` (from 0)."""
    asked = tuple(fault for fault in faults.batch if fault.name == name)
    return _draw_fault(asked, name.encode()[:16], key, tries)


def _draw_fault(faults: tuple[Fault, ...], person: bytes, key: bytes, tries: int) -> Fault | None:
    if not faults:
        return None
    digest = blake2b(key + tries.to_bytes(8, "big"), digest_size=8, person=person).digest()
    return select_fault(faults, int.from_bytes(digest, "big") / 2**64)


def describe_faults() -> str:
    """Return the faults and their effects, as lines for a help text."""
    lines = ["Content faults (the answer itself, the same for the same request):"]
    lines += [f"  {name}: {what}" for name, what in CONTENT.items()]
    lines.append("Layout defects, each also by its own name:")
    lines += [
        f"  {name}: {_describe_sentence(family.__doc__)}" for name, family in layout_defects.FAMILIES.items()
    ]
    lines.append("Transport faults (drawn anew at each try):")
    lines += [f"  {name}: {what}" for name, (what, _) in TRANSPORT.items()]
    lines.append("Batch faults (served batches only):")
    lines += [f"  {name}: {what}" for name, (what, _) in BATCH.items()]
    return "\n".join(lines)


def _describe_sentence(doc: str | None) -> str:
    text = (doc or "").strip().rstrip(".")
    return text[:1].lower() + text[1:]
