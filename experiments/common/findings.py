"""What studies have found, as rows and claims."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from etils import epath

from experiments.common.cli import Experiment
from experiments.common.rows import print_claims, print_side_by_side, summary_row
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
        over: str = "seeds",
    ) -> None:
        """A claim that `better` is higher than `worse`, paired by seed.

        Args:
          claim: in words.
          better: a value a seed.
          worse: likewise.
          printed: a metric and two names of `paper`, of which the claim is.
          margin: by how much `better` may be lower.
          over: what the values are of, where they are not of seeds.
        """
        gap = intervals.paired_t(better, worse)
        self.claims.append(
            results.Claim(
                claim=claim,
                verdict=intervals.verdict(gap.low + margin, gap.high + margin),
                evidence=f"paired difference {gap.mean:+.3g} [{gap.low:.3g}, "
                f"{gap.high:.3g}], {len(better)} {over}{self._printed(printed)}",
            )
        )

    def _printed(self, names: tuple[str, str, str] | None) -> str:
        """Two figures of the paper, if it has both."""
        metric, better, worse = names or ("", "", "")
        found = self.paper.get(metric, {})
        if better in found and worse in found:
            return f"; in the paper {found[better]:g} against {found[worse]:g}"
        return ""

    def publish(
        self,
        workdir: epath.PathLike,
        config: Experiment,
        told: Mapping[str, Any],
        origins: Sequence[Mapping[str, Any]],
        data: Sequence[results.Data],
    ) -> dict:
        """Writes `results.json` and prints what the README shows of it.

        Args:
          workdir: of the run.
          config: of the run.
          told: what a reader must know of the protocol, beside config and notes.
          origins: by which commits, and how long, the parts were made.
          data: what was read.
        """
        plain = dataclasses.replace(config, run=type(config.run)())
        written = results.write(
            workdir,
            slug=config.slug,
            preset=config.preset,
            config={
                **results.as_json(plain),
                **told,
                **self.notes,
                "shown": self.shown,
            },
            origins=origins,
            data=data,
            rows=self.rows,
            claims=self.claims,
        )
        print_side_by_side([row for row in self.rows if row.metric in self.shown])
        print_claims(self.claims)
        return written
