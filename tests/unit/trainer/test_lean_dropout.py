"""The lean dropout drops, scales and repeats like torch's."""

import pytest
import torch
from torch import nn

from ddpk8s_trainer.model.dropout import LeanDropout, use_lean_dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_share_and_scale_are_right_and_gradients_follow(probability: float) -> None:
    torch.manual_seed(0)
    values = torch.ones(300, 1001, requires_grad=True)
    result = LeanDropout(probability).train()(values)
    dropped = (result == 0).float().mean().item()
    assert dropped == pytest.approx(probability, abs=0.005)
    assert result.max().item() == pytest.approx(1 / (1 - probability), rel=1e-4)
    assert result.mean().item() == pytest.approx(1.0, abs=0.02)
    result.sum().backward()
    assert torch.equal(values.grad, result.detach())


def test_equal_seeds_drop_the_same_and_neighbours_are_independent() -> None:
    drop = LeanDropout(0.5).train()
    torch.manual_seed(3)
    first = drop(torch.ones(10_003))
    torch.manual_seed(3)
    assert torch.equal(drop(torch.ones(10_003)), first)
    kept = (first != 0).float()
    # Numbers that share a word must not go together.
    for shift in (1, 2, 3):
        together = (kept[:-shift] * kept[shift:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.02)


def test_nothing_is_dropped_in_evaluation_or_at_probability_zero() -> None:
    values = torch.randn(50)
    assert torch.equal(LeanDropout(0.5).eval()(values), values)
    assert torch.equal(LeanDropout(0.0).train()(values), values)


def test_only_plain_dropouts_are_exchanged() -> None:
    model = nn.Sequential(nn.Dropout(0.2), nn.Dropout1d(0.2), nn.Dropout(0.2, inplace=True))
    use_lean_dropout(model)
    assert [type(part) for part in model] == [LeanDropout, nn.Dropout1d, nn.Dropout]
    assert model[0].p == 0.2
