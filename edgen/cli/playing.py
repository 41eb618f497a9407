"""A conversation in a terminal: the role's view, the turns so far, and an input line."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.align import Align
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from edgen.core.errors import UsageError
from edgen.core.people.requests import Field, PersonRequest, View, list_fields, write_answer
from edgen.core.system import edit_lines
from edgen.core.text import escape_for_terminal

_WIDEST = 88  # columns of a conversation
_BUBBLE = 64  # columns of a turn
_COLOURS = ("cyan", "magenta", "yellow", "blue")  # of the other roles, in the order in which they speak
_OWN = "green"
_LONG = 12  # from so many values without words on, they are typed, not listed
END, QUIT, HELP = "/end", "/quit", "/help"
_COMMAND = re.compile("/[a-z]+")  # also one that does not exist: it is a slip, not a turn


class PlayerLeft(Exception):  # noqa: N818 - an outcome, not a fault
    """A person who left; the conversation waits."""


class Screen:
    """A terminal, or its stand-in. `role` is the person's."""

    def __init__(self) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        self._console = Console(width=width, highlight=False, emoji=False, soft_wrap=False)
        self._live = sys.stdin.isatty() and sys.stdout.isatty()
        self._colours: dict[str, str] = {}
        self._shown = 0  # turns
        self._facts: tuple[tuple[str, str], ...] | None = None
        self._text = ""
        if self._live:
            edit_lines()

    def begin(self) -> None:
        """Begin a conversation."""
        self._shown, self._facts, self._text = 0, None, ""

    @property
    def turns(self) -> int:
        """The number of shown turns."""
        return self._shown

    def ask_yes_no(self, question: str) -> bool:
        """Return whether the person says yes."""
        with contextlib.suppress(PlayerLeft):
            return self._read(f"{question} [Y/n] ").lower() in (
                ("", "y", "yes") if self._live else ("y", "yes")
            )
        return False

    @contextlib.contextmanager
    def show_waiting(self, words: str) -> Iterator[None]:
        """Show that another role is at work."""
        if not self._live:
            yield
            return
        with self._console.status(f"[dim]{words}[/dim]", spinner="dots"):
            yield

    # -- output

    def show(self, view: View) -> None:
        """Show the new parts of a view."""
        if self._facts is None:
            self._show_brief(view)
        elif view.facts != self._facts:
            changed = [fact for fact in view.facts if fact not in self._facts]
            if changed:
                self._show_panel(_make_pair_table(changed), "Now", "dim")
        self._facts = view.facts
        for speaker, text in view.turns[self._shown :]:
            self.show_turn(speaker, text, own=bool(view.role) and speaker == view.role)
        self._shown = max(self._shown, len(view.turns))
        if view.text and view.text != self._text:
            self._console.print(Padding(Text(_join_lines(view.text)), (0, 2, 1, 2)))
        self._text = view.text

    def _show_brief(self, view: View) -> None:
        title = f"You are the {escape_for_terminal(view.role)}" if view.role else "Your turn"
        parts: list[Any] = [_make_pair_table(view.facts)] if view.facts else []
        said = "Say what you would say. The others do not see this card."
        if view.closing:
            said += f" {END} says goodbye."
        parts.append(Text(f"{said} {QUIT} leaves; the same command comes back.", style="dim"))
        self._show_panel(Group(*parts), title, _OWN)

    def _show_panel(self, content: Any, title: str, style: str) -> None:
        self._console.print(
            Panel(
                content,
                title=Text(title, style="bold"),
                title_align="left",
                border_style=style,
                padding=(0, 2),
            )
        )
        self._console.print()

    def show_turn(self, speaker: str, text: str, *, own: bool) -> None:
        """Show a turn: the person's own at the right, others' at the left."""
        name = escape_for_terminal(speaker) or "They"
        colour = _OWN if own else self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        width = min(_BUBBLE, self._console.width - 6)
        panel = Panel(
            Text(_join_lines(text)),
            title=Text(f" {name} ", style=f"bold {colour}"),
            title_align="right" if own else "left",
            border_style=colour,
            width=min(width, max(len(line) for line in [*_join_lines(text).split("\n"), name * 2]) + 6),
            padding=(0, 1),
        )
        self._console.print(Align.right(panel) if own else panel)

    def ask_agreement(self, text: str) -> bool:
        """Show a text to agree to, and return whether the person does."""
        self._show_panel(Text(_join_lines(text.strip())), "Before you begin", _OWN)
        with contextlib.suppress(PlayerLeft):
            return self._read("Do you agree? [y/N] ").lower() in ("y", "yes")
        return False

    def note(self, text: str, style: str = "dim") -> None:
        """Show a sentence."""
        self._console.print(Text(escape_for_terminal(text), style=style))

    def show_secrets(self, knew: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
        """Show the facts that the other roles knew."""
        for name, facts in knew:
            if facts:
                self._show_panel(
                    _make_pair_table(facts), f"What the {escape_for_terminal(name)} knew", "magenta"
                )

    # -- input

    def answer(self, pending: PersonRequest, title: str = "") -> str:
        """Return the person's answer to a request. `title` is the heading of questions outside a
        conversation. Raises PlayerLeft."""
        if title:
            self._show_panel(Text(_join_lines(pending.view.text)), title, _OWN)
        else:
            self.show(pending.view)
        if pending.again:
            reason = pending.again.replace("_", " ").replace(":", ": ")
            self.note(f"Your answer could not be used ({reason}). Say it in another way.", "yellow")
        fields = list_fields(pending)
        while True:
            given, closing = self._fill(fields, pending.view)
            if closing:
                given = _add_closing(fields, given, pending.view.closing)
            try:
                text = write_answer(fields, given)
            except UsageError as problem:
                self.note(str(problem), "yellow")
                continue
            self._show_answer(given, fields, pending.view)
            return text

    def _fill(self, fields: Sequence[Field], view: View) -> tuple[dict[str, list[str]], bool]:
        given: dict[str, list[str]] = {}
        closing = False
        own = {field.own: field for field in fields if field.own}
        for field in fields:
            if field in own.values():
                continue
            said = self._ask(field, len(fields) > 1, own.get(field.name))
            if said == END and view.closing:
                closing, said = True, ""
            elif said == END:
                self.note("You cannot end this conversation; it ends by its own rules.", "yellow")
                return self._fill(fields, view)
            values = _read_choice(field, said)
            if values is None and field.name in own:
                given[own[field.name].name] = [said]
            else:
                given[field.name] = [said] if values is None else values
        return given, closing

    def _ask(self, field: Field, named: bool, own: Field | None) -> str:
        if field.asks:
            self._console.print(Text(escape_for_terminal(field.asks), style="bold"))
        for number, one in enumerate(field.choices if field.worded or len(field.choices) < _LONG else (), 1):
            hint = Text("  ← hint", style="yellow") if one.hint else Text()
            self._console.print(
                Text(f"  {number:>2}  ", style="bold") + Text(escape_for_terminal(one.words)) + hint
            )
        ask = "you"
        if named and not (own and field.kind == "choice"):
            ask = field.name.replace("_", " ")
        if len(field.choices) >= _LONG and not field.worded:
            ask += f" ({field.choices[0].words} to {field.choices[-1].words})"
        elif field.kind == "choice":
            ask += f" (1 to {len(field.choices)}{', or your own words' if own else ''})"
        elif field.kind == "several":
            ask += " (numbers, with commas)"
        elif field.kind == "number":
            ask += f" ({field.least} to {field.most})"
        elif field.is_list:
            self.note(f"{field.label}; an empty line ends the list.")
        lines: list[str] = []
        while True:
            said = self._read(f"{ask} › ")
            if said == QUIT:
                raise PlayerLeft
            unknown = _COMMAND.fullmatch(said) is not None and said not in (END, HELP)
            if field.is_list and not unknown and said not in ("", HELP):
                lines.append(said)
                if len(lines) < field.most:
                    continue
            if said != HELP and not unknown:
                return "\n".join(lines) if field.is_list else said
            self.note(
                f"{f'There is no {said}. ' if unknown else ''}{END} ends the conversation where the role may. {QUIT} leaves: the conversation waits for "
                "you."
            )

    def _read(self, prompt: str) -> str:
        try:
            # readline must know which characters have no width.
            if self._live:
                return input(f"\001\033[1;32m\002{prompt}\001\033[0m\002").strip()
            line = sys.stdin.readline()
        except (EOFError, KeyboardInterrupt):
            raise PlayerLeft from None
        if not line:
            raise PlayerLeft
        return line.strip()

    def _show_answer(self, given: Mapping[str, list[str]], fields: Sequence[Field], view: View) -> None:
        """Show a newly written turn as part of the conversation."""
        said = [given[field.name][0] for field in fields if field.kind == "text" and given.get(field.name)]
        said += [
            one.words
            for field in fields
            for one in field.choices
            if field.worded and given.get(field.name) == [msgspec.json.encode(one.value).decode()]
        ]
        text = next((one for one in said if one), "").replace(view.closing or "\0", "").strip()
        if not view.role or not text:
            return
        if self._live and len(fields) == 1:
            columns = shutil.get_terminal_size().columns
            rows = (len(said[0]) + len("you › ")) // columns + 1
            sys.stdout.write(f"\033[{rows}A\033[J")
        self.show_turn(view.role, text, own=True)
        self._shown = len(view.turns) + 1


def _add_closing(fields: Sequence[Field], given: dict[str, list[str]], closing: str) -> dict[str, list[str]]:
    """Return an answer whose text closes the conversation."""
    text = next((field.name for field in fields if field.kind == "text"), None)
    if text is None:
        return given
    return given | {text: [f"{(given.get(text) or [''])[0]} {closing}".strip()]}


def _read_choice(field: Field, said: str) -> list[str] | None:
    """Return the values that typed numbers name; None if they name none."""
    if field.kind not in ("choice", "several"):
        return None
    numbers = [one.strip() for one in said.split(",") if one.strip()]
    if len(field.choices) >= _LONG and not field.worded:
        return [next((one.words for one in field.choices if _is_same_value(one.words, said)), "?")]
    if not all(one.isascii() and one.isdecimal() and 1 <= int(one) <= len(field.choices) for one in numbers):
        return None if field.kind == "choice" else ["?"]
    return [msgspec.json.encode(field.choices[int(one) - 1].value).decode() for one in numbers]


def _is_same_value(value: str, typed: str) -> bool:
    with contextlib.suppress(ValueError):
        return float(value) == float(typed)
    return value == typed


def _make_pair_table(facts: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for label, value in facts:
        table.add_row(Text(escape_for_terminal(label), style="dim"), Text(escape_for_terminal(value)))
    return table


def _join_lines(text: str) -> str:
    return "\n".join(escape_for_terminal(line) for line in text.split("\n"))
