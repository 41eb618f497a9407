"""A space in lines: sizes, cells, weights, what a balanced design needs, and the new values of one that grew."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from edgen.api.spaces.growth import GrownSpace
from edgen.cli.render.figures import format_cost

_WIDE = 40  # characters of a value that are shown
_EXAMPLES = 5  # new values that are shown


def render_space(facts: dict[str, Any]) -> list[str]:
    """The same for a person, within 80 columns where values are short."""
    sizes = {name: about["values"] for name, about in facts["dimensions"].items()}
    lines = [f"{'space':11} {facts['space']} ({facts['file']})"]
    for key in ("description", "source"):
        lines += wrap(
            facts[key] or "",
            80,
            initial_indent=f"{key:11} ",
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
        )
    lines += [f"{'content':11} sha256 {facts['content_sha256'][:16]}…", ""]
    for name, about in facts["dimensions"].items():
        lines += _dimension(name, about)
    lines += _cells(facts, sizes)
    for i, (role, sees) in enumerate(facts["roles"].items()):
        text = f"{role} sees {', '.join(sees) or 'nothing'}"
        lines += wrap(text, 80, initial_indent=f"{'' if i else 'roles':20} ", subsequent_indent=" " * 23)
    return [*lines, "", *_render_table(facts)]


def _dimension(name: str, about: dict[str, Any]) -> Iterator[str]:
    yield f"{name:20} {about['values']:>7,} values, {_describe_weights(about)}"
    for key in ("most_probable", "least_probable"):
        for one in about.get(key, ()):
            yield f"{'':28} {one['probability']:6.2%}  {_shorten(one['value'])}"
    if about["label"]:
        yield f"{'':28} label: {_shorten(about['label'])}"
    if about["fields"]:
        said = ", ".join(f"{field} ({count:,})" for field, count in about["fields"].items())
        yield from wrap(f"with {said}", 80, initial_indent=" " * 29, subsequent_indent=" " * 29)
    if about["conditional"]:
        yield f"{'':28} {about['conditional']:,} under conditions on {', '.join(about['depends_on'])}"


def _cells(facts: dict[str, Any], sizes: dict[str, int]) -> list[str]:
    if facts["cells"] is None:
        return [
            f"{'cells':20} too many conditions to count them, of {facts['product']:,}",
            f"{'':20} A balanced design draws them at random, all values alike.",
        ]
    if facts["cells_by_value"] is None:
        product = f"{facts['cells']:>7,} = {' x '.join(f'{size:,}' for size in sizes.values())}"
        return wrap(product, 80, initial_indent=f"{'cells':20} ", subsequent_indent=" " * 29)
    lines = [f"{'cells':20} {facts['cells']:>7,} allowed of {facts['product']:,}"]
    if facts["exclude"]:
        many = len(facts["exclude"])
        lines.append(f"{'':28} {many:,} combination{' is' if many == 1 else 's are'} excluded")
    lines.append(f"{'':28} Balanced, each comes equally often; a value of …")
    for name, counts in facts["cells_by_value"].items():
        least, most = counts["least"], counts["most"]
        times = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        lines.append(f"{'':28} … {name} in {times} of {facts['cells']:,}")
    return lines


def _describe_weights(about: dict[str, Any]) -> str:
    if not about["weighted"]:
        return "all weigh the same"
    return "weighted (in the random design only):"


def _shorten(value: str) -> str:
    return value if len(value) <= _WIDE else f"{value[: _WIDE - 1]}…"


def _render_table(facts: dict[str, Any]) -> list[str]:
    """How many conversations, by what is to be covered and how often."""
    if not facts["balanced"]:
        return []
    columns = [need["per_cell"] for need in facts["balanced"][0]["needed"]]
    head = f"{'conversations for k of each':30} {'of them':>10}" + "".join(
        f"{f'k = {k:,}':>13}" for k in columns
    )
    rows = []
    for stratum in facts["balanced"]:
        counts = "".join(f"{need['in_each']:>13,}" for need in stratum["needed"])
        title = _describe_stratum(stratum["by"], len(facts["dimensions"]))
        rows.append(f"{title:30} {stratum['cells']:>10,}{counts}")
    return [
        head,
        *rows,
        "",
        "So many conversations of a balanced design (`design: balanced`) have each of",
        "them k times or more: cells for certain, what spans many cells with 19 of 20",
        "seeds or more.",
    ]


def _describe_stratum(names: list[str], dimensions: int) -> str:
    """`student x teacher preference` for the preferences of both."""
    if len(names) == dimensions:
        return "cell (all dimensions)"
    *before, last = [name.replace("_", " ") for name in names]
    return " x ".join([*(name.rpartition(" ")[0] for name in before), last])


def render_grown(grown: GrownSpace) -> Iterator[str]:
    """What came of the asking for new values."""
    made_up = " (simulated: no model wrote them)" if grown.simulated else ""
    dropped = ", ".join(f"{reason} {number}" for reason, number in grown.dropped.items())
    calls = grown.calls
    yield f"space      {grown.space}: {grown.present} {grown.dimension}"
    yield f"asked      {grown.asked} more, of {grown.model or 'the model'}{made_up}"
    yield f"kept       {grown.kept}"
    yield from (f"           {value}" for value in grown.values[:_EXAMPLES])
    if grown.kept > _EXAMPLES:
        yield "           …"
    yield f"dropped    {dropped or 'none'}"
    yield f"calls      {calls['made']} made, {calls['replayed']} replayed, {calls['retried']} retried"
    yield f"cost       {format_cost(grown.cost_usd)}"
    if grown.file:
        yield f"file       {grown.file}"
    yield f"ledger     {grown.ledger} (every answer as it came)"
