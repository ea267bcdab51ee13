"""Bytes and milliseconds that removed weights save: single ones, heads, words."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse as scipy_sparse

from experiments.common.findings import Findings
from experiments.common.rows import summary_row
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.data import World
from experiments.compressing_bert.model import (
    DENSE,
    Pretrainer,
    Removal,
    flattened,
)
from jaxemb import optim, pretrained
from jaxemb.data.sparse import FORMS, Form, write_compact

HEADS = r"blocks/.*/attention/((query|key|value)/(kernel|bias)|output/kernel)"
TABLE = "pieces/embedding"
BYTES = "bytes on disk (% of dense)"
CSR_BYTES = "bytes on disk as CSR (% of dense)"
FORWARD = "forward pass of 32 texts (CPU ms)"
TEXTS = 32
_ROWS = 50  # per cent of the table's rows that are taken out
_BOTH = 60  # per cent of single weights, beside which heads and rows are taken out
_INPUTS = 256  # of a product
_PRODUCTS = 5  # how often it is timed


@dataclasses.dataclass(frozen=True, eq=False)
class Smaller:
    """An encoder from which something was taken out."""

    name: str
    zeros: Any
    """Its parameters with zeros in the place of what was removed."""
    encoder: pretrained.Pretrained
    """Without what was removed."""
    numbers: np.ndarray | None = None
    """Of its pieces, where some were removed."""


def single_weights(
    removal: Removal, params: Any, workdir: Path, findings: Findings
) -> None:
    """Bytes on disk and milliseconds of a layer's products, CSR beside dense."""
    flat = flattened(params["encoder"])
    dense = sum(value.nbytes for value in flat.values())
    for metric, forms in ((BYTES, FORMS), (CSR_BYTES, ("dense", "csr"))):
        size = _bytes(workdir, flat, forms)
        findings.add(removal.label, metric, [100 * size / dense])
    kernels = [
        value
        for path, value in flat.items()
        if "/layer_0/" in path and path.endswith("kernel")
    ]
    rng = np.random.default_rng(0)
    pairs = []
    for kernel in kernels:
        inputs = rng.normal(size=(_INPUTS, kernel.shape[0])).astype(np.float32)
        stored = scipy_sparse.csr_array(kernel.T)
        pairs.append((kernel, stored, inputs, np.ascontiguousarray(inputs.T)))
    full, csr = _by_turns(
        [
            lambda: [inputs @ kernel for kernel, _, inputs, _ in pairs],
            lambda: [stored @ turned for _, stored, _, turned in pairs],
        ],
        _PRODUCTS,
    )
    about = "a layer's products"
    findings.add(removal.label, f"{about}, dense (CPU ms)", full)
    findings.add(removal.label, f"{about}, CSR (CPU ms)", csr)
    findings.beats(
        f"{about} take less time in CSR at {removal.percent} %",
        full,
        csr,
        over="repeats",
    )


def groups(
    config: Config,
    world: World,
    pretrainer: Pretrainer,
    workdir: Path,
    findings: Findings,
) -> None:
    """Whole heads and words taken out of the dense encoder, without recovery."""
    params = pretrainer.trained(DENSE).params
    dense = dataclasses.replace(world.encoder, params=params["encoder"])
    found = [without_heads(dense, percent) for percent in config.group_shares]
    found.append(without_words(dense, _ROWS))
    ids = world.held_out[:TEXTS]
    programs = {DENSE.label: _forward(dense, ids)}
    states = {}
    for one in found:
        given = ids if one.numbers is None else one.numbers[ids]
        programs[one.name] = _forward(one.encoder, given)
        zeros = dataclasses.replace(world.encoder, params=one.zeros)
        states[one.name] = [np.asarray(programs[one.name]()), _forward(zeros, ids)()]
    times = _by_turns(list(programs.values()), config.timed)
    milliseconds = dict(zip(programs, times, strict=True))
    for name, values in milliseconds.items():
        findings.add(name, FORWARD, values)
    whole = _bytes(workdir, flattened(dense.params))
    for one in found:
        size = _bytes(workdir, flattened(one.encoder.params))
        findings.add(one.name, BYTES, [100 * size / whole])
        apart = np.abs(np.subtract(*states[one.name])).max()
        findings.add(
            one.name, "states, largest difference from zeros (1e-6)", [1e6 * apart]
        )
        losses = pretrainer.held_out_of({**params, "encoder": one.zeros})
        findings.rows.append(summary_row(one.name, "pretraining loss", losses))
        findings.beats(
            f"{one.name} a forward pass takes less time",
            milliseconds[DENSE.label],
            milliseconds[one.name],
            over="repeats",
        )
    findings.shown.append(FORWARD)
    if _BOTH in config.sparsities:
        sparse = pretrainer.trained(Removal("magnitude", _BOTH)).params["encoder"]
        fewer = without_heads(dataclasses.replace(world.encoder, params=sparse), 50)
        both = without_words(fewer.encoder, _ROWS)
        size = _bytes(workdir, flattened(both.encoder.params))
        name = f"{Removal('magnitude', _BOTH).label}, {fewer.name} and {both.name}"
        findings.add(name, BYTES, [100 * size / whole])


def without_heads(dense: pretrained.Pretrained, percent: int) -> Smaller:
    """Takes out the heads of every layer whose weights are smallest."""
    masks = optim.keep_masks(
        dense.params, percent / 100, where=HEADS, unit=optim.Heads(dense.config.heads)
    )
    zeros = optim.delete_information(dense.params, masks)
    smaller = pretrained.without_heads(dataclasses.replace(dense, params=zeros))
    return Smaller(f"without {percent} % of the heads", zeros, smaller)


def without_words(dense: pretrained.Pretrained, percent: int) -> Smaller:
    """Takes out the pieces whose rows are smallest."""
    masks = optim.keep_masks(dense.params, percent / 100, where=TABLE, unit="rows")
    zeros = optim.delete_information(dense.params, masks)
    smaller, numbers = pretrained.without_rows(dataclasses.replace(dense, params=zeros))
    return Smaller(f"without {percent} % of the pieces", zeros, smaller, numbers)


def _forward(
    encoder: pretrained.Pretrained, ids: np.ndarray
) -> Callable[[], jax.Array]:
    module = encoder.module()
    params = jax.tree.map(jnp.asarray, encoder.params)
    given, mask = jnp.asarray(ids), jnp.ones(ids.shape, bool)
    compiled = jax.jit(
        lambda p, i: module.apply({"params": p}, i, mask, deterministic=True).last
    )

    def call() -> jax.Array:
        return jax.block_until_ready(compiled(params, given))

    call()  # compiles
    return call


def _by_turns(calls: list[Callable[[], Any]], repeats: int) -> list[list[float]]:
    """CPU milliseconds of each, by turns, so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for own, call in zip(times, calls, strict=True):
            start = time.process_time()
            call()
            own.append(1e3 * (time.process_time() - start))
    return times


def _bytes(
    workdir: Path, flat: Mapping[str, np.ndarray], forms: Sequence[Form] = FORMS
) -> int:
    """Of the file that is written, which does not stay."""
    path = workdir / "compact.safetensors"
    write_compact(path, flat, forms=forms)
    size = path.stat().st_size
    path.unlink()
    return size
