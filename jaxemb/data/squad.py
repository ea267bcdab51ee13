"""Questions whose answers are spans of a paragraph: SQuAD 1.1, 2.0 and XQuAD.

Answers come with the place of their first character. `align` turns them into spans of
tokens, exactly or not at all: what cannot be is counted, never moved.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jaxemb.data import files, tokenize
from jaxemb.data.tokenize import Token
from jaxemb.errors import InputError

Spans = Callable[[str], tuple[Token, ...]]


class Answer(NamedTuple):
    """A text and where it begins in the paragraph, in characters."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a paragraph, with one answer a person asked."""

    id: str
    title: str
    context: str
    question: str
    answers: tuple[Answer, ...]
    """None where the paragraph does not answer it (SQuAD 2.0)."""


class Span(NamedTuple):
    """First and last token of an answer."""

    first: int
    last: int


class AlignedQuestion(NamedTuple):
    """A question cut into tokens."""

    source: Question
    context: tuple[Token, ...]
    words: tuple[Token, ...]
    """Of the question."""
    spans: tuple[Span, ...]
    """Of the answers that are whole tokens, in their order."""

    def text(self, span: Span) -> str:
        """The paragraph's own characters from the first token to the last."""
        return span_text(self.source.context, self.context, span)


@dataclasses.dataclass(frozen=True)
class Alignment:
    """Questions with their token spans, and what could not be aligned."""

    questions: tuple[AlignedQuestion, ...]
    answers: int
    """In all."""
    misplaced: int
    """Answers whose text is not where they say."""
    inside: int
    """Answers that begin or end inside a token."""

    @property
    def lost(self) -> int:
        """Questions with answers, none of which is whole tokens."""
        return sum(bool(q.source.answers) and not q.spans for q in self.questions)

    def __str__(self) -> str:
        return (
            f"{len(self.questions):,} questions with {self.answers:,} answers, of "
            f"which {self.misplaced} are not where they say and {self.inside} begin or "
            f"end inside a token; {self.lost} questions have none left"
        )


def read_squad(path: files.Location) -> list[Question]:
    """Reads SQuAD's JSON, of any version, in the order of the file.

    A question marked impossible has no answers; those that SQuAD 2.0 calls plausible
    are left out.

    Raises:
      InputError: naming file and place in it, also where no question is found.
    """
    with files.open_bytes(path) as stream:
        content = stream.read()
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"{path}: not JSON ({problem})") from error
    questions = list(_questions(_Node(parsed, str(path), "")))
    if not questions:
        raise InputError(f"{path}: no question; expected some under data")
    return questions


def align(
    questions: Iterable[Question], spans: Spans = tokenize.english_spans
) -> Alignment:
    """Cuts paragraphs and questions into tokens and finds the answers among them.

    White space around an answer is left out. A paragraph is cut once, however many
    questions it has.
    """
    aligned, answers, misplaced, inside = [], 0, 0, 0
    paragraphs: dict[str, tuple[Token, ...]] = {}
    for question in questions:
        context = question.context
        if context not in paragraphs:
            paragraphs[context] = spans(context)
        cut = paragraphs[context]
        first = {token.start: i for i, token in enumerate(cut)}
        last = {token.end: i for i, token in enumerate(cut)}
        found = []
        for answer in question.answers:
            answers += 1
            end = answer.start + len(answer.text)
            if answer.start < 0 or context[answer.start : end] != answer.text:
                misplaced += 1
                continue
            start = end - len(answer.text.lstrip())
            end = answer.start + len(answer.text.rstrip())
            if start in first and end in last:
                found.append(Span(first[start], last[end]))
            else:
                inside += 1
        words = spans(question.question)
        aligned.append(AlignedQuestion(question, cut, words, tuple(found)))
    return Alignment(tuple(aligned), answers, misplaced, inside)


def span_text(context: str, tokens: Sequence[Token], span: Span) -> str:
    """The paragraph's own characters from the first token to the last."""
    return context[tokens[span.first].start : tokens[span.last].end]


class _Node:
    """A value of the JSON and its place, so that an error can name it."""

    def __init__(self, value: Any, path: str, place: str):
        self.value, self._path, self._place = value, path, place

    def _fail(self, expected: str) -> InputError:
        return InputError(f"{self._path}: {self._place or 'the file'}: {expected}")

    def __getitem__(self, name: str) -> "_Node":
        if not isinstance(self.value, dict) or name not in self.value:
            raise self._fail(f"expected an object with {name!r}")
        place = f"{self._place}.{name}" if self._place else name
        return _Node(self.value[name], self._path, place)

    def get(self, name: str) -> Any:
        """The value of an optional field."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    def items(self) -> Iterator["_Node"]:
        if not isinstance(self.value, list):
            raise self._fail("expected a list")
        for i, value in enumerate(self.value):
            yield _Node(value, self._path, f"{self._place}[{i}]")

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self._fail("expected a string")
        return self.value

    def number(self) -> int:
        if type(self.value) is not int:
            raise self._fail("expected a whole number")
        return self.value


def _questions(root: _Node) -> Iterator[Question]:
    for article in root["data"].items():
        title = article.get("title")
        for paragraph in article["paragraphs"].items():
            context = paragraph["context"].text()
            for entry in paragraph["qas"].items():
                yield Question(
                    id=entry["id"].text(),
                    title=title if isinstance(title, str) else "",
                    context=context,
                    question=entry["question"].text(),
                    answers=() if entry.get("is_impossible") else _answers(entry),
                )


def _answers(entry: _Node) -> tuple[Answer, ...]:
    return tuple(
        Answer(answer["text"].text(), answer["answer_start"].number())
        for answer in entry["answers"].items()
    )
