"""Real steps of a trainer, and their required results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from transformers import Trainer

STEPS = 2


def settings(folder: Path) -> dict[str, Any]:
    """Return the settings of every trainer: two short steps on the CPU, without cuts or reports."""
    return {
        "output_dir": str(folder), "max_steps": STEPS, "per_device_train_batch_size": 2, "learning_rate": 1e-3,
        "logging_steps": 1, "report_to": [], "save_strategy": "no", "use_cpu": True, "bf16": False, "seed": 1,
        "disable_tqdm": True,
        "max_length": None,
    }  # fmt: skip


def take_steps(trainer: Trainer) -> None:
    """Train; check that the loss of every step is a number, and that the weights have changed."""
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    done = trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert done.global_step == STEPS
    assert len(losses) == STEPS
    assert all(math.isfinite(loss) for loss in losses), losses
    moved = [name for name, weight in trainer.model.named_parameters() if (weight != before[name]).any()]
    assert len(moved) > len(before) / 2, f"only {moved} moved"
