"""Calls of an embedded model: llama.cpp's server, on a loopback port of this process.

The model is loaded at the first call. A call waits for a free slot without a time limit, since only edgen's
own calls use the slots. An answer has no time limit either while the process computes, since a retry would
compute it again; the limit counts the time in which the process does not work. A JSON Schema becomes a
grammar without optional white space, which small models otherwise repeat until `max_tokens`. Log
probabilities are the model's own, from before the grammar. llama.cpp's `post_sampling_probs` would be those
after top-k and temperature (1.0 at temperature 0), and exclude tokens that the grammar forbids only if the
first draw was forbidden.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from edgen.plugin import CallError, FailureKind, Key, Link, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import describe_config, encode, memory_size
from edgen.providers.llamacpp.config import LlamaCppConfig, is_template
from edgen.providers.llamacpp.engine import Engine, Settings, close_engine, open_engine, require_library
from edgen.providers.llamacpp.header import Header, read_header
from edgen.providers.llamacpp.installed import find_installed
from edgen.providers.llamacpp.notes import find_digest
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai.online import OpenAIBackend

_CONTEXT = 4096  # tokens
_PADDED = 256  # tokens; llama.cpp's contexts are multiples of this number
_MOST_TEMPLATE = 1 << 20  # bytes
_TEMPLATES = (".jinja", ".j2")
_WORKING = 0.02  # least CPU time of a process that computes, as a share of the time
_LOOK = 5.0  # most seconds between two checks


class LlamaCppBackend:
    """One model with one set of settings. Raises InputError for a model that cannot be used."""

    def __init__(self, config: LlamaCppConfig, link: Link, threads: int) -> None:
        require_library()
        self._path = Path(config.path) if config.path is not None else find_installed(config.model).path
        header = read_header(self._path)
        template = _read_template(config.chat_template)
        if not (template or header.chat_template):
            raise InputError(
                f"{self._path} has no chat template, as base models have none. Name a model for "
                "conversations, or give the backend a `chat_template:` (a Jinja text, or a .jinja file)."
            )
        context = config.context or min(_CONTEXT, header.trained_context or _CONTEXT)
        _require_memory(self._path, header, config.slots * context)
        self.model = config.model or self._path.stem
        self._settings = Settings(find_digest(self._path), threads, config.slots, context, template)
        self.identity = {
            **describe_config(config),
            "sha256": self._settings.sha256,
            "context": context,
            "chat_template": template,
        }
        self._config, self._link = config, link
        self._loading: asyncio.Future[Engine] | None = None
        self._service: _Service | None = None
        self.progress = 0

    def __repr__(self) -> str:
        return f"LlamaCppBackend(model={self.model!r}, path={str(self._path)!r})"

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError, and InputError for a model that cannot be loaded."""
        engine = await self._load()
        service = self._service = self._service or _Service(self._config, engine, self._link)
        try:
            async with engine.find_free_slots():
                reply = await wait_while_computing(
                    service.complete(request), self._link.timeout, self._note_work
                )
        except CallError as failure:
            if failure.kind is FailureKind.CONTEXT_OVERFLOW:
                context = self._settings.context
                more = f", rounded up to a multiple of {_PADDED}" if context % _PADDED else ""
                failure.message += f". The backend has `context: {context}`{more}; raise it"
            raise
        return msgspec.structs.replace(reply, model=self.model)

    def _note_work(self) -> None:
        self.progress += 1

    async def models(self) -> list[str] | None:
        """Return the only model."""
        return [self.model]

    async def slots(self) -> int | None:
        """Return the number of concurrent answers."""
        return self._settings.slots

    async def aclose(self) -> None:
        """Close the connection, and unload the model if no other backend uses it. Never raises; may be called
        twice."""
        service, self._service = self._service, None
        loading, self._loading = self._loading, None
        if service is not None:
            await service.aclose()
        if loading is not None:
            with contextlib.suppress(InputError):
                await loading
                await asyncio.to_thread(close_engine, self._settings)

    async def _load(self) -> Engine:
        """Return the loaded model. If a call is cancelled meanwhile, the loading continues, so `aclose` can
        unload the model."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(open_engine, self._path, self._settings))
        return await asyncio.shield(self._loading)


async def wait_while_computing(
    answer: Coroutine[Any, Any, Reply], patience: float, on_work: Callable[[], None]
) -> Reply:
    """Return the answer, without a time limit as long as this process computes. Call `on_work` at each sign
    of work. Raises CallError after `patience` seconds without work, and the answer's errors.

    llama.cpp shows no token while it reads a prompt, which takes minutes on a busy machine, so the CPU time
    of the process is the sign of its work.
    """
    task = asyncio.ensure_future(answer)
    worked, since = time.process_time(), time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=min(_LOOK, patience / 4)))[0]:
            works, now = time.process_time(), time.monotonic()
            if works - worked >= _WORKING * (now - since):
                worked, since = works, now
                on_work()
            elif now - since >= patience:
                raise CallError(FailureKind.TIMEOUT, f"the model computed nothing for {patience:g} s")
        return task.result()
    finally:
        task.cancel()


class _Service(OpenAIBackend):
    """llama.cpp's server. It gets a JSON Schema as a grammar: with `response_format`, it would let the model
    write code fences around its answer."""

    def __init__(self, config: LlamaCppConfig, engine: Engine, link: Link) -> None:
        unlimited = link._replace(timeout=0)  # the backend limits the time of an answer
        super().__init__(_make_service_config(config, engine), Key(engine.key), unlimited)
        self._post_sampling = False

    def body(self, request: Request, more: bytes = b"") -> bytes:
        """Return the JSON body of a call. Raises CallError for a lone surrogate."""
        if request.schema is None:
            return super().body(request, more)
        plain = super().body(msgspec.structs.replace(request, schema=None), more)
        return plain[:-1] + b',"grammar":' + _compile_grammar(request.schema) + b"}"


def _make_service_config(config: LlamaCppConfig, engine: Engine) -> OpenAIConfig:
    return OpenAIConfig(
        model="model",
        base_url=f"{engine.address}/v1",
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        retry_max_tokens=config.retry_max_tokens,
        stop=config.stop,
        seed=config.seed,
        extra_body=config.extra_body,
    )


@functools.lru_cache(maxsize=256)
def _compile_grammar(schema: bytes) -> bytes:
    """Return a schema as llama.cpp's grammar, as a JSON text. `lenient` leaves out keywords that grammars do
    not support; edgen checks the answer later."""
    import xllamacpp

    whole: dict[str, Any] = msgspec.json.decode(schema)
    whole["x-guidance"] = {
        "whitespace_flexible": False,
        "item_separator": ", ",
        "key_separator": ": ",
        "lenient": True,
    }
    return encode(xllamacpp.json_schema_to_grammar(encode(whole).decode()))


def _read_template(named: str | None) -> str:
    """Return the text of a job's chat template; empty without one. Raises InputError."""
    if named is None or is_template(named):
        return named or ""
    path = Path(named)
    # A link in a foreign project may lead to any file, whose text would then become a prompt.
    if not all(one.suffix in _TEMPLATES for one in (path, path.resolve())):
        raise InputError(
            f"chat_template {named!r} is neither a template (which has braces) nor a .jinja or .j2 file."
        )
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_TEMPLATE + 1)
        if len(text) > _MOST_TEMPLATE:
            raise InputError(f"the chat template {path} is larger than 1 MiB, the most that is read.")
        return text.decode()
    except OSError as problem:
        raise InputError(f"the chat template {path} cannot be read: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise InputError(f"the chat template {path} is not text in UTF-8.") from None


def _require_memory(path: Path, header: Header, tokens: int) -> None:
    """Raise InputError if a model with a context of this size is larger than this machine's memory."""
    memory = memory_size()
    cache = header.cache_bytes * tokens
    if memory is None or header.size + cache <= memory:
        return
    raise InputError(
        f"the model {path} needs {_format_gigabytes(header.size)} for its weights and {_format_gigabytes(cache)} for a "
        "context of "
        f"{tokens:,} tokens, and this machine has {_format_gigabytes(memory)} of memory. Name a smaller model, or "
        "lower `context` or `slots`."
    )


def _format_gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
