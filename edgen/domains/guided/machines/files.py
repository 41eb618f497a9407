"""The files of a machine's folder as values: the keys of a state's file and of `machine.yaml`, and their
valid values."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from edgen.domains.guided.machines.model import (
    Act,
    Clock,
    Condition,
    Effect,
    End,
    Kind,
    Lock,
    Players,
    State,
    Value,
    Variable,
)
from edgen.domains.guided.machines.world import ValueMismatchError, convert_value
from edgen.plugin.errors import Problem
from edgen.plugin.files import convert

MAX_SUBTASKS = 50
MAX_VARIABLES = 200
MAX_TEXT = 4_000  # characters of a formulation
MAX_LISTED = 2_000  # elements of one list
MAX_SECONDS = 7 * 24 * 3600

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Said = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Seconds = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
_Any = Any


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a state. The first six keys are CRWIZ's."""

    name: Name
    """The name by which other states refer to it."""
    formulations: tuple[Said, ...] | None = None
    """Ways to say it; one is drawn."""
    transition_states: tuple[Name, ...] | None = None
    """The states that may follow."""
    transition_probabilities: _Any = None
    """The probability of each, by name."""
    subtask: Name | None = None
    """It may be said only in this sub-task."""
    slots: tuple[Name, ...] | None = None
    """Slots that must have a value."""
    lock: _Any = None
    """The answer that opens it: `any`, or one with `says`, `lacks`, `label`; `otherwise`: the states offered
    after another answer."""
    effects: _Any = None
    """Changes of the world, at once or later."""
    when: _Any = None
    """Conditions on the world under which it may be said."""
    advances: Name | None = None
    """The sub-task that begins here."""
    end: _Any = None
    """The conversation ends here: `reason`, `success`."""
    act: Act | None = None
    """The kind of dialogue act."""


class MachineFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file `machine.yaml`; the keys are those of `model.Machine`."""

    name: Name  # see Machine, as for all keys
    description: Annotated[str, Meta(max_length=MAX_TEXT)] | None = None  # a sentence or two
    initial: Name = "start"  # the first state
    world: _Any = None  # variables by name
    needs: tuple[Name, ...] = ()  # names of the space's values that texts use
    subtasks: Annotated[tuple[Name, ...], Meta(max_length=MAX_SUBTASKS)] = ()  # sub-tasks, in order
    ends: _Any = None  # conditions of ends
    time_limit: Annotated[float, Meta(gt=0, le=MAX_SECONDS)] | None = 360.0  # seconds
    clock: Clock = Clock()  # the simulated clock
    players: Players = Players()  # names of the roles
    questionnaire: Name | None = "crwiz"  # a shipped name or a file


class _Effect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as written; see `model.Effect`."""

    set: _Any = None  # new values, by variable
    add: dict[Name, float] = {}  # added numbers, by variable
    after_seconds: Seconds = 0  # seconds until it happens
    after_turns: Annotated[int, Meta(ge=0, le=10_000)] = 0  # turns until it happens
    when: _Any = None  # condition
    repeat: bool = False  # the effect happens again and again


class _Lock(msgspec.Struct, frozen=True, kw_only=True):
    says: _Any = None
    lacks: _Any = None
    label: Name | None = None
    otherwise: _Any = None


class _End(msgspec.Struct, frozen=True, kw_only=True):
    reason: Name
    success: bool | None = None
    when: _Any = None


class _Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable as written; see `model.Variable`."""

    kind: Kind | None = None  # None: derived from the initial value
    initial: _Any = None  # value at the start
    values: tuple[Said, ...] = ()  # values of a choice
    least: float | None = None  # minimum of a number
    most: float | None = None  # maximum of a number
    sees: tuple[Name, ...] | None = None  # roles that may know it
    label: Name | None = None  # the name for people


class _Bounds(msgspec.Struct, frozen=True, kw_only=True):
    one_of: _Any = None
    at_least: float | None = None
    below: float | None = None


class _Reader:
    """A reader of one file's values. It adds problems to `problems`, with the file before the path."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems

    def note(self, path: str, message: str) -> None:
        self.problems.append(Problem(f"{self.file} {path}", message))

    def convert(self, value: Any, type_: Any, path: str) -> Any:
        found: list[Problem] = []
        made = convert(value, type_, path, found)
        self.problems += [Problem(f"{self.file} {one.path}", one.message) for one in found]
        return None if found else made

    def read_conditions(self, value: Any, path: str) -> dict[str, Condition]:
        if value is None:
            return {}
        if not isinstance(value, dict) or not value:
            self.note(path, "expected a mapping of variables to conditions, as in {fire: {at_least: 1}}")
            return {}
        return {str(name): self._read_condition(one, f"{path}.{name}") for name, one in value.items()}

    def _read_condition(self, value: Any, path: str) -> Condition:
        if isinstance(value, dict):
            bounds = self.convert(value, _Bounds, path)
            if bounds is None:
                return Condition()
            if not value:
                self.note(path, "there is no condition here: one_of, at_least or below")
            one_of = self.read_values(bounds.one_of, f"{path}.one_of") if bounds.one_of is not None else ()
            return Condition(one_of=one_of, at_least=bounds.at_least, below=bounds.below)
        return Condition(one_of=self.read_values(value, path))

    def read_values(self, value: Any, path: str) -> tuple[Value, ...]:
        """Return a value, or a list of them."""
        listed = value if isinstance(value, list) else [value]
        if not listed:
            self.note(path, "this list is empty")
        return tuple(self.read_value(one, path) for one in listed)

    def read_value(self, value: Any, path: str) -> Value:
        if isinstance(value, bool | str):
            return value
        if isinstance(value, int | float):
            made = self.convert(value, float, path)
            return 0.0 if made is None else float(made)
        self.note(path, "expected a text, a number, or true or false")
        return ""

    def read_texts(self, value: Any, path: str) -> tuple[str, ...]:
        """Return a text, or a list of texts."""
        if value is None:
            return ()
        made = self.convert([value] if isinstance(value, str) else value, tuple[Said, ...], path)
        return made or ()

    def read_effects(self, value: Any) -> tuple[Effect, ...]:
        if value is None:
            return ()
        path = "$.effects"
        listed = value if isinstance(value, list) else [value]
        if len(listed) > MAX_LISTED:
            self.note(path, f"{len(listed):,} effects are too many; a state has at most {MAX_LISTED:,}")
            return ()
        return tuple(self._read_effect(one, f"{path}[{i}]") for i, one in enumerate(listed))

    def _read_effect(self, value: Any, path: str) -> Effect:
        read = self.convert(value, _Effect, path)
        if read is None:
            return Effect()
        if read.set is not None and not isinstance(read.set, dict):
            self.note(f"{path}.set", "expected a mapping of variables to values, as in {alarm: true}")
            return Effect()
        new = {
            str(name): self.read_value(one, f"{path}.set.{name}") for name, one in (read.set or {}).items()
        }
        if not new and not read.add:
            self.note(path, "this changes nothing: give it `set` or `add`")
        if read.after_seconds and read.after_turns:
            self.note(path, "after_seconds and after_turns are both given; keep one of them")
        if read.repeat and not (read.after_turns or read.after_seconds >= 1):
            self.note(path, "a repeated effect needs a span: after_seconds of at least 1, or after_turns")
        said = msgspec.structs.asdict(read)
        return Effect(**{**said, "set": new, "when": self.read_conditions(read.when, f"{path}.when")})

    def lock(self, value: Any, path: str) -> Lock | None:
        if value is None:
            return None
        if value == "any":
            return Lock()
        if not isinstance(value, dict):
            self.note(path, "expected `any`, or a mapping with says, lacks, label, otherwise")
            return None
        read = self.convert(value, _Lock, path)
        if read is None:
            return None
        listed = ("says", "lacks", "otherwise")
        texts = {key: self.read_texts(getattr(read, key), f"{path}.{key}") for key in listed}
        return Lock(label=read.label, **texts)

    def read_end(self, value: Any, path: str) -> End | None:
        if value is None:
            return None
        read = self.convert({"reason": value} if isinstance(value, str) else value, _End, path)
        if read is None:
            return None
        return End(
            reason=read.reason, success=read.success, when=self.read_conditions(read.when, f"{path}.when")
        )

    def read_probabilities(self, value: Any) -> dict[str, float]:
        if value is None or value == []:  # what CRWIZ reads as no probabilities
            return {}
        made = self.convert(value, dict[str, Annotated[float, Meta(ge=0)]], "$.transition_probabilities")
        return made or {}

    def read_variable(self, value: Any, path: str, wizard: str) -> Variable:
        """Return a variable, from a mapping or from its initial value alone."""
        read = self.convert(value if isinstance(value, dict) else {"initial": value}, _Variable, path)
        if read is None:
            return Variable(kind="text", initial="")
        kind = read.kind or _find_kind(read)
        if kind is None:
            self.note(path, "give it a kind: number, text, boolean or choice")
            return Variable(kind="text", initial="")
        if (kind == "choice") != bool(read.values):
            self.note(f"{path}.values", "a choice needs `values`; other kinds have none")
        if kind != "number" and (read.least, read.most) != (None, None):
            self.note(path, "only a number has `least` and `most`")
        if read.least is not None and read.most is not None and read.least > read.most:
            self.note(path, "`least` is more than `most`")
        sees = (wizard,) if read.sees is None else read.sees
        made = Variable(
            kind=kind, values=read.values, least=read.least, most=read.most, sees=sees, label=read.label
        )
        return msgspec.structs.replace(
            made, initial=self._read_initial(read.initial, made, f"{path}.initial")
        )

    def _read_initial(self, value: Any, variable: Variable, path: str) -> Value | None:
        if value is None:
            return None
        try:
            made = convert_value(value, variable)
        except ValueMismatchError as problem:
            self.note(path, str(problem))
            return None
        if made != value or isinstance(value, str) != isinstance(made, str):
            self.note(path, f"{value!r} is out of its bounds, or needs no quotes")
        return made


def _find_kind(read: _Variable) -> Kind | None:
    if read.values:
        return "choice"
    if isinstance(read.initial, bool):
        return "boolean"
    if isinstance(read.initial, int | float):
        return "number"
    return "text" if isinstance(read.initial, str) else None


def read_state(value: Any, file: str, problems: list[Problem]) -> State | None:
    """Return the state in a file; None if it cannot be read."""
    if not isinstance(value, dict):
        problems.append(
            Problem(file, "expected a state: a mapping with name, formulations, transition_states")
        )
        return None
    reader = _Reader(file, problems)
    before = len(problems)
    read = reader.convert(value, StateFile, "$")
    if read is None:
        return None
    for key in ("formulations", "transition_states"):
        if len(listed := getattr(read, key) or ()) > MAX_LISTED:
            reader.note(f"$.{key}", f"{len(listed):,} are too many; at most {MAX_LISTED:,}")
    for i, text in enumerate(read.formulations or ()):
        if not text.strip():
            reader.note(f"$.formulations[{i}]", "this text is empty")
    state = State(
        name=read.name,
        formulations=tuple(dict.fromkeys(text.strip() for text in read.formulations or ())),
        transitions=tuple(dict.fromkeys(read.transition_states or ())),
        probabilities=reader.read_probabilities(read.transition_probabilities),
        subtask=read.subtask,
        slots=read.slots or (),
        lock=reader.lock(read.lock, "$.lock"),
        effects=reader.read_effects(read.effects),
        when=reader.read_conditions(read.when, "$.when"),
        advances=read.advances,
        end=reader.read_end(read.end, "$.end"),
        act=read.act,
    )
    return state if len(problems) == before else None


def read_machine_file(value: Any, file: str, problems: list[Problem]) -> dict[str, Any] | None:
    """Return the contents of `machine.yaml`, by the fields of a Machine; None if it cannot be read."""
    reader = _Reader(file, problems)
    before = len(problems)
    read = reader.convert(value, MachineFile, "$")
    if read is None:
        return None
    world, ends = read.world or {}, read.ends or []
    if not isinstance(world, dict) or len(world) > MAX_VARIABLES:
        reader.note("$.world", f"expected a mapping of at most {MAX_VARIABLES} variables by name")
        world = {}
    if not isinstance(ends, list):
        reader.note("$.ends", "expected a list, each with a reason and when")
        ends = []
    made = [reader.read_end(one, f"$.ends[{i}]") for i, one in enumerate(ends)]
    for i, end in enumerate(made):
        if end is not None and not end.when:
            reader.note(f"$.ends[{i}]", "it needs `when`: conditions on the world")
    for name in world:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            reader.note(f"$.world.{name}", "a variable's name is letters, digits and _, as slots have it")
    fields = msgspec.structs.asdict(read)
    fields["world"] = {
        str(name): reader.read_variable(one, f"$.world.{name}", read.players.wizard)
        for name, one in world.items()
    }
    fields["ends"] = tuple(end for end in made if end is not None)
    return fields if len(problems) == before else None
