"""A linear-chain CRF beside pytorch-crf: loss with gradients, and Viterbi.

    python scripts/benchmarks/crf.py

Both get the same emissions, tags, masks and scores in one process by turns. Losses,
gradients and paths are compared before the times are. Compiling is not counted:
jaxemb computes once before. Then the same where I may only follow B or I of its type:
such transitions are -inf here and -10,000 there, as it knows no -inf.
"""

import functools
import itertools
import json
import statistics
from collections.abc import Callable

import numpy as np
from ratios import by_turns, row

BATCH, LENGTH, CLASSES = 64, 64, 20
REPEATS = 15
TARGET = 8
_FORBIDDEN = -1e4  # for pytorch-crf


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    size = f"{BATCH} sentences of up to {LENGTH} words, {CLASSES} classes"
    found = []
    for forbids, note in ((False, ""), (True, ", forbidden transitions")):
        ours, theirs = _Ours(forbids), _Theirs(forbids)
        _check(ours, theirs)
        if forbids:
            _check_forbidden(ours)
        work = f"CRF loss and gradients, {size}{note}"
        found.append(_row(work, ours.loss, theirs.loss))
        work = f"CRF decoding, {size}{note}"
        found.append(_row(work, ours.decode, theirs.decode))
    return found


def _check(ours: "_Ours", theirs: "_Theirs") -> None:
    for mine, other in zip(ours.loss(), theirs.loss(), strict=True):
        if not np.allclose(mine, other, rtol=1e-4, atol=1e-3):
            raise AssertionError("pytorch-crf has another loss or gradient")
    paths, expected = ours.decode(), theirs.decode()
    if [
        path[: len(right)].tolist() for path, right in zip(paths, expected, strict=True)
    ] != expected:
        raise AssertionError("pytorch-crf decodes otherwise")


def _check_forbidden(ours: "_Ours") -> None:
    """What is forbidden has no gradient at all and is never decoded."""
    _, _, transitions, start, _ = ours.loss()
    allowed = _allowed()
    if transitions[~np.array(allowed.transitions)].any():
        raise AssertionError("a forbidden transition has a gradient")
    if start[~np.array(allowed.start)].any():
        raise AssertionError("a forbidden start has a gradient")
    for path, real in zip(ours.decode(), _made(True)["mask"], strict=True):
        path = path[real].tolist()
        moves = itertools.pairwise(path)
        if not all(allowed.transitions[a][b] for a, b in moves):
            raise AssertionError("a forbidden transition is decoded")
        if not allowed.start[path[0]]:
            raise AssertionError("a forbidden start is decoded")


@functools.cache
def _allowed():
    """Of O, and B and I of types, the last of which has B alone."""
    from jaxemb.data import tags

    spans = [f"{letter}-{kind}" for kind in range(CLASSES // 2) for letter in "BI"]
    return tags.allowed(["O", *spans[: CLASSES - 1]])


def _walk(allowed, length: int, rng: np.random.Generator) -> list[int]:
    """Tags that the constraints allow; all of IOB2 may end."""
    path = [int(rng.choice(np.flatnonzero(allowed.start)))]
    while len(path) < length:
        path.append(int(rng.choice(np.flatnonzero(allowed.transitions[path[-1]]))))
    return path


@functools.cache
def _made(forbids: bool) -> dict[str, np.ndarray]:
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
    if forbids:
        allowed = _allowed()
        made["tags"] = np.array([_walk(allowed, LENGTH, rng) for _ in range(BATCH)])
        for name, may in zip(("transitions", "start"), allowed, strict=False):
            made[name] = np.where(may, made[name], np.float32(-np.inf))
    return made


class _Ours:
    def __init__(self, forbids: bool):
        import jax
        import jax.numpy as jnp

        from jaxemb.nn import crf

        made = {name: jnp.array(value) for name, value in _made(forbids).items()}
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
    def __init__(self, forbids: bool):
        import torch
        import torchcrf

        torch.set_num_threads(2)
        made = {name: torch.tensor(value) for name, value in _made(forbids).items()}
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
                score.copy_(made[name].clamp(min=_FORBIDDEN))

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
    return row(work, "pytorch-crf", pairs, TARGET, note)


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
