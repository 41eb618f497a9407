"""Made-up spaces with conditions for tests, and their properties by brute force."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from edgen.space import Dimension, Entry, Space

Cell = tuple[int, ...]


def plain_space(*sizes: int) -> Space:
    """Return a space without conditions, with this many values in each dimension."""
    return Space(
        name="made",
        dimensions=tuple(
            Dimension(f"d{i}", tuple(Entry(f"{i}.{j}") for j in range(size))) for i, size in enumerate(sizes)
        ),
        roles=(),
    )


@st.composite
def conditional_spaces(draw: st.DrawFn) -> Space:
    """Draw up to five dimensions of up to four values; conditions without a circle; exclusions."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    names = [f"d{i}" for i in range(len(sizes))]

    def some_of(place: int) -> tuple[str, ...]:
        values = [f"{place}.{j}" for j in range(sizes[place])]
        return tuple(draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))

    dimensions = []
    for i, size in enumerate(sizes):
        entries = []
        for j in range(size):
            above = [place for place in range(i) if draw(st.integers(0, 3)) == 0]
            when = {names[place]: some_of(place) for place in above}
            entries.append(Entry(f"{i}.{j}", draw(st.sampled_from([1.0, 2.0, 0.5])), {}, when))
        dimensions.append(Dimension(names[i], tuple(entries)))
    exclude = []
    for _ in range(draw(st.integers(0, 3))):
        places = draw(st.lists(st.sampled_from(range(len(sizes))), min_size=1, unique=True))
        exclude.append({names[place]: some_of(place) for place in places})
    return Space(
        name="made", dimensions=tuple(draw(st.permutations(dimensions))), roles=(), exclude=tuple(exclude)
    )


def allowed_cells(space: Space) -> set[Cell]:
    """Return every cell that the conditions and exclusions allow, out of the whole product."""
    found = set()
    for cell in itertools.product(*[range(len(one.entries)) for one in space.dimensions]):
        entries = {one.name: one.entries[at] for one, at in zip(space.dimensions, cell, strict=True)}
        values = {name: entry.value for name, entry in entries.items()}
        fits = all(values[name] in wanted for one in entries.values() for name, wanted in one.when.items())
        out = any(all(values[name] in wanted for name, wanted in one.items()) for one in space.exclude)
        if fits and not out:
            found.add(cell)
    return found
