"""fastText's subwords: hashed character n-grams, and the vectors made of them."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

_OFFSET, _PRIME = np.uint32(2166136261), np.uint32(16777619)  # FNV-1a, 32 bits
_BATCH = 1 << 12  # characters hashed at once; the sums stay in the processor's cache


@dataclasses.dataclass(frozen=True, eq=False)
class Subwords:
    """The n-gram part of a fastText table."""

    buckets: np.ndarray
    """(bucket, dim) float32: one row for all n-grams of the same hash."""
    words: np.ndarray
    """(vocab, dim) float32: each word's own row, before its n-grams are added."""
    minn: int
    """Characters in the shortest n-gram; the brackets of `<word>` count."""
    maxn: int
    """Characters in the longest n-gram."""

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """The mean of each word's n-gram rows; zeros where it has none."""
        out = np.zeros((len(words), self.buckets.shape[1]), np.float32)
        self._add(out, words, own_row=0)
        return out

    def compose(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of the vocabulary: the mean of own row and n-gram rows."""
        out = np.array(self.words)
        # The end of sentence `</s>` is treated as any word, as gensim does; newer
        # versions of fastText itself leave its n-grams out.
        self._add(out, words, own_row=1)
        return out

    def _add(self, out: np.ndarray, words: Sequence[str], own_row: int) -> None:
        start = 0
        for batch in _batches(words):
            hashes, counts = ngram_hashes(batch, self.minn, self.maxn)
            rows = (hashes % np.uint32(len(self.buckets))).astype(np.intp)
            # Longest first: the words that have a k-th n-gram are then a prefix. The
            # sums run in the n-grams' order, so that they round as fastText's do.
            order = np.argsort(-counts, kind="stable")
            firsts = (np.cumsum(counts) - counts)[order]
            sums = out[start + order]
            longest = counts[order]
            for k in range(int(counts.max(initial=0))):
                active = int(np.searchsorted(-longest, -k))
                with np.errstate(over="ignore", invalid="ignore"):
                    sums[:active] += self.buckets[rows[firsts[:active] + k]]
            sums /= np.maximum(longest + own_row, 1).astype(np.float32)[:, None]
            out[start + order] = sums
            start += len(batch)


def _batches(words: Sequence[str]) -> Iterator[list[str]]:
    batch, size = [], 0
    for word in words:
        if batch and size + len(word) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(word)
        size += len(word)
    if batch:
        yield batch


def ngram_hashes(
    words: Sequence[str], minn: int, maxn: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hashes the character n-grams of `<word>`, by start, then by length.

    Args:
      words: any strings.
      minn: shortest n-gram, in characters.
      maxn: longest n-gram; a lone bracket is never one.

    Returns:
      All hashes (uint32) one after the other, and how many belong to each word.
    """
    encoded = [f"<{word}>".encode("utf-8", "surrogatepass") for word in words]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    # fastText hashes `signed char`: bytes from 0x80 on are sign-extended.
    signed = data.view(np.int8).astype(np.int32).view(np.uint32)
    starts = np.flatnonzero((data & 0xC0) != 0x80)  # of the characters
    bounds = np.append(starts, len(data))
    sizes = np.fromiter(map(len, encoded), np.intp, len(encoded))
    word_of = np.repeat(np.arange(len(words)), sizes)[starts]
    last = np.searchsorted(word_of, np.arange(len(words)), side="right")[word_of]
    first = np.searchsorted(word_of, np.arange(len(words)), side="left")[word_of]
    here = np.arange(len(starts))

    maxn = max(0, min(maxn, int((last - first).max(initial=0))))
    state = np.full(len(starts), _OFFSET)
    hashes = np.empty((len(starts), maxn), np.uint32)
    wanted = np.zeros((len(starts), maxn), bool)
    for n in range(1, maxn + 1):
        fits = here + n <= last
        begin = np.where(fits, bounds[np.minimum(here + n - 1, len(starts))], 0)
        end = np.where(fits, bounds[np.minimum(here + n, len(starts))], 0)
        for byte in range(4):  # no character of UTF-8 is longer
            more = np.flatnonzero(begin + byte < end)
            state[more] = (state[more] ^ signed[begin[more] + byte]) * _PRIME
        hashes[:, n - 1] = state
        if n >= minn:
            lone_bracket = (n == 1) & ((here == first) | (here + 1 == last))
            wanted[:, n - 1] = fits & ~lone_bracket
    counts = np.bincount(word_of, wanted.sum(axis=1), len(words)).astype(np.intp)
    return hashes[wanted], counts
