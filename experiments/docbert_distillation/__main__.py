from experiments.common import cli
from experiments.docbert_distillation.config import PRESETS, SLUG


def _run(config):
    from experiments.docbert_distillation import (
        main,
    )  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
