"""Training word vectors beside gensim, and GloVe beside plain numpy: words a second.

    python scripts/benchmarks/train_vectors.py [--cost]

Both train on WikiText-2 (2 million words) with the same settings, by turns; gensim has
it as a `corpus_file`, its fastest way, and the number of workers that is best here.
Compilation, which a run pays once, is left out and told in the note. With `--cost`:
nanoseconds a word by part of the work, which `cost.json` beside this file then keeps.
"""

import collections
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from ratios import row, seconds

EPOCHS, DIM, WINDOW, NEGATIVES, MIN_COUNT = 2, 100, 5, 5, 5
WORKERS = 1, 2, 3
REPEATS = 3
ENTRIES = 20_000  # of the co-occurrence matrix, for the loop in numpy


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    import jax

    from jaxemb import static

    with tempfile.TemporaryDirectory() as folder:
        path, text = wikitext(Path(folder))
        rows = []
        objectives = {
            1: static.SkipGram(window=WINDOW, negatives=NEGATIVES),
            0: static.CBOW(window=WINDOW, negatives=NEGATIVES),
        }
        for sg, objective in objectives.items():
            workers = max(WORKERS, key=lambda n: gensim_rate(path, sg, n, epochs=1))
            ours = Ours(text, objective)
            pairs = [
                (ours.rate(), gensim_rate(path, sg, workers)) for _ in range(REPEATS)
            ]
            rates = [statistics.median(side) for side in zip(*pairs, strict=True)]
            note = (
                f"{rates[0]:,.0f} words/s beside {rates[1]:,.0f} with {workers} "
                f"workers; compiling took {ours.compile_seconds:.1f} s"
            )
            name = "skip-gram" if sg else "CBOW"
            work = f"train {name}, {DIM}-d, window {WINDOW}, {NEGATIVES} negatives"
            rows.append(row(work, "gensim", _inverse(pairs), 1, note))
        rows.append(_glove(text, Path(folder)))
        jax.clear_caches()
    return rows


def _inverse(rates) -> list[tuple[float, float]]:
    """Seconds of one word or entry, from how many a second."""
    return [(1 / ours, 1 / theirs) for ours, theirs in rates]


def wikitext(folder: Path) -> tuple[Path, Any]:
    from jaxemb.data import corpus
    from jaxemb.data.corpus import readers

    path = folder / "text.txt"
    with open(path, "w") as out:
        for sentence in readers.read_wikitext(lower=True):
            out.write(" ".join(sentence) + "\n")
    text = corpus.build(path, folder / "c", min_count=MIN_COUNT, progress=False)
    return path, text


def gensim_rate(path: Path, sg: int, workers: int, epochs: int = EPOCHS) -> float:
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=DIM,
        window=WINDOW,
        negative=NEGATIVES,
        sg=sg,
        min_count=MIN_COUNT,
        workers=workers,
        seed=0,
    )
    model.build_vocab(corpus_file=str(path))
    start = time.perf_counter()
    model.train(
        corpus_file=str(path),
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=epochs,
    )
    return epochs * model.corpus_total_words / (time.perf_counter() - start)


class Ours:
    """The step and the batches of `static.train`, without its files."""

    def __init__(self, text: Any, objective: Any, dim: int = DIM):
        from jaxemb import static, train
        from jaxemb.static import trainer

        training = static.Training(dim=dim, epochs=EPOCHS)
        prepared = trainer.Prepared(text, objective, training)
        self._words = int(text.raw[-1])
        self._steps = EPOCHS * prepared.num_chunks
        self._batches = prepared.batches
        step = static.make_step(objective, training, self._steps)
        self._step = train.data_parallel(step)
        self._initial = prepared.state
        start = time.perf_counter()
        self.run(1)
        self.compile_seconds = time.perf_counter() - start

    def run(self, steps: int) -> float:
        """Takes the first steps of a run; returns the seconds."""
        import jax

        from jaxemb.train import loop

        state = self._step.place(self._initial)
        pending = collections.deque()
        start = time.perf_counter()
        with loop.prefetched(self._batches, 0, steps) as feed:
            for batch in feed:
                state, metrics = self._step(state, batch)
                pending.append(metrics)
                if len(pending) > 2:
                    jax.block_until_ready(pending.popleft())
        jax.block_until_ready(state.params)
        assert np.isfinite(metrics["loss"].total)
        return time.perf_counter() - start

    def rate(self) -> float:
        return EPOCHS * self._words / self.run(self._steps)


def _glove(text: Any, folder: Path) -> dict:
    import jax

    from jaxemb.data import cooccurrence
    from jaxemb.static import glove

    counts = cooccurrence.count(text, folder / "x", progress=False)
    settings = glove.GloVe(dim=DIM)
    entries = glove.Entries(counts, chunk=settings.chunk, block=settings.block)
    step = jax.jit(glove.make_step(settings), donate_argnums=0)
    state = jax.tree.map(jax.numpy.array, glove.init_state(len(text.words), settings))
    start = time.perf_counter()
    state, _ = jax.block_until_ready(step(state, entries(0)))
    compiling = time.perf_counter() - start
    pairs = []
    for number in range(REPEATS):
        batch = entries(1 + number)
        start = time.perf_counter()
        state, _ = jax.block_until_ready(step(state, batch))
        ours = settings.chunk / (time.perf_counter() - start)
        tables, squares = (
            {k: np.array(v) for k, v in tree.items()}
            for tree in (state.params, state.opt_state)
        )
        flat = [batch[k].T.ravel()[:ENTRIES] for k in ("rows", "columns", "counts")]
        start = time.perf_counter()
        _glove_by_loop(tables, squares, *flat, settings)
        pairs.append((ours, ENTRIES / (time.perf_counter() - start)))
    note = (
        f"{statistics.median(p[0] for p in pairs):,.0f} entries/s; compiling took "
        f"{compiling:.1f} s"
    )
    work = f"GloVe, {DIM}-d, AdaGrad on entries"
    return row(work, "a loop in numpy", _inverse(pairs), 1, note)


def _glove_by_loop(tables, squares, rows, columns, counts, settings) -> None:
    for i, j, count in zip(rows, columns, counts, strict=True):
        w, v = tables["input"][i], tables["output"][j]
        error = w @ v + tables["input_bias"][i] + tables["output_bias"][j]
        weight = min(1.0, (count / settings.cap) ** settings.power)
        error = settings.learning_rate * weight * (error - np.log(count))
        for name, place, step in (
            ("input", i, error * v),
            ("output", j, error * w),
            ("input_bias", i, error),
            ("output_bias", j, error),
        ):
            tables[name][place] -= step / np.sqrt(squares[name][place])
            squares[name][place] += step * step


def profile() -> list[dict[str, str]]:
    """Nanoseconds a word of each part of a step, by itself, on WikiText-2."""
    from jaxemb import static
    from jaxemb.static import trainer

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _, text = wikitext(Path(folder))
        training = static.Training(dim=DIM, epochs=EPOCHS)
        for name, objective in (
            ("skip-gram", static.SkipGram()),
            ("CBOW", static.CBOW()),
        ):
            prepared = trainer.Prepared(text, objective, training)
            parts = _parts(prepared, objective, len(text.words))
            whole = 1e9 / Ours(text, objective).rate()
            shown = {part: f"{value:.0f}" for part, value in parts.items()}
            rows.append({"ns a word": name, **shown, "a whole run": f"{whole:.0f}"})
    return rows


def _parts(prepared: Any, objective: Any, vocab: int) -> dict[str, float]:
    """Each part over the blocks of one chunk, the fastest of some turns."""
    import jax
    import jax.numpy as jnp

    from jaxemb.static import descent
    from jaxemb.static.objectives import Block

    batch = prepared.batches(0)
    count, words = int(batch["blocks"][0]), int(batch["raw"][0])
    device = {name: jnp.asarray(leaf) for name, leaf in batch.items()}
    groups = len(batch["words"])
    draws = np.random.default_rng(0).integers(vocab, size=(groups, objective.shared))
    noise = jnp.asarray(draws, jnp.int32)
    tables = {name: jnp.array(table) for name, table in prepared.state().params.items()}

    def block(number):
        def leaf(name):
            return device[name][:, number].astype(jnp.int32)

        return Block(
            leaf("words"), leaf("before"), leaf("after"), noise, objective.window
        )

    def total(tree):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))

    def read(number, carry):
        tables, seen = carry
        return tables, seen + total(descent.take(tables, objective.ids(block(number))))

    rows = descent.take(tables, objective.ids(block(0)))

    def gradient(number, carry):
        tables, seen = carry
        grads = jax.grad(lambda r: objective.loss(r, block(number)).total)(rows)
        return tables, seen + total(grads)

    def write(number, carry):
        tables, seen = carry
        ids = objective.ids(block(number))
        moved = {
            name: table.at[ids[name]].add(1e-9 * rows[name], mode="drop")
            for name, table in tables.items()
        }
        return moved, seen

    def fastest(function) -> float:
        function()
        return min(seconds(function) for _ in range(5)) * 1e9 / words

    parts = {"laid out (host, ahead)": fastest(lambda: prepared.batches(1))}
    for name, body in (("read", read), ("products", gradient), ("written", write)):

        def loop(tables, body=body):
            return jax.lax.fori_loop(0, count, body, (tables, jnp.zeros([])))

        compiled = jax.jit(loop)
        parts[name] = fastest(lambda run=compiled: jax.block_until_ready(run(tables)))
    return parts


def zipf(vocab: int, words: int = 1_000_000, length: int = 25) -> Any:
    """Text of independent words; only counts, ids and sentences matter to speed."""
    from jaxemb.data.corpus import Corpus

    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, vocab + 1)
    tokens = rng.choice(vocab, words, p=weights / weights.sum()).astype(np.int32)
    counts = np.maximum(np.bincount(tokens, minlength=vocab), 1)
    starts = np.arange(0, words + 1, length)
    names = tuple(map(str, range(vocab)))
    return Corpus(names, counts, tokens, starts, starts, None, Path(), "")


if __name__ == "__main__":
    import json

    from jaxemb import terminal
    from jaxemb.train import results, runtime

    runtime.keep_freed_memory()  # as every experiment does
    if sys.argv[1:] == ["--cost"]:
        parts = profile()
        terminal.print_table(parts)
        kept = {"commit": results.commit(), **results.environment(), "parts": parts}
        text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        (Path(__file__).parent / "cost.json").write_text(text)
    else:
        terminal.print_json(comparisons())
