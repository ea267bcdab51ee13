"""Questions of common sense: answers to be judged, and answers to be chosen from.

MC-TACO has candidate answers, each likely or not. ComVE (subtask A), CommonsenseQA,
Cosmos QA and MCScript (1 and 2.0) have options, of which one is right.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from jaxemb.data import files
from jaxemb.data.text import csv_rows, parse_label
from jaxemb.errors import InputError

_YES = {"no": 0, "yes": 1}
_COSMOS = "id", "context", "question"
_ANSWERS = tuple(f"answer{i}" for i in range(4))
_LABELS = {str(i): i for i in range(4)}


class Candidate(NamedTuple):
    """An answer to a question about a sentence."""

    sentence: str
    question: str
    answer: str
    label: int
    """1 if it is likely."""
    kind: str
    """What is asked of time: Event Duration, Frequency, …"""

    @property
    def group(self) -> tuple[str, str]:
        """Sentence and question, which a question's candidates share."""
        return self.sentence, self.question


class Choice(NamedTuple):
    """A question and its options."""

    id: str
    passage: str
    """That it is about; empty where there is none."""
    question: str
    """Empty where the options are all there is."""
    options: tuple[str, ...]
    label: int | None
    """Place of the right option; None where the file keeps it back."""
    kind: str | None = None
    """MCScript: `commonsense`, or `text` where the passage answers it."""


def read_mctaco(path: files.Location) -> list[Candidate]:
    """Reads a file of MC-TACO (Zhou et al. 2019): five columns parted by tabs.

    Raises:
      InputError: with file and line, also where there is no candidate.
    """
    found = []
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 5:
            problem = f"expected 5 columns parted by tabs, found {len(fields)}"
            raise InputError.at(str(path), number, problem)
        sentence, question, answer, label, kind = fields
        label = parse_label(label, path, number, _YES)
        found.append(Candidate(sentence, question, answer, label, kind))
    return _some(found, path)


def read_comve(path: files.Location, answers: files.Location) -> list[Choice]:
    """Reads subtask A of ComVE (Wang et al. 2020): the option to find makes no sense.

    Args:
      path: the sentences, a row for two.
      answers: a row for each of these, in the same order.

    Raises:
      InputError: with file and line, also where ids differ or rows are missing.
    """
    keys = list(csv_rows(answers, ("id", "label"), header=False))
    found = []
    for place, (number, (id_, *options)) in enumerate(
        csv_rows(path, ("id", "sent0", "sent1"))
    ):
        if place >= len(keys) or keys[place][1][0] != id_:
            line = keys[place][0] if place < len(keys) else len(keys) + 1
            problem = f"expected the answer of id {id_} ({path}:{number})"
            raise InputError.at(str(answers), line, problem)
        line, (_, label) = keys[place]
        right = parse_label(label, answers, line, {"0": 0, "1": 1})
        found.append(Choice(id_, "", "", tuple(options), right))
    if len(found) < len(keys):
        line, (id_, _) = keys[len(found)]
        raise InputError.at(
            str(answers), line, f"expected no more answers, found {id_}"
        )
    return _some(found, path)


def read_commonsenseqa(path: files.Location) -> list[Choice]:
    """Reads CommonsenseQA (Talmor et al. 2019), a JSON object a line.

    Raises:
      InputError: with file and line, also where there is no question.
    """
    found = []
    for number, row in _json_lines(path):
        asked = _member(row, "question", dict, path, number)
        options = _member(asked, "choices", list, path, number)
        names = [_member(o, "label", str, path, number) for o in options]
        texts = tuple(_member(o, "text", str, path, number) for o in options)
        label = None
        if "answerKey" in row:
            places = {name: i for i, name in enumerate(names)}
            key = _member(row, "answerKey", str, path, number)
            label = parse_label(key, path, number, places)
        found.append(
            Choice(
                _member(row, "id", str, path, number),
                "",
                _member(asked, "stem", str, path, number),
                texts,
                label,
            )
        )
    return _some(found, path)


def read_cosmosqa(path: files.Location) -> list[Choice]:
    """Reads Cosmos QA (Huang et al. 2019): CSV, or JSON lines without the key (test).

    Raises:
      InputError: with file and line, also where there is no question.
    """
    if ".jsonl" in files.resolve(path).name:
        return _some([_cosmos_line(row, path, n) for n, row in _json_lines(path)], path)
    found = []
    for number, row in csv_rows(path, (*_COSMOS, *_ANSWERS, "label")):
        id_, context, question, *options, label = row
        right = parse_label(label, path, number, _LABELS)
        found.append(Choice(id_, context, question, tuple(options), right))
    return _some(found, path)


def _cosmos_line(row: dict, path: files.Location, number: int) -> Choice:
    texts = [_member(row, name, str, path, number) for name in (*_COSMOS, *_ANSWERS)]
    label = (
        parse_label(str(row["label"]), path, number, _LABELS)
        if "label" in row
        else None
    )
    return Choice(texts[0], texts[1], texts[2], tuple(texts[3:]), label)


def read_mcscript(path: files.Location) -> list[Choice]:
    """Reads MCScript or MCScript2.0 (Ostermann et al. 2018, 2019) in XML.

    Raises:
      InputError: with file and line, also where a question has no right answer.
    """
    with files.open_bytes(path) as stream:
        content = stream.read()
    reading = _MCScript(str(path))
    try:
        reading.parser.Parse(content, True)
    except expat.ExpatError as error:
        problem = f"not XML ({expat.ErrorString(error.code)})"
        raise InputError.at(str(path), error.lineno, problem) from error
    return _some(reading.found, path)


class _MCScript:
    """Collects questions while the parser goes through the file."""

    def __init__(self, path: str):
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self.found: list[Choice] = []
        self._path = path
        self._instance = ""
        self._passage: list[str] = []
        self._inside = False
        self._question: dict[str, str] | None = None
        self._answers: list[tuple[str, str]] = []

    def _fail(self, problem: str) -> InputError:
        return InputError.at(self._path, self.parser.CurrentLineNumber, problem)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "instance":
            self._instance, self._passage = self._of(attributes, "id"), []
        elif name == "text":
            self._inside = True
        elif name == "question":
            for needed in ("id", "text"):
                self._of(attributes, needed)
            self._question, self._answers = attributes, []
        elif name == "answer":
            if self._question is None:
                raise self._fail("expected an answer inside a question")
            text, correct = (self._of(attributes, n) for n in ("text", "correct"))
            if correct.lower() not in ("true", "false"):
                raise self._fail(f"expected correct True or False, found {correct!r}")
            self._answers.append((text, correct.lower()))

    def _text(self, text: str) -> None:
        if self._inside:
            self._passage.append(text)

    def _end(self, name: str) -> None:
        if name == "text":
            self._inside = False
        elif name == "question" and self._question is not None:
            right = [i for i, (_, c) in enumerate(self._answers) if c == "true"]
            if len(right) != 1:
                raise self._fail(f"expected one right answer, found {len(right)}")
            asked, self._question = self._question, None
            self.found.append(
                Choice(
                    f"{self._instance}-{asked['id']}",
                    "".join(self._passage).strip(),
                    asked["text"],
                    tuple(text for text, _ in self._answers),
                    right[0],
                    asked.get("type"),
                )
            )

    def _of(self, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._fail(f"expected an attribute {name!r}")
        return attributes[name]


def _json_lines(path: files.Location) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError.at(str(path), number, "expected a JSON object")
        yield number, row


def _member(row: Any, name: str, kind: type, path: files.Location, number: int) -> Any:
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind):
        problem = f"expected a {kind.__name__} under {name!r}"
        raise InputError.at(str(path), number, problem)
    return value


def _some(found: list, path: files.Location) -> list:
    if not found:
        raise InputError(f"{path}: expected questions, found none")
    return found
