"""The machine and the questionnaire that a job names: read once, stored as JSON in the run's copy of the job,
and checked against the space."""

from __future__ import annotations

import functools

import msgspec

from edgen.domains.guided.config import Guided
from edgen.domains.guided.machines.check import check_machine
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Machine
from edgen.domains.guided.machines.world import ValueMismatchError, convert_value
from edgen.plugin import Job, Space, settings_of
from edgen.plugin.errors import JobError, Problem
from edgen.plugin.protocols import (
    FindFile,
    Questionnaire,
    QuestionnaireError,
    SpaceRole,
    load_questionnaire,
    read_questionnaire,
)

OF_MACHINE = "machine"  # the setting `questionnaire`: the machine's own
MOST_HELD = 1 << 20  # characters of a machine as JSON; a job may have 4 MiB
_MOST_SHOWN = 20  # problems of a machine in one message


class PreparedMachine(msgspec.Struct, frozen=True):
    """Data that all conversations of a job share."""

    machine: Machine  # checked
    questionnaire: Questionnaire | None  # after the conversation; None: no questionnaire
    space: Space  # of the scenarios
    wizard: SpaceRole  # the guided role
    partner: SpaceRole  # the other role
    labels: tuple[str, ...] = ()  # labels of the partner's turns that open locks


def is_content(named: str) -> bool:
    """Return whether a setting holds the contents, as JSON, instead of a name."""
    return named.lstrip().startswith("{")


def read_files(job: Job, find: FindFile) -> Job:
    """Return the job with the contents of machine and questionnaire in its settings, as JSON."""
    settings: Guided = settings_of(job)
    if settings.machine is None:
        return job
    machine = (
        read_machine(settings.machine)
        if is_content(settings.machine)
        else load_machine(find("machines", settings.machine, "guided.machine"))
    )
    text = _render_json(machine)
    if len(text) > MOST_HELD:
        message = (
            f"it is larger than {MOST_HELD >> 20} MiB as one text, the most that a run's copy of its job "
            "holds."
        )
        raise MachineError(machine.name, message)
    asked = settings.questionnaire
    if asked == OF_MACHINE:
        asked = machine.questionnaire
        if asked is not None and "/" in asked:  # a file next to the machine
            asked = str(find("machines", settings.machine, "guided.machine").resolve() / asked)
    if asked is not None and not is_content(asked):
        asked = _render_json(load_questionnaire(find("questionnaires", asked, "guided.questionnaire")))
    held = msgspec.structs.replace(settings, machine=text, questionnaire=asked)
    return msgspec.structs.replace(job, protocol_settings={**job.protocol_settings, "guided": held})


def _render_json(value: Machine | Questionnaire) -> str:
    return msgspec.json.encode(value).decode()


@functools.lru_cache(maxsize=8)
def read_machine(text: str) -> Machine:
    """Return the machine in a setting with its contents. Raises MachineError for an invalid text."""
    try:
        return msgspec.json.decode(text, type=Machine)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise MachineError("guided.machine", f"this is not a machine: {problem}.") from None


def find_machine(settings: Guided) -> Machine | None:
    """Return the machine; None if the setting has only its name. Raises MachineError for an invalid text."""
    held = settings.machine
    return read_machine(held) if held is not None and is_content(held) else None


def prepare(job: Job, space: Space) -> PreparedMachine:
    """Return the data that all conversations of a job share. Raises JobError with every reason why the
    machine cannot run on this space."""
    settings: Guided = settings_of(job)
    assert settings.machine is not None
    machine = read_machine(settings.machine)
    fields = [f"{one.name}.{field}" for one in space.dimensions for field in one.fields]
    fatal = [
        Problem("$.guided.machine", str(one))
        for one in check_machine(machine, (*space.names, *fields))
        if one.fatal and one.kind != "endless"  # the job's limit on turns ends it
    ]
    roles = {role.name: role for role in space.roles}
    wanted = (machine.players.wizard, machine.players.partner)
    fatal += [
        Problem("$.space", f"{space.name} has no role {name}, which the machine {machine.name} has")
        for name in wanted
        if name not in roles
    ]
    fatal += [*_check_values(machine, space)]
    if fatal:
        more = len(fatal) - _MOST_SHOWN
        left = [Problem("…", f"{more} more; `edgen machine check` lists them")] if more > 0 else []
        count = f"{len(fatal)} problem{'s' if len(fatal) > 1 else ''}:"
        raise JobError(job.name, count, (*fatal[:_MOST_SHOWN], *left))
    labels = {state.lock.label for state in machine.states.values() if state.lock and state.lock.label}
    asked = settings.questionnaire
    return PreparedMachine(
        machine,
        None if asked is None else _read_questionnaire(asked),
        space,
        roles[wanted[0]],
        roles[wanted[1]],
        tuple(sorted(labels)),
    )


def _check_values(machine: Machine, space: Space) -> list[Problem]:
    """Yield a problem for each dimension with a value that is invalid for the variable of the same name."""
    found = []
    for one in space.dimensions:
        if (variable := machine.world.get(one.name)) is None:
            continue
        for value in one.values:
            try:
                convert_value(value, variable)
            except ValueMismatchError as problem:
                found.append(Problem("$.space", f"{one.name}: {problem}, as the machine's variable wants it"))
                break
    return found


def _read_questionnaire(text: str) -> Questionnaire:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise QuestionnaireError("guided.questionnaire", f"this is not a questionnaire: {problem}.") from None
    return read_questionnaire(value, "guided.questionnaire")
