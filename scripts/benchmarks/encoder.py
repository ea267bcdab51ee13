"""A text encoder beside transformers on torch: encoding, a step of tuning, real text.

    python scripts/benchmarks/encoder.py

Weights of MiniLM's shape are drawn by transformers, saved, and read by
`jaxemb.pretrained.load_hf`, so that both have the same. States and losses (without
dropout) are compared before times are. The last row has no peer but ourselves: real
sentences, cut by MiniLM's own tokenizer, in a few padded lengths, and all padded to 128
pieces. Compiling is not counted.
"""

import functools
import json
import statistics
import tempfile

import numpy as np
from ratios import by_turns, row

BATCH, LENGTH, CLASSES = 32, 128, 2
REPEATS = 5
TARGET = 1 / 1.1
SENTENCES, BUCKETS, BUCKETS_TARGET = 1024, 4, 2


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    ours, theirs = _Ours(), Theirs()
    if not np.allclose(ours.encode(), theirs.encode(), atol=1e-3):
        raise AssertionError("transformers encodes otherwise")
    if not np.isclose(ours.loss(), theirs.loss(), rtol=1e-3):
        raise AssertionError("transformers has another loss")
    ours.step()
    size = f"MiniLM's shape, {BATCH} texts of {LENGTH} pieces"
    rows = []
    for work, own, peer in (
        (f"encoding, {size}", ours.encode, theirs.encode),
        (f"a step of tuning a classifier, {size}", ours.step, theirs.step),
    ):
        pairs = by_turns(own, peer, REPEATS)
        times = [1e3 * statistics.median(p[i] for p in pairs) for i in (0, 1)]
        note = f"{times[0]:.0f} ms (peer {times[1]:.0f} ms)"
        rows.append(row(work, "transformers", pairs, TARGET, note))
    return [*rows, _bucketed()]


def _bucketed() -> dict:
    from jaxemb.data import relatedness, sources
    from jaxemb.pretrained import Cutter, encode_texts

    pairs = relatedness.read_sts(sources.get("sts-benchmark").part("test"))
    texts = [pair.first for pair in pairs][:SENTENCES]
    # One text that fills the encoder makes all the others as long.
    longest = " ".join(["word"] * (LENGTH - 2))
    bert = _folder_read()
    [(pieces, _)] = Cutter.of(bert).bare([longest])
    assert len(pieces) == LENGTH - 2
    programs = [
        functools.partial(encode_texts, bert, texts, longest=LENGTH, buckets=BUCKETS),
        functools.partial(
            encode_texts, bert, [*texts, longest], longest=LENGTH, buckets=1
        ),
    ]
    few, padded = (program() for program in programs)
    if not np.allclose(few, padded[:-1], atol=1e-4):
        raise AssertionError("padding changes vectors")
    times = by_turns(*programs, repeats=3)
    rates = [len(texts) / statistics.median(p[i] for p in times) for i in (0, 1)]
    note = f"{rates[0]:,.0f} texts/s (padded {rates[1]:,.0f}), same vectors"
    work = f"{len(texts)} real sentences in {BUCKETS} padded lengths"
    return row(work, f"padding to {LENGTH}", times, BUCKETS_TARGET, note)


@functools.cache
def _classifier():
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=CLASSES,
    )
    return transformers.BertForSequenceClassification(config)


@functools.cache
def _folder_read():
    """The peer's weights, with the tokenizer of MiniLM, which has BERT's pieces."""
    import dataclasses

    from jaxemb.data import files, sources
    from jaxemb.pretrained import load_hf

    with tempfile.TemporaryDirectory() as folder:
        _classifier().save_pretrained(folder)
        bert = load_hf(folder)
    tokenizer = files.resolve(sources.get("minilm").part("tokenizer"))
    return dataclasses.replace(bert, tokenizer=tokenizer.read_bytes())


@functools.cache
def _batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 30_000, (BATCH, LENGTH))
    mask = np.arange(LENGTH) < rng.integers(LENGTH // 4, LENGTH + 1, BATCH)[:, None]
    mask[0] = True
    return np.where(mask, ids, 0), mask, rng.integers(0, CLASSES, BATCH)


class _Ours:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        import optax

        from jaxemb import losses, nn, train
        from jaxemb.pretrained import variables_above

        bert = _folder_read()
        ids, mask, labels = _batch()
        self._inputs = jnp.asarray(ids, jnp.int32), jnp.asarray(mask)
        self._params = jax.tree.map(jnp.asarray, bert.params)
        module, head = bert.module(), nn.SequenceClassifier(CLASSES, bert.config)

        @jax.jit
        def encode(params, ids, mask):
            return module.apply({"params": params}, ids, mask, deterministic=True).last

        def loss(variables, batch, key, deterministic=False):
            logits = head.apply(
                *(variables, batch["ids"], batch["mask"]),
                deterministic=deterministic,
                rngs={"dropout": key},
            )
            each = losses.softmax_cross_entropy(logits, batch["labels"])
            return jnp.mean(each), {}

        tx = optax.adamw(2e-5)
        variables = variables_above(bert, head, jax.random.key(0))
        output = _classifier().classifier
        variables["params"]["output"] = {
            "kernel": jnp.asarray(output.weight.detach().numpy().T),
            "bias": jnp.asarray(output.bias.detach().numpy()),
        }
        self._state = train.State.create(variables, tx, jax.random.key(1))
        self._loss = lambda: loss(variables, self._fed, jax.random.key(0), True)[0]
        self._fed = {
            "ids": self._inputs[0],
            "mask": self._inputs[1],
            "labels": jnp.asarray(labels),
        }
        self._encode = encode
        self._step = jax.jit(train.make_step(loss, tx), donate_argnums=0)

    def encode(self) -> np.ndarray:
        states = np.asarray(self._encode(self._params, *self._inputs))
        return np.where(_batch()[1][..., None], states, 0)

    def loss(self) -> float:
        return float(self._loss())

    def step(self) -> float:
        self._state, metrics = self._step(self._state, self._fed)
        return float(metrics["loss"])


class Theirs:
    """The peer: encoding, its loss, steps of tuning."""

    def __init__(self):
        import torch

        torch.set_num_threads(2)
        self._torch, self._model = torch, _classifier()
        ids, mask, labels = _batch()
        self._inputs = {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask.astype(np.int64)),
        }
        self._labels = torch.tensor(labels)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=2e-5)

    def encode(self) -> np.ndarray:
        self._model.eval()
        with self._torch.no_grad():
            states = self._model.bert(**self._inputs).last_hidden_state.numpy()
        return np.where(_batch()[1][..., None], states, 0)

    def loss(self) -> float:
        self._model.eval()
        with self._torch.no_grad():
            return self._model(**self._inputs, labels=self._labels).loss.item()

    def step(self) -> float:
        self._model.train()
        self._optimizer.zero_grad()
        loss = self._model(**self._inputs, labels=self._labels).loss
        loss.backward()
        self._optimizer.step()
        return loss.item()


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
