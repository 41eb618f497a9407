"""Detect labels that follow their texts, which the frames of `frames` read."""

from __future__ import annotations

from edgen.reading.lines.line import Lines

_FEW = 3  # labels below their texts, the last one aside


def follow_texts(found: Lines) -> bool:
    """Return whether all labels stand below the texts that they name, each before a blank line, or are short
    texts before who says them: `Okay. (Student)`."""
    if found.lines[0].kind == "colon":
        return False
    if _are_signed_texts(found):
        return True
    bodies = [line.body for line in found.lines[:-1]]
    before = [found.lead, *bodies]
    return (
        len(bodies) >= _FEW
        and all(text.strip() and not text.rstrip(" \t").endswith(("\n", "|>")) for text in before)
        and all(
            body.lstrip(" \t").startswith("\n") and not body.lstrip(" \t")[1:].partition("\n")[0].strip()
            for body in bodies
        )
    )


def _are_signed_texts(found: Lines) -> bool:
    """Return whether all labels are a name and a role in brackets, which other lines end with, too."""
    closing = found.lines[0].label.rstrip()[-1:]
    if closing not in (")", "]") or not all(line.named and line.kind == "alone" for line in found.lines):
        return False
    signs = tuple({f"{line.role.lower()}{closing}" for line in found.lines})
    lines = "\n".join([found.lead, *[line.body for line in found.lines]]).lower().split("\n")
    return any(line.rstrip().endswith(signs) for line in lines)
