"""NCCL's and gloo's lists of network interfaces and cards: syntax, and what they would choose."""

import re
from collections.abc import Iterator

from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, pod_warning, warning
from ddpk8s.spec.values import show

_NAME = re.compile(r"[^\s/,:^=]{1,15}")
_POD_NAME = re.compile(r"(eth|net)\d*|lo")
_CARD = re.compile(r"mlx\d+_(\d+)", re.ASCII)
_MOST_CARDS = 32
_NCCL = "NCCL_SOCKET_IFNAME"
_GLOO = "GLOO_SOCKET_IFNAME"
_HCA = "NCCL_IB_HCA"


def check_interfaces(spec: JobSpec, *, on_host: bool | None) -> Iterator[Problem]:
    """Yield problems of the lists in `env`.

    Args:
        spec: The job's specification.
        on_host: Whether pods use the node's network, with the node's names; None if that is not known.
    """
    several = spec.topology.nnodes > 1
    if _NCCL in spec.env:
        yield from _check_nccl(spec.env[_NCCL], several=several, on_host=on_host)
    if _GLOO in spec.env:
        yield from _check_gloo(spec.env[_GLOO], several=several)
    if _HCA in spec.env:
        yield from _check_cards(spec.env[_HCA])


def _check_nccl(value: str, *, several: bool, on_host: bool | None) -> Iterator[Problem]:
    path: Path = ("spec", "env", _NCCL)
    names = value.lstrip("^=").split(",")
    prefix = value[: len(value) - len(value.lstrip("^="))]
    if prefix not in ("", "^", "=", "^="):
        hint = f'write "{_mend(prefix)}{",".join(names)}"; the second `=` is of the command line of mpirun'
        yield error(path, f"begins with {prefix}, but only ^, = and ^= are known", hint)
        return
    bad = [name for name in names if not _NAME.fullmatch(name)]
    if bad:
        hint = 'write for example "=eth0", "eth" for all that begin so, or "^lo,docker" for all others'
        yield error(path, f"is {show(value)}, in which {show(bad[0])} is no name of an interface", hint)
    elif "^" in prefix and "lo" not in names:
        hint = f'write "{prefix}lo,{",".join(names)}"'
        text = f"is {show(value)}, which replaces NCCL's own list and so lets it take `lo`, "
        yield error(path, f"{text}where no other node answers", hint)
    elif "^" in prefix:
        if on_host and not any("pod-id-link".startswith(name) for name in names):
            text = f"is {show(value)}, which lets NCCL take pod-id-link0 of AWS on the node's network"
            yield pod_warning(path, text, f'write "{value},pod-id-link"')
    elif several and "lo" in names:
        yield error(path, f"is {show(value)}, and over `lo` no other node answers", 'write "=eth0"')
    elif on_host is False and (strange := [name for name in names if not _POD_NAME.fullmatch(name)]):
        hint = 'write "=eth0", the pod\'s own; networks of multus are called net1, net2 ...'
        text = f"is {show(value)}, but a pod has no interface {strange[0]} unless it uses the node's network"
        yield pod_warning(path, text, hint)


def _mend(prefix: str) -> str:
    return ("^" if "^" in prefix else "") + ("=" if "=" in prefix else "")


def _check_gloo(value: str, *, several: bool) -> Iterator[Problem]:
    path: Path = ("spec", "env", _GLOO)
    names = value.split(",")
    if any(not _NAME.fullmatch(name) for name in names):
        hint = "write for example eth0; `=` and `^` are NCCL's"
        yield error(path, f"is {show(value)}, but must be names of interfaces, whole ones", hint)
    elif several and "lo" in names:
        yield error(path, f"is {show(value)}, and over `lo` no other node answers", "write eth0")


def _check_cards(value: str) -> Iterator[Problem]:
    path: Path = ("spec", "env", _HCA)
    prefix = value[: len(value) - len(value.lstrip("^="))]
    cards = value.lstrip("^=").split(",")
    if prefix not in ("", "^", "=", "^="):
        hint = f'write "{_mend(prefix)}{",".join(cards)}"; the second `=` is of the command line of mpirun'
        yield error(path, f"begins with {prefix}, but only ^, = and ^= are known", hint)
    elif any(not card.split(":")[0].strip() or re.search(r"\s", card) for card in cards):
        hint = 'write for example "=mlx5_0,mlx5_1", or mlx5 for all that begin so'
        yield error(path, f"is {show(value)}, in which a name is empty or holds a space", hint)
    elif len(cards) > _MOST_CARDS:
        yield error(path, f"names {len(cards)} cards, but NCCL takes {_MOST_CARDS} at most", "write a prefix")
    elif "=" not in prefix and (
        found := [c for c in cards if (m := _CARD.fullmatch(c)) and m[1] in "123456789"]
    ):
        text = f"is {show(value)}, and {found[0]} means {found[0]}0 to {found[0]}9 too, by its prefix"
        yield warning(path, text, f'write "{prefix}={",".join(cards)}"')
