"""`edgen machine`: check, draw and learn the state machines that guided conversations follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Argument

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.options import CommandGroup, DomainCommand
from edgen.cli.output import note, print_value, wrap_after_label
from edgen.core.options import declare_output, declare_space, option
from edgen.plugin.texts import join_first, quantity

if TYPE_CHECKING:
    from edgen.domains.guided.machines.functions import CheckedMachine
    from edgen.domains.guided.machines.learn import LearnedMachine

app = CommandGroup(
    "Check, draw and learn state machines for guided conversations.\n\n"
    "Example: edgen machine check lesson_plan"
)
MachineArgument = Annotated[
    str,
    Argument(
        metavar="MACHINE",
        help="A shipped machine's name, or a folder of states.",
        autocompletion=complete.offer_files("machines"),
    ),
]
_MOST = 100  # findings printed at most


class MachineCheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for checking a machine."""

    space: Annotated[str | None, declare_space("Its values fill the machine's slots.")] = None


class MachineDrawOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for drawing a machine."""

    output: Annotated[Path, declare_output("FILE", "The picture (.svg).")]
    run: Annotated[
        Path | None,
        option("Show how often this run took each transition.", metavar="RUN", completes="runs"),
    ] = None


class MachineLearnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for learning probabilities from a run."""

    output: Annotated[
        Path | None,
        declare_output("DIR", "A new folder for the machine.  [default: print the probabilities]"),
    ] = None
    machine: Annotated[
        str | None,
        option("The machine to learn for.  [default: the job's]", metavar="MACHINE", completes="machines"),
    ] = None
    smoothing: Annotated[float, option("Choices to add to each transition.", metavar="S", ge=0, le=1000)] = (
        1.0
    )


@app.command()
def check(
    machine: MachineArgument,
    options: MachineCheckOptions,
    json: o.JsonOption = False,
) -> None:
    """Check a state machine for mistakes.

    It checks unknown names, unreachable states, loops without an end, probabilities, gates and locks that
    never open, conditions, effects and slots. Exits with 3 if it finds anything.

    Example: edgen machine check my_machine --space my_space.yaml
    """
    from edgen.domains.guided.machines.functions import check as check_machine

    found = check_machine(machine, options.space)
    print_value(found, _render_checked(found), json=json)
    found.require_sound()


@app.command()
def draw(
    machine: MachineArgument,
    options: MachineDrawOptions,
    json: o.JsonOption = False,
) -> None:
    """Draw a state machine as an SVG picture.

    It shows states, transitions, probabilities, locks, effects and ends.

    Example: edgen machine draw incident_response -o incident.svg
    """
    from edgen.domains.guided.machines.functions import draw as draw_machine

    draw_machine(machine, options.output, options.run)
    if json:
        print_value({"file": str(options.output)}, (), json=True)
    else:
        note(f"written to {options.output}")


@app.command()
def learn(
    run: o.RunArgument,
    options: MachineLearnOptions,
    json: o.JsonOption = False,
) -> None:
    """Learn the transition probabilities of a machine from a run.

    With K transitions that are always offered, a probability is (n + S) / (N + S K). Where gates, locks or
    conditions offered fewer, probabilities maximise the likelihood of the choices (Luce's rule). States
    without visits keep theirs.

    Example: edgen machine learn outputs/guided -o my_machine
    """
    from edgen.domains.guided.machines.functions import learn_from

    output = options.output
    learned = learn_from(run, output, options.machine, options.smoothing)
    print_value(_describe_learned(learned, output), _render_learned(learned, output), json=json)


def _render_checked(found: CheckedMachine) -> Iterator[str]:
    yield f"machine    {found.machine} ({found.folder})"
    replies = "1 fixed reply" if found.fixed == 1 else f"{found.fixed:,} fixed replies"
    yield f"states     {found.states:,} with {quantity(found.transitions, 'transition')}, {replies}"
    for label, names in (("sub-tasks", found.subtasks), ("world", found.variables), ("needs", found.needs)):
        if names:
            yield from wrap_after_label(f"{label:10} ", ", ".join(names))
    for one in found.findings[:_MOST]:
        yield from wrap_after_label("error      " if one.fatal else "warning    ", str(one))
    if (more := len(found.findings) - _MOST) > 0:
        yield f"           … and {more:,} more"
    if not found.findings:
        yield "findings   none"


def _describe_learned(learned: LearnedMachine, output: Path | None) -> dict[str, object]:
    return {
        "machine": learned.machine.name,
        "folder": None if output is None else str(output),
        "conversations": learned.conversations,
        "choices": learned.choices,
        "unknown": learned.unknown,
        "kept": list(learned.kept),
        "smoothing": learned.smoothing,
        "probabilities": {
            name: state.probabilities for name, state in learned.machine.states.items() if state.probabilities
        },
    }


def _render_learned(learned: LearnedMachine, output: Path | None) -> Iterator[str]:
    yield f"machine    {learned.machine.name}"
    yield f"counted    {learned.choices:,} choices in {quantity(learned.conversations, 'conversation')}"
    if learned.unknown:
        yield (
            f"left out   {learned.unknown:,} choices that are not transitions: at a closed lock, or "
            "back to an earlier state"
        )
    yield f"smoothing  {learned.smoothing:g} added to each transition"
    if learned.kept:
        yield from wrap_after_label("kept       ", f"unchanged: {join_first(learned.kept, 10)}")
    if output is not None:
        yield f"folder     {output}"
        return
    for name, state in learned.machine.states.items():
        if name not in learned.kept and state.probabilities:
            said = ", ".join(f"{target} {one:.4g}" for target, one in state.probabilities.items())
            yield from wrap_after_label(f"{name}  ", said)


COMMAND = DomainCommand("machine", section="Tools", before="simulator", app=app)
