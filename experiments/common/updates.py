"""How many words an update of word tables takes; light, since configs import it."""

from jaxemb.errors import InputError

GROUP = 16  # neighbouring words that share a matrix product


def groups_of(update: int | None) -> int | None:
    """The groups of an update of so many words; None leaves it to the trainer."""
    if update is None:
        return None
    if update < 1 or update % GROUP:
        raise InputError(f"--update {update}: expected a multiple of {GROUP} words")
    return update // GROUP
