"""The advisers of a run (designers, reviewer, analyst, judge) and the gateway of their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from eureka_agent.analysis.diagnose import Analyst
from eureka_agent.analysis.judge import ModelJudge
from eureka_agent.analysis.wishes import ModelReader, Reads
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.review import Reviewer
from eureka_agent.designer.distribution_writer import DistributionWriter
from eureka_agent.designer.interface import Designer, DesignTools, GivenDesigner
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.designer.offline.wishes import OfflineReader
from eureka_agent.journal.entries import ModelBudgetSpent, Notice, Observer
from eureka_agent.llm.batches import RequestBatches
from eureka_agent.llm.budget import Budget
from eureka_agent.llm.gateway import ConfiguredModel, Gateway
from eureka_agent.llm.prices import Price
from eureka_agent.search.budget import outage_limit
from eureka_agent.search.deadline import ALONE, SearchContext
from eureka_agent.search.models import Models
from eureka_agent.search.summary import model_limits
from eureka_agent.wording import plural


@dataclass(frozen=True)
class Advisers:
    """Designer, reviewer, analyst and judge of a run."""

    designer: Designer
    models: tuple[str, ...] = ()
    """Names of the models that share the proposals."""
    reviewer: Reviewer | None = None
    review_all: bool = True
    """True: the reviewer reads every reward; False: only those that the critic doubts."""
    analyst: Analyst | None = None
    reader: Reads | None = None
    """Reader of a person's wishes; None for a reward of one's own."""
    gateway: Gateway | None = None
    """None if no model is asked."""
    budget: Budget | None = None
    judge: ModelJudge | None = None
    """Judge of pictures of attempts; None where no model judges."""
    distributions: DistributionWriter | None = None
    """Writer of distributions of parameters; None: the offline ones are taken."""
    labeller: ConfiguredModel | None = None
    """Model that labels captions of states; None where no model is asked."""

    def spent(self) -> bool:
        """True once the budget for models has refused a request."""
        return self.budget is not None and bool(self.budget.closed)

    async def finish(self, observer: Observer) -> None:
        """Wait for the replies that are paid for. A second Ctrl-C ends the wait."""
        if self.gateway is None:
            return
        if waiting := self.gateway.under_way:
            text = f"waiting for {plural(waiting, 'reply', 'replies')} already asked for, so that"
            observer(Notice(text=f"{text} nothing is paid twice; Ctrl-C again leaves without"))
        with suppress(asyncio.CancelledError):
            await self.gateway.finish()


def designer_name(models: Models | None, given: GivenDesigner | None) -> str:
    """The designer's name in reports."""
    if given is not None:
        return given.name
    if models is None:
        return OfflineDesigner.name
    names = ", ".join(model.name for model in models.designers)
    return f"{names} (replayed from {models.replayed})" if models.replayed else names


def recorded_of(models: Models | None) -> dict[str, Any]:
    """The models' part of the journal's first entry."""
    if models is None:
        return {}
    prices = {name: price.model_dump(mode="json") for name, price in models.prices.items()}
    recorded = dict(models.recorded_settings) if models.replayed else None
    return {"prices": prices, "recorded_settings": recorded}


def budget_of(
    models: Models,
    run: Run,
    time_is_up: Callable[[], str],
    observer: Observer,
    context: SearchContext = ALONE,
) -> Budget:
    """The run's budget for models. An earlier refusal holds as long as the limits behind it do."""
    frozen = {
        name: Price.model_validate(price) for name, price in run.archive.state.began.prices.items()
    }
    own, shared = model_limits(run.settings), context.budget
    spent = run.archive.state.budget_spent

    def with_shared() -> dict[str, str]:
        """The run's limits and those of all searches."""
        time = context.time_limit()
        of_all = {} if time is None else {"time": time.text}
        return own | of_all | ({} if shared is None else shared.limits.named())

    def closed(reason: str) -> None:
        time = context.time_limit()
        by_all = (shared is not None and reason == shared.closed) or (
            time is not None and time.text in reason
        )
        limits = with_shared() if by_all else own
        text = f"no model is asked any more: {reason}; the search ends with what is paid for"
        observer(ModelBudgetSpent(limits=limits, text=text))
        observer(Notice(text=text, level="warning"))

    holds = spent is not None and spent.limits in (own, with_shared())
    if spent is not None and spent.text and not holds:
        observer(ModelBudgetSpent(limits=own, text=""))
    return Budget(
        models.limits,
        {**models.prices, **frozen},
        run.archive.messages(),
        time_is_up=time_is_up,
        closed=spent.text if spent is not None and holds else "",
        on_closed=closed,
        shared=shared,
    )


def batches_of(run: Run, budget: Budget, observer: Observer) -> RequestBatches | None:
    """The run's batches of requests, with those of earlier processes; None without any."""
    known = run.archive.state.open_batches()
    known = {key: batch for key, batch in known.items() if run.archive.find(key) is None}
    for batch in {batch.id: batch for batch in known.values()}.values():
        for each in batch.requests:
            if known.get(each.key) is batch:
                budget.owe(batch.model, each)
    settings = run.settings
    if not known and not settings.llm_batch:
        return None
    return RequestBatches(
        observer,
        known,
        collects=settings.llm_batch,
        wait_s=settings.llm_batch_wait,
        outage_s=outage_limit(settings),
    )


def advisers_of(
    models: Models | None,
    given: GivenDesigner | None,
    run: Run,
    time_is_up: Callable[[], str],
    observer: Observer,
    context: SearchContext = ALONE,
    tools: DesignTools | None = None,
) -> Advisers:
    """The advisers of a run: a given reward, the models, or the offline designer. `tools`: for the
    models that design."""
    if given is not None:
        return Advisers(given)
    if models is None:
        return Advisers(OfflineDesigner(), reader=OfflineReader(run.description))
    from eureka_agent.designer.llm_designer import LanguageModelDesigner

    budget = budget_of(models, run, time_is_up, observer, context)
    gateway = Gateway(
        run.archive,
        budget,
        run.settings.concurrency,
        observer,
        context.before_request,
        batches_of(run, budget, observer),
    )
    model_designer = LanguageModelDesigner(
        [models.configured(model, gateway) for model in models.designers], tools
    )
    first = models.configured(models.designers[0], gateway)
    task = (run.description, run.sentence, run.settings)
    reviewer, analyst, judge = (
        None if model is None else models.configured(model, gateway)
        for model in (models.reviewer, models.analyst, models.judge)
    )
    return Advisers(
        model_designer,
        tuple(model.name for model in models.designers),
        None if reviewer is None else Reviewer(reviewer, *task),
        models.review_all,
        None if analyst is None else Analyst(analyst, *task),
        ModelReader(first, *task),
        gateway,
        budget,
        None if judge is None else ModelJudge(judge, run.description, run.sentence),
        DistributionWriter(first, *task),
        first,
    )


def notes_on(models: Models | None) -> list[Notice]:
    """Notices on the models for the user, before anything is spent."""
    if models is None:
        text = (
            "the offline designer writes the rewards; --model openai/<name> or anthropic/<name>"
            " asks an LLM instead"
        )
        return [Notice(text=text)]
    if models.replayed:
        text = f"replies are played back from {models.replayed}: no model is asked, and nothing is"
        return [Notice(text=f"{text} paid")]
    unpriced = [model.name for model in models.all if model.name not in models.prices]
    if not unpriced:
        return []
    text = (
        f"the price of {' and '.join(unpriced)} is not known, so neither is what this search costs"
    )
    if models.limits.tokens is None:
        text += "; --max-tokens limits it, --price says what it costs"
    return [Notice(text=text)]
