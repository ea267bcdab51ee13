"""Word analogies: four words a line, in sections."""

from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError

UNNAMED = "all"  # the section of a file without headers


class Analogy(NamedTuple):
    """`a` is to `b` as `c` is to `d`."""

    a: str
    b: str
    c: str
    d: str


def read_analogies(path: files.Location) -> dict[str, list[Analogy]]:
    """Reads questions by section, as word2vec's `questions-words.txt` has them.

    A line is four words, or a colon and the name of the section that begins there. A
    file without any such line is one section, `all`. Blank lines are left out; words
    keep their case.

    Raises:
      InputError: with file and line, also where no question is found.
    """
    sections: dict[str, list[Analogy]] = {}
    begun: dict[str, int] = {}  # section to the line of its header
    current = UNNAMED
    for number, line in enumerate(files.read_lines(path), 1):
        if not (words := line.split()):
            continue
        if line.lstrip().startswith(":"):
            current = line.strip().removeprefix(":").strip()
            if not current:
                problem = "expected a name after the colon of a section header"
                raise InputError.at(str(path), number, problem)
            if current in begun:
                problem = f"section {current!r} already began in line {begun[current]}"
                raise InputError.at(str(path), number, problem)
            if sections and not begun:
                problem = (
                    f"the first section header, {current!r}, comes after questions; "
                    "expected it before them"
                )
                raise InputError.at(str(path), number, problem)
            begun[current] = number
            sections[current] = []
            continue
        if len(words) != 4:
            problem = (
                "expected four words, or a colon and the name of a section, found "
                f"{len(words)} words"
            )
            raise InputError.at(str(path), number, problem)
        sections.setdefault(current, []).append(Analogy(*words))
    if not any(sections.values()):
        raise InputError(f"{path}: expected analogy questions, found none")
    return sections
