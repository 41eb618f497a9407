"""A reader of a machine's folder: it returns a Machine, or reports every problem with its file and path.

A folder holds a YAML file for each state, `fixed_states.yaml` with the fixed replies by name, and
`machine.yaml` for everything that CRWIZ's folders do not have. Without `machine.yaml` the folder is CRWIZ's,
and the constants of CRWIZ's code apply: sub-tasks `introduction` and `finish`, `trigger_subtask` advances to
the second, `inform_end` ends it, six minutes.

Flaws of a readable machine (a name that leads nowhere, a gate that never opens) are found by `check_machine`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from edgen.domains.guided.machines.files import read_machine_file, read_state
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.model import End, Machine, State
from edgen.plugin.errors import Problem
from edgen.plugin.files import read_text, read_yaml, shorten_word

MAX_STATES = 5_000
MAX_TRANSITIONS = 100_000
MAX_BYTES = 32 * 1024 * 1024  # total characters of a folder's files
_MOST_FILES = 2 * MAX_STATES
HEAD = "machine.yaml"
FIXED = "fixed_states"  # CRWIZ reads every file whose name begins like this
_NAME = re.compile(r"\w[\w.-]{0,99}")

_CRWIZ_SUBTASKS = ("introduction", "finish")
_CRWIZ_ADVANCES = {"trigger_subtask": "finish"}
_CRWIZ_ENDS = {"inform_end": End(reason="dialogue_completed", success=True)}


def load_machine(folder: Path) -> Machine:
    """Return the machine in a folder. Raises MachineError with every problem."""
    texts = _read_folder(folder)
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            values[name] = read_yaml(text, name, MachineError)
        except MachineError as error:
            problems.append(Problem(name, error.summary))
    head = read_machine_file(values.pop(HEAD), HEAD, problems) if HEAD in values else None
    fixed = _read_fixed({name: values.pop(name) for name in list(values) if _is_fixed(name)}, problems)
    states = _read_states(values, head is None and HEAD not in texts, problems)
    clash = "this is the name of a state and of a fixed reply; rename one of them"
    problems += [Problem(name, clash) for name in states if name in fixed]
    if (count := sum(len(state.transitions) for state in states.values())) > MAX_TRANSITIONS:
        message = f"{count:,} transitions are too many; a machine has at most {MAX_TRANSITIONS:,}"
        problems.append(Problem("transition_states", message))
    if problems:
        raise MachineError.of(str(folder), problems)
    ordered = dict(sorted(states.items()))
    if head is None:
        return Machine(
            name=folder.resolve().name or "machine",
            states=ordered,
            fixed=fixed,
            subtasks=_find_crwiz_subtasks(ordered),
        )
    return Machine(**head, states=ordered, fixed=fixed)


def _read_folder(folder: Path) -> dict[str, str]:
    """Return the texts of a folder's YAML files by name, in alphabetical order."""
    source = str(folder)
    if folder.is_file():
        raise MachineError(source, "this is a file, and a machine is a folder with a file for each state.")
    try:
        names = sorted(_list_yaml_names(folder))
    except FileNotFoundError:
        raise MachineError(source, "there is no such folder.") from None
    except (OSError, ValueError) as problem:
        raise MachineError(source, f"it cannot be read: {problem}.") from None
    if len(names) > MAX_STATES + 10:
        raise MachineError(
            source, f"it holds more than {MAX_STATES:,} states, the most that a machine may have."
        )
    if odd := [name for name in names if name.endswith(".yml")]:
        raise MachineError(
            source, f"{shorten_word(odd[0])} would not be read: a state's file ends with .yaml; rename it."
        )
    if not names:
        raise MachineError(source, "it holds no .yaml file; a machine has one for each state.")
    texts: dict[str, str] = {}
    size = 0
    for name in names:
        texts[name] = read_text(folder / name, MachineError)
        size += len(texts[name])
        if size > MAX_BYTES:
            raise MachineError(source, f"its files are larger than {MAX_BYTES // 1024 // 1024} MiB in all.")
    return texts


def _list_yaml_names(folder: Path) -> Iterator[str]:
    """Yield the names of the YAML files in a folder. Stop once there are more than a folder may have."""
    for count, path in enumerate(folder.iterdir()):
        if count > _MOST_FILES:
            return
        if path.suffix in (".yaml", ".yml") and not path.is_dir():
            yield path.name


def _is_fixed(name: str) -> bool:
    return name.startswith(FIXED)


def _read_fixed(files: dict[str, Any], problems: list[Problem]) -> dict[str, str]:
    fixed: dict[str, str] = {}
    for file, value in files.items():
        if not isinstance(value, dict | None):
            problems.append(Problem(file, "expected a mapping of names to replies, as in {okay: Okay}"))
            continue
        for name, text in (value or {}).items():
            where = f"{file} $.{shorten_word(str(name))}"
            if not isinstance(name, str):
                problems.append(Problem(where, "a name is a text; put it in quotes"))
            elif not isinstance(text, str | None):
                problems.append(Problem(where, "expected a text; put it in quotes"))
            elif name in fixed:
                problems.append(Problem(where, "another file has a fixed reply of this name"))
            else:
                fixed[name] = text or ""
    return fixed


def _read_states(files: dict[str, Any], is_crwiz: bool, problems: list[Problem]) -> dict[str, State]:
    states: dict[str, State] = {}
    where: dict[str, str] = {}
    for file, value in files.items():
        state = read_state(value, file, problems)
        if state is None:
            continue
        path = f"{file} $.name"
        if not _NAME.fullmatch(state.name) or state.name == "machine" or _is_fixed(state.name):
            message = (
                f"{shorten_word(state.name)!r} is not a name of a state: letters, digits, _, - and dots, and "
                f"neither machine nor {FIXED}"
            )
            problems.append(Problem(path, message))
        elif state.name in where:
            message = (
                f"{where[state.name]} has a state '{shorten_word(state.name)}' already; give one of them "
                "another name"
            )
            problems.append(Problem(path, message))
        else:
            where[state.name] = file
            states[state.name] = _with_milestone(state) if is_crwiz else state
    return states


def _with_milestone(state: State) -> State:
    """Return a state with the sub-task and the end that CRWIZ's code attaches to its name."""
    return msgspec.structs.replace(
        state, advances=_CRWIZ_ADVANCES.get(state.name), end=_CRWIZ_ENDS.get(state.name)
    )


def _find_crwiz_subtasks(states: dict[str, State]) -> tuple[str, ...]:
    """Return CRWIZ's two sub-tasks, and before the last one all others that gate a state."""
    first, last = _CRWIZ_SUBTASKS
    gates = sorted({state.subtask for state in states.values() if state.subtask} - {first, last})
    return (first, *gates, last)
