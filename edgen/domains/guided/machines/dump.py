"""A machine as the files of its folder. `load_machine` reads the same machine from these files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.load import FIXED, HEAD
from edgen.domains.guided.machines.model import Condition, Effect, End, Lock, Machine, State
from edgen.plugin.files import as_key, as_number, as_text, explain_write_errors, flow, new_folder


def dump_machine(machine: Machine) -> dict[str, str]:
    """Return the texts of a folder's files, by name: `machine.yaml`, `fixed_states.yaml`, and one for each
    state."""
    return {
        HEAD: _render_head(machine),
        **_dump_fixed(machine),
        **{_render_file(one): _render_state(one) for one in machine.states.values()},
    }


def dump_for_crwiz(machine: Machine) -> dict[str, str]:
    """Return the files that CRWIZ's `load_dialogue_states` reads. They have its six keys. There is no
    `machine.yaml`, which CRWIZ would read as a state. Every transition has a probability, since its code
    looks up each of them."""
    return {
        **_dump_fixed(machine),
        **{_render_file(one): _render_crwiz_state(one) for one in machine.states.values()},
    }


def write_files(texts: Mapping[str, str], folder: Path) -> None:
    """Write the files into a new or empty folder. Raises MachineError if the folder is not empty."""
    with explain_write_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise MachineError(str(folder), "this folder is not empty; name a new one.")
        with new_folder(folder) as place:
            for name, text in texts.items():
                (place / name).write_bytes(text.encode())


def _render_file(state: State) -> str:
    return f"{state.name}.yaml"


def _dump_fixed(machine: Machine) -> dict[str, str]:
    lines = [f"{as_key(name)}: {as_text(text)}" for name, text in machine.fixed.items()]
    return {f"{FIXED}.yaml": "\n".join(lines) + "\n"} if lines else {}


def _render_head(machine: Machine) -> str:
    lines = [f"name: {as_text(machine.name)}"]
    if machine.description is not None:
        lines.append(f"description: {as_text(machine.description)}")
    lines.append(f"initial: {as_text(machine.initial)}")
    lines.append(f"players: {flow(msgspec.structs.asdict(machine.players))}")
    limit = "null" if machine.time_limit is None else as_number(float(machine.time_limit))
    lines.append(f"time_limit: {limit}")
    lines.append(f"clock: {flow(msgspec.structs.asdict(machine.clock))}")
    asked = "null" if machine.questionnaire is None else as_text(machine.questionnaire)
    lines.append(f"questionnaire: {asked}")
    if machine.needs:
        lines.append(f"needs: {flow(machine.needs)}")
    if machine.subtasks:
        lines.append(f"subtasks: {flow(machine.subtasks)}")
    if machine.world:
        lines.append("world:")
    for name, one in machine.world.items():
        lines.append(f"  {name}: {_render_flow({**msgspec.to_builtins(one), 'sees': one.sees})}")
    if machine.ends:
        lines += ["ends:", *(f"  - {_render_flow(_render_conditional(end))}" for end in machine.ends)]
    return "\n".join(lines) + "\n"


def _render_state(state: State) -> str:
    lines = [*_dump_crwiz_keys(state, state.probabilities)]
    if state.lock is not None:
        lines.append(
            f"lock: {'any' if state.lock == Lock() else _render_flow(msgspec.to_builtins(state.lock))}"
        )
    if state.effects:
        lines += ["effects:", *(f"  - {_render_flow(_render_conditional(one))}" for one in state.effects)]
    if state.when:
        lines.append(f"when: {_render_flow(_dump_conditions(state.when))}")
    if state.advances is not None:
        lines.append(f"advances: {as_text(state.advances)}")
    if state.end is not None:
        lines.append(f"end: {_render_flow(_render_conditional(state.end))}")
    if state.act is not None:
        lines.append(f"act: {state.act}")
    return "\n".join(lines) + "\n"


def _render_crwiz_state(state: State) -> str:
    return "\n".join(_dump_crwiz_keys(state, state.list_weights(state.transitions))) + "\n"


def _dump_crwiz_keys(state: State, probabilities: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of CRWIZ's six keys."""
    yield f"name: {as_text(state.name)}"
    if state.subtask is not None:
        yield f"subtask: {as_text(state.subtask)}"
    for key, listed in (
        ("slots", state.slots),
        ("formulations", state.formulations),
        ("transition_states", state.transitions),
    ):
        if listed:
            yield f"{key}:"
            yield from (f"  - {as_text(one)}" for one in listed)
    if probabilities:
        yield "transition_probabilities:"
        yield from (f"  {as_key(name)}: {as_number(float(one))}" for name, one in probabilities.items())


def _render_conditional(one: Effect | End) -> dict[str, Any]:
    return {**msgspec.to_builtins(one), **({"when": _dump_conditions(one.when)} if one.when else {})}


def _dump_conditions(when: Mapping[str, Condition]) -> dict[str, Any]:
    """Return conditions in the form of files: a value for one value, a list for several, a mapping for
    bounds."""
    said: dict[str, Any] = {}
    for name, one in when.items():
        values = list(one.one_of)
        bounded = one.at_least is not None or one.below is not None
        said[name] = msgspec.to_builtins(one) if bounded else values[0] if len(values) == 1 else values
    return said


def _render_flow(value: Any) -> str:
    """Return a value as `flow` does, but whole numbers without a decimal point."""
    return flow(_convert_whole_numbers(value))


def _convert_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _convert_whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
