"""What studies have found, as rows and claims."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.rows import summary_row
from jaxemb.eval import intervals
from jaxemb.train import results


@dataclasses.dataclass(eq=False)
class Findings:
    """Rows, claims and notes, as a run adds them."""

    rows: list[results.Row] = dataclasses.field(default_factory=list)
    claims: list[results.Claim] = dataclasses.field(default_factory=list)
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What a reader of the results must know beside them."""
    shown: list[str] = dataclasses.field(default_factory=list)
    """Metrics that the README shows."""
    paper: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """Figures that the paper prints, by metric and name, which claims are to name; none
    beside a planted world."""

    def add(self, name: str, metric: str, values: Sequence[float]) -> None:
        """One row, of a value a seed."""
        self.rows.append(summary_row(name, metric, values))

    def beats(
        self,
        claim: str,
        better: Sequence[float],
        worse: Sequence[float],
        *,
        printed: tuple[str, str, str] | None = None,
        margin: float = 0.0,
    ) -> None:
        """A claim that `better` is higher than `worse`, paired by seed.

        Args:
          claim: in words.
          better: a value a seed.
          worse: likewise.
          printed: a metric and two names of `paper`, of which the claim is.
          margin: by how much `better` may be lower.
        """
        gap = intervals.paired_t(better, worse)
        self.claims.append(
            results.Claim(
                claim=claim,
                verdict=intervals.verdict(gap.low + margin, gap.high + margin),
                evidence=f"paired difference {gap.mean:+.3g} [{gap.low:.3g}, "
                f"{gap.high:.3g}], {len(better)} seeds{self._printed(printed)}",
            )
        )

    def _printed(self, names: tuple[str, str, str] | None) -> str:
        """Two figures of the paper, if it has both."""
        metric, better, worse = names or ("", "", "")
        found = self.paper.get(metric, {})
        if better in found and worse in found:
            return f"; in the paper {found[better]:g} against {found[worse]:g}"
        return ""
