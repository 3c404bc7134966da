"""Trust in the trajectory gate: once it has refused most of a generation, its findings are
warnings."""

from __future__ import annotations

import asyncio

from eureka_agent import wording
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.gate import is_wrong, judged_by_gate, refused_by_gate
from eureka_agent.feedback.standing import standing_wishes, what_ranks
from eureka_agent.journal.entries import GateLoosened, Notice, Observer
from eureka_agent.records import Verdict


class GateOfRound:
    """Counts the gate's verdicts on one round of a generation.

    If proposals are made concurrently, a refused one waits until all have been judged; if they are
    made in order, the earlier ones count. So a decision depends on the archive, never on timing.
    """

    def __init__(
        self, run: Run, iteration: int, samples: range, *, in_order: bool, observer: Observer
    ) -> None:
        """`samples` are those of the round. Earlier rounds of the generation are counted from the
        archive."""
        self._run = run
        self._iteration = iteration
        self._samples = samples
        self._in_order = in_order
        self._observer = observer
        earlier = [
            attempt for attempt in run.archive.attempts(iteration) if attempt.sample < samples.start
        ]
        self._verdicts: dict[int, Verdict] = {}
        """Verdicts with a gate step, by sample: the last one of earlier rounds, the first one of
        this round."""
        for attempt in earlier:
            self._count(attempt.sample, attempt.verdict)
        self._missing = set(samples)
        self._all_known = asyncio.Event()

    def count_first(self, sample: int, verdict: Verdict | None) -> None:
        """Count the verdict on the first proposal for a sample; None if there is none. Only the
        first call for a sample counts."""
        if sample in self._missing:
            self._count(sample, verdict)
            self._missing.discard(sample)
        if not self._missing:
            self._all_known.set()

    def _count(self, sample: int, verdict: Verdict | None) -> None:
        if verdict is not None and judged_by_gate(verdict):
            self._verdicts[sample] = verdict

    async def is_loose(self, sample: int) -> bool:
        """True if the gate's findings on this sample's proposal are warnings. A new decision is
        recorded."""
        archive = self._run.archive
        if not self._run.settings.gate:
            # the gate was switched off on resume, which holds for attempts without successors
            return all(attempt.iteration <= self._iteration for attempt in archive.attempts())
        if self._is_led_by_a_person(sample):
            return True
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
        if archive.state.gate_loosened is None:  # another sample may have decided it meanwhile
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

    def _is_led_by_a_person(self, sample: int) -> bool:
        """True where the person's wishes, or strengths, were known to the plan: they may want less
        of the fitness, by which the gate orders episodes."""
        state = self._run.archive.state
        plan = state.plans.get((self._iteration, sample))
        if plan is None:
            return False
        known = [given for given in state.feedback if given.number <= plan.seen]
        return bool(standing_wishes(known)) or what_ranks(known) != "fitness"
