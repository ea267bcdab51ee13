from experiments.common import cli
from experiments.subword_reconstruction.config import PRESETS, SLUG


def _run(config):
    from experiments.subword_reconstruction import main  # jax is slow to import

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
