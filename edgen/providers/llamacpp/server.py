"""llama.cpp's server in this process, through xllamacpp.

As a script, this module loads a model for trial, with the settings from standard input (JSON), and prints
llama.cpp's errors. llama.cpp aborts its process on some files; then only the script ends. The script imports
nothing of edgen, so it starts quickly.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_LOGGING = 0.3  # seconds; llama.cpp prints its errors in a separate thread


def start(settings: dict[str, Any], key: str, *, errors: bool = False) -> Any:
    """Load a model and return its `xllamacpp.Server`. Raises RuntimeError if llama.cpp cannot load it, or the
    chat template fails.

    `settings`: path, threads, slots, context (tokens of each slot), chat_template (empty: the model's own).
    The server listens on a loopback port that `key` opens. It allows no origin, so no web page can use it.
    `errors`: print llama.cpp's errors on stderr.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.cors_origins = ""
    params.cors_credentials = False
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.use_jinja = True
    if settings["chat_template"]:
        params.chat_template = settings["chat_template"]
    # An answer must not depend on earlier requests, so no prompt is cached.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    # Use edgen's settings. llama.cpp would fit them to the present free memory.
    params.fit_params = False
    params.warmup = False
    params.verbosity = 1 if errors else -1
    server = xllamacpp.Server(params)
    # A server that is closed before its loop runs never ends, so it answers a request first.
    answer = server.handle_chat_completions(
        {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 1}
    )
    if "error" in answer:
        raise RuntimeError(answer["error"].get("message", "it gives no answer"))
    return server


if __name__ == "__main__":
    try:
        start(json.load(sys.stdin), "trial", errors=True)
    except Exception as problem:  # noqa: BLE001 - any error of the library is the result
        time.sleep(_LOGGING)
        sys.exit(f"TRIAL {problem}")
