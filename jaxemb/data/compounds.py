"""Noun compounds and how far people find their meaning in that of their words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jaxemb.data import files
from jaxemb.data.pairs import read_pairs
from jaxemb.errors import InputError

MARK = "_"  # between the words of a compound that is one word of a text


class Compound(NamedTuple):
    """Two nouns, and how compositional people find them together."""

    modifier: str
    head: str
    score: float
    """The higher, the more its meaning is made of theirs."""

    @property
    def joined(self) -> str:
        """The compound as one word, `swimming_pool`."""
        return f"{self.modifier}{MARK}{self.head}"


def read_reddy(path: files.Location) -> list[Compound]:
    """Reads the 90 compounds of Reddy et al. (2011), scored from 0 to 5.

    A line is the modifier, the head and three means over people, parted by tabs: how
    literal the modifier is, how literal the head, and the compound as a whole, which is
    the score.

    Raises:
      InputError: with file and line, also where no compound is found.
    """
    return [Compound(*pair) for pair in read_pairs(path, columns=(0, 1, 4))]


def read_farahmand(path: files.Location) -> list[Compound]:
    """Reads the 1,042 compounds of Farahmand et al. (2015), judged by four experts.

    A line is the compound and the judgements, parted by commas: 1 for one that is not
    compositional (in the other file of the set: conventionalised, with x for "since it
    is not compositional"), 0 for one that is. The score is the share of 0.

    Raises:
      InputError: with file and line, also where no compound is found.
    """
    compounds = []
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        name, *judged = (field.strip() for field in line.split(","))
        words = name.split()
        if len(words) != 2 or not judged or not set(judged) <= {"0", "1", "x"}:
            problem = "expected two words, then judgements (0, 1 or x) after commas"
            raise InputError.at(str(path), number, problem)
        modifier, head = words
        score = judged.count("0") / len(judged)
        compounds.append(Compound(modifier, head, score))
    if not compounds:
        raise InputError(f"{path}: expected compounds, found none")
    return compounds


def join_compounds(
    sentences: Iterable[Sequence[str]], compounds: Iterable[Compound]
) -> Iterator[list[str]]:
    """Makes one word of every compound of a text, as they are written in the lists.

    Of two that overlap the first is joined: a word is in one compound only.
    """
    heads: dict[str, set[str]] = {}
    for compound in compounds:
        heads.setdefault(compound.modifier, set()).add(compound.head)
    for sentence in sentences:
        joined, place = [], 0
        while place < len(sentence):
            word = sentence[place]
            if sentence[place + 1 : place + 2] and (
                sentence[place + 1] in heads.get(word, ())
            ):
                word = f"{word}{MARK}{sentence[place + 1]}"
                place += 1
            joined.append(word)
            place += 1
        yield joined
