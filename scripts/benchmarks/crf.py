"""A linear-chain CRF beside pytorch-crf: loss with gradients, and Viterbi.

    python scripts/benchmarks/crf.py

Both get the same emissions, tags, masks and scores in one process by turns. Losses,
gradients and paths are compared before the times are. Compiling is not counted:
jaxemb computes once before.
"""

import functools
import json
import statistics
from collections.abc import Callable

import numpy as np
from ratios import by_turns, comparison

BATCH, LENGTH, CLASSES = 64, 64, 20
REPEATS = 15
TARGET = 8


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    ours, theirs = _Ours(), _Theirs()
    for mine, other in zip(ours.loss(), theirs.loss(), strict=True):
        if not np.allclose(mine, other, rtol=1e-4, atol=1e-3):
            raise AssertionError("pytorch-crf has another loss or gradient")
    paths, expected = ours.decode(), theirs.decode()
    if [
        path[: len(right)].tolist() for path, right in zip(paths, expected, strict=True)
    ] != expected:
        raise AssertionError("pytorch-crf decodes otherwise")
    size = f"{BATCH} sentences of up to {LENGTH} words, {CLASSES} classes"
    return [
        _row(f"CRF loss and gradients, {size}", ours.loss, theirs.loss),
        _row(f"CRF decoding, {size}", ours.decode, theirs.decode),
    ]


@functools.cache
def _made() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(LENGTH // 4, LENGTH + 1, BATCH)
    lengths[0] = LENGTH
    shapes = {
        "emissions": (BATCH, LENGTH, CLASSES),
        "transitions": (CLASSES, CLASSES),
        "start": (CLASSES,),
        "end": (CLASSES,),
    }
    made = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    made["tags"] = rng.integers(0, CLASSES, (BATCH, LENGTH))
    made["mask"] = np.arange(LENGTH) < lengths[:, np.newaxis]
    return made


class _Ours:
    def __init__(self):
        import jax
        import jax.numpy as jnp

        from jaxemb.nn import crf

        made = {name: jnp.array(value) for name, value in _made().items()}
        self._chain = crf.Chain(made["transitions"], made["start"], made["end"])
        self._emissions, self._tags = made["emissions"], made["tags"]
        self._mask = made["mask"]

        @jax.jit
        def loss(emissions, chain, tags, mask):
            def total(emissions, chain):
                return jnp.sum(crf.nll(emissions, tags, mask, chain))

            return jax.value_and_grad(total, (0, 1))(emissions, chain)

        self._loss = loss
        self._decode = jax.jit(crf.decode)

    def loss(self) -> list[np.ndarray]:
        value, (emissions, chain) = self._loss(
            self._emissions, self._chain, self._tags, self._mask
        )
        return [np.asarray(x) for x in (value, emissions, *chain)]

    def decode(self) -> np.ndarray:
        return np.asarray(self._decode(self._emissions, self._mask, self._chain)[0])


class _Theirs:
    def __init__(self):
        import torch
        import torchcrf

        torch.set_num_threads(2)
        made = {name: torch.tensor(value) for name, value in _made().items()}
        self._emissions = made["emissions"].requires_grad_()
        self._tags, self._mask = made["tags"], made["mask"]
        self._model = torchcrf.CRF(CLASSES, batch_first=True)
        self._scores = [
            self._model.transitions,
            self._model.start_transitions,
            self._model.end_transitions,
        ]
        with torch.no_grad():
            for score, name in zip(
                self._scores, ("transitions", "start", "end"), strict=True
            ):
                score.copy_(made[name])

    def loss(self) -> list[np.ndarray]:
        parameters = [self._emissions, *self._scores]
        for parameter in parameters:
            parameter.grad = None
        value = -self._model(self._emissions, self._tags, mask=self._mask)
        value.backward()
        found = [value.detach(), *(parameter.grad for parameter in parameters)]
        return [x.numpy() for x in found]

    def decode(self) -> list[list[int]]:
        return self._model.decode(self._emissions.detach(), mask=self._mask)


def _row(work: str, ours: Callable[[], object], theirs: Callable[[], object]) -> dict:
    pairs = by_turns(ours, theirs, REPEATS)
    own, peer = (statistics.median(p[i] for p in pairs) * 1e3 for i in (0, 1))
    note = f"{own:.1f} ms (peer {peer:.1f} ms), same results"
    return comparison(work, "pytorch-crf", pairs, TARGET, note)


if __name__ == "__main__":
    for row in comparisons():
        print(json.dumps(row, indent=1))
