"""Train the weights of a GGUF file with TRL, and write them as another file that llama.cpp runs.

python examples/improve/train.py MODEL.gguf ROWS... -o OUT.gguf [--method sft|dpo] [--epochs N] [--rate R]
[--seed N]

ROWS are folders that `edgen export --to trl-sft` or `--to trl-dpo` wrote. Needs torch, transformers, trl and
gguf.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}  # everything is read from files

import gguf
import torch
from datasets import Dataset, concatenate_datasets, load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

# The model's own chat template without its default system message, and with the marks by which TRL finds the
# tokens to learn.
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def load(path: Path) -> tuple[Any, Any]:
    """Return the model, in 32-bit floats, and its tokenizer."""
    folder, name = str(path.parent), path.name
    tokens = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokens.chat_template = CHAT
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    # The weights are ordinary floats now, which Trainer cannot know.
    model.is_quantized, model.hf_quantizer = False, None
    return model, tokens


def train(model: Any, tokens: Any, rows: Dataset, told: argparse.Namespace) -> float:
    """Train the model on all rows, one at a time; return the mean loss of the last epoch."""
    with tempfile.TemporaryDirectory() as folder:
        shared: dict[str, Any] = {
            "output_dir": folder, "per_device_train_batch_size": 1, "num_train_epochs": told.epochs,
            "learning_rate": told.rate, "lr_scheduler_type": "linear", "warmup_steps": 2, "seed": told.seed,
            "logging_strategy": "epoch", "report_to": [], "save_strategy": "no", "use_cpu": True, "bf16": False,
            "activation_checkpointing": False, "disable_tqdm": True, "max_length": 512,
        }  # fmt: skip
        if told.method == "sft":
            config = SFTConfig(**shared, assistant_only_loss=True)
            trainer: Any = SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokens)
        else:
            # The model's folder has no config.json, from which TRL would load the reference itself.
            trainer = DPOTrainer(
                model=model, ref_model=copy.deepcopy(model), args=DPOConfig(**shared), train_dataset=rows,
                processing_class=tokens,
            )  # fmt: skip
        trainer.train()
        return [line["loss"] for line in trainer.state.log_history if "loss" in line][-1]


def save(model: Any, source: Path, target: Path) -> None:
    """Write the model's weights as 16-bit floats, with the metadata of the source."""
    reader = gguf.GGUFReader(source)
    weights = dict(model.named_parameters())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, model.config.num_hidden_layers)
    named = {names.get_name(name, try_suffixes=(".weight",)): name for name in weights}
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue
        value = (
            int(gguf.LlamaFileType.MOSTLY_F16)
            if field.name == gguf.Keys.General.FILE_TYPE
            else field.contents()
        )
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, field.types[0], sub_type=inner)
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    for tensor in reader.tensors:
        weight = weights[named[tensor.name]].detach()
        if (part := tensor.name.split(".")[-2]) in heads:
            weight = interleave(weight, heads[part])
        writer.add_tensor(tensor.name, (weight.float() if weight.dim() == 1 else weight.half()).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleave(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Return a query's or key's weight in llama.cpp's order of rows: each head's halves alternate."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


def main() -> None:
    """Load, train and save the model; print the loss."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--method", choices=("sft", "dpo"), default="sft")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=7)
    told = parser.parse_args()
    torch.manual_seed(told.seed)
    torch.set_num_threads(1)  # on busy cores, threads wait for each other
    began, cpu = time.monotonic(), time.process_time()
    model, tokens = load(told.model)
    rows = concatenate_datasets([load_dataset(folder, split="train") for folder in told.rows])
    columns = {"sft": ["messages"], "dpo": ["prompt", "chosen", "rejected"]}[told.method]
    loss = train(model, tokens, rows.select_columns(columns), told)
    save(model, told.model, told.output)
    took = {
        "train_seconds": round(time.monotonic() - began),
        "train_cpu_seconds": round(time.process_time() - cpu),
    }
    print(json.dumps({"rows": len(rows), "loss": round(loss, 3), **took}))


if __name__ == "__main__":
    main()
