"""State machines for commands and Python users: checking, drawing, learning from a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgen.core import resources
from edgen.domains.guided.machines.check import MachineFinding, check_machine
from edgen.domains.guided.machines.draw import draw_machine
from edgen.domains.guided.machines.dump import dump_machine, write_files
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.learn import ChoiceCounts, LearnedMachine, learn
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Machine
from edgen.planning.allowed_files import allow_all_files
from edgen.plugin import RunReader, template_variables
from edgen.plugin.errors import RunError, ShortError, UsageError
from edgen.plugin.files import explain_write_errors, suggest_name, write_whole
from edgen.plugin.formats import guide_of
from edgen.space import load_space
from edgen.space.model import list_template_fields


class CheckedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a machine, and the findings of its check."""

    machine: str  # name of the machine
    folder: str  # path of the machine
    states: int  # number of states
    transitions: int  # number of transitions
    fixed: int  # number of fixed replies
    subtasks: tuple[str, ...]  # names of the sub-tasks, in order
    variables: tuple[str, ...]  # names of the world's variables
    needs: tuple[str, ...]  # names of the space's values that its texts use
    findings: tuple[MachineFinding, ...]  # errors and warnings

    def require_sound(self) -> None:
        """Raise ShortError if the check found anything."""
        if self.findings:
            fatal = sum(one.fatal for one in self.findings)
            many = f"{len(self.findings)} finding{'s' if len(self.findings) > 1 else ''}"
            until = f"; {fatal} of them prevent a run" if fatal else "; it can be run as it is"
            raise ShortError(f"machine {self.machine}: {many}{until}.")


def find_machine(reference: str) -> Path:
    """Return the folder of a shipped machine's name or of a path. A bare name that is not shipped is a path,
    too."""
    folder = resources.find("machines", reference)
    if "/" in reference or reference in resources.list_shipped("machines"):
        return folder
    if (here := Path(reference)).exists():
        return here
    known = suggest_name(reference, resources.list_shipped("machines"))
    raise MachineError(reference, f"there is no such folder, and no shipped machine of this name{known}.")


def check(reference: str, space: str | None = None) -> CheckedMachine:
    """Check the machine with this name or folder. `space`: the space to use it with, by name or file.

    Raises MachineError for a folder that cannot be read.
    """
    folder = find_machine(reference)
    machine = load_machine(folder)
    return CheckedMachine(
        machine=machine.name,
        folder=str(folder),
        states=len(machine.states),
        transitions=sum(len(state.transitions) for state in machine.states.values()),
        fixed=len(machine.replies),
        subtasks=machine.subtasks,
        variables=tuple(machine.world),
        needs=machine.needed,
        findings=tuple(check_machine(machine, None if space is None else _list_names(space))),
    )


def _list_names(space: str) -> list[str]:
    """Return the names that slots may use with a space: dimensions, and fields as `topic.grade`."""
    read = load_space(allow_all_files().require("preference_space", space, "space"))
    fields = list_template_fields(read)
    return [*template_variables(read), *(f"{name}.{one}" for name in fields for one in fields[name])]


def draw(reference: str, output: Path, run: Path | None = None) -> None:
    """Write the picture of a machine (SVG). `run`: show how often the run's conversations took each
    transition."""
    machine = load_machine(find_machine(reference))
    counts = None if run is None else count_choices(run).count_transitions()
    with explain_write_errors(output):
        write_whole(output, draw_machine(machine, counts))


def count_choices(run: Path) -> ChoiceCounts:
    """Return the choices of a run's accepted conversations."""
    counts = ChoiceCounts()
    with RunReader(run) as reader:
        for one in reader.conversations():
            events = one.record.get("events")
            if isinstance(events, list):
                counts.see(event for event in events if isinstance(event, Mapping))
    return counts


def learn_from(
    run: Path, output: Path | None = None, reference: str | None = None, smoothing: float = 1.0
) -> LearnedMachine:
    """Return the machine of a run with probabilities learned from its conversations, and write it to a new
    folder `output`. `reference`: another machine than the job's.

    Raises RunError if the run has no choices, or no machine is named.
    """
    machine = _read_machine(run) if reference is None else load_machine(find_machine(reference))
    learned = learn(machine, count_choices(run), smoothing)
    if not learned.choices:
        raise RunError(
            f"{run}: its conversations contain no choice of a state of '{machine.name}', so there is "
            "nothing to learn."
        )
    if output is not None:
        write_files(dump_machine(learned.machine), output)
    return learned


def _read_machine(run: Path) -> Machine:
    """Return the machine that guided a run's conversations."""
    with RunReader(run) as reader:
        machine: Machine | None = guide_of(reader.job)
    if machine is None:
        raise UsageError(f"{run}: its job uses no machine; name one with --machine.")
    return machine
