"""The trajectory gate's standing in a run: once it has refused most of a generation, its findings
are warnings."""

from __future__ import annotations

import asyncio

from eureka_agent import wording
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.gate import is_wrong, judged_by_gate, refused_by_gate
from eureka_agent.journal.entries import GateLoosened, Notice, Observer
from eureka_agent.records import Verdict


class GateOfRound:
    """Counts what the gate says of the proposals of one round of a generation.

    Where proposals are made at once, one that it refuses waits until all of them have been judged;
    where they are made one after the other it counts those before. So what is decided depends on
    the archive, never on timing.
    """

    def __init__(
        self, run: Run, iteration: int, samples: range, *, in_order: bool, observer: Observer
    ) -> None:
        """`samples` of the round; earlier rounds of the generation are counted as the archive has
        them."""
        self._run = run
        self._iteration = iteration
        self._samples = samples
        self._in_order = in_order
        self._observer = observer
        earlier = [
            attempt for attempt in run.archive.attempts(iteration) if attempt.sample < samples.start
        ]
        self._verdicts: dict[int, Verdict] = {}
        """Verdicts that the gate had a part in, by sample: of earlier rounds the last one, of this
        round the first."""
        for attempt in earlier:
            self._count(attempt.sample, attempt.verdict)
        self._missing = set(samples)
        self._all_known = asyncio.Event()

    def tell(self, sample: int, verdict: Verdict | None) -> None:
        """The verdict on the first proposal of a place; None where there is none. What was told
        before stays."""
        if sample in self._missing:
            self._count(sample, verdict)
            self._missing.discard(sample)
        if not self._missing:
            self._all_known.set()

    def _count(self, sample: int, verdict: Verdict | None) -> None:
        if verdict is not None and judged_by_gate(verdict):
            self._verdicts[sample] = verdict

    async def is_loose(self, sample: int) -> bool:
        """True where the gate's findings on a proposal of this place are warnings; a decision is
        archived, then told."""
        archive = self._run.archive
        if not self._run.settings.gate:
            # switched off when the run was resumed: it counts for what has no successors yet
            return all(attempt.iteration <= self._iteration for attempt in archive.attempts())
        known = archive.state.gate_loosened
        if known is not None and (known.iteration, known.sample) <= (self._iteration, sample):
            return True
        if not self._in_order:
            await self._all_known.wait()
        counted = [
            verdict
            for place, verdict in self._verdicts.items()
            if place <= sample or not self._in_order
        ]
        refused = sum(map(refused_by_gate, counted))
        if not is_wrong(len(counted), refused):
            return False
        if archive.state.gate_loosened is None:  # another may have waited too
            text = (
                f"the trajectory gate refused {refused} of the"
                f" {wording.plural(len(counted), 'proposal')} of generation {self._iteration + 1}"
                " that it judged, so it is wrong about this task: its findings are warnings from"
                " here on"
            )
            place = sample if self._in_order else self._samples.start
            self._observer(GateLoosened(iteration=self._iteration, sample=place, text=text))
            self._observer(Notice(text=text, level="warning"))
        return True
