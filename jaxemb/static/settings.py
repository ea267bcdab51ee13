"""Checks of what a user sets."""

from typing import Any

from jaxemb.errors import InputError


def check_at_least(least: int, settings: Any, field: str) -> None:
    """Raises InputError, naming the field, where its value is less or no number."""
    value = getattr(settings, field)
    if not value >= least:
        kind = type(settings).__name__
        raise InputError(f"{kind}: {field} is {value}; expected {least} or more")
