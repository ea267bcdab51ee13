"""A BiLSTM forwards and backwards beside torch's: sentences of one length, and of many.

    python scripts/benchmarks/bilstm.py

Both have the same parameters; states, and the gradients of parameters and inputs, are
compared before the times are. Sentences of many lengths are packed for torch. Compiling
is not counted: jaxemb computes once before.
"""

import functools
import json
import statistics

import numpy as np
from ratios import by_turns, row

BATCH, LENGTH, DIM, HIDDEN = 32, 40, 300, 200
REPEATS = 15
TARGET = 1 / 1.2


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    rows = []
    for ragged, lengths in ((False, f"{LENGTH} words"), (True, f"1 to {LENGTH} words")):
        ours, theirs = _Ours(ragged), _Theirs(ragged)
        for mine, other in zip(ours.found(), theirs.found(), strict=True):
            if not np.allclose(mine, other, rtol=1e-3, atol=1e-3):
                raise AssertionError("torch has other states or gradients")
        pairs = by_turns(ours, theirs, REPEATS)
        own, peer = (1e3 * statistics.median(p[i] for p in pairs) for i in (0, 1))
        note = f"{own:.1f} ms (peer {peer:.1f} ms), same states and gradients"
        work = (
            f"BiLSTM {DIM} → 2 × {HIDDEN}, forwards and backwards, {BATCH} sentences "
            f"of {lengths}"
        )
        rows.append(row(work, "torch", pairs, TARGET, note))
    return rows


@functools.cache
def _made(ragged: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, lengths, and what the states are multiplied with for a loss."""
    rng = np.random.default_rng(0)
    lengths = np.full(BATCH, LENGTH)
    if ragged:
        lengths[1:] = rng.integers(1, LENGTH + 1, BATCH - 1)
    inputs = rng.normal(size=(BATCH, LENGTH, DIM)).astype(np.float32)
    weights = rng.normal(size=(BATCH, LENGTH, 2 * HIDDEN)).astype(np.float32)
    return inputs, lengths, weights


@functools.cache
def _module():
    from jaxemb import nn

    return nn.BiLSTM(HIDDEN)


@functools.cache
def _params() -> dict:
    """The parameters of both."""
    import jax

    words = jax.numpy.zeros((1, 1, DIM)), jax.numpy.ones((1, 1), bool)
    return _module().init(jax.random.key(0), *words)["params"]


class _Ours:
    def __init__(self, ragged: bool):
        import jax
        import jax.numpy as jnp

        inputs, lengths, weights = _made(ragged)
        mask = np.arange(LENGTH) < lengths[:, np.newaxis]
        module = _module()

        @jax.jit
        def both_ways(params, inputs, mask, weights):
            def loss(params, inputs):
                states, _ = module.apply({"params": params}, inputs, mask)
                return jnp.sum(states * weights), states

            return jax.value_and_grad(loss, (0, 1), has_aux=True)(params, inputs)

        self._run = both_ways
        self._fed = _params(), *map(jnp.asarray, (inputs, mask, weights))

    def __call__(self):
        import jax

        return jax.block_until_ready(self._run(*self._fed))

    def found(self) -> list[np.ndarray]:
        (_, states), (params, inputs) = self()
        cells = [params[name] for name in ("forward", "backward")]
        of_cells = [
            x
            for own in cells
            for x in (
                own["input"]["kernel"].T,
                own["recurrent"].T,
                own["input"]["bias"],
            )
        ]
        return [np.asarray(x) for x in (states, inputs, *of_cells)]


class _Theirs:
    def __init__(self, ragged: bool):
        import torch
        import torch_copies

        torch.set_num_threads(2)
        self._rnn, self._ragged = torch.nn.utils.rnn, ragged
        inputs, self._lengths, weights = _made(ragged)
        self._inputs = torch.tensor(inputs).requires_grad_()
        self._weights = torch.tensor(weights)
        self._lstm = torch_copies.bilstm(_params())

    def __call__(self):
        self._inputs.grad = None
        self._lstm.zero_grad()
        if self._ragged:
            packed = self._rnn.pack_padded_sequence(
                self._inputs, self._lengths, batch_first=True, enforce_sorted=False
            )
            states, _ = self._rnn.pad_packed_sequence(
                self._lstm(packed)[0], batch_first=True, total_length=LENGTH
            )
        else:
            states, _ = self._lstm(self._inputs)
        (states * self._weights).sum().backward()
        return states

    def found(self) -> list[np.ndarray]:
        states = self().detach()
        lstm, names = self._lstm, ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0")
        of_cells = [getattr(lstm, n + s).grad for s in ("", "_reverse") for n in names]
        return [x.numpy() for x in (states, self._inputs.grad, *of_cells)]


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
