from experiments.common import cli
from experiments.compressing_bert.config import PRESETS, SLUG


def _run(config):
    from experiments.compressing_bert import main  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
