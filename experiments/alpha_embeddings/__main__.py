from experiments.alpha_embeddings.config import PRESETS, SLUG
from experiments.common import cli


def _run(config):
    from experiments.alpha_embeddings import main  # jax is slow to import for --help

    return main.run(config)


if __name__ == "__main__":
    cli.main(SLUG, _run, PRESETS)
