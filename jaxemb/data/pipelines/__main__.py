"""The command line of the pipelines: `python -m jaxemb.data.pipelines`."""

# pyright: reportMissingImports=false

import dataclasses
import logging
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import tyro

from jaxemb.errors import InputError

_DESCRIPTION = """Counts and encodes text with Apache Beam, for corpora beyond one
machine. Each command reads what the one before wrote: count, encode, cooccurrences;
collect makes of the shards what the library opens. Options of Beam come after `--`:
`… -- --runner=DataflowRunner --project=…`; without, everything runs in this process."""


def _arg(help: str, metavar: str | None = None, hint: str | None = None) -> Any:
    return tyro.conf.arg(help=help, metavar=metavar, help_behavior_hint=hint)


_OUTPUT = _arg("A new folder to write into.", "FOLDER", "")
_HELD_OUT = "Keep every N-th sentence out of vocabulary and counts; 0: none."


@dataclasses.dataclass(frozen=True)
class Count:
    """Counts the words of text files with one sentence a line."""

    input: Annotated[
        tuple[str, ...],
        _arg("Text files or patterns, also .gz or .bz2.", "FILE [FILE ...]", ""),
    ]
    output: Annotated[str, _OUTPUT]
    min_count: Annotated[int, _arg("Leave rarer words out.", "N")] = 5
    max_words: Annotated[
        int | None, _arg("Keep the N most frequent words.", "N", "(default: all)")
    ] = None
    max_sentence: Annotated[int, _arg("Cut sentences of more words.", "N")] = 10_000
    held_out: Annotated[int, _arg(_HELD_OUT, "N")] = 0
    lower: Annotated[bool, _arg("Lower-case the text.", hint="")] = False
    piece_bytes: Annotated[
        int, _arg("What a worker takes of a plain text file at a time.", "N")
    ] = 1 << 26

    def run(self, options: Any) -> None:
        """Runs the pipeline."""
        from jaxemb.data.pipelines import text

        values = dataclasses.asdict(self)
        texts, output = values.pop("input"), values.pop("output")
        size = values.pop("piece_bytes")
        if not texts:
            raise InputError("count: expected at least one FILE after --input")
        if size < 1:
            raise InputError(f"--piece-bytes is {size}; expected 1 or more")
        settings = text.Settings(**values)
        text.count(texts, output, settings, options=options, piece_bytes=size)


@dataclasses.dataclass(frozen=True)
class Encode:
    """Writes the text that count read as ArrayRecord shards of word ids."""

    input: Annotated[str, _arg("The folder that count wrote.", "FOLDER", "")]
    output: Annotated[str, _OUTPUT]

    def run(self, options: Any) -> None:
        """Runs the pipeline."""
        from jaxemb.data.pipelines import text

        text.encode(self.input, self.output, options=options)


@dataclasses.dataclass(frozen=True)
class Cooccurrences:
    """Counts which words stand near each other in what encode wrote."""

    input: Annotated[str, _arg("The folder that encode wrote.", "FOLDER", "")]
    output: Annotated[str, _OUTPUT]
    window: Annotated[int, _arg("The greatest distance.", "N")] = 10
    weighting: Annotated[
        Literal["harmonic", "flat"],
        _arg("What a pair at distance d adds: 1/d (harmonic) or 1 (flat)."),
    ] = "harmonic"
    one_sided: Annotated[
        bool, _arg("Count words after a word only, not before it.", hint="")
    ] = False
    shards: Annotated[int, _arg("Files to write.", "N")] = 16

    def run(self, options: Any) -> None:
        """Runs the pipeline."""
        from jaxemb.data.pipelines import pairs

        if self.shards < 1:
            raise InputError(f"--shards is {self.shards}; expected 1 or more")
        pairs.cooccurrences(
            self.input,
            self.output,
            window=self.window,
            weighting=self.weighting,
            symmetric=not self.one_sided,
            shards=self.shards,
            options=options,
        )


@dataclasses.dataclass(frozen=True)
class Collect:
    """Makes a Corpus or Cooccurrences of the shards in a local folder (no Beam)."""

    input: Annotated[
        str, _arg("The folder that encode or cooccurrences wrote.", "FOLDER", "")
    ]
    output: Annotated[str, _OUTPUT]

    def run(self, options: Any) -> None:
        """Reads the shards and writes the arrays."""
        from pathlib import Path

        from jaxemb.data.corpus import shards as shard_files

        del options
        if (Path(self.input) / shard_files.PAIRS_INFO).is_file():
            shard_files.cooccurrences_from_shards(self.input, self.output)
        else:
            shard_files.corpus_from_shards(self.input, self.output)


Command = (
    Annotated[Count, tyro.conf.subcommand("count")]
    | Annotated[Encode, tyro.conf.subcommand("encode")]
    | Annotated[Cooccurrences, tyro.conf.subcommand("cooccurrences")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; exits with 2 and one sentence on a user's mistake."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    own, of_beam = arguments, []
    if "--" in arguments:
        place = arguments.index("--")
        own, of_beam = arguments[:place], arguments[place + 1 :]
    command: Any = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        prog="python -m jaxemb.data.pipelines",
        description=" ".join(_DESCRIPTION.split()),
        args=own or ["--help"],
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff),
    )
    try:
        options = None if isinstance(command, Collect) else _beam_options(of_beam)
        command.run(options)
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(where + (error.strerror or str(error)))
    except KeyboardInterrupt:
        sys.exit(130)
    # Workers' errors come back in whatever the runner wraps them in.
    except Exception as error:
        told = re.search(r"InputError: (.*)", str(error))
        if told is None:
            raise
        _fail(told[1])


def _beam_options(flags: list[str]) -> Any:
    local = not any(flag.startswith("--runner") for flag in flags)
    if local:  # errors are raised, and of the rest little is of use
        logging.getLogger().setLevel(logging.CRITICAL)
    try:
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise InputError(
            "the pipelines need the extra 'beam': pip install 'jaxemb[beam]', best in "
            f"an environment of its own ({error})"
        ) from error
    if local:
        # What DirectRunner stands for may fetch a program first; this is in Python.
        flags = ["--runner=FnApiRunner", *flags]
    return PipelineOptions(flags)


def _fail(message: str) -> None:
    message = re.sub(r" \[while running .*", "", " ".join(message.split()))
    print(f"jaxemb.data.pipelines: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
