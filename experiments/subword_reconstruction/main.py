"""Runs the studies of a preset; tables, verdicts, figures."""

import jax
from etils import epath

from experiments.common.findings import Findings
from experiments.subword_reconstruction import data, linear, students, tagged
from experiments.subword_reconstruction.config import PAPER, Config
from jaxemb import terminal
from jaxemb.errors import InputError
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = epath.Path(config.workdir)
    findings = Findings(paper=PAPER if config.is_near_the_paper else {})
    with results.recorded(workdir):
        world = data.load(config)
        teacher = world.teacher
        terminal.say(
            f"{len(teacher.vectors):,} of {teacher.size:,} words, "
            f"{len(teacher.characters) - 2} characters"
        )
        config.check_taught(len(teacher.vectors))
        if "tagging" in config.studies:
            tagged.study(config, world, workdir, findings)
        if config.tests_tables:
            students.study(config, world, workdir, findings)
        if "linear" in config.studies:
            linear.study(config, teacher, findings)
        if "outliers" in config.studies:
            linear.students_with_outliers(config, teacher, workdir, findings)
    return findings.publish(
        workdir,
        config,
        _told(config, world),
        [results.origin(workdir)],
        world.data,
    )


def _updates(config: Config, words: int) -> dict[str, int]:
    """Of a student of all words, and of one of half of them, where there are such."""

    def of(taught: int) -> int:
        return config.epochs[-1] * -(-taught // config.batch_size)

    told = {}
    if config.tests_tables or "tagging" in config.studies:
        told["updates of a student"] = of(words)
    if "outliers" in config.studies:
        told["updates of a student of half of the words"] = of(words // 2)
    return told


def _told(config: Config, world: data.World) -> dict:
    """What a reader must know of the protocol."""
    return {
        "words taught": len(world.teacher.vectors),
        "words of the teacher": world.teacher.size,
        **_updates(config, len(world.teacher.vectors)),
        "characters": len(world.teacher.characters) - 2,
        "covered": world.tests.covered,
        "asked": dict(world.tests.totals),
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed; one teacher and one set of tests, whose sampling "
        "is not in it",
        "floor": "the least distance that a vector without negative coordinates can "
        "have (relu head); 0, or -1 for Dcos, for the other heads",
        "random": "the students before they are taught, of the same seeds",
    }
