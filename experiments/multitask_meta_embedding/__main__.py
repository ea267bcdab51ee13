from experiments.common import cli
from experiments.multitask_meta_embedding.config import PRESETS, SLUG


def _run(config):
    from experiments.multitask_meta_embedding import (
        main,
    )  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
