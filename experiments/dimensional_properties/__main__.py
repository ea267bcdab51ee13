from experiments.common import cli
from experiments.dimensional_properties.config import PRESETS, SLUG


def _run(config):
    from experiments.dimensional_properties import main  # jax is slow for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
