"""The n-grams of a block's words, laid out for row-sparse training."""

from collections.abc import Sequence

import numpy as np

from jaxemb.data.formats.subwords import Subwords, ngram_hashes

_ROUND = 256  # few different shapes, so that few programs are compiled


class NGrams:
    """The character n-grams of a vocabulary, numbered without gaps."""

    def __init__(self, words: Sequence[str], minn: int, maxn: int, buckets: int):
        """Hashes the n-grams of all words.

        Args:
          words: the vocabulary.
          minn: characters of the shortest n-gram of `<word>`.
          maxn: characters of the longest.
          buckets: how many rows hashes are spread over.
        """
        hashes, counts = ngram_hashes(words, minn, maxn)
        used, rows = np.unique(hashes % np.uint32(buckets), return_inverse=True)
        self.minn, self.maxn, self.buckets = minn, maxn, buckets
        self._used = used.astype(np.int64)
        self._rows = rows.astype(np.int32)
        # Last the word that fills up, which has none.
        self._counts = np.append(counts, 0).astype(np.int64)
        self._firsts = np.cumsum(self._counts) - self._counts

    def __len__(self) -> int:
        """The buckets that the vocabulary uses: rows of the table."""
        return len(self._used)

    def most(self, words: np.ndarray) -> int:
        """Room for the n-grams of any one group of words, int (..., group).

        A word past the last of the vocabulary fills up and has no n-grams.
        """
        longest = int(self._counts[words].sum(axis=-1).max(initial=0))
        return max(_ROUND, -(-longest // _ROUND) * _ROUND)

    def lay_out(self, words: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and owners of the n-grams of groups of words.

        Args:
          words: int (..., group).
          most: the room for a group's n-grams: that of all groups of a step, of which
            these may be one process's, since all compile one program.

        Returns:
          Two int32 arrays (..., most): rows of the table, and the place in its group of
          the word that each belongs to. Where there is none, the row is past the last
          and the place `group`.
        """
        group = words.shape[-1]
        flat = words.reshape(-1)
        counts = self._counts[flat]
        owner_word = np.repeat(np.arange(len(flat)), counts)
        within = np.arange(len(owner_word)) - np.repeat(
            np.cumsum(counts) - counts, counts
        )
        rows = self._rows[np.repeat(self._firsts[flat], counts) + within]
        of_group = counts.reshape(-1, group).sum(axis=1)
        number = owner_word // group
        column = np.arange(len(rows)) - np.repeat(
            np.cumsum(of_group) - of_group, of_group
        )
        out_rows = np.full((len(of_group), most), len(self), np.int32)
        out_owners = np.full((len(of_group), most), group, np.int32)
        out_rows[number, column] = rows
        out_owners[number, column] = owner_word % group
        shape = (*words.shape[:-1], most)
        return out_rows.reshape(shape), out_owners.reshape(shape)

    def table(self, own: np.ndarray, trained: np.ndarray) -> Subwords:
        """As fastText keeps them; a bucket that no word of the vocabulary has is 0."""
        buckets = np.zeros((self.buckets, trained.shape[1]), np.float32)
        buckets[self._used] = trained[: len(self)]
        return Subwords(buckets, own, self.minn, self.maxn)
