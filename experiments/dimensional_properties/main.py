"""Scores every space on every test, then the curve, the probes, verdicts, figures."""

from etils import epath

from experiments.common.rows import print_claims, print_side_by_side
from experiments.dimensional_properties import analyse, data, model
from experiments.dimensional_properties.config import SLUG, Config
from experiments.dimensional_properties.scores import Scorer, mean
from jaxemb import terminal
from jaxemb.analysis import dimensions
from jaxemb.errors import InputError
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    workdir = epath.Path(config.workdir)
    with results.recorded(workdir):
        outcome = measure(config, workdir)
        rows, claims = analyse.rows(outcome), analyse.claims(outcome)
        analyse.write_figures(outcome, workdir / "figures")
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=analyse.described_config(outcome),
        origins=[results.origin(workdir)],
        data=[*outcome.table.data, *outcome.tests.data],
        rows=rows,
        claims=claims,
    )
    shown = set(written["config"]["shown"])
    print_side_by_side([row for row in rows if row.metric in shown])
    print_claims(claims)
    return written


def measure(config: Config, workdir: epath.Path) -> analyse.Outcome:
    """Everything that is computed of a table."""
    _check(config)
    tests = data.load_tests(config)
    table = data.load_table(config, tests.words)
    tests = data.covered(tests, table)
    dim = table.vectors.dim
    if dim < 2 * config.reduced or dim < max(config.removed, *config.swept, 3):
        raise InputError(
            f"{table.name}: {dim} dimensions are fewer than --removed, --swept or "
            "twice --reduced would remove"
        )
    scorer = Scorer(config, table, tests, workdir)
    matrices = dict(model.systems(config, table))
    both = (*tests.similarity, *tests.sentences)
    scores = {}
    for name, matrix in matrices.items():
        scores[name] = scorer.score(name, matrix, (*both, *tests.probes))
        _say(config, tests, name, scores[name])

    def at_width(space):
        if space.shape[1] == dim:
            return scores["all components"]
        name = f"first {space.shape[1]}"
        found = scorer.score(name, space, both)
        _say(config, tests, name, found)
        return found

    rows, components = table.vectors.matrix, table.components
    steps = range(config.step, dim + 1, config.step) if config.step else ()
    curve = dimensions.cumulative_pc_curve(
        components, rows, at_width, sorted({*steps, *([dim] if steps else [])})
    )
    swept = dimensions.ppa_eval(
        *(components, rows),
        lambda space: scorer.outcomes(space, tests.similarity),
        config.swept,
    )
    probes = {
        name: {test.name: scorer.probe(name, space, test) for test in tests.probes}
        for name, space in model.single_components(table).items()
    }
    return analyse.Outcome(
        config, table, tests, scorer, matrices, scores, curve, swept, probes
    )


def _check(config: Config) -> None:
    for flag in ("step", "removed", "reduced", "margin", "rank_margin", "resamples"):
        if getattr(config, flag) < 0:
            name = flag.replace("_", "-")
            raise InputError(f"--{name} {getattr(config, flag)}: expected 0 or more")
    config.task_names()  # names the first that is unknown
    if config.preset != "smoke" and not config.vectors:
        raise InputError("--vectors: expected a file of word vectors or a data set")
    if config.folds < 2:
        raise InputError(f"--folds {config.folds}: expected 2 or more")
    if config.most < 1:
        raise InputError(f"--most {config.most}: expected 1 or more")


def _say(config: Config, tests: data.Tests, name: str, scores) -> None:
    if config.run.progress:
        groups = {"accuracy": tests.sentences, "similarity": tests.similarity}
        told = ", ".join(
            f"mean {kind} {mean(of, scores).mean:.2f}"
            for kind, of in groups.items()
            if of
        )
        terminal.say(f"{name}: {told}")
