"""`edgen machine`: check, draw and learn the state machines that guided conversations follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from edgen.cli.options import JsonOption, RunArgument
from edgen.cli.output import count_noun, first_of, note, print_value, wrap_behind

if TYPE_CHECKING:
    from edgen.api.machines import CheckedMachine
    from edgen.machines.learn import Learned

app = Typer(
    help="Work with the state machines of guided conversations.\n\nExample: edgen machine check lesson_plan",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
MachineArgument = Annotated[
    str, Argument(metavar="MACHINE", help="A shipped machine's name, or a folder of states.")
]
_MOST = 100  # findings that are shown


@app.command(short_help="Say what makes no sense in a machine.")
def check(
    machine: MachineArgument,
    space: Annotated[
        str | None,
        Option("--space", metavar="SPACE", help="The space that it is used with, whose values fill slots."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check a machine: names that lead nowhere, states that are never reached, probabilities, gates and locks that never
    open, loops without an end, conditions, effects and slots. Ends with 3 where anything was found.

    Example: edgen machine check my_machine --space my_space.yaml
    """
    from edgen.api.machines import check as check_machine

    found = check_machine(machine, space)
    print_value(found, _render_checked(found), json=json)
    found.require_sound()


@app.command(short_help="Draw a machine (SVG).")
def draw(
    machine: MachineArgument,
    output: Annotated[Path, Option("--output", "-o", metavar="FILE.svg", help="The picture to write.")],
    run: Annotated[
        Path | None,
        Option(
            "--run", metavar="RUN", help="Also show how often this run's conversations took each transition."
        ),
    ] = None,
) -> None:
    """Draw a machine: its states by sub-task, what leads to what and how probably, locks, effects and ends.

    Example: edgen machine draw incident_response -o incident.svg
    """
    from edgen.api.machines import draw as draw_machine

    draw_machine(machine, output, run)
    note(f"written to {output}")


@app.command(short_help="Learn transition probabilities from a run.")
def learn(
    run: RunArgument,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FOLDER", help="The new folder to write the machine to."),
    ] = None,
    machine: Annotated[
        str | None,
        Option("--machine", metavar="MACHINE", help="Another machine than the one of the run's job."),
    ] = None,
    smoothing: Annotated[
        float, Option(metavar="S", min=0, max=1000, help="Choices that are added to each transition.")
    ] = 1.0,
    json: JsonOption = False,
) -> None:
    """Count which states were chosen out of what was offered, and write the machine with probabilities by that.

    Where everything is always offered they are (n + S) / (N + S K), of K transitions; where gates, locks and conditions
    left less on offer, they are what makes the choices most likely (Luce's rule). States that nobody was in keep
    theirs.

    Example: edgen machine learn outputs/guided -o my_machine
    """
    from edgen.api.machines import learn_from

    learned = learn_from(run, output, machine, smoothing)
    print_value(_learned_as_json(learned, output), _render_learned(learned, output), json=json)


def _render_checked(found: CheckedMachine) -> Iterator[str]:
    yield f"machine    {found.machine} ({found.folder})"
    replies = "1 fixed reply" if found.fixed == 1 else f"{found.fixed:,} fixed replies"
    yield f"states     {found.states:,} with {count_noun(found.transitions, 'transition')}, {replies}"
    for label, names in (("sub-tasks", found.subtasks), ("world", found.variables), ("needs", found.needs)):
        if names:
            yield from wrap_behind(f"{label:10} ", ", ".join(names))
    for one in found.findings[:_MOST]:
        yield from wrap_behind("error      " if one.fatal else "warning    ", str(one))
    if (more := len(found.findings) - _MOST) > 0:
        yield f"           … and {more:,} more"
    if not found.findings:
        yield "findings   none"


def _learned_as_json(learned: Learned, output: Path | None) -> dict[str, object]:
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


def _render_learned(learned: Learned, output: Path | None) -> Iterator[str]:
    yield f"machine    {learned.machine.name}"
    yield f"counted    {learned.choices:,} choices in {count_noun(learned.conversations, 'conversation')}"
    if learned.unknown:
        yield f"left out   {learned.unknown:,} choices outside of transitions: where a lock stayed shut, or gone back to"
    yield f"smoothing  {learned.smoothing:g} added to each transition"
    if learned.kept:
        yield from wrap_behind("kept       ", f"as they were: {first_of(learned.kept, 10)}")
    if output is not None:
        yield f"folder     {output}"
        return
    for name, state in learned.machine.states.items():
        if name not in learned.kept and state.probabilities:
            said = ", ".join(f"{target} {one:.4g}" for target, one in state.probabilities.items())
            yield from wrap_behind(f"{name}  ", said)
