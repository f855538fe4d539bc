import torch
from torch import nn

from ddpk8s_trainer.export import parameters_digest


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def test_the_digest_is_the_same_when_the_values_are():
    assert parameters_digest(network()) == parameters_digest(network())


def test_the_digest_differs_when_one_bit_does():
    before, model = parameters_digest(network()), network()
    with torch.no_grad():
        model[2].bias.view(torch.int32)[1] ^= 1
    assert parameters_digest(model) != before


def test_the_digest_differs_when_two_parameters_are_swapped():
    model = nn.ParameterDict({"a": torch.zeros(2), "b": torch.ones(2)})
    swapped = nn.ParameterDict({"a": torch.ones(2), "b": torch.zeros(2)})
    assert parameters_digest(model) != parameters_digest(swapped)


def test_the_digest_differs_when_the_type_does():
    assert parameters_digest(network()) != parameters_digest(network().to(torch.bfloat16))


def test_tied_parameters_count_once_when_shared():
    model = network()
    model.add_module("again", model[0])
    assert parameters_digest(model) == parameters_digest(network())
