"""Ask and tell: what a designer would be told of a run, and rewards that others propose to it. They
share the run's archive, critic, baselines and finals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.analysis import standing
from eureka_agent.archive.run_folder import Run
from eureka_agent.base_record import Record
from eureka_agent.designer.llm_designer import opening
from eureka_agent.errors import EurekaError
from eureka_agent.journal.entries import Observer, Planned
from eureka_agent.ranking import ranked
from eureka_agent.records import NOT_ASKED, Operator, Verdict
from eureka_agent.search.attempts import attempt_id
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.refinement import Refinement, checked
from eureka_agent.search.session import resume
from eureka_agent.search.strategies import strategy_of

OTHERS = "others"
"""In place of a model: whoever proposes."""


class Brief(Record):
    """All that a designer is told for the next proposal."""

    run: str
    attempt: str
    """Id of the next proposal."""
    operator: Operator
    parents: tuple[str, ...]
    system: str
    """Environment, task, fitness, training, and the form of a reward."""
    prompt: str
    """Earlier attempts with their results, and the order."""


async def brief(run: Run, parent: str = "", operator: Operator = Operator.IMPROVE) -> Brief:
    """All that a designer is told, from the best attempt or another parent. Raises EurekaError for
    a parent that was not trained."""
    archive = run.archive
    best = ranked(standing.judged(archive.attempts(), archive.state.feedback))
    named = {each.id for each in best}
    if parent and parent not in named:
        known = ", ".join(sorted(named)) or "none"
        raise EurekaError(f"there is no trained attempt {parent!r}", f"there is {known}")
    parents = [parent] if parent else [each.id for each in best[:1]]
    if operator is Operator.CROSSOVER:
        parents += [each.id for each in best if each.id not in parents][:1]
    iteration = 1 + max((each for each, _ in archive.state.plans), default=-1)
    known_parents = tuple(parents) if operator is not Operator.FRESH else ()
    plan = Planned(
        iteration=iteration,
        sample=0,
        operator=operator if known_parents and operator not in NOT_ASKED else Operator.FRESH,
        parents=known_parents,
        seen=archive.view()[0],
    )
    briefing = Briefing(run, strategy_of(run.settings), lambda entry: None, (OTHERS,))
    system, prompt = opening(await briefing.request(plan))
    return Brief(
        run=run.name,
        attempt=attempt_id(iteration, 0, 0),
        operator=plan.operator,
        parents=plan.parents,
        system=system.content,
        prompt=prompt.content,
    )


@dataclass(frozen=True)
class GivenProposal:
    """A reward that is proposed to a run."""

    source: str
    parent: str = ""
    why: str = ""


class RejectedProposalError(EurekaError):
    """A proposal that the critic rejects: nothing was recorded or trained."""

    exit_status = 1

    def __init__(self, verdict: Verdict, source: str) -> None:
        first = next(each for each in verdict.findings if each.severity == "error")
        super().__init__(f"{first.code} {first.message}", first.hint)
        self.verdict, self.source = verdict, source


async def propose(
    folder: Path, proposals: Sequence[GivenProposal], observer: Observer, *, finish: bool = False
) -> Run:
    """Train proposals in a run, each as an attempt of a further generation; then, with `finish`,
    the best attempts from fresh seeds. Raises RejectedProposalError where the critic rejects one:
    none is recorded or trained then."""
    asked, rejected = False, list[RejectedProposalError]()

    async def speak(at: Refinement) -> None:
        nonlocal asked
        if not asked and proposals:
            asked = True
            edits = [
                checked(
                    {"kind": "edit", "attempt": it.parent, "source": it.source, "why": it.why},
                    at.run,
                )
                for it in proposals
            ]
            for each in proposals:
                if not (verdict := await at.verdict(each.source)).accepted:
                    rejected.append(RejectedProposalError(verdict, each.source))
            if not rejected:
                for edit in edits:
                    at.say(edit)
                at.say({"kind": "decision", "then": "given"})
                return
        at.say({"kind": "decision", "then": "finish" if finish and not rejected else "leave"})

    run = await resume(folder, observer, person=speak)
    if rejected:
        raise rejected[0]
    return run
