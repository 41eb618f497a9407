"""Arguments and options that several commands share, each said once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from typer import Argument, Option
from typer.core import TyperCommand

from edgen.core.errors import UsageError

# -- what a command is about

JobArgument = Annotated[Path, Argument(metavar="JOB", help="The job file (YAML).")]
RunArgument = Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")]

SampleOption = Annotated[
    int | None,
    Option("--sample", metavar="N", min=1, help="N conversations of the run (of each arm), drawn by hash."),
]

# -- how it prints

JsonOption = Annotated[bool, Option("--json", help="Print one JSON object on stdout.")]

# -- the job, and what it may use

SetOption = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override a job key, as in --set limits.in_flight=8."),
]
CountOption = Annotated[
    int | None, Option("-n", metavar="N", min=1, help="Conversations, instead of the job's number.")
]
TrustOption = Annotated[
    list[str] | None,
    Option(
        "--trust-host",
        metavar="HOST[=VAR]",
        help="Let the key in VAR (without VAR: in whichever the job names) go to HOST; see docs/trust.md.",
    ),
]
OutsideOption = Annotated[
    bool, Option("--allow-outside", help="Read files that the job names outside its project, too.")
]

# -- how the work is done

DryRunOption = Annotated[
    bool, Option("--dry-run", help="Say how many calls it would take, and make none. Nothing is written.")
]
ViaOption = Annotated[
    Literal["online", "batch"],
    Option("--via", help="online: call by call. batch: by the provider's batch service, cheaper."),
]
UntilOption = Annotated[
    str | None,
    Option("--until", metavar="HH:MM", help="Stop cleanly at that time, local; exit code 4, resumable."),
]
ForOption = Annotated[
    str | None,
    Option("--for", metavar="SPAN", help="Stop cleanly after that long, as in 3h or 45m; exit code 4."),
]
LogFormatOption = Annotated[
    Literal["text", "json"],
    Option("--log-format", help="What goes to stderr: lines for people, or one JSON event a line."),
]
MetricsOption = Annotated[
    Path | None,
    Option("--metrics", metavar="FILE", help="Keep figures there in Prometheus' text format (*.prom)."),
]


def read_overrides(set_: list[str] | None, count: int | None = None) -> tuple[str, ...]:
    """What `--set` and `-n` say."""
    return (*(set_ or ()), *(() if count is None else (f"conversations={count}",)))


def read_range(text: str | None) -> range | None:
    """`A:B` as a range of scenarios."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,13}):([0-9]{1,13})", text.strip())
    if found is None or int(found[1]) >= int(found[2]):
        raise UsageError(f"--range {text}: expected A:B with A below B, as in --range 0:10000.")
    return range(int(found[1]), int(found[2]))


class SeveralWords(TyperCommand):
    """A command with an option that takes several words: `--arms A B`, `--arms A,B` and `--arms A --arms B`
    are the same. Click takes the first as `--arms A` and an argument more."""

    option: ClassVar[str]

    def takes(self, word: str) -> bool:  # noqa: ARG002 - for those who know the words
        """Whether a word behind the option's first is one more of its values, and no argument."""
        return True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, args: list[str]) -> Iterator[str]:
        """The option before each of its values, and nowhere else."""
        inside, bare = False, False  # bare: the option stands there, and no value yet
        for number, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word.startswith("-") and len(word) > 1:
                if bare:
                    yield self.option
                inside = name == self.option
                bare = inside and not equals
                if word == "--":
                    yield from args[number:]
                    return
                if not inside:
                    yield word
                elif equals:
                    yield from self._each(value)
            elif inside and (bare or self.takes(word)):
                bare = False
                yield from self._each(word)
            else:
                inside = False
                yield word
        if bare:
            yield self.option

    def _each(self, text: str) -> Iterator[str]:
        for value in text.split(","):
            if value.strip():
                yield from (self.option, value.strip())
