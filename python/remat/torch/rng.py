"""Random ops that run again: the generator's state as a tensor, and a call with a state put back for its time.

The first run of a random op is a plain call. Its state was copied just before, by `rng_state`; `replay` runs it
again with that copy and leaves the generator as it found it, so that the stream of random numbers that everyone else
sees is that of the program without remat."""

from __future__ import annotations

from typing import Any

import torch


def rng_state(device_type: str, device_index: int) -> torch.Tensor:
    """A copy of the state of the device's default generator, on the host."""
    if device_type == "cpu":
        return torch.default_generator.get_state()
    return getattr(torch, device_type).get_rng_state(device_index)


def _set(device_type: str, device_index: int, state: torch.Tensor) -> None:
    if device_type == "cpu":
        torch.default_generator.set_state(state)
    else:
        getattr(torch, device_type).set_rng_state(state, device_index)


def replay(device_type: str, device_index: int, state: torch.Tensor, op: Any, *args: Any, **kwargs: Any) -> Any:
    """op(*args, **kwargs) with the generator in `state`."""
    before = rng_state(device_type, device_index)
    _set(device_type, device_index, state)
    try:
        return op(*args, **kwargs)
    finally:
        _set(device_type, device_index, before)
