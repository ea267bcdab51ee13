"""What the tests of this experiment share."""

import dataclasses

from experiments.common import cli
from experiments.subword_reconstruction import config as presets

SMOKE = dataclasses.replace(
    presets.PRESETS["smoke"][1], run=cli.Run(progress=False), seeds=1
)


def config_of(*arguments):
    return cli.parse(presets.SLUG, presets.PRESETS, list(arguments))
