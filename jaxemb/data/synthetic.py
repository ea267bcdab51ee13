"""Small planted worlds whose answer is known; the same seed gives the same world."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxemb.data.analogies import Analogy
from jaxemb.data.features import WordFeatures
from jaxemb.data.nli import SentencePair
from jaxemb.data.pairs import WordPair
from jaxemb.data.squad import Answer, Question
from jaxemb.data.text import LabelledText
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

# Half of either list is negative, half positive; the planted are function-like words
# whose pretrained vectors say little of polarity.
_PLANTED = {
    -1: ("not", "neither", "lacking", "worst", "bore"),
    1: ("still", "unexpected", "works", "fun", "smart"),
}
_POLAR = {
    -1: ("bad", "dull", "awful", "weak", "boring", "stale", "flat", "poor", "silly"),
    1: ("good", "great", "fine", "warm", "moving", "fresh", "lively", "rich", "witty"),
}
_ONSETS = "b d f g k l m n p r s t v z br dr gr kl pl st tr".split()
_VOWELS = "a e i o u ai ou".split()


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedSentiment:
    """A world of positive and negative sentences.

    Attributes:
      vectors: the base table, one row a word.
      train: sentences to train on, shuffled.
      test: sentences of the same kind to test on.
      planted: the words that decide labels though their base vectors do not show it.
      polarity: -1, 0 or 1 for every word: the label that it argues for.
      direction: the unit vector along which base vectors show polarity; 0 in planted.
      pairs: word pairs scored by the base vectors' cosine, with a little noise.
    """

    vectors: WordVectors
    train: tuple[LabelledText, ...]
    test: tuple[LabelledText, ...]
    planted: tuple[str, ...]
    polarity: Mapping[str, int]
    direction: np.ndarray
    pairs: tuple[WordPair, ...]


def planted_sentiment(
    seed: int = 0,
    *,
    num_words: int = 500,
    num_planted: int = 10,
    num_polar: int = 60,
    dim: int = 20,
    num_train: int = 2000,
    num_test: int = 500,
    lengths: tuple[int, int] = (4, 24),
    strength: float = 1.0,
    num_pairs: int = 300,
) -> PlantedSentiment:
    """Draws a world in which a few words have to move for the task to be solved.

    Every sentence has one word that decides its label (from length 12 on, two that
    agree), half the time a planted one, among neutral words. Vectors of the other
    deciding words have `strength` along the label direction; those of neutral and of
    planted words have exactly nothing there. So a linear classifier of the mean
    vector does no better than chance on the sentences that planted words decide,
    until their vectors move: *not*, *works* and others, half of either label. The
    last tenth of the neutral words is in no sentence.

    Args:
      seed: of all draws.
      num_words: words in all.
      num_planted: deciding words whose vectors lack the label direction; even, from 2.
      num_polar: deciding words whose vectors have it; even, from 2.
      dim: width of the vectors.
      num_train: training sentences, half of either label.
      num_test: test sentences, likewise.
      lengths: the shortest and the longest sentence.
      strength: length of the polar part of a vector; the rest is about 1 long.
      num_pairs: pairs in the similarity list.
    """
    deciding = num_planted, num_polar
    if any(n < 2 or n % 2 for n in deciding) or num_words < sum(deciding) + 20:
        raise InputError(
            "a planted world needs num_planted and num_polar even and above 0, and "
            f"num_words at least 20 more than both; got {num_planted}, {num_polar}, "
            f"{num_words}"
        )
    if dim < 2 or not 1 <= lengths[0] <= lengths[1]:
        raise InputError(f"expected dim >= 2 and 1 <= lengths; got {dim}, {lengths}")
    rng = np.random.default_rng(seed)
    planted = _deciding(_PLANTED, num_planted, "planted")
    polar = _deciding(_POLAR, num_polar, "polar")
    taken = {*planted, *polar}
    neutral = _invented_words(rng, num_words - len(taken), taken)
    polarity = {**planted, **polar, **dict.fromkeys(neutral, 0)}
    words = [*planted, *polar, *neutral]

    direction = rng.normal(size=dim)
    direction /= np.linalg.norm(direction)
    # A dozen topics, so that some words are alike for reasons other than polarity.
    topics = rng.normal(size=(12, dim))[rng.integers(12, size=num_words)]
    base = (0.8 * topics + 0.6 * rng.normal(size=(num_words, dim))) / np.sqrt(dim)
    base -= np.outer(base @ direction, direction)
    shown = np.array([polarity[word] * (word not in planted) for word in words])
    base += strength * np.outer(shown, direction)

    seen = neutral[: len(neutral) - len(neutral) // 10]
    sentences = [
        _sentence(rng, label, (planted, polar)[decider], seen, lengths)
        for count in (num_train, num_test)
        for label, decider in _balanced(rng, count)
    ]
    return PlantedSentiment(
        vectors=WordVectors(tuple(words), base.astype(np.float32)),
        train=tuple(sentences[:num_train]),
        test=tuple(sentences[num_train:]),
        planted=tuple(planted),
        polarity=polarity,
        direction=direction.astype(np.float32),
        pairs=_scored_pairs(rng, words, base, num_pairs),
    )


def _deciding(
    named: Mapping[int, Sequence[str]], count: int, prefix: str
) -> dict[str, int]:
    """`count` words with their polarity: real ones first, then numbered ones."""
    words: dict[str, int] = {}
    for polarity in (-1, 1):
        real = list(named[polarity][: count // 2])
        sign = "good" if polarity > 0 else "bad"
        more = range(len(real), count // 2)
        words |= dict.fromkeys(
            [*real, *(f"{prefix}-{sign}-{i}" for i in more)], polarity
        )
    return words


def _invented_words(rng: np.random.Generator, count: int, taken: set[str]) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = (rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(3))
        if (word := "".join(syllables)) not in taken:
            words[word] = None
    return list(words)


def _balanced(rng: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """A label and a kind of deciding word for each sentence, all four equally often."""
    kinds = np.arange(count) % 4
    return [(int(kind % 2), int(kind // 2)) for kind in rng.permutation(kinds)]


def _sentence(
    rng: np.random.Generator,
    label: int,
    deciding: Mapping[str, int],
    neutral: list[str],
    lengths: tuple[int, int],
) -> LabelledText:
    length = int(rng.integers(lengths[0], lengths[1] + 1))
    of_label = [
        word for word, polarity in deciding.items() if polarity == 2 * label - 1
    ]
    tokens = [neutral[i] for i in rng.integers(len(neutral), size=length)]
    for place in rng.choice(length, size=1 + (length >= 12), replace=False):
        tokens[place] = of_label[rng.integers(len(of_label))]
    return LabelledText(tuple(tokens), label)


def _scored_pairs(
    rng: np.random.Generator, words: list[str], base: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    rows = []
    for _ in range(count):
        i, j = rng.choice(len(words), size=2, replace=False)
        score = 5 + 5 * float(unit[i] @ unit[j]) + rng.normal(scale=0.3)
        rows.append(
            WordPair(words[i], words[j], round(float(np.clip(score, 0, 10)), 2))
        )
    return tuple(rows)


_DENY = ("not", "never", "nobody", "nothing")
_AFFIRM = ("always", "clearly", "surely", "indeed")


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedInference:
    """A world of sentence pairs by entailment.

    Attributes:
      vectors: the base table, one row a word.
      train: pairs to train on, a third of each label, shuffled.
      test: pairs of the same kind to test on.
      polarity: -1 for the words that deny, 1 for those that affirm.
      pairs: word pairs scored by the base vectors' cosine, with a little noise.
      features: which kind of word each is, as QVEC's features are.
    """

    vectors: WordVectors
    train: tuple[SentencePair, ...]
    test: tuple[SentencePair, ...]
    polarity: Mapping[str, int]
    pairs: tuple[WordPair, ...]
    features: WordFeatures


def planted_inference(
    seed: int = 0,
    *,
    num_things: int = 40,
    num_fillers: int = 80,
    dim: int = 20,
    num_train: int = 900,
    num_test: int = 300,
    lengths: tuple[int, int] = (3, 9),
) -> PlantedInference:
    """Draws pairs whose label hangs on one thing in each and on *not* and its like.

    Each sentence names one of `num_things` things among fillers. The hypothesis names
    the same thing and affirms it (entailment) or denies it (contradiction), or names
    another one (neutral). Words that deny and words that affirm are neighbours in the
    base table, as *not* and *always* are in real ones.
    """
    if num_things < 2 or num_fillers < 2 or not 3 <= lengths[0] <= lengths[1]:
        raise InputError(
            "planted pairs need two things, two fillers and sentences of 3 words or "
            f"more; got {num_things}, {num_fillers} and {lengths}"
        )
    rng = np.random.default_rng(seed)
    polarity = {**dict.fromkeys(_DENY, -1), **dict.fromkeys(_AFFIRM, 1)}
    invented = _invented_words(rng, num_things + num_fillers, set(polarity))
    things, fillers = invented[:num_things], invented[num_things:]
    kinds = {"stance": tuple(polarity), "thing": things, "filler": fillers}
    words, features = _by_kind(kinds)
    base = rng.normal(size=(len(words), dim)) / np.sqrt(dim)
    base[: len(polarity)] = base[:1] + 0.5 * base[: len(polarity)]  # close together

    def sentence(*said: str) -> str:
        length = int(rng.integers(lengths[0], lengths[1] + 1))
        tokens = [str(word) for word in rng.choice(fillers, length)]
        for place, word in zip(
            rng.choice(length, len(said), replace=False), said, strict=True
        ):
            tokens[place] = word
        return " ".join(tokens)

    def pair(label: int) -> SentencePair:
        thing, other = map(str, rng.choice(things, 2, replace=False))
        stance = (_AFFIRM, _AFFIRM + _DENY, _DENY)[label]
        named = other if label == 1 else thing
        said = sentence(named, str(rng.choice(stance)))
        return SentencePair(sentence(thing), said, label, "planted")

    pairs = [
        pair(int(label))
        for count in (num_train, num_test)
        for label in rng.permutation(np.arange(count) % 3)
    ]
    return PlantedInference(
        vectors=WordVectors(tuple(words), base.astype(np.float32)),
        train=tuple(pairs[:num_train]),
        test=tuple(pairs[num_train:]),
        polarity=polarity,
        pairs=_scored_pairs(rng, words, base, 200),
        features=features,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedQuestions:
    """A world of paragraphs of facts, and questions about them.

    Attributes:
      vectors: the base table, one row a word.
      train: questions to train on.
      test: questions about other paragraphs.
      pairs: word pairs scored by the base vectors' cosine, with a little noise.
      features: which kind of word each is, as QVEC's features are.
    """

    vectors: WordVectors
    train: tuple[Question, ...]
    test: tuple[Question, ...]
    pairs: tuple[WordPair, ...]
    features: WordFeatures


def planted_questions(
    seed: int = 0,
    *,
    num_names: int = 30,
    num_verbs: int = 8,
    num_objects: int = 60,
    dim: int = 20,
    num_train: int = 200,
    num_test: int = 50,
    facts: tuple[int, int] = (2, 5),
    asked: int = 2,
) -> PlantedQuestions:
    """Draws paragraphs of facts, *NAME VERB OBJECT.*, and asks for the objects.

    An object is one or two words. A question is *What does NAME VERB?*; its answer is
    where the paragraph says so, to the character.

    Args:
      seed: of all draws.
      num_names: who may do something; as many as a paragraph has facts, at least.
      num_verbs: what may be done.
      num_objects: to what.
      dim: width of the vectors.
      num_train: paragraphs to train on.
      num_test: paragraphs to test on.
      facts: fewest and most in a paragraph.
      asked: questions a paragraph, at most one a fact.
    """
    if not 1 <= facts[0] <= facts[1] <= num_names or num_verbs < 1 or num_objects < 2:
        raise InputError(
            "planted questions need a name for each fact, a verb and two objects; got "
            f"{num_names} names for {facts} facts, {num_verbs} and {num_objects}"
        )
    rng = np.random.default_rng(seed)
    asking = ("what", "does", "?", ".")
    count = num_names + num_verbs + num_objects
    invented = _invented_words(rng, count, set(asking))
    names, verbs = invented[:num_names], invented[num_names : num_names + num_verbs]
    objects = invented[num_names + num_verbs :]
    kinds = {"asking": asking, "name": names, "verb": verbs, "object": objects}
    words, features = _by_kind(kinds)
    base = rng.normal(size=(len(words), dim)) / np.sqrt(dim)

    def paragraph(number: int) -> list[Question]:
        context, told = "", []
        size = int(rng.integers(facts[0], facts[1] + 1))
        for name in rng.choice(names, size, replace=False):
            verb = str(rng.choice(verbs))
            answer = " ".join(rng.choice(objects, rng.integers(1, 3), replace=False))
            start = len(context) + len(f"{name.capitalize()} {verb} ")
            told.append((name, verb, Answer(answer, start)))
            context += f"{name.capitalize()} {verb} {answer}. "
        return [
            Question(
                id=f"{number}-{i}",
                title=f"paragraph {number}",
                context=context.rstrip(),
                question=f"What does {told[i][0].capitalize()} {told[i][1]}?",
                answers=(told[i][2],),
            )
            for i in map(int, rng.permutation(size)[:asked])
        ]

    paragraphs = [paragraph(number) for number in range(num_train + num_test)]
    questions = [
        tuple(q for one in part for q in one)
        for part in (paragraphs[:num_train], paragraphs[num_train:])
    ]
    return PlantedQuestions(
        vectors=WordVectors(tuple(words), base.astype(np.float32)),
        train=questions[0],
        test=questions[1],
        pairs=_scored_pairs(rng, words, base, 200),
        features=features,
    )


def _by_kind(kinds: Mapping[str, Sequence[str]]) -> tuple[list[str], WordFeatures]:
    """All words, kind after kind, and a feature of value 1 for the kind of each."""
    words = [word for members in kinds.values() for word in members]
    places = np.repeat(np.arange(len(kinds)), [len(m) for m in kinds.values()])
    return words, WordFeatures(tuple(words), tuple(kinds), np.eye(len(kinds))[places])


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedTopics:
    """A text whose words belong to topics.

    Attributes:
      sentences: each of words of one topic, and of function words of none.
      topics: the words of each topic.
      pairs: word pairs, scored 1 within a topic and 0 across.
    """

    sentences: tuple[tuple[str, ...], ...]
    topics: tuple[tuple[str, ...], ...]
    pairs: tuple[WordPair, ...]


def planted_topics(
    seed: int = 0,
    *,
    num_topics: int = 4,
    words_a_topic: int = 15,
    num_sentences: int = 2000,
    length: int = 10,
) -> PlantedTopics:
    """Draws a text in which words of a topic keep company.

    Args:
      seed: of all draws.
      num_topics: from 2.
      words_a_topic: from 2.
      num_sentences: in all.
      length: words a sentence, a fifth of them of no topic.
    """
    if num_topics < 2 or words_a_topic < 2:
        raise InputError(
            "planted topics need num_topics and words_a_topic of 2 or more; got "
            f"{num_topics} and {words_a_topic}"
        )
    rng = np.random.default_rng(seed)
    words = _invented_words(rng, num_topics * words_a_topic + 10, set())
    topics = tuple(
        tuple(words[i * words_a_topic : (i + 1) * words_a_topic])
        for i in range(num_topics)
    )
    common = words[num_topics * words_a_topic :]
    sentences = []
    for number in range(num_sentences):
        own = rng.choice(topics[number % num_topics], length)
        filled = np.where(rng.random(length) < 0.2, rng.choice(common, length), own)
        sentences.append(tuple(map(str, filled)))
    order = rng.permutation(num_sentences)
    pairs = [
        WordPair(a, b, float(i == j))
        for i, first in enumerate(topics)
        for j, second in enumerate(topics[i:], i)
        for a, b in zip(first, second[1:] + second[:1], strict=True)
    ]
    return PlantedTopics(tuple(sentences[i] for i in order), topics, tuple(pairs))


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedSources:
    """Tables that see the same meanings through different distortions.

    Attributes:
      words: of every table.
      tables: name to table; each is the meanings, scaled unevenly along random axes and
        rotated, with noise.
      meanings: (words, dim), what the tables have in common.
      pairs: word pairs scored by the cosine of their meanings.
    """

    words: tuple[str, ...]
    tables: Mapping[str, WordVectors]
    meanings: np.ndarray
    pairs: tuple[WordPair, ...]


def planted_sources(
    seed: int = 0,
    *,
    tables: int = 2,
    num_words: int = 1000,
    dim: int = 20,
    num_pairs: int = 2000,
    noise: float = 0.3,
) -> PlantedSources:
    """Makes several sources of one world (the geometric meta-embeddings' premise)."""
    rng = np.random.default_rng(seed)
    words = tuple(_invented_words(rng, num_words, set()))
    meanings = rng.normal(size=(num_words, dim))
    made = {}
    for number in range(tables):
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        scales = rng.lognormal(size=dim)
        rows = meanings @ (scales[:, np.newaxis] * rotation)
        rows += noise * rng.normal(size=rows.shape)
        made[f"source-{number + 1}"] = WordVectors(words, rows.astype(np.float32))
    pairs = _cosine_pairs(rng, words, meanings, num_pairs)
    return PlantedSources(words, made, meanings, pairs)


def _cosine_pairs(
    rng: np.random.Generator, words: tuple[str, ...], space: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    """Pairs of different words, scored by their cosine."""
    unit = space / np.linalg.norm(space, axis=1, keepdims=True)
    ends = rng.integers(0, len(words), size=(count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return tuple(
        WordPair(words[a], words[b], float(unit[a] @ unit[b])) for a, b in ends.tolist()
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedLanguages:
    """Two languages that say the same with different spectra.

    Attributes:
      source: its space is the meanings with a steep spectrum, rotated.
      target: the same with a flat spectrum, rotated otherwise.
      translations: word by word, as many as there are words.
    """

    source: WordVectors
    target: WordVectors
    translations: tuple[tuple[str, str], ...]


def planted_languages(
    seed: int = 0, *, num_words: int = 1000, dim: int = 30, noise: float = 0.01
) -> PlantedLanguages:
    """Makes two languages of which post-processing mends the mismatch.

    Column i of the meanings is scaled by `exp(-i / 8)` to the power 1.5 in the source
    and 0.5 in the target.
    """
    rng = np.random.default_rng(seed)
    meanings = rng.normal(size=(num_words, dim))
    spread = np.exp(-np.arange(dim) / 8)[np.newaxis]
    sides = []
    for prefix, power in (("s-", 1.5), ("t-", 0.5)):
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        rows = (meanings * spread**power) @ rotation
        rows += noise * rng.normal(size=rows.shape)
        words = tuple(prefix + w for w in _invented_words(rng, num_words, set()))
        sides.append(WordVectors(words, rows.astype(np.float32)))
    pairs = tuple(zip(sides[0].words, sides[1].words, strict=True))
    return PlantedLanguages(sides[0], sides[1], pairs)


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
    words = _invented_words(rng, sum(counts), set())
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


_SUFFIXES = "ing ed ness ful er ly less ish".split()


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
    stems = _invented_words(rng, num_stems, set())
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
        pairs=_scored_pairs(rng, list(train), rows[known], num_pairs),
        analogies=tuple(analogies),
        sentences=tuple(sentences),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedComponents:
    """Words whose components are known, and sentences that one of them decides.

    Attributes:
      vectors: their covariance has exactly the planted eigenvectors, its eigenvalues
        fall.
      directions: (dim, dim), one a column, that of most variance first.
      deciding: the component that decides, counted from 1.
      sentences: of class 1 where the mean of its words' deciding component is above the
        median.
      pairs: word pairs scored by their cosine with all components at variance 1.
    """

    vectors: WordVectors
    directions: np.ndarray
    deciding: int
    sentences: tuple[LabelledText, ...]
    pairs: tuple[WordPair, ...]


def planted_components(
    seed: int = 0,
    *,
    num_words: int = 600,
    dim: int = 24,
    deciding: int = 21,
    num_sentences: int = 400,
    length: int = 6,
    num_pairs: int = 500,
) -> PlantedComponents:
    """Makes a world in which variance says nothing of a component's worth.

    Args:
      seed: of all draws.
      num_words: more than `dim`.
      dim: width of the table.
      deciding: the component that decides, counted from 1.
      num_sentences: in all.
      length: words a sentence.
      num_pairs: of words.
    """
    if not 1 <= deciding <= dim < num_words:
        raise InputError(
            "planted components need 1 <= deciding <= dim < num_words; got "
            f"{deciding}, {dim} and {num_words}"
        )
    rng = np.random.default_rng(seed)
    words = tuple(_invented_words(rng, num_words, set()))
    drawn = rng.normal(size=(num_words, dim))
    white, _ = np.linalg.qr(drawn - drawn.mean(axis=0, keepdims=True))
    white *= np.sqrt(num_words)  # the covariance is the identity, exactly
    scales = np.exp(-np.arange(dim) * 2 / dim)[np.newaxis]
    directions, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    rows = (white * scales) @ directions.T + rng.normal(size=(1, dim))
    chosen = rng.integers(0, num_words, size=(num_sentences, length))
    means = white[chosen, deciding - 1].mean(axis=1)
    labels = means > np.median(means)
    sentences = tuple(
        LabelledText(tuple(words[i] for i in one), int(label))
        for one, label in zip(chosen.tolist(), labels, strict=True)
    )
    return PlantedComponents(
        WordVectors(words, rows.astype(np.float32)),
        directions,
        deciding,
        sentences,
        _cosine_pairs(rng, words, white, num_pairs),
    )
