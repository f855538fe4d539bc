"""The learning rate of every step, and which parameters decay."""

import pytest
import torch
from torch import nn

from ddpk8s.spec.training import Optimizer, Schedule
from ddpk8s_trainer.optim import learning_rate_factor, make_optimizer


def curve(total: int, **schedule: object) -> list[float]:
    section = Schedule(**schedule)
    return [learning_rate_factor(section, step, total) for step in range(1, total + 1)]


def test_linear_warms_up_from_the_first_step_and_falls_to_almost_nothing() -> None:
    assert curve(10, type="linear", warmup_steps=2) == pytest.approx(
        [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    )


def test_cosine_is_half_in_the_middle() -> None:
    factors = curve(101, type="cosine")
    assert factors[0] == 1.0
    assert factors[50] == pytest.approx(0.5, abs=0.01)
    assert factors == sorted(factors, reverse=True)


def test_constant_stays() -> None:
    assert curve(5, type="constant", warmup_ratio=0.4) == [0.5, 1.0, 1.0, 1.0, 1.0]


def test_wsd_is_flat_then_falls_in_its_share() -> None:
    factors = curve(10, type="wsd", decay_ratio=0.3, warmup_steps=1)
    assert factors[:8] == [1.0] * 8
    assert factors[8:] == pytest.approx([2 / 3, 1 / 3])


def test_min_ratio_is_the_floor() -> None:
    assert min(curve(1000, type="cosine", min_ratio=0.1)) == pytest.approx(0.1, abs=1e-3)


def test_no_step_learns_nothing() -> None:
    for kind in ("linear", "cosine", "wsd", "constant"):
        assert all(factor > 0 for factor in curve(50, type=kind, warmup_steps=7))


def test_biases_and_norms_are_not_decayed() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    decayed, spared = make_optimizer(model, Optimizer(weight_decay=0.1), torch.device("cpu")).param_groups
    assert decayed["weight_decay"] == 0.1
    assert [p.ndim for p in decayed["params"]] == [2]
    assert spared["weight_decay"] == 0.0
    assert [p.ndim for p in spared["params"]] == [1, 1, 1]
    assert decayed["fused"] is True
