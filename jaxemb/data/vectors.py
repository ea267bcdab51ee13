"""Tables of word vectors: read, query, change, write."""

import contextlib
import dataclasses
import functools
import hashlib
import numbers
from collections.abc import Collection, Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np

from jaxemb.data import files
from jaxemb.data.formats import dispatch
from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.formats.table import ReadReport, Request, Table
from jaxemb.errors import InputError

OOV_POLICIES = "error", "zero", "mean", "random", "subword"


class UnknownWordError(InputError, KeyError):
    """A word that the table lacks."""

    __str__ = Exception.__str__  # KeyError's would add quotes


@dataclasses.dataclass(frozen=True, eq=False)
class WordVectors:
    """Words, and a row of a matrix for each."""

    words: tuple[str, ...]
    matrix: np.ndarray
    """(vocab, dim) float32, perhaps mapped from a file."""
    subwords: Subwords | None = None
    """fastText's n-grams, which give a vector to any word."""
    report: ReadReport = ReadReport()
    """What reading left out."""
    unique: dataclasses.InitVar[bool] = False
    """Whether the words are known to differ; to find out takes memory."""

    def __post_init__(self, unique: bool):
        shape = (len(self.words), *self.matrix.shape[1:])
        if self.matrix.ndim != 2 or self.matrix.shape != shape or not shape[1]:
            raise InputError(
                f"expected a row for each of {len(self.words)} words, found a matrix "
                f"of shape {self.matrix.shape}"
            )
        if self.matrix.dtype != np.float32:
            raise InputError(f"expected float32 rows, found {self.matrix.dtype}")
        if not unique and len(set(self.words)) != len(self.words):
            double = next(w for i, w in enumerate(self.words) if self.index[w] != i)
            raise InputError(f"the word {double!r} occurs twice")

    def __repr__(self) -> str:
        extra = (
            "" if self.subwords is None else f", {len(self.subwords.buckets)} buckets"
        )
        return f"WordVectors({len(self)} words, {self.dim} dimensions{extra})"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str) -> np.ndarray:
        row = self.index.get(word)
        if row is None:
            raise self._unknown(word)
        return self.matrix[row]

    @property
    def dim(self) -> int:
        """Numbers a row."""
        return self.matrix.shape[1]

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The row of each word; made when first asked for."""
        return {word: row for row, word in enumerate(self.words)}

    @functools.cached_property
    def index_without_case(self) -> dict[str, int]:
        """The first row of each word in upper case; made when first asked for."""
        last_first = reversed(range(len(self.words)))
        return {self.words[row].upper(): row for row in last_first}

    @functools.cached_property
    def norms(self) -> np.ndarray:
        """The Euclidean length of each row."""
        out = np.empty(len(self), np.float32)
        for start in range(0, len(self), 8192):  # a mapped matrix stays on disk
            rows = self.matrix[start : start + 8192]
            out[start : start + 8192] = np.linalg.norm(rows, axis=1)
        return out

    @functools.cached_property
    def mean(self) -> np.ndarray:
        """The mean of all rows, summed in float64."""
        if not len(self):
            return np.zeros(self.dim, np.float32)
        return self.matrix.mean(axis=0, dtype=np.float64).astype(np.float32)

    def lookup(
        self, words: Sequence[str], *, oov: str = "error", seed: int = 0
    ) -> np.ndarray:
        """The rows of words, and for the words that the table lacks, by `oov`.

        Args:
          words: any number, repeated or not, but not a string: a list of one.
          oov: "error"; "zero"; "mean" of all rows; "random", uniform in (-0.25, 0.25)
            and a function of word and seed alone; or "subword", the mean of the word's
            n-grams in a fastText table.
          seed: of the random rows.

        Returns:
          float32, (words, dim).
        """
        _check_choice("oov", oov, OOV_POLICIES)
        _check_several("lookup", words)
        rows = np.fromiter((self.index.get(w, -1) for w in words), np.intp, len(words))
        missing = np.flatnonzero(rows < 0).tolist()
        out = np.empty((len(words), self.dim), np.float32)
        known = rows >= 0
        out[known] = self.matrix[rows[known]]
        absent = [words[i] for i in missing]
        if oov == "subword" and self.subwords is None:
            raise InputError("oov='subword': the table has no fastText subwords")
        if not absent:
            return out
        if oov == "error":
            raise self._unknown(absent[0], len(absent))
        if oov == "zero":
            out[missing] = 0.0
        elif oov == "mean":
            out[missing] = self.mean
        elif oov == "random":
            out[missing] = [_random_row(word, self.dim, seed) for word in absent]
        elif self.subwords is not None:
            out[missing] = self.subwords.vectors(absent)
        return out

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words; unknown ones are composed if there are subwords."""
        a, b = self._unit(first), self._unit(second)
        return float(np.dot(a, b))

    def most_similar(
        self,
        positive: "str | np.ndarray | Sequence[Any]" = (),
        negative: "str | np.ndarray | Sequence[Any]" = (),
        *,
        topn: int = 10,
        restrict: int | None = None,
    ) -> list[tuple[str, float]]:
        """The words nearest, by cosine, to the mean of unit vectors.

        Args:
          positive: a word, a vector of `dim` numbers, or several; a pair such as
            ("word", 2.0) has that weight instead of 1.
          negative: the same; without a weight of its own each has -1. As in gensim a
            weight is taken as it stands: to subtract half a word, give ("word", -0.5).
          topn: how many to return, 1 or more; the words asked with are left out.
          restrict: search only this many first rows, 1 or more.

        Returns:
          Words and cosines, nearest first.
        """
        for name, value in (("topn", topn), ("restrict", restrict)):
            if value is not None and value < 1:
                raise InputError(f"most_similar: {name}={value}: expected 1 or more")
        terms = [*_terms(positive, 1.0, self.dim), *_terms(negative, -1.0, self.dim)]
        if not terms:
            raise InputError("most_similar: expected at least one word or vector")
        query = np.zeros(self.dim)
        for item, weight in terms:
            query += weight * (self._unit(item) if isinstance(item, str) else item)
        query /= np.linalg.norm(query) or 1.0
        searched = slice(0, len(self) if restrict is None else restrict)
        norms = self.norms[searched]
        scores = self.matrix[searched] @ query.astype(np.float32)
        scores /= np.where(norms > 0, norms, 1.0)
        asked = [self.index[i] for i, _ in terms if isinstance(i, str) and i in self]
        scores[[row for row in asked if row < len(scores)]] = -np.inf
        count = min(topn, len(scores))
        best = np.argpartition(-scores, count - 1)[:count] if count else []
        best = sorted((int(row) for row in best), key=lambda row: (-scores[row], row))
        return [(self.words[r], float(scores[r])) for r in best if scores[r] > -np.inf]

    def subset(self, words: Collection[str]) -> "WordVectors":
        """The table of those of `words` that are known, in the order of `words`."""
        _check_several("subset", words)
        chosen = [word for word in dict.fromkeys(words) if word in self.index]
        rows = [self.index[word] for word in chosen]
        subwords = self.subwords
        if subwords is not None:
            subwords = dataclasses.replace(subwords, words=subwords.words[rows])
        return WordVectors(tuple(chosen), np.asarray(self.matrix[rows]), subwords)

    def normalised(self) -> "WordVectors":
        """Rows of length one (zero rows stay zero), without subwords."""
        norms = np.where(self.norms > 0, self.norms, np.float32(1))
        return WordVectors(self.words, np.asarray(self.matrix / norms[:, None]))

    def to_gensim(self) -> Any:
        """KeyedVectors of gensim, or FastTextKeyedVectors where there are subwords."""
        models = _gensim()
        if self.subwords is None:
            keyed = models.KeyedVectors(self.dim)
            keyed.add_vectors(list(self.words), np.array(self.matrix))
            return keyed
        parts = self.subwords
        keyed = models.fasttext.FastTextKeyedVectors(
            self.dim, min_n=parts.minn, max_n=parts.maxn, bucket=len(parts.buckets)
        )
        keyed.index_to_key = list(self.words)
        keyed.key_to_index = dict(self.index)
        keyed.vectors_vocab = np.array(parts.words)
        keyed.vectors_ngrams = np.array(parts.buckets)
        keyed.recalc_char_ngram_buckets()
        keyed.vectors = np.array(self.matrix)
        return keyed

    @classmethod
    def from_gensim(cls, keyed: Any) -> "WordVectors":
        """The table of gensim's KeyedVectors, with its subwords if it has them."""
        models = _gensim()
        subwords = None
        if isinstance(keyed, models.fasttext.FastTextKeyedVectors) and keyed.bucket:
            own, buckets = np.array(keyed.vectors_vocab), np.array(keyed.vectors_ngrams)
            subwords = Subwords(buckets, own, keyed.min_n, keyed.max_n)
        matrix = np.array(keyed.vectors, np.float32)
        return cls(tuple(keyed.index_to_key), matrix, subwords)

    def _unit(self, word: str) -> np.ndarray:
        oov = "error" if self.subwords is None else "subword"
        row = self.lookup([word], oov=oov)[0]
        return row / (np.linalg.norm(row) or np.float32(1))

    def _unknown(self, word: str, count: int = 1) -> UnknownWordError:
        others = f" (nor are {count - 1} others)" if count > 1 else ""
        return UnknownWordError(
            f"{word!r} is not among the table's {len(self)} words{others}"
        )


def read_word_vectors(
    path: files.Location,
    *,
    format: str | None = None,
    keep: Collection[str] | None = None,
    limit: int | None = None,
    on_bad: str = "error",
    mmap: bool = False,
    encoding: str = "utf-8",
) -> WordVectors:
    """Reads a table: plain, .gz, .bz2, .xz, or inside a zip (`a.zip/member`).

    Of duplicates the first wins; `report` of the result counts them.

    Args:
      path: the file.
      format: "word2vec" (text with a header, also fastText's .vec), "word2vec-binary",
        "glove" (text without), "fasttext" (.bin), "npz" or "safetensors"; by default
        told from the suffix and the first bytes.
      keep: only these words; of a text file the rest is then not even parsed, save
        for the first row.
      limit: only the first so many rows of the file.
      on_bad: "error" raises at the first bad row, naming its place; "skip" leaves it
        out and reports it in `report`.
      mmap: map the rows from the file instead of reading them (npz, safetensors; of a
        fastText model the buckets). Mapped rows are not checked for NaN.
      encoding: of the words in word2vec, GloVe and fastText files.

    Raises:
      InputError: for a bad or missing file, naming the line, record or row.
    """
    if format is not None:
        _check_choice("format", format, dispatch.FORMATS)
    _check_choice("on_bad", on_bad, ("error", "skip"))
    _check_several("keep", keep)
    if limit is not None and limit < 0:
        raise InputError(f"limit={limit}: expected 0 or more")
    try:
        extends_ascii = " \n0.e-".encode(encoding) == b" \n0.e-"
    except LookupError:
        extends_ascii = False
    if not extends_ascii:
        raise InputError(f"encoding={encoding!r}: expected one that extends ASCII")

    with contextlib.ExitStack() as stack:
        place = files.resolve(path)
        kind = format or dispatch.format_to_read(place)
        size = dispatch.plain_size(place)
        stream = stack.enter_context(files.open_bytes(place))
        mmap_path = None
        if mmap:
            if kind not in dispatch.MAPPABLE or not isinstance(place, Path) or not size:
                raise InputError(
                    f"{place}: cannot be memory-mapped; write it as an uncompressed "
                    ".safetensors or .npz file first"
                )
            mmap_path = place
        wanted = None if keep is None else frozenset(keep)
        request = Request(str(place), wanted, limit, on_bad, encoding, size)
        table = dispatch.read(kind, cast(BufferedIOBase, stream), request, mmap_path)
    words, matrix, report, subwords = table
    return WordVectors(words, matrix, subwords, report, unique=True)


def write_word_vectors(
    path: str | Path, vectors: WordVectors, *, format: str | None = None
) -> None:
    """Writes a table, so that what was written reads back bit for bit.

    Args:
      path: .txt and .vec are word2vec's text, .bin is fastText's where there are
        subwords and word2vec's where not, .npz and .safetensors what they say; with
        .gz, .bz2 or .xz behind it, or `a.zip/member`, compressed. The file appears
        once it is whole; other members of a zip stay.
      vectors: the table. Only fasttext, npz and safetensors keep its subwords.
      format: as for `read_word_vectors`, where the suffix does not say.
    """
    path = Path(path)
    kind = format or dispatch.format_to_write(path, vectors.subwords is not None)
    _check_choice("format", kind, dispatch.FORMATS)
    table = Table(vectors.words, vectors.matrix, ReadReport(), vectors.subwords)
    with dispatch.open_for_writing(path) as stream:
        dispatch.write(kind, stream, table)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name}={value!r}: expected one of {', '.join(choices)}")


def _check_several(name: str, words: object) -> None:
    if isinstance(words, str):
        raise InputError(f"{name}: expected several words, found the string {words!r}")


def _terms(
    items: Any, weight: float, dim: int
) -> Iterator[tuple[str | np.ndarray, float]]:
    """Words and vectors, each with the weight that it brings or else this one."""
    single = isinstance(items, str) or _is_weighed(items) or _numbers(items) is not None
    for item in [items] if single else items:
        term, own = item if _is_weighed(item) else (item, weight)
        if not isinstance(term, str):
            term = _numbers(term)
            if term is None or term.shape != (dim,) or not np.isfinite(term).all():
                raise InputError(
                    f"most_similar: expected words, vectors of {dim} numbers or "
                    f"(word, weight), found {item!r:.80}"
                )
        yield term, float(own)


def _is_weighed(item: object) -> bool:
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[1], numbers.Real)
        and not isinstance(item[0], numbers.Real)
    )


def _numbers(item: Any) -> np.ndarray | None:
    try:
        array = np.asarray(item)
    except ValueError:  # of parts that differ in length
        return None
    fits = array.ndim == 1 and array.size and array.dtype.kind in "fiu"
    return array if fits else None


def _random_row(word: str, dim: int, seed: int) -> np.ndarray:
    text = f"{seed} {word}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=16).digest()
    generator = np.random.default_rng(int.from_bytes(digest, "little"))
    return generator.uniform(-0.25, 0.25, dim).astype(np.float32)


def _gensim() -> Any:
    try:
        import gensim.models
        import gensim.models.fasttext
    except ImportError as error:
        raise InputError(
            "gensim is not installed; expected the extra 'test'"
        ) from error
    return gensim.models
