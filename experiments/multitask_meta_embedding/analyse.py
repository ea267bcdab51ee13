"""From cosines of pairs to rows, verdicts and figures."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.common.rows import summary_row
from experiments.multitask_meta_embedding.config import (
    PAPER_GAINS,
    PAPER_MEAN_GAIN,
    SIMILARITY,
    TITLES,
    Config,
)
from experiments.multitask_meta_embedding.model import CONCATENATED, DECOUPLED
from experiments.multitask_meta_embedding.similarity import WITHOUT, Measured
from experiments.multitask_meta_embedding.training import UNLABELLED
from jaxemb.analysis import figures
from jaxemb.analysis import meta as analysis
from jaxemb.eval import intervals, pair_scores
from jaxemb.eval.intervals import Interval
from jaxemb.eval.pair_scores import PairScores
from jaxemb.train import results

MEAN = "mean of the lists, ρ × 100"
COVERED = f"{MEAN}, covered pairs only"
LACKING = "pairs with a missing word"
DEV = "held-out pairs of the lists that supervise, ρ × 100"
_ANGULAR, _PLAIN = ("cosine", "kl"), ("l1", "l2")
_ALIKE = 1.0  # points of ρ × 100 that what the paper calls similar may differ by


class Tables:
    """Rows, claims and figures of the similarity lists."""

    def __init__(self, config: Config, measured: Measured):
        self._config, self._measured = config, measured
        self._pool = measured.world.pool
        self._people = self._pool.scores
        self._lists = measured.lists
        keys = [frozenset(w.lower() for w in pair[:2]) for pair in self._pool.pairs]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        self._units = np.array([number[key] for key in keys])

    def _own(self, number: int) -> np.ndarray:
        return self._pool.of == number

    def _scores(self, name: str, number: int) -> list[PairScores]:
        """Of one list, one a seed."""
        own = self._own(number)
        human = self._people[own]
        return [PairScores(c[own], human) for c in self._measured.cosines[name]]

    def _has(self, *names: str) -> bool:
        return all(name in self._measured.cosines for name in names)

    def _title(self, number: int, count: int) -> str:
        name = self._pool.names[number]
        total = self._measured.world.totals[name]
        return f"{SIMILARITY.get(name, name)}, ρ × 100 ({count} of {total} pairs)"

    def _most(self, number: int) -> int:
        """Pairs of a list that any source has words for."""
        return int(self._own(number).sum())

    def _covered(self, name: str, number: int) -> int:
        return self._scores(name, number)[0].covered

    def _lacking(self, name: str) -> int:
        return sum(self._most(n) - self._covered(name, n) for n in self._lists)

    # Rows.

    def rows(self) -> list[results.Row]:
        """The mean over lists first, then every list, then who lacks which pairs.

        What lacks words is scored on fewer pairs, and those it has may be easier: such
        figures have metrics of their own, beside nothing that is over all pairs.
        """
        lists = self._lists
        values = {name: self._by_seed(name, lists) for name in self._measured.cosines}
        lacking = {name: self._lacking(name) for name in values}
        whole, partial = [], []
        for name, v in values.items():
            one = summary_row(name, COVERED if lacking[name] else MEAN, v.mean(axis=0))
            (partial if lacking[name] else whole).append(one)
        for place, number in enumerate(lists):
            for name, v in values.items():
                covered = self._covered(name, number)
                one = summary_row(name, self._title(number, covered), v[place])
                all_of_it = covered == self._most(number)
                (whole if all_of_it else partial).append(one)
        return [
            *whole,
            *partial,
            *(summary_row(n, LACKING, [float(k)]) for n, k in lacking.items() if k),
            *(summary_row(n, DEV, v) for n, v in self._measured.dev.items()),
        ]

    def shown(self, rows: Sequence[results.Row]) -> dict[str, list[str]]:
        """Which metrics the README's table has, where some are over fewer pairs."""
        there = {row.metric for row in rows}
        if COVERED not in there:
            return {}
        titles = [self._title(number, self._most(number)) for number in self._lists]
        wanted = [MEAN, *titles, COVERED, LACKING, DEV]
        return {"shown": [metric for metric in wanted if metric in there]}

    def _by_seed(self, name: str, lists: Sequence[int]) -> np.ndarray:
        """(lists, seeds) of ρ × 100."""
        return np.array(
            [
                [100 * s.correlation(resamples=0).mean for s in self._scores(name, n)]
                for n in lists
            ]
        )

    # Claims.

    def _gap(
        self,
        better: Sequence[str],
        worse: Sequence[str],
        lists: Sequence[int] | None = None,
    ) -> Interval:
        """The mean of some systems less that of others, the mean over lists.

        Uncertain by pairs of words, some of which are in several lists, and by the
        seeds of the systems.
        """
        lists = self._lists if lists is None else lists
        contrasts = []
        for number in lists:
            terms = []
            for names, sign in ((better, 1.0), (worse, -1.0)):
                scores = [one for n in names for one in self._scores(n, number)]
                terms += [(100 * sign / len(scores), one) for one in scores]
            contrasts.append(terms)
        pairs = pair_scores.contrast_lists(
            contrasts,
            [self._units[self._own(number)] for number in lists],
            resamples=self._config.resamples,
        )
        # Systems of one side share their seeds: what varies is the mean over them.
        seeds = [
            (sign, np.mean([self._by_seed(n, lists).mean(axis=0) for n in names], 0))
            for names, sign in ((better, 1.0), (worse, -1.0))
        ]
        return intervals.with_spread(pairs, intervals.sum_of_means(seeds))

    def _claim(
        self,
        text: str,
        gap: Interval,
        shift: float = 0.0,
        lists: int | None = None,
        within: float | None = None,
    ) -> results.Claim:
        lists = len(self._lists) if lists is None else lists
        over = f"mean over {lists} lists, " if lists > 1 else ""
        if within is None:
            verdict = intervals.verdict(gap.low - shift, gap.high - shift)
        else:
            verdict = intervals.verdict_within(gap.low, gap.high, within)
        return results.Claim(
            claim=text,
            verdict=verdict,
            evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, "
            f"{gap.high:.2f}], {over}over pairs and seeds",
        )

    def claims(self) -> list[results.Claim]:
        """The paper's, as far as there is anything to compare."""
        return [
            *self._angular_claims(),
            *self._table1_claims(),
            *self._supervision_claims(),
            *self._control_claims(),
            *self._ablation_claims(),
        ]

    def _over(
        self,
        text: str,
        better: Sequence[str],
        worse: Sequence[str],
        *,
        paired: bool = True,
        within: float | None = None,
    ) -> list[results.Claim]:
        """A claim over several systems, of which those that diverged are named.

        They are left out, and so is what they are paired with; no claim where nothing
        is left, or a system was not run.
        """
        lost = {*better, *worse} & set(self._diverged)
        if not self._has(*({*better, *worse} - lost)):
            return []
        if paired:
            couples = zip(better, worse, strict=True)
            left = [couple for couple in couples if lost.isdisjoint(couple)]
            better, worse = zip(*left, strict=True) if left else ((), ())
        else:
            better, worse = ([n for n in s if n not in lost] for s in (better, worse))
        if not (better and worse):
            return []
        text += "".join(f"; {name} diverged" for name in sorted(lost))
        return [self._claim(text, self._gap(better, worse), within=within)]

    def _angular_claims(self) -> list[results.Claim]:
        claims = []
        for system in (CONCATENATED, DECOUPLED):
            for suffix in ("", ", N(0, 1)"):
                sides = [
                    [f"{TITLES[loss]} {system}{suffix}" for loss in group]
                    for group in (_ANGULAR, _PLAIN)
                ]
                text = f"angular losses (cosine, KL) beat L1 and L2: {system}{suffix}"
                claims += self._over(text, *sides, paired=False)
        return claims

    def _table1_claims(self) -> list[results.Claim]:
        claims = []
        best = f"Cos {CONCATENATED}"
        sources = self._measured.world.ensemble.names
        for worse in ("CONC", "SVD", "AV", "Cos 1TON", "L2 1TON", *sources):
            if self._has(best, worse):
                text = f"{best} autoencoder beats {worse}"
                claims.append(self._claim(text, self._gap([best], [worse])))
        targets = [f"Cos TAE→{source}" for source in sources]
        if self._has(best, *targets):
            text = f"the standard autoencoder ({best}) beats target autoencoders"
            claims.append(self._claim(text, self._gap([best], targets)))
        dec = f"Cos {DECOUPLED}"
        if self._has(best, dec):
            gap = self._gap([best], [dec])
            claims.append(self._claim("Cos: concatenated beats decoupled", gap))
        return claims

    def _supervision_claims(self) -> list[results.Claim]:
        claims = []
        best = "Cos-Brier"
        for worse, text in (
            (f"Cos {CONCATENATED}", "the autoencoder"),
            (f"Cos-{UNLABELLED}", "the same loop without labels"),
        ):
            if not self._has(best, worse):
                continue
            text = f"over {text} ({worse})"
            claim = f"supervision raises the mean of the lists: {best} {text}"
            claims.append(self._claim(claim, self._gap([best], [worse])))
            for number in self._lists:
                name = self._pool.names[number]
                title = SIMILARITY.get(name, name)
                claim = f"supervision raises {title}: {best} {text}"
                gap = self._gap([best], [worse], [number])
                claims.append(self._claim(claim, gap, lists=1))
        claims += self._claims_near_by(best, f"Cos-{UNLABELLED}")
        for suffix in ("", ", N(0, 1)"):
            losses = self._config.losses
            brier = [f"{TITLES[loss]}-Brier{suffix}" for loss in losses]
            for kind in ("OLS", "NLL"):
                other = [f"{TITLES[loss]}-{kind}{suffix}" for loss in losses]
                text = f"Brier's score beats {kind}, over all losses{suffix}"
                claims += self._over(text, brier, other)
        return claims + self._printed_gain()

    def _claims_near_by(self, best: str, worse: str) -> list[results.Claim]:
        """Ours: does supervision serve other pairs of the lists that supervise?"""
        dev = self._measured.dev
        if not {best, worse} <= set(dev):
            return []
        gap = intervals.paired_t(dev[best], dev[worse])
        return [
            results.Claim(
                claim="control: supervision raises pairs held out of the lists that "
                f"supervise: {best} over the same loop without labels ({worse})",
                verdict=intervals.verdict(gap.low, gap.high),
                evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                f"{gap.high:.2f}], the mean over lists held out, each at the epoch "
                f"that is best on them, paired t over {len(dev[best])} seeds",
            )
        ]

    def _printed_gain(self) -> list[results.Claim]:
        """The gains that the paper prints, without and with leakage."""
        claims = []
        for suffix in ("", ", leaky"):
            better, worse = f"L2-Brier{suffix}", f"KL {CONCATENATED}"
            for name, gain in PAPER_GAINS.items():
                tested = {self._pool.names[number]: number for number in self._lists}
                if name in tested and self._has(better, worse):
                    gap = self._gap([better], [worse], [tested[name]])
                    text = f"supervision raises {SIMILARITY[name]} by {gain} points"
                    text = f"{text}: {better} over {worse}"
                    claims.append(self._claim(text, gap, gain, lists=1))
            better, worse = f"Cos-Brier{suffix}", f"L2 {CONCATENATED}"
            if self._has(better, worse):
                text = f"supervision raises the mean by {PAPER_MEAN_GAIN} points"
                gap = self._gap([better], [worse])
                text = f"{text}: {better} over {worse}"
                claims.append(self._claim(text, gap, PAPER_MEAN_GAIN))
        return claims

    def _control_claims(self) -> list[results.Claim]:
        """Ours: what is left without leakage, and that shuffled labels give nothing."""
        claims = []
        losses = self._config.losses
        plain = [f"{TITLES[loss]}-{UNLABELLED}" for loss in losses]
        default = [f"{TITLES[loss]}-Brier" for loss in losses]
        texts = {
            "words": "supervision helps where no word of the list was supervised by",
            "shuffled": "shuffled labels raise the mean of the lists",
            "leaky": "pairs of the list left in supervision raise it (leakage)",
        }
        for control, text in texts.items():
            side = [f"{TITLES[loss]}-Brier, {control}" for loss in losses]
            base = default if control == "leaky" else plain
            text = f"control: {text}, Brier over all losses"
            claims += self._over(text, side, base)
        without = f"{default[0]}{WITHOUT}"
        for name in default:
            if self._has(name, without):
                text = f"control: {name} beats the same without reconstruction (λ = 0)"
                claims.append(self._claim(text, self._gap([name], [without])))
        paper = [f"{name}, N(0, 1)" for name in default]
        text = "control: Glorot's weights beat N(0, 1), Brier over all losses"
        return claims + self._over(text, default, paper)

    def _ablation_claims(self) -> list[results.Claim]:
        claims = []
        pairs = {
            "asymmetric": ("cosine", "the asymmetric score beats the cosine"),
            "manhattan": ("euclidean", "Manhattan's distance beats Euclid's"),
            "SGD 0.05": ("manhattan", "control: plain gradient descent beats Adam"),
            "SGD 0.05, N(0, 1)": (
                "SGD 0.05",
                "control: the paper's recipe (plain gradient descent, N(0, 1)) beats "
                "the same from Glorot's weights",
            ),
        }
        for better, (worse, text) in pairs.items():
            claims += self._over(text, *self._variants(better, worse))
        text = f"two hidden layers are within {_ALIKE:g} point of one"
        sides = self._variants("2 hidden layers", "manhattan")
        return claims + self._over(text, *sides, within=_ALIKE)

    def _variants(self, *names: str) -> list[list[str]]:
        """The systems of each ablation, one a loss."""
        losses = self._config.losses
        return [[f"{TITLES[loss]}-Brier, {name}" for loss in losses] for name in names]

    @property
    def _diverged(self) -> Mapping[str, str]:
        """Systems without figures, and how many of their seeds diverged."""
        return self._measured.told.get("diverged", {})

    # Figures.

    def write_figures(self, folder: Path) -> None:
        """Fig. 1, and the gain of supervision on each list under every control."""
        lists = {
            SIMILARITY.get(name, name): self._people[self._own(number)]
            for number, name in enumerate(self._pool.names)
        }
        figures.save(
            analysis.score_distributions(lists),
            folder / "score-distributions.svg",
            "What people said, each list from 0 to 1: quartiles, and whiskers to the "
            "most extreme score within one and a half boxes.",
        )
        plain = f"Cos-{UNLABELLED}"
        controls = ("", ", leaky", ", words", ", shuffled")
        for suffix in controls:
            better = f"Cos-Brier{suffix}"
            if not self._has(better, plain):
                continue
            rows = []
            for number in self._lists:
                name = self._pool.names[number]
                gap = self._gap([better], [plain], [number])
                rows.append(
                    {
                        "name": SIMILARITY.get(name, name),
                        "measured": gap.mean,
                        "interval": gap.bounds(),
                    }
                )
            title = f"{better} less the same without labels, in points of ρ"
            label = suffix.removeprefix(", ") or "default"
            figures.save(
                figures.intervals(rows, title),
                folder / f"gain-{label}.svg",
                f"{title}, with 95 % intervals over pairs and seeds; supervision: "
                f"{_EXPLAINED[label]}.",
            )


_EXPLAINED = {
    "default": "without the pairs of the list held out",
    "leaky": "with its pairs, where other lists have them",
    "words": "without any pair that has one of its words",
    "shuffled": "by scores dealt anew within each list",
}


def told_of(measured: Measured) -> Mapping:
    """What results say of the world."""
    world = measured.world
    return {
        "vocabulary of the lists": world.vocabulary,
        "words that a source knows": len(world.ensemble),
        "words of each source": dict(
            zip(
                world.ensemble.names,
                world.ensemble.known.sum(axis=0).tolist(),
                strict=True,
            )
        ),
        "widths": list(world.ensemble.widths),
        **measured.told,
    }


def all_pairs(config: Config) -> list[str]:
    """The names of the models of Table 2."""
    pairs = itertools.product(config.losses, config.multitask.supervisions)
    return [f"{TITLES[loss]}-{kind}" for loss, kind in pairs]
