"""Words with a grammar: grids of forms, and suffixes that move a vector."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxemb.data.analogies import Analogy
from jaxemb.data.features import WordFeatures
from jaxemb.data.pairs import WordPair
from jaxemb.data.synthetic.words import invented_words, scored_pairs
from jaxemb.data.text import LabelledText
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

_SUFFIXES = "ing ed ness ful er ly less ish".split()


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedForms:
    """A text whose words have a stem and a form, and say so by their company.

    Attributes:
      sentences: each about one stem in one form.
      pairs: word pairs, scored 1 for a common stem and a common form each.
      questions: analogies by section: "gram-forms" changes the form, "stems" the stem.
      classes: of every word of a stem, and of those that keep it company.
      train: texts with the number of their stem's half as label.
      test: more of them.
    """

    sentences: tuple[tuple[str, ...], ...]
    pairs: tuple[WordPair, ...]
    questions: Mapping[str, tuple[Analogy, ...]]
    classes: WordFeatures
    train: tuple[LabelledText, ...]
    test: tuple[LabelledText, ...]


def planted_forms(
    seed: int = 0,
    *,
    num_stems: int = 8,
    num_forms: int = 4,
    num_sentences: int = 3000,
    num_texts: int = 400,
) -> PlantedForms:
    """Draws a text in which analogies of stems and forms hold.

    A sentence has a stem and a form. Of its ten words three in ten are the stem in that
    form, as many keep company with the stem and as many with the form, and the rest are
    common to all: the logarithm of what stands near a word is a sum of what its stem
    and what its form bring.

    Args:
      seed: of all draws.
      num_stems: from 2.
      num_forms: from 2.
      num_sentences: in all.
      num_texts: of train and test together, a quarter of them test.
    """
    if num_stems < 2 or num_forms < 2:
        raise InputError(
            "planted forms need num_stems and num_forms of 2 or more; got "
            f"{num_stems} and {num_forms}"
        )
    rng = np.random.default_rng(seed)
    counts = num_stems * (num_forms + 3), num_forms * 3, 5
    words = invented_words(rng, sum(counts), set())
    of_stems = np.array(words[: counts[0]]).reshape(num_stems, -1)
    inflected, company = of_stems[:, :num_forms], of_stems[:, num_forms:]
    of_forms = np.array(words[counts[0] : -counts[2]]).reshape(num_forms, 3)
    common = np.array(words[-counts[2] :])

    def sentence(stem: int) -> tuple[str, ...]:
        form = int(rng.integers(num_forms))
        sources = ([inflected[stem, form]], company[stem], of_forms[form], common)
        drawn = rng.choice(4, size=10, p=(0.3, 0.3, 0.3, 0.1))
        return tuple(str(rng.choice(sources[i])) for i in drawn)

    texts = []
    for number in range(num_texts):
        label = number % 2
        stem = int(rng.integers(num_stems // 2)) + label * (num_stems // 2)
        texts.append(LabelledText(sentence(stem) + sentence(stem), label))
    cells = [(s, f) for s in range(num_stems) for f in range(num_forms)]
    pairs = [
        WordPair(
            str(inflected[a]), str(inflected[b]), float((a[0] == b[0]) + (a[1] == b[1]))
        )
        for i, a in enumerate(cells)
        for b in cells[i + 1 :]
    ]
    quarter = num_texts // 4
    return PlantedForms(
        tuple(sentence(i % num_stems) for i in range(num_sentences)),
        tuple(pairs),
        {
            "gram-forms": _grid_questions(inflected),
            "stems": _grid_questions(inflected.T),
        },
        WordFeatures(
            tuple(map(str, of_stems.ravel())),
            tuple(f"stem-{i}" for i in range(num_stems)),
            np.repeat(np.eye(num_stems), num_forms + 3, axis=0),
        ),
        tuple(texts[quarter:]),
        tuple(texts[:quarter]),
    )


def _grid_questions(grid: np.ndarray) -> tuple[Analogy, ...]:
    """One column to another in a row, as the same two columns in the next row."""
    rows, columns = grid.shape
    return tuple(
        Analogy(*map(str, (grid[i, a], grid[i, b], grid[j, a], grid[j, b])))
        for i in range(rows)
        for a in range(columns)
        for b in range(columns)
        if a != b
        for j in [(i + 1) % rows]
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedMorphology:
    """Words whose vectors follow their spelling.

    Attributes:
      vectors: of every word: its stem's, plus its suffix's, plus noise.
      parts: the stem and the suffix of every word.
      train: words to learn from; every stem and every suffix is among them.
      held_out: the other combinations.
      pairs: word pairs scored by the cosine of their vectors.
      analogies: the same change of suffix in two stems, of words to learn from.
      sentences: words with their tags, which are the names of their suffixes.
    """

    vectors: WordVectors
    parts: Mapping[str, tuple[str, str]]
    train: tuple[str, ...]
    held_out: tuple[str, ...]
    pairs: tuple[WordPair, ...]
    analogies: tuple[Analogy, ...]
    sentences: tuple[tuple[tuple[str, str], ...], ...]


def planted_morphology(
    seed: int = 0,
    *,
    num_stems: int = 25,
    num_suffixes: int = 6,
    dim: int = 8,
    noise: float = 0.05,
    num_pairs: int = 200,
    num_analogies: int = 100,
    num_sentences: int = 60,
) -> PlantedMorphology:
    """Makes a teacher that characters can imitate, for words never seen too.

    Args:
      seed: of all draws.
      num_stems: from 2.
      num_suffixes: 2 to 8; each stem lacks one of its suffixes in `train`.
      dim: width of the vectors.
      noise: standard deviation of what spelling does not tell, in every coordinate.
      num_pairs: in the similarity list.
      num_analogies: at most.
      num_sentences: of 3 to 8 words.
    """
    if num_stems < 2 or not 2 <= num_suffixes <= len(_SUFFIXES):
        raise InputError(
            "planted morphology needs 2 or more stems and 2 to "
            f"{len(_SUFFIXES)} suffixes; got {num_stems} and {num_suffixes}"
        )
    rng = np.random.default_rng(seed)
    stems = invented_words(rng, num_stems, set())
    suffixes = _SUFFIXES[:num_suffixes]
    parts = {a + b: (a, b) for a in stems for b in suffixes}
    of_stem, of_suffix = (
        dict(zip(names, rng.normal(size=(len(names), dim)), strict=True))
        for names in (stems, suffixes)
    )
    rows = np.array([of_stem[a] + of_suffix[b] for a, b in parts.values()])
    rows += noise * rng.normal(size=rows.shape)
    lacking = {stem: suffixes[i % num_suffixes] for i, stem in enumerate(stems)}
    known = [lacking[a] != b for a, b in parts.values()]
    train = tuple(w for w, seen in zip(parts, known, strict=True) if seen)
    held_out = tuple(w for w, seen in zip(parts, known, strict=True) if not seen)
    analogies = []
    for _ in range(num_analogies):
        (a, c), (b, d) = (
            rng.choice(names, 2, replace=False) for names in (stems, suffixes)
        )
        four = (a + b, a + d, c + b, c + d)
        if not set(four) & set(held_out):
            analogies.append(Analogy(*map(str, four)))
    sentences = [
        tuple((str(w), parts[w][1].upper()) for w in rng.choice(train, length))
        for length in rng.integers(3, 9, num_sentences)
    ]
    return PlantedMorphology(
        vectors=WordVectors(tuple(parts), rows.astype(np.float32)),
        parts=parts,
        train=train,
        held_out=held_out,
        pairs=scored_pairs(rng, list(train), rows[known], num_pairs),
        analogies=tuple(analogies),
        sentences=tuple(sentences),
    )
