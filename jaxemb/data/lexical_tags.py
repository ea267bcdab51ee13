"""Tags of words by the words alone: what a corpus says each is most often."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from jaxemb.errors import InputError

Tagged = Sequence[tuple[str, str]]
"""The words and tags of a sentence."""


@dataclasses.dataclass(frozen=True)
class LexicalTagger:
    """The commonest tag of a lower-cased word, or of its longest known ending.

    What every sequence tagger is compared with: nine in ten of a text's words have the
    tag that they have most often.
    """

    words: Mapping[str, str]
    endings: Mapping[str, str]
    """Of rare words, up to four letters; the empty one is known."""
    digits: str
    """Of words that hold a digit."""

    @classmethod
    def learn(cls, sentences: Iterable[Tagged], rare: int = 3) -> "LexicalTagger":
        """Counts tags.

        Args:
          sentences: tagged ones.
          rare: words seen at most so often teach endings, as unknown ones will be.
        """
        tags: dict[str, collections.Counter] = {}
        for sentence in sentences:
            for word, tag in sentence:
                tags.setdefault(word.lower(), collections.Counter())[tag] += 1
        if not tags:
            raise InputError("LexicalTagger: expected tagged sentences, found none")
        endings: dict[str, collections.Counter] = {}
        digits: collections.Counter = collections.Counter()
        for word, counts in tags.items():
            if any(map(str.isdigit, word)):
                digits += counts
            elif counts.total() <= rare or len(tags) <= rare:
                for length in range(min(4, len(word)) + 1):
                    ending = word[len(word) - length :]
                    endings.setdefault(ending, collections.Counter()).update(counts)
        everything = sum(tags.values(), collections.Counter())
        endings.setdefault("", everything)
        return cls(
            {word: _commonest(counts) for word, counts in tags.items()},
            {ending: _commonest(counts) for ending, counts in endings.items()},
            _commonest(digits or everything),
        )

    def tag(self, words: Iterable[str]) -> list[str]:
        """A tag a word."""
        return [self._one(word.lower()) for word in words]

    def _one(self, word: str) -> str:
        if word in self.words:
            return self.words[word]
        if any(map(str.isdigit, word)):
            return self.digits
        ending = word[-4:]
        while ending not in self.endings:
            ending = ending[1:]
        return self.endings[ending]


def _commonest(counts: collections.Counter) -> str:
    return min(counts, key=lambda tag: (-counts[tag], tag))
