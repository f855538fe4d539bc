"""Random numbers: the same weights everywhere, another dropout on every rank, all of it restorable."""

import random
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int, *stream: int) -> None:
    """Seed Python, NumPy and torch from (seed, stream...); equal arguments give equal numbers on any machine."""
    words = np.random.SeedSequence([seed, *stream]).generate_state(4)
    random.seed(int(words[0]))
    np.random.seed(int(words[1]))
    torch.manual_seed(int(words[2]) << 32 | int(words[3]))


def random_state(device: torch.device) -> dict[str, Any]:
    """Return the state of all generators of this process, as tensors and plain values (weights-only loadable)."""
    version, keys, gauss = random.getstate()
    name, numpy_keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "python": {"version": version, "keys": torch.tensor(keys, dtype=torch.int64), "gauss": gauss},
        "numpy": {
            "name": name,
            "keys": torch.from_numpy(np.asarray(numpy_keys, dtype=np.int64)),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached": float(cached),
        },
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Put the generators of this process back into `state`."""
    python, numpy = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["keys"].tolist()), python["gauss"]))
    keys = numpy["keys"].numpy().astype(np.uint32)
    np.random.set_state((numpy["name"], keys, numpy["position"], numpy["has_gauss"], numpy["cached"]))
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
