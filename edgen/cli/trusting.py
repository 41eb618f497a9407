"""Consent to send a key, as a command asks for it: what the user said beforehand, else a question on the terminal.

Every pair of variable and host that will be used is told on stderr, once, before the first call; a key never is. An
answer on the terminal is remembered in the user's own file, beside the lines that they wrote there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.cli.consent import ask, somebody_there
from edgen.cli.output import note
from edgen.errors import InputError, UsageError
from edgen.files import write_whole
from edgen.trust import Allowed, Consents, Place, Refused, consent_file, gathered, read_consents

if TYPE_CHECKING:
    from edgen.config import BackendConfig

Confirm = Callable[[str], bool]


class Trust:
    """What the user of one command lets go where. `typed` is what `--trust-host` says; `confirm` asks a person, None
    where nobody sits there."""

    def __init__(
        self,
        typed: Iterable[str] | None = None,
        environ: Mapping[str, str] = os.environ,
        confirm: Confirm | None = None,
    ) -> None:
        self.environ = environ
        self.consents: Consents = gathered(environ, typed or ())
        self._confirm = confirm if confirm is not None or not somebody_there() else ask
        self._told: set[str] = set()

    def settle(self, configs: Iterable[BackendConfig]) -> Consents:
        """All consents, with those that are given now for these backends; tells what goes where.

        Raises InputError where a key may not go where a backend would send it.
        """
        from edgen.config import SimulatorConfig

        for config in configs:
            if not isinstance(config, SimulatorConfig):
                self._settle(config)
        return self.consents

    def _settle(self, config: BackendConfig) -> None:
        from edgen.backends.keys import asked, verdict

        wanted = asked(config)
        found = None if wanted is None else verdict(wanted, self.environ, self.consents)
        if found is None:
            return
        variable, decision = found
        if isinstance(decision, Refused):
            if decision.place is None or self._confirm is None:
                raise InputError(decision.sentence)
            self._consent(variable, decision.place, decision.sentence, self._confirm)
            decision = Allowed(decision.place)
        if isinstance(decision, Allowed):
            self._tell(f"edgen: the key in {variable} goes to {decision.place.name}.")

    def _consent(self, variable: str, place: Place, sentence: str, confirm: Confirm) -> None:
        """Ask a person, and remember a yes. Raises InputError for a no."""
        file = consent_file(self.environ)
        kept = f" (a yes is remembered in {file})" if file is not None else ""
        if not confirm(f"edgen: the job wants the key in {variable} sent to {place.name}. Send it?{kept}"):
            raise InputError(sentence)
        if file is not None:
            remember(file, f"{place.name}={variable}")
        self.consents = self.consents.also(variable, place)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            note(text)


def remember(file: Path, pair: str) -> None:
    """Add a pair to the user's file, which nobody else may read. Raises UsageError where it cannot be written."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8").rstrip() if file.exists() else _HEAD
        text = f"{before}\n- {pair}\n"
        read_consents(text, str(file))  # a list that somebody wrote in brackets has no line more
        file = file.resolve()  # it is the user's own, also where they keep it elsewhere
        write_whole(file, text)
        file.chmod(0o600)
    except OSError as problem:
        raise UsageError(
            f"{file}: it cannot be written ({problem.strerror}). Say it on the command line: --trust-host {pair}."
        ) from None


_HEAD = "# Where edgen may send a key: HOST=VARIABLE, a line a pair. See docs/trust.md."
