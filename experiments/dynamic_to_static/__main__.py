from experiments.common import cli
from experiments.dynamic_to_static.config import PRESETS, SLUG


def _run(config):
    from experiments.dynamic_to_static import main  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
