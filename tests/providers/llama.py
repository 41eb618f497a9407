"""A real llama.cpp server for tests, around a generated model: tiny, random, without downloads.

As a script (`python llama.py MODEL KEY CONTEXT`) it serves until its standard input ends, so it never
outlives the tests that started it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgen.providers import Backend

Build = Callable[..., "Backend"]  # an embedded model, by settings of its backend
CONTEXT = 256  # tokens of a slot
KEY = "llama-cpp-test-key"
MODEL = "tiny-random"
# The plainest chat layout: each message in its role's brackets, then the assistant's opening.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


@dataclass(frozen=True)
class Server:
    """The server's address, its key, and the name of its model."""

    base_url: str
    key: str = KEY
    model: str = MODEL


def write_model(path: Path, context: int) -> None:
    """Write a Llama model of two layers with random weights and a byte-level vocabulary, as
    GGUF; under 1 MB."""
    import gguf
    import numpy as np
    from tokenizers.pre_tokenizers import ByteLevel

    # All bytes and one pair, because this kind of vocabulary needs a merge.
    vocabulary = [*SPECIAL, *sorted(ByteLevel.alphabet()), "th"]
    width, inner, layers, heads, shared_heads = 64, 128, 2, 4, 2
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(MODEL)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(shared_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(len(vocabulary))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in SPECIAL else normal for token in vocabulary])
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)

    random = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(width, np.float32))

    tensor("token_embd.weight", len(vocabulary), width)
    tensor("output.weight", len(vocabulary), width)
    ones("output_norm.weight")
    for layer in range(layers):
        block = f"blk.{layer}."
        ones(f"{block}attn_norm.weight")
        ones(f"{block}ffn_norm.weight")
        tensor(f"{block}attn_q.weight", width, width)
        tensor(f"{block}attn_k.weight", width * shared_heads // heads, width)
        tensor(f"{block}attn_v.weight", width * shared_heads // heads, width)
        tensor(f"{block}attn_output.weight", width, width)
        tensor(f"{block}ffn_gate.weight", inner, width)
        tensor(f"{block}ffn_up.weight", inner, width)
        tensor(f"{block}ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextlib.contextmanager
def running(folder: Path, context: int = CONTEXT, key: str = KEY) -> Iterator[Server]:
    """Run a server in a process of its own, with its model and log in `folder`, until the context ends.
    `key`: the key that it demands; empty: none."""
    model, log = folder / "tiny.gguf", folder / "server.log"
    write_model(model, context)
    with (
        log.open("wb") as sink,
        subprocess.Popen(
            [sys.executable, __file__, str(model), key, str(context)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # The loop ends with the address, or with the process and an empty read.
            address = next((line[len(_UP) :] for line in process.stdout if line.startswith(_UP)), None)
            assert address is not None, f"the server did not start:\n{log.read_text(errors='replace')}"
            yield Server(base_url=f"{address.strip()}/v1", key=key)
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


_UP = "serving at "


def serve(model: str, key: str, context: int) -> None:
    """Serve until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key] if key else []
    params.n_ctx = 2 * context
    params.n_parallel = 2
    params.n_batch = context
    params.cpuparams.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    print(_UP + server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
