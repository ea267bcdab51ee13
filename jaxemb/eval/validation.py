"""Who is fitted, who chooses and who is tested: SentEval's protocols, by masks of rows.

A linear classifier is fitted for every C of a grid, the C with the highest accuracy on
rows that were held out is chosen (the first of equals, means rounded to a hundredth of
a point, as SentEval does), and a model of that C is tested. No test row is ever fitted
to or chosen by.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxemb.errors import InputError
from jaxemb.eval import logistic
from jaxemb.eval.logistic import Features, Fits

SEED = 1111  # SentEval's
FOLDS = 10
GRID = tuple(2.0**power for power in range(-2, 4))
WIDE_GRID = tuple(2.0**power for power in range(-1, 6))  # where SentEval tests apart

_AT_ONCE = 11  # masks fitted in one go: ten folds and their whole

Labels = Int[np.ndarray, " rows"]


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
    """One choice of C and one test; masks over all rows."""

    fits: Bool[np.ndarray, "folds rows"]
    """Rows that the candidates are fitted to."""
    held: Bool[np.ndarray, "folds rows"]
    """Rows that each of them is scored on."""
    final: Bool[np.ndarray, " rows"]
    """Rows that the model of the chosen C is fitted to."""
    test: Bool[np.ndarray, " rows"]
    """Rows that it is tested on."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Rounds of the same number of folds, and the values of C."""

    rounds: tuple[Round, ...]
    grid: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Validated:
    """What a protocol found."""

    hits: Float[np.ndarray, " rows"]
    """1 or 0 for a row that was tested, nan for one that was not."""
    accuracies: tuple[float, ...]
    """Of the rounds."""
    chosen: tuple[float, ...]
    """C of the rounds."""
    gradient_norm: float
    """The longest of all fits."""

    @property
    def accuracy(self) -> float:
        """The share of tested rows that are right."""
        return float(np.nanmean(self.hits))


def stratified_folds(
    labels: Labels, folds: int = FOLDS, seed: int = SEED
) -> Int[np.ndarray, " rows"]:
    """The fold of every row, each class spread evenly: scikit-learn's, shuffled.

    The same folds as of `StratifiedKFold(folds, shuffle=True, random_state=seed)`.
    """
    classes, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    smallest = int(np.bincount(codes, minlength=1).min()) if len(labels) else 0
    if not 2 <= folds <= smallest:
        raise InputError(
            f"{folds} folds of a class of {smallest} rows; expected 2 to {smallest}"
        )
    # numpy's old generator, whose shuffles are the ones that SentEval has.
    rng = np.random.RandomState(seed)
    order = np.argsort(first)  # classes as they first occur
    rank = np.empty_like(order)
    rank[order] = np.arange(len(classes))
    ranks = rank[codes]
    dealt = np.sort(ranks)
    counts = [
        np.bincount(dealt[f::folds], minlength=len(classes)) for f in range(folds)
    ]
    out = np.empty(len(labels), np.int64)
    for place in range(len(classes)):
        cards = np.repeat(np.arange(folds), [count[place] for count in counts])
        rng.shuffle(cards)
        out[ranks == place] = cards
    return out


def nested(labels: Labels, folds: int = FOLDS, seed: int = SEED) -> Plan:
    """Every fold is the test once; C is chosen by folds of the others."""
    outer = stratified_folds(labels, folds, seed)
    rounds = []
    for number in range(folds):
        train = outer != number
        rounds.append(_by_folds(labels, train, ~train, folds, seed))
    return Plan(tuple(rounds), GRID)


def folds_then_test(
    labels: Labels,
    test: Bool[np.ndarray, " rows"],
    folds: int = FOLDS,
    seed: int = SEED,
) -> Plan:
    """C is chosen by folds of what is not test."""
    return Plan((_by_folds(labels, ~test, test, folds, seed),), WIDE_GRID)


def split(
    train: Bool[np.ndarray, " rows"],
    dev: Bool[np.ndarray, " rows"],
    test: Bool[np.ndarray, " rows"],
) -> Plan:
    """C is chosen on dev, and dev is not added to what is fitted."""
    return Plan((Round(train[np.newaxis], dev[np.newaxis], train, test),), GRID)


def rotated(groups: Sequence[str], parts: int = 5) -> Plan:
    """Groups are dealt into parts of like size; each is test once, the next one dev.

    No group, such as the sentences of a document, is on two sides.
    """
    sizes = collections.Counter(groups)
    if not 3 <= parts <= len(sizes):
        raise InputError(
            f"{parts} parts of {len(sizes)} groups; expected 3 to {len(sizes)}"
        )
    filled = [0] * parts
    part_of = {}
    for group in sorted(sizes, key=lambda g: (-sizes[g], g)):  # the largest first
        part_of[group] = filled.index(min(filled))
        filled[part_of[group]] += sizes[group]
    part = np.array([part_of[group] for group in groups])
    rounds = []
    for number in range(parts):
        test, dev = part == number, part == (number + 1) % parts
        rounds += split(~test & ~dev, dev, test).rounds
    return Plan(tuple(rounds), GRID)


def majority(labels: Labels, plan: Plan) -> float:
    """What the commonest class among the tested rows would score."""
    tested = np.any([one.test for one in plan.rounds], axis=0)
    counts = np.bincount(labels[tested])
    return float(counts.max() / counts.sum())


def cross_validate(
    features: Features, labels: Labels, classes: int, plan: Plan
) -> Validated:
    """Fits, chooses and tests as planned; see `logistic.fit`."""
    used = _used(plan)
    design = logistic.Design.of(features[used])
    last: list[Fits] = []

    def fit(masks):
        start = last[0] if last and len(last[0].weights) == len(masks) else None
        found = logistic.fit(
            design, labels[used], classes, masks, plan.grid, start=start
        )
        last[:] = [found]
        return last

    return _validate(lambda _: features, 1, fit, labels, plan)[0]


def cross_validate_each(
    features: Features, labels: Labels, classes: int, plan: Plan
) -> list[Validated]:
    """The same for every feature alone."""
    used = _used(plan)

    def fit(masks):
        return logistic.fit_each(
            features[used], labels[used], classes, masks, plan.grid
        )

    def of(number):
        return features[:, number : number + 1]

    return _validate(of, features.shape[1], fit, labels, plan)


def _validate(
    features: Callable[[int], Features],
    count: int,
    fit: Callable[[Bool[np.ndarray, "masks _"]], list[Fits]],
    labels: Labels,
    plan: Plan,
) -> list[Validated]:
    used = _used(plan)
    hits = np.full((count, len(labels)), np.nan)
    accuracies: list[list[float]] = [[] for _ in range(count)]
    chosen: list[list[float]] = [[] for _ in range(count)]
    norms = [0.0] * count
    for rounds in _batched(plan.rounds):
        masks = [mask for r in rounds for mask in _masks(r)]
        models = fit(np.stack(masks)[:, used])
        for number, model in enumerate(models):
            right = model.predict(features(number)) == labels[np.newaxis, np.newaxis]
            norms[number] = max(norms[number], float(model.gradient_norms.max()))
            for place, one in enumerate(rounds):
                size = len(right) // len(rounds)
                own = right[place * size : (place + 1) * size]
                best = _best(own[: len(one.fits)], one.held)
                tested = own[-1, best, one.test]
                hits[number, one.test] = tested
                accuracies[number].append(float(np.mean(tested)))
                chosen[number].append(plan.grid[best])
    return [
        Validated(hits[i], tuple(accuracies[i]), tuple(chosen[i]), norms[i])
        for i in range(count)
    ]


def _used(plan: Plan) -> Bool[np.ndarray, " rows"]:
    """The rows that any model is fitted to."""
    return np.any([mask for r in plan.rounds for mask in _masks(r)], axis=0)


def _masks(one: Round) -> list[np.ndarray]:
    """Those of the candidates, and last the final one where it is another."""
    same = len(one.fits) == 1 and np.array_equal(one.fits[0], one.final)
    return [*one.fits] if same else [*one.fits, one.final]


def _batched(rounds: Sequence[Round]) -> Iterator[Sequence[Round]]:
    """As many rounds as are fitted in one go."""
    several = max(1, _AT_ONCE // len(_masks(rounds[0])))
    for start in range(0, len(rounds), several):
        yield rounds[start : start + several]


def _best(
    right: Bool[np.ndarray, "folds strengths rows"], held: Bool[np.ndarray, "_ rows"]
) -> int:
    """Which C is right most often on rows held out."""
    scores = np.mean(
        [fold[:, mask].mean(axis=1) for fold, mask in zip(right, held, strict=True)],
        axis=0,
    )
    return int(np.argmax(np.round(100 * scores, 2)))


def _by_folds(labels, train, test, folds: int, seed: int) -> Round:
    inner = np.full(len(labels), -1)
    inner[train] = stratified_folds(labels[train], folds, seed)
    held = inner[np.newaxis] == np.arange(folds)[:, np.newaxis]
    return Round(train[np.newaxis] & ~held, held, train, test)
