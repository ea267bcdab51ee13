"""Pairs of sentences that entail each other or not, and questions about paragraphs."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxemb.data.commonsense import Candidate
from jaxemb.data.features import WordFeatures
from jaxemb.data.nli import SentencePair
from jaxemb.data.pairs import WordPair
from jaxemb.data.squad import Answer, Question
from jaxemb.data.synthetic.words import by_kind, invented_words, scored_pairs
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

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
    invented = invented_words(rng, num_things + num_fillers, set(polarity))
    things, fillers = invented[:num_things], invented[num_things:]
    kinds = {"stance": tuple(polarity), "thing": things, "filler": fillers}
    words, features = by_kind(kinds)
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
        pairs=scored_pairs(rng, words, base, 200),
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
    invented = invented_words(rng, count, set(asking))
    names, verbs = invented[:num_names], invented[num_names : num_names + num_verbs]
    objects = invented[num_names + num_verbs :]
    kinds = {"asking": asking, "name": names, "verb": verbs, "object": objects}
    words, features = by_kind(kinds)
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
        pairs=scored_pairs(rng, words, base, 200),
        features=features,
    )


def planted_candidates(
    seed: int = 0,
    *,
    questions: int = 60,
    kinds: int = 4,
    words: int = 3,
    candidates: int = 4,
) -> list[Candidate]:
    """Questions whose likely answers are words of the kind that the sentence names.

    Every question has one likely candidate at least, and one that is not.

    Args:
      seed: of all draws.
      questions: how many.
      kinds: of things, each with a name.
      words: of each kind that can be answers.
      candidates: of a question, two at least.
    """
    if kinds < 2 or words < 1 or candidates < 2:
        raise InputError("planted candidates need two kinds, a word and two candidates")
    rng = np.random.default_rng(seed)
    invented = invented_words(rng, kinds * (words + 1) + 8, set())
    names, invented = invented[:kinds], invented[kinds:]
    answers = [invented[i * words : (i + 1) * words] for i in range(kinds)]
    fillers = invented[kinds * words :]
    found = []
    for number in range(questions):
        kind = int(rng.integers(kinds))
        sentence = [*rng.choice(fillers, 3), names[kind]]
        asked = f"which {number}"
        for place in range(candidates):
            likely = place == 0 or (place > 1 and bool(rng.integers(2)))
            other = int((kind + rng.integers(1, kinds)) % kinds)
            word = str(rng.choice(answers[kind if likely else other]))
            text = " ".join(map(str, sentence))
            found.append(Candidate(text, asked, word, int(likely), "planted"))
    return found
