"""How the cost of each line grows with its main variable.

    python scripts/benchmarks/growth.py

Seconds at a few sizes, the fastest of some turns, and the power of the size that fits
them best: 1 is in proportion, 2 its square. Compiling is not counted. There is no peer.
"""

import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Run = Callable[[], Any]
TURNS = 3


class Line(NamedTuple):
    """A piece of work, and what is made larger."""

    work: str
    variable: str
    sizes: tuple[int, ...]
    make: Callable[[int], Run]
    """From a size to the work, which is ready when it returns."""


def measured(line: Line) -> dict:
    """Seconds at each size, and the power that fits them."""
    seconds = []
    for size in line.sizes:
        run = line.make(size)
        run()
        seconds.append(min(_seconds(run) for _ in range(TURNS)))
    return {
        "work": line.work,
        "variable": line.variable,
        "sizes": list(line.sizes),
        "seconds": seconds,
        "power": power(line.sizes, seconds),
    }


def power(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of a line through the logarithms of both."""
    x, y = np.log(sizes), np.log(seconds)
    return float(np.polyfit(x, y, 1)[0])


def rows() -> list[dict]:
    """Every line."""
    return [measured(line) for line in LINES]


def shown(row: dict) -> dict[str, str]:
    """A row as it is printed."""
    times = ", ".join(
        f"{1e3 * s:.3g} ms at {n:,}"
        for n, s in zip(row["sizes"], row["seconds"], strict=True)
    )
    return {
        "work": row["work"],
        "grows with": row["variable"],
        "power": f"{row['power']:.2f}",
        "": times,
    }


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _ready(function: Callable, *arguments: Any) -> Run:
    """A compiled function that is waited for."""
    import jax

    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*arguments))


# ------------------------------------------------------------------- files and tables


def _load(rows: int) -> Run:
    from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "vectors.txt"
    matrix = _normal(rows, 300).round(6)
    write_word_vectors(
        path, WordVectors(tuple(f"word{i:x}" for i in range(rows)), matrix)
    )

    def run():
        assert folder  # which lives as long as what reads it
        read_word_vectors(path)

    return run


def _word_vectors(name: str, vocab: int = 100_000, dim: int = 100) -> Run:
    import train_vectors

    from jaxemb import static

    objective = {"skip-gram": static.SkipGram, "CBOW": static.CBOW}[name]()
    ours = train_vectors.Ours(train_vectors.zipf(vocab), objective, dim)
    return lambda: ours.run(8)


def _analogies(rows: int) -> Run:
    from jaxemb.data.analogies import Analogy
    from jaxemb.data.vectors import WordVectors
    from jaxemb.eval import analogy

    words = tuple(f"word{i:x}" for i in range(rows))
    table = WordVectors(words, _normal(rows, 300), unique=True)
    drawn = np.random.default_rng(1).choice(rows, (512, 4), replace=False)
    questions = [Analogy(*(words[i] for i in four)) for four in drawn]
    return lambda: analogy.answer(table, questions)


def _similarity(pairs: int) -> Run:
    from jaxemb.data.pairs import WordPair
    from jaxemb.data.vectors import WordVectors
    from jaxemb.eval import similarity

    words = tuple(f"word{i:x}" for i in range(2 * pairs))
    table = WordVectors(words, _normal(len(words), 300), unique=True)
    scores = np.random.default_rng(1).random(pairs)
    rows = [
        WordPair(a, b, float(score))
        for a, b, score in zip(words[::2], words[1::2], scores, strict=True)
    ]
    return lambda: similarity.word_similarity(table, rows, resamples=1000)


def _csls(words: int) -> Run:
    from jaxemb.spaces import normalize, retrieval

    source, target = (normalize.unit(_normal(words, 300, seed=seed)) for seed in (0, 1))
    return lambda: retrieval.csls(source, target, 10)


def _geometric(words: int) -> Run:
    from jaxemb.spaces import geometric, normalize

    latent = _normal(words, 100) / np.sqrt(np.arange(1, 101))
    sources = [
        normalize.unit(latent + 0.2 * _normal(words, 100, seed=seed)) for seed in (1, 2)
    ]
    return lambda: geometric.closed_form(geometric.Grams.of(sources), 50.0)


# ----------------------------------------------------------------------------- modules


def _bilstm(length: int) -> Run:
    from jaxemb import nn

    return _forth_and_back(nn.BiLSTM(200), _normal(32, length, 300), _all(32, length))


def _kim_cnn(length: int) -> Run:
    from jaxemb import nn

    return _forth_and_back(
        nn.KimCNN(2, (3, 4, 5), 100), _normal(50, length, 300), _all(50, length),
        deterministic=True,
    )  # fmt: skip


def _characters(length: int) -> Run:
    from jaxemb import nn

    words = np.random.default_rng(0).integers(1, 60, (256, length)).astype(np.int32)
    return _forth_and_back(
        nn.CharBiLSTM(60, 100, 100, head="relu"), words, deterministic=True
    )


def _crf(length: int) -> Run:
    import jax
    import jax.numpy as jnp

    from jaxemb.nn import crf

    classes = 20
    emissions = jnp.asarray(_normal(64, length, classes))
    shapes = (classes, classes), (classes,), (classes,)
    chain = crf.Chain(*(jnp.asarray(_normal(*shape)) for shape in shapes))
    tags = jnp.zeros((64, length), jnp.int32)

    def loss(emissions, chain):
        return jnp.sum(crf.nll(emissions, tags, jnp.asarray(_all(64, length)), chain))

    return _ready(jax.value_and_grad(loss, (0, 1)), emissions, chain)


def _tagger(batch: int) -> Run:
    import jax
    import jax.numpy as jnp

    from jaxemb import nn

    module = nn.Tagger(9, 100, head="crf", mlp=None)
    words, mask = jnp.asarray(_normal(batch, 32, 100)), jnp.asarray(_all(batch, 32))
    tags = jnp.zeros((batch, 32), jnp.int32)
    variables = module.init(jax.random.key(0), words[:1], mask[:1], deterministic=True)

    def loss(variables):
        each = module.apply(
            variables, words, tags, mask, deterministic=True, method="loss"
        )
        return jnp.mean(each)

    return _ready(jax.grad(loss), variables)


def encoding(length: int) -> Run:
    """Encodes 32 texts with weights that are drawn."""
    module, variables, ids = _encoder(32, length)

    def encode(variables):
        return module.apply(variables, ids, ids > 0, deterministic=True).last

    return _ready(encode, variables)


def _alice(steps: int) -> Run:
    import jax
    import jax.numpy as jnp

    from jaxemb import losses, nn, perturb

    config = nn.TextConfig(dim=384, layers=6, heads=12, inner=1536)
    head = nn.SequenceClassifier(2, config)
    ids = jnp.asarray(_pieces(8, 64))
    init = jax.jit(head.init, static_argnames="deterministic")
    variables = init(jax.random.key(0), ids, ids > 0, deterministic=True)
    objective = perturb.alice(
        perturb.Ascent(epsilon=1e-2, eta=1e-2, sigma=1e-3, steps=steps)
    )
    labels = jnp.zeros(8, jnp.int32)

    def loss(variables):
        def logits_of(x, key):
            return head.apply(
                variables, x, ids > 0, deterministic=False, rngs={"dropout": key},
                method="logits",
            )  # fmt: skip

        return perturb.perturbed_loss(
            objective,
            logits_of,
            lambda logits: losses.softmax_cross_entropy(logits, labels),
            head.apply(variables, ids, method="embed"),
            ids > 0,
            jax.random.key(1),
        )[0]

    return _ready(jax.grad(loss), variables)


def _encoder(batch: int, length: int) -> tuple[Any, Any, Any]:
    import jax
    import jax.numpy as jnp

    from jaxemb import nn

    module = nn.Bert(nn.TextConfig(dim=384, layers=6, heads=12, inner=1536))
    ids = jnp.asarray(_pieces(batch, length))
    init = jax.jit(module.init, static_argnames="deterministic")
    return (
        module,
        init(jax.random.key(0), ids[:1], ids[:1] > 0, deterministic=True),
        ids,
    )


def _forth_and_back(module: Any, *inputs: Any, **options: Any) -> Run:
    """The gradients of the sum of what a module gives."""
    import jax
    import jax.numpy as jnp

    fed = [jnp.asarray(x) for x in inputs]
    variables = module.init(jax.random.key(0), *fed, **options)

    def total(variables):
        return jnp.sum(jax.tree.leaves(module.apply(variables, *fed, **options))[0])

    return _ready(jax.grad(total), variables)


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _pieces(batch: int, length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(1000, 30_000, (batch, length)).astype(np.int32)


def _all(*shape: int) -> np.ndarray:
    return np.ones(shape, bool)


def _doubling(first: int, count: int = 4) -> tuple[int, ...]:
    return tuple(first * 2**i for i in range(count))


LINES = (
    Line("load word2vec text, 300-d", "words", _doubling(25_000), _load),
    *(
        Line(
            f"{name}, 100-d, 8 updates",
            "vocabulary",
            (10_000, 100_000, 1_000_000),
            functools.partial(_word_vectors, name),
        )
        for name in ("skip-gram", "CBOW")
    ),
    Line(
        "skip-gram, 100,000 words, 8 updates",
        "dimension",
        (50, 100, 200, 300),
        lambda dim: _word_vectors("skip-gram", dim=dim),
    ),
    Line("512 analogies, 300-d", "vocabulary", _doubling(25_000), _analogies),
    Line("similarity, 1,000 resamples", "pairs", _doubling(500), _similarity),
    Line(
        "BiLSTM 300 → 2 × 200, forth and back",
        "words of a sentence",
        _doubling(10),
        _bilstm,
    ),
    Line(
        "CRF loss and gradients, 20 classes", "words of a sentence", _doubling(16), _crf
    ),
    Line(
        "BiLSTM-CRF tagger, forth and back",
        "sentences of a batch",
        _doubling(8),
        _tagger,
    ),
    Line(
        "MiniLM's shape, encoding 32 texts",
        "pieces of a text",
        _doubling(32),
        encoding,
    ),
    Line(
        "CSLS, 10 translations a word, 300-d", "words a side", _doubling(2_500), _csls
    ),
    Line(
        "geometric meta-embedding, two sources, 100-d",
        "words",
        _doubling(12_500),
        _geometric,
    ),
    Line("Kim's CNN, forth and back", "words of a sentence", _doubling(10), _kim_cnn),
    Line(
        "character BiLSTM, 256 words", "characters of a word", _doubling(4), _characters
    ),
    Line("gradients of ALICE, MiniLM's shape", "steps of ascent", (1, 2, 4), _alice),
)


if __name__ == "__main__":
    from jaxemb import terminal

    terminal.print_table([shown(measured(line)) for line in LINES])
