"""Torch's modules with our parameters, so that both sides start from the same ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def linear(dense: Mapping[str, Any]) -> torch.nn.Linear:
    """A `Dense` as torch's."""
    rows, columns = dense["kernel"].shape
    module = torch.nn.Linear(rows, columns, bias="bias" in dense)
    _copy(module.weight, np.asarray(dense["kernel"]).T)
    if "bias" in dense:
        _copy(module.bias, dense["bias"])
    return module


def embedding(table: Any) -> torch.nn.Embedding:
    """A table of rows."""
    module = torch.nn.Embedding(*table.shape)
    _copy(module.weight, table)
    return module


def bilstm(directions: Mapping[str, Any]) -> torch.nn.LSTM:
    """A `BiLSTM`; the second of torch's biases, one too many, stays at 0."""
    inputs, gates = directions["forward"]["input"]["kernel"].shape
    module = torch.nn.LSTM(inputs, gates // 4, batch_first=True, bidirectional=True)
    for name, suffix in (("forward", "l0"), ("backward", "l0_reverse")):
        cell = directions[name]
        _copy(getattr(module, f"weight_ih_{suffix}"), cell["input"]["kernel"].T)
        _copy(getattr(module, f"weight_hh_{suffix}"), cell["recurrent"].T)
        _copy(getattr(module, f"bias_ih_{suffix}"), cell["input"]["bias"])
        none = getattr(module, f"bias_hh_{suffix}")
        _copy(none, np.zeros(gates))
        none.requires_grad_(False)
    return module


def trained(*modules: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The parameters that gradients are taken of."""
    return [p for m in modules for p in m.parameters() if p.requires_grad]


def _copy(parameter: torch.Tensor, value: Any) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(np.array(value, np.float32)))
