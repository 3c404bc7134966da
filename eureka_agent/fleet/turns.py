"""Turns of the searches that share a fleet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eureka_agent.fleet.jobs import TrainingJob
from eureka_agent.fleet.share import Share


class Turns:
    """Order in which waiting jobs get slots: the search with the least env steps is first, within
    a search the job with the smallest order.

    Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) on env steps. A search that comes
    late, or that had nothing to train, claims nothing for that time.
    """

    def __init__(self) -> None:
        self._now = 0
        """Virtual time: the turn of the last search that started a job."""

    def arrived(self, share: Share, others: Iterable[TrainingJob]) -> None:
        """Tell of a search's new job. `others`: the jobs that wait."""
        if not any(each.share is share for each in others):
            share.turn = max(share.turn, self._now)

    def started(self, job: TrainingJob) -> None:
        """Charge a job that has got a slot to its search."""
        self._now = max(self._now, job.share.turn)
        job.share.turn += job.population.settings.env_steps

    @staticmethod
    def order(waiting: Iterable[TrainingJob]) -> Iterator[TrainingJob]:
        """Jobs in turn. Each search's turn is looked up when its next job is due, so that jobs that
        were started meanwhile count."""
        queues: dict[Share, list[TrainingJob]] = {}
        for job in sorted(waiting, key=lambda job: job.order, reverse=True):
            if not job.share.held:
                queues.setdefault(job.share, []).append(job)
        while queues:
            share = min(queues, key=lambda each: (each.turn, queues[each][-1].order))
            yield queues[share].pop()
            if not queues[share]:
                del queues[share]
