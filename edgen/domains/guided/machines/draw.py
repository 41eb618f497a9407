"""A machine as a picture (SVG): a card for each state, a band for each sub-task, a line for each transition.

A card lists its transitions, each with its probability and a port from which its line begins, so no label
stands on a line. Lines run to the right within a band. Transitions back, far, or to another band have no line
but a mark after the name. With counts, the width of a line shows how often it was taken, and what never
happened is grey.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgen.domains.guided.machines.describe import BAD, EFFECT, GOOD, LOCK, WHEN, join_full_text, list_remarks
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.layout import Box, DiagramLayout, divide_into_bands, lay_out, order_states
from edgen.domains.guided.machines.model import Machine, State
from edgen.domains.guided.machines.svg import (
    FAINT,
    INK,
    MONO,
    MONO_EM,
    SANS,
    SANS_EM,
    SOFT,
    draw_arrow,
    draw_bend,
    draw_text,
    escape_xml,
    fit_text,
    mark,
    wrap_words,
)

MOST = 1_000  # states of one picture
_WIDE, _BETWEEN = 212.0, 50.0  # width of a card, and of the space for lines after it
_HEAD, _LINE, _ROW = 24.0, 14.0, 17.0  # heights of a card's parts
_PAD = 14.0  # around the cards of a band
_TITLE = 26.0  # height of a band's title
_MARGIN = 24.0
# Okabe and Ito's colours, which colour-blind people can distinguish: (line, band).
_BANDS = (
    ("#0a6aa6", "#eaf3f9"), ("#a8690b", "#fbf3e4"), ("#0b7d5c", "#e8f5f0"), ("#a34a7c", "#f8edf4"),
    ("#5a55a3", "#eeedf8"),
    ("#6b6a1e", "#f5f4e2"), ("#b04a1c", "#fbeee8"), ("#2b7a8c", "#e8f4f6"),
)  # fmt: skip

Counts = Mapping[tuple[str, str], int]


def draw_machine(machine: Machine, counts: Counts | None = None) -> str:
    """Return the picture. `counts`: how often each transition (from, to) was taken.

    Raises MachineError for a machine of more than MOST states.
    """
    if len(machine.states) > MOST:
        raise MachineError(
            machine.name, f"{len(machine.states):,} states are too many for a picture of at most {MOST:,}."
        )
    return "\n".join(_Picture(machine, counts).render_lines()) + "\n"


@dataclass(frozen=True)
class _Row:
    """A line of a card that names another state. `share`: its part of all transitions, in [0, 1]."""

    target: str
    share: float
    taken: int | None
    refused: bool = False  # taken after an answer that does not open the lock

    @property
    def never(self) -> bool:
        return self.taken == 0


@dataclass(frozen=True)
class _Card:
    state: State
    remarks: tuple[tuple[str, str], ...]  # (colour, text)
    rows: tuple[_Row, ...]
    visits: int | None

    @property
    def height(self) -> float:
        said = _LINE if self.state.formulations else 0.0
        return _HEAD + said + _LINE * len(self.remarks) + _ROW * len(self.rows) + 5.0

    def find_port(self, row: int) -> float:
        return self.height - 5.0 - _ROW * (len(self.rows) - row) + _ROW / 2

    def make_box(self) -> Box:
        ports: dict[str, float] = {}
        for number, row in enumerate(self.rows):
            ports.setdefault(row.target, self.find_port(number))
        return Box(self.height, ports)


class _Picture:
    def __init__(self, machine: Machine, counts: Counts | None) -> None:
        self.machine, self.counts = machine, counts
        self.visits = _count_visits(machine, counts)
        self.cards = {name: self._make_card(machine.states[name]) for name in order_states(machine)}
        self.bands = divide_into_bands(machine, list(self.cards))
        self.band_of = {name: number for number, (_, names) in enumerate(self.bands) for name in names}
        self.layouts = [self._make_layout(names) for _, names in self.bands]

    def _make_card(self, state: State) -> _Card:
        counts = self.counts
        weights = state.list_weights(state.transitions)
        rows = []
        for name in state.leads_to:
            taken = None if counts is None else counts.get((state.name, name), 0)
            rows.append(_Row(name, weights.get(name, 0.0), taken, refused=name not in weights))
        if counts is not None and (total := sum(row.taken or 0 for row in rows)):
            rows = [_Row(row.target, (row.taken or 0) / total, row.taken, row.refused) for row in rows]
        return _Card(
            state,
            tuple(list_remarks(state)),
            tuple(rows),
            self.visits.get(state.name, 0) if self.counts is not None else None,
        )

    def _make_layout(self, names: Sequence[str]) -> DiagramLayout:
        own = frozenset(names)
        edges = [(name, row.target) for name in names for row in self.cards[name].rows if row.target in own]
        return lay_out({name: self.cards[name].make_box() for name in names}, edges)

    # ---- the whole

    def render_lines(self) -> Iterator[str]:
        columns = max([3, *(layout.width for layout in self.layouts)])
        width = 2 * _MARGIN + 2 * _PAD + columns * _WIDE + (columns - 1) * _BETWEEN
        head, top = self._render_head(width)
        body: list[str] = []
        for number, layout in enumerate(self.layouts):
            height = layout.height + 2 * _PAD + (_TITLE if self.bands[number][0] else 0)
            body += self._render_band(number, layout, top, width - 2 * _MARGIN, height)
            top += height + 14
        height = top + _MARGIN - 14
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" {SANS} font-size="11">'
        )
        yield f"<title>{escape_xml(self.machine.name)}</title>"
        yield f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>'
        yield from head
        yield from body
        yield "</svg>"

    def _render_head(self, width: float) -> tuple[list[str], float]:
        """Return the title, description, figures and legend, and the height at which the bands begin."""
        machine = self.machine
        lines = [draw_text(_MARGIN, 46, machine.name, 22, weight=700)]
        at = 66.0
        for line in wrap_words(machine.description or "", 12.5, width - 2 * _MARGIN)[:3]:
            lines.append(draw_text(_MARGIN, at, line, 12.5, SOFT))
            at += 17
        lines.append(draw_text(_MARGIN, at, self._describe_figures(), 12.5, SOFT))
        legend, at = self._render_legend(at + 22, width)
        return lines + legend, at

    def _describe_figures(self) -> str:
        states, cards = self.machine.states, self.cards.values()
        transitions = sum(len(card.rows) for card in cards)
        if self.counts is None:
            return (
                f"{len(states)} states, {transitions} transitions, {len(self.machine.replies)} fixed replies"
            )
        taken = sum(not row.never for card in cards for row in card.rows)
        spoken = [card for card in cards if card.state.formulations]  # as `edgen stats` counts them
        seen = sum(bool(card.visits) for card in spoken)
        return (
            f"{seen} of {len(spoken)} states that say something were visited, {taken} of {transitions} "
            f"transitions were taken; {sum(self.counts.values()):,} choices in all"
        )

    def _render_legend(self, at: float, width: float) -> tuple[list[str], float]:
        shown = "the higher its probability" if self.counts is None else "the more often it was taken"
        line = _BANDS[0][0]
        thin_and_wide = (
            f'<path d="M0 -4h26" stroke="{line}" stroke-width="1"/>'
            f'<path d="M0 2h26" stroke="{line}" stroke-width="4"/>'
        )
        items: list[tuple[str, str]] = [
            (thin_and_wide, f"leads to; the wider, {shown}"),
            (
                f'<path d="M0 -1h26" stroke="{LOCK}" stroke-width="1.6" stroke-dasharray="4 3"/>',
                "after an answer that does not open the lock",
            ),
            (draw_arrow(6, -1, SOFT), "goes back, or far: no line"),
            (
                f'<circle cx="8" cy="-1" r="4.5" fill="{_BANDS[1 % len(_BANDS)][0]}"/>',
                "leads to, or comes from, the band of this colour",
            ),
            (mark(8, -1, LOCK), "lock"),
            (mark(8, -1, EFFECT), "effect"),
            (mark(8, -1, WHEN), "condition"),
            (mark(8, -1, GOOD), "end with success"),
            (mark(8, -1, BAD), "end without"),
        ]
        if self.counts is not None:
            items.insert(
                1,
                (
                    f'<path d="M0 -1h26" stroke="{FAINT}" stroke-width="1.2" stroke-dasharray="2 3"/>',
                    "never taken",
                ),
            )
        lines, x = [], _MARGIN
        for drawing, words in items:
            start = 34 if "h26" in drawing else 20
            long = start + len(words) * 11.5 * SANS_EM + 18
            if x + long > width - _MARGIN:
                x, at = _MARGIN, at + 20
            lines.append(
                f'<g transform="translate({x:g} {at:g})">{drawing}{draw_text(start, 3, words, 11.5, SOFT)}</g>'
            )
            x += long
        return lines, at + 20

    # ---- a band

    def _render_band(
        self, number: int, layout: DiagramLayout, top: float, width: float, height: float
    ) -> Iterator[str]:
        title, names = self.bands[number]
        colour, ground = _BANDS[number % len(_BANDS)]
        yield (
            f'<rect x="{_MARGIN:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="10" '
            f'fill="{ground}"/>'
        )
        if title:
            yield draw_text(_MARGIN + _PAD, top + 22, title, 14, colour, weight=700)
        left, base = _MARGIN + _PAD, top + _PAD + (_TITLE if title else 0)
        place = {
            name: (left + layout.columns[name] * (_WIDE + _BETWEEN), base + layout.tops[name])
            for name in names
        }
        lines: list[tuple[bool, str]] = []
        for name in names:
            for row_number, row in enumerate(self.cards[name].rows):
                if (name, row.target) in layout.lanes:
                    lines.append(
                        (not row.never, self._render_line(name, row_number, layout, place, base, colour))
                    )
        yield from (line for _, line in sorted(lines, key=lambda one: one[0]))
        for name in names:
            yield from self._draw_card(number, name, place[name], layout)

    def _render_line(
        self,
        name: str,
        number: int,
        layout: DiagramLayout,
        place: Mapping[str, tuple[float, float]],
        base: float,
        colour: str,
    ) -> str:
        card = self.cards[name]
        row = card.rows[number]
        x, y = place[name][0] + _WIDE, place[name][1] + card.find_port(number)
        end_x, end_y = place[row.target][0] - 5, place[row.target][1] + _HEAD / 2
        path = f"M{x:g} {y:g}"
        for lane in layout.lanes[name, row.target]:
            path += draw_bend(x, y, x + _BETWEEN, base + lane) + f"h{_WIDE:g}"
            x, y = x + _BETWEEN + _WIDE, base + lane
        path += draw_bend(x, y, end_x, end_y)
        dash, wide, shown = "", 1.0 + 3.2 * row.share, colour
        if row.refused:
            shown, dash, wide = LOCK, ' stroke-dasharray="5 3"', max(wide, 1.4)
        if row.never:
            shown, dash, wide = FAINT, ' stroke-dasharray="2 3"', 1.2
        head = f'<path d="M{end_x + 5:g} {end_y:g}l-7 -4v8z" fill="{shown}"/>'
        said = f"{name} → {row.target}{_format_percent(row)}"
        return (
            f'<g opacity="0.85"><title>{escape_xml(said)}</title><path d="{path}" fill="none" '
            f'stroke="{shown}" stroke-width="{wide:.3g}"{dash}/>{head}</g>'
        )

    def _draw_card(
        self, band: int, name: str, place: tuple[float, float], layout: DiagramLayout
    ) -> Iterator[str]:
        card, state = self.cards[name], self.machine.states[name]
        colour = _BANDS[band % len(_BANDS)][0]
        unseen = card.visits == 0 and name != self.machine.initial
        first = name == self.machine.initial
        yield f'<g transform="translate({place[0]:g} {place[1]:g})">'
        yield f"<title>{escape_xml(join_full_text(state))}</title>"
        border = f'stroke="{FAINT if unseen else colour}" stroke-width="{2.4 if first else 1.1}"'
        dash = ' stroke-dasharray="4 3"' if unseen else ""
        yield (
            f'<rect width="{_WIDE:g}" height="{card.height:g}" rx="7" '
            f'fill="{"#f4f5f6" if unseen else "#fff"}" {border}{dash}/>'
        )
        counted = "" if card.visits is None or first else f"{card.visits:,}"
        room = _WIDE - 20 - len(counted) * 7
        yield draw_text(
            9, 16, fit_text(name, 11.5, room, MONO_EM), 11.5, SOFT if unseen else INK, weight=700, font=MONO
        )
        if counted:
            yield draw_text(_WIDE - 9, 16, counted, 11, SOFT, anchor="end")
        yield from self._render_entries(band, name)
        y = _HEAD
        if state.formulations:
            said = fit_text(f"“{state.formulations[0]}”", 10.5, _WIDE - 18, SANS_EM)
            yield draw_text(9, y + 8, said, 10.5, SOFT, style="italic")
            y += _LINE
        for shade, words in card.remarks:
            yield mark(13, y + 5, shade)
            yield draw_text(22, y + 8.5, fit_text(words, 10, _WIDE - 30, 0.55), 10, shade)
            y += _LINE
        for number, row in enumerate(card.rows):
            yield from self._draw_row(band, name, card.find_port(number), row, layout, colour)
        yield "</g>"

    def _render_entries(self, band: int, name: str) -> Iterator[str]:
        """Yield a dot for each other band from which a transition leads to this state."""
        others = sorted(
            {
                self.band_of[other]
                for other, card in self.cards.items()
                for row in card.rows
                if row.target == name and self.band_of[other] != band
            }
        )
        for number, other in enumerate(others[:4]):
            yield (
                f'<circle cx="0" cy="{_HEAD / 2 + number * 11:g}" r="4.5" '
                f'fill="{_BANDS[other % len(_BANDS)][0]}" stroke="#fff"/>'
            )

    def _draw_row(
        self, band: int, name: str, y: float, row: _Row, layout: DiagramLayout, colour: str
    ) -> Iterator[str]:
        shade = FAINT if row.never else LOCK if row.refused else INK
        if row.share and not row.never:
            long = (_WIDE - 2) * row.share
            yield (
                f'<rect x="1" y="{y - _ROW / 2 + 1:g}" width="{long:.4g}" height="{_ROW - 2:g}" '
                f'fill="{colour}" opacity="0.13"/>'
            )
        share = "else" if row.refused and row.taken is None else f"{row.share:.0%}"
        yield draw_text(36, y + 3.5, share, 10, shade, anchor="end")
        end = _WIDE - 9 if row.taken is None else _WIDE - 13 - len(f"{row.taken:,}") * 6
        target = self.band_of.get(row.target)
        marked = (name, row.target) not in layout.lanes
        room = end - 42 - (16 if marked else 0)
        yield draw_text(42, y + 3.5, fit_text(row.target, 10.5, room, MONO_EM), 10.5, shade, font=MONO)
        if row.taken is not None:
            yield draw_text(_WIDE - 9, y + 3.5, f"{row.taken:,}", 10, shade, anchor="end")
        if not marked or row.target in self.machine.fixed:
            return
        if target is None:
            yield draw_text(_WIDE + 4, y + 3.5, "not there", 10, BAD)
        elif target == band:
            yield draw_arrow(end - 10, y, shade)
        else:
            yield (
                f'<circle cx="{_WIDE:g}" cy="{y:g}" r="4.5" fill="{_BANDS[target % len(_BANDS)][0]}" '
                'stroke="#fff"/>'
            )


def _count_visits(machine: Machine, counts: Counts | None) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(machine.states, 0)
    for (_, target), count in (counts or {}).items():
        found[target] = found.get(target, 0) + count
    return found


def _format_percent(row: _Row) -> str:
    taken = "" if row.taken is None else f", taken {row.taken:,} times"
    return f": {row.share:.1%}{taken}"
