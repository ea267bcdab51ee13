import dataclasses
import inspect

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxemb.nn
from tests import contracts
from tests.contracts import EXTRA, Case

LENGTH, DIM, VOCAB = 5, 4, 11
LENGTHS = np.array([5, 3, 1, 4, 2, 5, 1, 3])
MASK = jnp.asarray(np.arange(LENGTH) < LENGTHS[:, None])
VECTORS = jax.random.normal(jax.random.key(3), (8, LENGTH, DIM))
IDS = jnp.where(MASK, jax.random.randint(jax.random.key(4), MASK.shape, 1, VOCAB), 0)


def masked(cls, outputs, name="", /, deterministic=None, **fields):
    """A module of vectors and a mask; the padding that is added holds NaN."""

    def pad(vectors, mask):
        ends = ((0, 0), (0, EXTRA))
        vectors = jnp.where(mask[..., None], vectors, jnp.nan)
        return (
            jnp.pad(vectors, (*ends, (0, 0)), constant_values=jnp.nan),
            jnp.pad(mask, ends),
        )

    build = lambda dtype=jnp.float32: cls(**fields, dtype=dtype)
    return Case(cls, build, (VECTORS, MASK), pad, outputs, deterministic, name=name)


OTHER = jax.random.normal(jax.random.key(5), (8, 3, DIM))
OTHER_MASK = jnp.asarray(np.arange(3) < np.array([1, 3, 2, 3, 1, 2, 3, 3])[:, None])


def two_texts(cls, outputs, **fields):
    """A module of two texts, as `masked` is of one."""
    one = masked(cls, outputs, **fields)
    pad = lambda a, a_mask, b, b_mask: (*one.pad(a, a_mask), *one.pad(b, b_mask))
    inputs = (VECTORS, MASK, OTHER, OTHER_MASK)
    return dataclasses.replace(one, inputs=inputs, pad=pad, deterministic=False)


def pad_vectors(vectors):
    return (jnp.pad(vectors, ((0, 0), (0, EXTRA), (0, 0)), constant_values=9.0),)


def embedding(mode):
    cls = jaxemb.nn.DeltaEmbedding
    return Case(
        cls,
        lambda dtype=jnp.float32: cls(VOCAB, DIM, mode, dtype=dtype),
        (IDS,),
        lambda ids: (jnp.pad(ids, ((0, 0), (0, EXTRA))),),
        ("bfloat16",),
        name=f"DeltaEmbedding-{mode}",
    )


def spelled(cls, **fields):
    """A module of characters and the word that they spell."""
    return Case(
        cls,
        lambda dtype=jnp.float32: cls(VOCAB, features=3, **fields, dtype=dtype),
        (IDS,),
        lambda ids: (jnp.pad(ids, ((0, 0), (0, EXTRA))),),
        ("bfloat16",),
        deterministic=True,
    )


def pad_tagged(emissions, tags, mask):
    ends = ((0, 0), (0, EXTRA))
    emissions = jnp.where(mask[..., None], emissions, jnp.nan)
    return (
        jnp.pad(emissions, (*ends, (0, 0)), constant_values=jnp.nan),
        jnp.pad(tags, ends, constant_values=-1),
        jnp.pad(mask, ends),
    )


def text(cls, outputs, *first, **fields):
    """A text encoder of pieces, or what is above one."""
    config = jaxemb.nn.TextConfig(
        vocab=VOCAB, dim=DIM, layers=2, heads=2, inner=6, positions=10, **fields
    )

    def pad(ids, mask):
        ends = ((0, 0), (0, EXTRA))
        return jnp.pad(ids, ends, constant_values=-1), jnp.pad(mask, ends)

    return Case(
        cls,
        lambda dtype=jnp.float32: cls(*first, config, dtype=dtype),
        (IDS, MASK),
        pad,
        outputs,
        deterministic=True,
    )


def choices():
    """Choices stand on the second axis: no piece is added to them."""
    one = text(jaxemb.nn.MultipleChoice, (HIGH,), epsilon=1e-3)
    inputs = jnp.stack([IDS, IDS[::-1]], axis=1), jnp.stack([MASK, MASK[::-1]], axis=1)
    return dataclasses.replace(one, inputs=inputs, pad=lambda *inputs: inputs)


KNOWN = MASK[..., None] & jnp.asarray(
    np.random.default_rng(6).random((8, LENGTH, 2)) < 0.7
)
WIDTHS = (3, 1)


def pad_sources(sources, known):
    """What no source knows may hold anything."""
    ends = ((0, 0), (0, EXTRA), (0, 0))
    missing = ~jnp.repeat(known, np.array(WIDTHS), axis=-1, total_repeat_length=DIM)
    sources = jnp.where(missing, jnp.nan, sources)
    return jnp.pad(sources, ends, constant_values=jnp.nan), jnp.pad(known, ends)


def meta(cls, outputs, deterministic=True, **fields):
    """A meta-embedding of two sources, of which some lack some words."""
    return Case(
        cls,
        lambda dtype=jnp.float32: cls(WIDTHS, **fields, dtype=dtype),
        (VECTORS, KNOWN),
        pad_sources,
        outputs,
        deterministic=deterministic,
        ignores_padding=False,
    )


def auxiliary(dtype=jnp.float32):
    return jaxemb.nn.AuxReconstruction(
        jaxemb.nn.AEME(WIDTHS, hidden=(3,), dtype=dtype),
        jaxemb.nn.TextClassifier(3, hidden=2, encoder="highway", dtype=dtype),
        "cosine",
    )


SENTENCES = jnp.stack([VECTORS, VECTORS[::-1]], axis=1)
SENTENCE_MASK = jnp.stack([MASK, MASK[::-1]], axis=1)


def pad_sentences(vectors, mask):
    """More words in every sentence, and no more sentences."""
    ends = ((0, 0), (0, 0), (0, EXTRA))
    vectors = jnp.where(mask[..., None], vectors, jnp.nan)
    return (
        jnp.pad(vectors, (*ends, (0, 0)), constant_values=jnp.nan),
        jnp.pad(mask, ends),
    )


LOW, HIGH = "bfloat16", "float32"
CODED = LOW, LOW, HIGH, "bool", HIGH
CASES = [
    embedding("fixed"),
    embedding("finetune"),
    embedding("delta"),
    Case(
        jaxemb.nn.Dropout,
        lambda dtype=None: jaxemb.nn.Dropout(0.4),
        (VECTORS,),
        pad_vectors,
        (LOW,),
        deterministic=False,
        ignores_padding=False,
    ),
    Case(
        jaxemb.nn.Highway,
        lambda dtype=jnp.float32: jaxemb.nn.Highway(dtype=dtype),
        (VECTORS,),
        pad_vectors,
        (LOW,),
        ignores_padding=False,
    ),
    masked(
        jaxemb.nn.KimCNN, (HIGH,), deterministic=False, classes=3, widths=(2, 3), maps=6
    ),
    masked(jaxemb.nn.LSTM, (LOW, HIGH, HIGH), hidden=3),
    masked(jaxemb.nn.BiLSTM, (LOW, HIGH, HIGH), hidden=3, unroll=2),
    two_texts(jaxemb.nn.BiDAF, (HIGH, HIGH), hidden=3),
    two_texts(jaxemb.nn.ESIM, (HIGH,), hidden=3),
    Case(
        jaxemb.nn.Trilinear,
        lambda dtype=None: jaxemb.nn.Trilinear(),
        (VECTORS, OTHER),
        lambda x, y: (*pad_vectors(x), y),
        (HIGH,),
        ignores_padding=False,
    ),
    Case(
        jaxemb.nn.BatchNormClassifier,
        lambda dtype=jnp.float32: jaxemb.nn.BatchNormClassifier(3, dtype=dtype),
        (VECTORS[:, 0],),
        lambda features: (features,),
        (HIGH,),
        deterministic=True,
    ),
    masked(
        jaxemb.nn.BiLSTMPoolClassifier,
        (HIGH,),
        deterministic=False,
        classes=3,
        hidden=3,
        features=5,
    ),
    masked(
        jaxemb.nn.Transformer,
        3 * (LOW,),
        deterministic=True,
        layers=1,
        heads=2,
        inner=6,
        epsilon=1e-3,
    ),
    text(jaxemb.nn.Bert, 4 * (LOW,), epsilon=1e-3),
    text(jaxemb.nn.SequenceClassifier, (HIGH,), 3, epsilon=1e-3),
    text(jaxemb.nn.PieceClassifier, (HIGH,), 3, epsilon=1e-3),
    choices(),
    text(jaxemb.nn.MaskedLM, (HIGH,), epsilon=1e-3),
    text(jaxemb.nn.CausalLM, (HIGH,), segments=0, causal=True, epsilon=1e-3),
    text(
        jaxemb.nn.GPT2,
        4 * (LOW,),
        segments=0,
        causal=True,
        pre_norm=True,
        embedding_norm=False,
        pooler=False,
        epsilon=1e-3,
    ),
    masked(jaxemb.nn.GRU, (LOW, HIGH), hidden=3, reverse=True),
    masked(jaxemb.nn.BiGRU, (LOW, HIGH), hidden=3, unroll=2),
    masked(jaxemb.nn.ConvEncoder, (LOW,), features=3, layers=2),
    spelled(jaxemb.nn.CharBiLSTM, hidden=4, head="highway"),
    spelled(jaxemb.nn.CharCNN, hidden=4),
    masked(jaxemb.nn.Tagger, (HIGH,), deterministic=True, classes=3, hidden=2, mlp=3),
    Case(
        jaxemb.nn.CRF,
        lambda dtype=None: jaxemb.nn.CRF(DIM),
        (VECTORS, IDS % DIM, MASK),
        pad_tagged,
        (HIGH,),
    ),
    masked(jaxemb.nn.HighwayEncoder, (LOW,), features=3),
    masked(jaxemb.nn.TextClassifier, (HIGH,), deterministic=True, classes=3, hidden=2),
    meta(jaxemb.nn.AEME, CODED, hidden=(5, 3)),
    meta(jaxemb.nn.DAEME, CODED, hidden=3),
    meta(jaxemb.nn.CAEME, CODED, hidden=3),
    meta(jaxemb.nn.AAEME, CODED, hidden=3),
    meta(jaxemb.nn.TAE, CODED, target=1, hidden=3),
    meta(jaxemb.nn.MTE, CODED, hidden=3, pooled=True),
    meta(jaxemb.nn.DynamicMetaEmbedding, (LOW,), None, features=3),
    Case(
        jaxemb.nn.OneToN,
        lambda dtype=jnp.float32: jaxemb.nn.OneToN(VOCAB, WIDTHS, 3, True, dtype),
        (IDS, VECTORS, KNOWN),
        lambda ids, *rest: (jnp.pad(ids, ((0, 0), (0, EXTRA))), *pad_sources(*rest)),
        CODED,
        ignores_padding=False,
    ),
    Case(
        jaxemb.nn.SiameseHead,
        lambda dtype=jnp.float32: jaxemb.nn.SiameseHead((4, 3), dtype=dtype),
        (VECTORS, VECTORS[::-1]),
        lambda a, b: (*pad_vectors(a), *pad_vectors(b)),
        (HIGH, HIGH),
        ignores_padding=False,
    ),
    Case(
        jaxemb.nn.AuxReconstruction,
        auxiliary,
        (VECTORS, KNOWN, MASK),
        lambda x, known, mask: (
            *pad_sources(x, known),
            jnp.pad(mask, ((0, 0), (0, EXTRA))),
        ),
        (HIGH, HIGH),
        deterministic=True,
    ),
    masked(jaxemb.nn.RegLSTM, (HIGH,), deterministic=False, classes=3, hidden=3),
    masked(
        jaxemb.nn.XMLCNN,
        (HIGH,),
        deterministic=False,
        classes=3,
        widths=(2, 3),
        maps=3,
        parts=2,
        features=4,
    ),
    masked(jaxemb.nn.AttentionPool, (LOW,), features=3),
    Case(
        jaxemb.nn.HAN,
        lambda dtype=jnp.float32: jaxemb.nn.HAN(3, hidden=2, dtype=dtype),
        (SENTENCES, SENTENCE_MASK),
        pad_sentences,
        (HIGH,),
        deterministic=True,
    ),
    Case(
        jaxemb.nn.TfidfLinear,
        lambda dtype=None: jaxemb.nn.TfidfLinear(3, VOCAB),
        (IDS, VECTORS[..., 0]),
        lambda ids, weights: (
            jnp.pad(ids, ((0, 0), (0, EXTRA))),
            jnp.pad(weights, ((0, 0), (0, EXTRA)), constant_values=jnp.nan),
        ),
        (HIGH,),
    ),
    Case(
        jaxemb.nn.TypeDropout,
        lambda dtype=None: jaxemb.nn.TypeDropout(0.4),
        (VECTORS, IDS),
        lambda vectors, ids: (
            *pad_vectors(vectors),
            jnp.pad(ids, ((0, 0), (0, EXTRA))),
        ),
        (LOW,),
        deterministic=False,
        ignores_padding=False,
    ),
    masked(
        jaxemb.nn.LSTMClassifier,
        (HIGH,),
        deterministic=False,
        classes=3,
        hidden=5,
        bidirectional=True,
    ),
]


def test_every_public_module_has_a_case():
    public = [getattr(jaxemb.nn, name) for name in jaxemb.nn.__all__]
    modules = {x for x in public if inspect.isclass(x) and issubclass(x, nn.Module)}
    assert modules == {case.module for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", contracts.ALL, ids=lambda check: check.__name__)
def test_contract(check, case):
    check(case)
