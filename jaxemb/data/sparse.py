"""Weights with many zeros on disk: rows and columns of zeros left out, CSR inside.

Of every matrix the smallest of four forms is written: dense, dense without the rows and
columns that are all 0 (removed words, heads), the rest of that as CSR, or as a bit a
place and the values. What is read is what was written, bit by bit.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from safetensors import numpy as safetensors

from jaxemb.data import files
from jaxemb.data.tensors import read_tensors
from jaxemb.errors import InputError

Form = Literal["dense", "block", "csr", "bits"]
FORMS: tuple[Form, ...] = get_args(Form)
_MARK = "|"  # between a tensor's name and what a part of it is


@dataclasses.dataclass(frozen=True)
class StoredSize:
    """What a tensor takes on disk."""

    form: Form
    size: int
    """Bytes, in this form."""
    dense: int
    """Bytes without leaving anything out."""
    zeros: float
    """The share of its numbers that are 0."""


def write_compact(
    path: str | os.PathLike[str],
    tensors: Mapping[str, np.ndarray],
    *,
    forms: Sequence[Form] = FORMS,
) -> dict[str, StoredSize]:
    """Writes tensors, each in the form that takes the fewest bytes; tells the sizes.

    Args:
      path: the file, in safetensors' format.
      tensors: by name, such as parameters by path.
      forms: those to choose from, "dense" among them.
    """
    if "dense" not in forms:
        raise InputError(f"forms {list(forms)}; expected 'dense' among them.")
    parts: dict[str, np.ndarray] = {}
    sizes = {}
    for name, value in tensors.items():
        if _MARK in name:
            raise InputError(
                f"a tensor is named {name!r}; expected no {_MARK!r} in it."
            )
        value = np.asarray(value)
        found = _forms(value)
        sizes_of = {f: sum(a.nbytes for a in found[f].values()) for f in found}
        form: Form = "dense"
        for other in forms:
            if other in sizes_of and sizes_of[other] < sizes_of[form]:
                form = other
        for part, array in found[form].items():
            parts[f"{name}{_MARK}{part}"] = np.ascontiguousarray(array)
        size = sizes_of[form]
        sizes[name] = StoredSize(form, size, value.nbytes, float(np.mean(value == 0)))
    with files.write_atomically(path) as part:
        part.write_bytes(safetensors.save(parts))
    return sizes


def read_compact(path: files.Location) -> dict[str, np.ndarray]:
    """Reads what `write_compact` wrote, with the zeros back in their places."""
    grouped: dict[str, dict[str, np.ndarray]] = {}
    for name, array in read_tensors(path).items():
        owner, mark, part = name.rpartition(_MARK)
        if not mark:
            raise InputError(f"{path}: {name} is no part of a compact tensor")
        grouped.setdefault(owner, {})[part] = array
    return {name: _whole(parts, path, name) for name, parts in grouped.items()}


def _forms(value: np.ndarray) -> dict[Form, dict[str, np.ndarray]]:
    forms: dict[Form, dict[str, np.ndarray]] = {"dense": {"dense": value}}
    # -0.0 is 0 but not the same bits: it stays.
    held = (value != 0) | np.signbit(value) if value.dtype.kind == "f" else value != 0
    if value.ndim != 2 or held.all():
        return forms
    rows, columns = np.flatnonzero(held.any(axis=1)), np.flatnonzero(held.any(axis=0))
    block, inside = value[np.ix_(rows, columns)], held[np.ix_(rows, columns)]
    about: dict[str, np.ndarray] = {"shape": np.array(value.shape, np.int64)}
    if len(rows) < value.shape[0]:
        about["rows"] = rows.astype(np.int32)
    if len(columns) < value.shape[1]:
        about["columns"] = columns.astype(np.int32)
    forms["block"] = {**about, "block": block}
    kind = np.int16 if block.shape[1] <= np.iinfo(np.int16).max else np.int32
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    forms["csr"] = {
        **about,
        "values": block[inside],
        "indices": np.nonzero(inside)[1].astype(kind),
        "starts": starts.astype(np.int32),
    }
    bits = np.packbits(inside, axis=None)
    forms["bits"] = {**about, "bits": bits, "held": block[inside]}
    return forms


def _whole(
    parts: Mapping[str, np.ndarray], path: files.Location, name: str
) -> np.ndarray:
    if "dense" in parts:
        return parts["dense"]
    if "shape" not in parts:
        raise InputError(f"{path}: {name} lacks its shape")
    shape = tuple(int(n) for n in parts["shape"])
    rows = parts.get("rows", np.arange(shape[0]))
    columns = parts.get("columns", np.arange(shape[1]))
    inner = len(rows), len(columns)
    if "block" in parts:
        block = parts["block"]
    elif "bits" in parts:
        block = np.zeros(inner, parts["held"].dtype)
        count = inner[0] * inner[1]
        held = np.unpackbits(parts["bits"], count=count).astype(bool).reshape(inner)
        block[held] = parts["held"]
    elif "values" in parts:
        block = np.zeros(inner, parts["values"].dtype)
        owner = np.repeat(np.arange(inner[0]), np.diff(parts["starts"]))
        block[owner, parts["indices"]] = parts["values"]
    else:
        raise InputError(f"{path}: {name} lacks its numbers")
    whole = np.zeros(shape, block.dtype)
    whole[np.ix_(rows, columns)] = block
    return whole
