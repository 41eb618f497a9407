"""`--notify`: report the end of an edgen command, once, to a command or a web address.

Typing the option is the consent, so no job can set it. The status holds no key, prompt or answer. A command
gets it on its standard input, in an environment without keys; an address gets it by POST, over https or on
this machine, where no proxy is used. Redirects are not followed. Both end after `PATIENCE` at the latest, and
neither changes edgen's exit code.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from edgen.cli.output import render_json
from edgen.core.errors import UsageError
from edgen.core.system import kill_with_children

PATIENCE = 10.0  # seconds
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|AUTH|DATABASE_URL|_DSN$|^AWS_|^PG|^SSH_", re.IGNORECASE
)
_WEB = ("http", "https")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?=\S+$)")  # how another address begins
_PROGRAM = re.compile(r"[\w./+-]+(?=\s|$)")  # a command's first word, if it is plain
_MOST_SAID = 4_000  # bytes of a command's errors that are read
_QUOTED = re.compile("“.*”", re.DOTALL)  # to the last mark, since the quoted text may contain some


class Notifier:
    """A receiver of the status: `target` is a command for the shell, or a web address. Raises UsageError for
    anything else."""

    def __init__(self, target: str) -> None:
        self._target = target.strip()
        self._host = ""
        if not self._target:
            raise UsageError(
                "--notify: name a command or a web address, as in --notify https://example.org/hook."
            )
        try:
            address = urlsplit(self._target)
            port = address.port
        except ValueError:
            raise UsageError("--notify: this is not a valid web address.") from None
        if address.scheme.lower() not in _WEB:
            _check_command(self._target)
            return
        self._host = address.hostname or ""
        if not self._host or address.username or any(not 32 < ord(char) < 127 for char in self._target):
            raise UsageError(
                "--notify: expected a web address with a host and without a user, as in "
                "https://example.org/hook."
            )
        if address.scheme.lower() == "http" and self._host not in ("localhost", "127.0.0.1", "::1"):
            raise UsageError(
                f"--notify: {self._host} is not this machine, and http can be read on the way; use https."
            )
        self._host += f":{port}" if port else ""

    def send(self, facts: Mapping[str, Any], keys: Collection[str]) -> str | None:
        """Send the status; return a clause about a failure, None on success. `keys`: variables that hold
        keys."""
        body = render_json(_without_quotes(facts)).encode()
        if not self._host:
            return self._run(body, facts, keys)
        answers: list[str | None] = ["it did not answer in time"]
        thread = threading.Thread(target=lambda: answers.append(self._post(body)), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        return answers[-1]

    def _run(self, body: bytes, facts: Mapping[str, Any], keys: Collection[str]) -> str | None:
        environ = {
            name: value for name, value in os.environ.items() if name not in keys and not _SECRET.search(name)
        }
        environ |= {"EDGEN_STATE": str(facts["state"]), "EDGEN_EXIT": str(facts["exit_code"])}
        # A file, not a pipe: programs that the command leaves in the background may keep it open.
        with tempfile.TemporaryFile() as errors:
            try:
                with subprocess.Popen(  # noqa: S603 - typed by the user who starts the command
                    ["/bin/sh", "-c", self._target],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=environ,
                    start_new_session=True,
                ) as process:
                    try:
                        process.communicate(body, timeout=PATIENCE)
                    except subprocess.TimeoutExpired:
                        kill_with_children(process.pid)
                        return f"the command took longer than {PATIENCE:g} s and was ended"
            except OSError as problem:
                return f"the command cannot be run ({problem.strerror})"
            if not process.returncode:
                return None
            errors.seek(0)
            said = errors.read(_MOST_SAID).decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        return f"the command ended with {process.returncode}{f' ({last})' if last else ''}"

    def _post(self, body: bytes) -> str | None:
        import http.client
        from urllib.error import HTTPError, URLError
        from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

        class NoRedirects(HTTPRedirectHandler):
            def redirect_request(self, *_args: Any) -> None:
                return None

        headers = {"Content-Type": "application/json", "User-Agent": "edgen"}
        request = Request(self._target, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) alone
        # A proxy is another machine, which could read plain http.
        direct = [] if request.type == "https" else [ProxyHandler({})]
        try:
            with build_opener(NoRedirects, *direct).open(request, timeout=PATIENCE):
                return None
        except HTTPError as problem:
            problem.close()
            redirected = ", and redirects are not followed" if 300 <= problem.code < 400 else ""
            return f"{self._host} answered HTTP {problem.code}{redirected}"
        except (URLError, OSError, http.client.HTTPException, ValueError) as problem:
            cause = getattr(problem, "reason", problem)
            why = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
            return f"{self._host} cannot be reached ({why})"


def _check_command(command: str) -> None:
    """Raise UsageError for a command that the shell cannot run, rather than at the end of a long run: one
    that it cannot read, a program that is missing, or an address of another kind than the web's."""
    if found := _ADDRESS.match(command):
        raise UsageError(
            f"--notify: {found[0]} addresses are not supported; name an https address, or a command such as "
            "curl."
        )
    if said := _run_shell("-n", "-c", command):
        raise UsageError(f"--notify: the shell cannot read this command ({said}).")
    first = _PROGRAM.match(command)
    if first is not None and _run_shell("-c", 'type "$1" > /dev/null 2>&1 || echo none >&2', "sh", first[0]):
        raise UsageError(
            f"--notify: there is no command {first[0]} here; name a command of this machine, or a web address."
        )


def _run_shell(*arguments: str) -> str:
    """Run the shell; return the last line of its errors, "" without any and without a shell."""
    try:
        done = subprocess.run(["/bin/sh", *arguments], capture_output=True, text=True, errors="replace")  # noqa: S603
    except OSError:
        return ""
    return done.stderr.strip().rpartition("\n")[2]


def _without_quotes(value: Any) -> Any:
    """Return the status without quotations, which are beginnings of answers."""
    if isinstance(value, str):
        return _QUOTED.sub("“…”", value)
    if isinstance(value, Mapping):
        return {key: _without_quotes(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_quotes(one) for one in value]
    return value
