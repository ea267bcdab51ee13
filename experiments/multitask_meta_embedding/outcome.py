"""What a task of a run gives."""

import dataclasses

from jaxemb.train import results


@dataclasses.dataclass
class Outcome:
    """Rows, claims and data, and what else results tell."""

    rows: list[results.Row] = dataclasses.field(default_factory=list)
    claims: list[results.Claim] = dataclasses.field(default_factory=list)
    data: list[results.Data] = dataclasses.field(default_factory=list)
    told: dict = dataclasses.field(default_factory=dict)
    origins: list = dataclasses.field(default_factory=list)
    """Of the pieces that it was put together from."""

    def take(self, other: "Outcome") -> None:
        """Adds what another task gave."""
        self.rows += other.rows
        self.claims += other.claims
        self.data += other.data
        self.origins += other.origins
        self.told |= other.told
