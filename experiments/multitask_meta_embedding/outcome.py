"""What a task of a run gives."""

import dataclasses
from pathlib import Path

from jaxemb.train import results


@dataclasses.dataclass
class Outcome:
    """Rows, claims and data, and what else results tell."""

    rows: list[results.Row] = dataclasses.field(default_factory=list)
    claims: list[results.Claim] = dataclasses.field(default_factory=list)
    data: list[results.Data] = dataclasses.field(default_factory=list)
    told: dict = dataclasses.field(default_factory=dict)
    parts: set[Path] = dataclasses.field(default_factory=set)
    """Where it is recorded by whom each part was trained."""

    def take(self, other: "Outcome") -> None:
        """Adds what another task gave."""
        self.rows += other.rows
        self.claims += other.claims
        self.data += other.data
        self.parts |= other.parts
        self.told |= other.told
