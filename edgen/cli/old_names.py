"""Old names of commands and options. They work as before, and no help lists them."""

from __future__ import annotations

from collections.abc import Mapping

# Each old command with the words that replace it.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "runs": ("status", "--list"),
    "prompts": ("list", "prompts"),
    "plugins": ("list", "plugins"),
    "parse": ("validate", "--replies"),
    "candidates": ("annotate",),
}
# For each command, its old options with the new ones. Under a command's old name: options that only the old
# name had.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "generate": {"--force": "--yes"},
    "pairs": {"--by": "--signal", "--judge": "--backend", "--human": "--people"},
    "annotate": {"--by": "--backend"},
    "candidates": {"-n": "--texts"},
    "baseline": {"--by": "--method", "--none": "--with-none"},
    "stats": {"--judge": "--adherence"},
    "space expand": {"--job": "--backend"},
    "space from-csv": {"--force": "--yes"},
    "space from-ed": {"--force": "--yes"},
}
