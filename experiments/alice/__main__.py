from experiments.alice.config import PRESETS, SLUG
from experiments.common import cli


def _run(config):
    from experiments.alice import main  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
