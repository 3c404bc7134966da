"""The designer that needs no LLM and no key: the default where none is set, and the baseline that
an LLM has to beat."""

from __future__ import annotations

import random
from decimal import Decimal

from eureka_agent.designer.interface import DesignRequest, prefers_failures
from eureka_agent.designer.offline import operators
from eureka_agent.designer.offline.compose import Composition, compose, theme_for
from eureka_agent.designer.offline.dice import FREE, THEMES, Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.render import recover, render
from eureka_agent.designer.offline.terms import Genome
from eureka_agent.designer.source_tools import normalized
from eureka_agent.records import Cost, Operator, Proposal, Verdict
from eureka_agent.rewards import CodeReward

_TRIES = 24
"""Draws until a proposal differs from what is already there."""
_OPENINGS = {
    Operator.FRESH: "Composed from the sentence and the variables.",
    Operator.IMPROVE: "Improved on {0}, as its diagnosis asks.",
    Operator.REASON_OVER_PATH: "Improved on {0}, as its diagnosis asks.",
    Operator.MUTATE_STRUCTURE: "Changed the structure of {0}.",
    Operator.RETUNE_WEIGHTS: "Kept the structure of {0} and changed its weights.",
    Operator.TUNE_WEIGHTS: "Kept the structure of {0} and changed its weights.",
    Operator.CROSSOVER: "Crossed {0} with {1}.",
    Operator.DIFFERENT: "Tried something else than {0}.",
}


class OfflineDesigner:
    """Composes rewards from the variables' docs and the task's words, and evolves them by
    fitness."""

    name = "offline"
    concurrent = False

    async def propose(self, request: DesignRequest) -> Proposal:
        """A reward that is none of the request's siblings, parents or failures. The same request
        gives the same proposal."""
        scene = _scene(request)
        parents = [_genome(parent.reward.source, request) for parent in request.parents]
        parents = [genome for genome in parents if not genome.empty]
        failed = [each.reward for each in request.failures if each.stage in ("rejected", "failed")]
        rewards = [*(parent.reward for parent in request.parents), *failed]
        sources = [*request.siblings, *(reward.source for reward in rewards)]
        known = set(map(normalized, sources))
        for attempt in range(_TRIES):
            generator = random.Random(f"{request.seed}/{attempt}")
            first = attempt == 0
            if parents and request.operator is not Operator.FRESH:
                dice = Dice(generator, FREE)
                composition = _offspring(request, scene, parents, dice, first)
            else:
                asked_before = request.siblings or request.failures or request.parents
                place = len(request.siblings) if first else 0
                theme = theme_for(place, generator, first and not asked_before)
                composition = compose(scene, Dice(generator, theme))
            proposal = _proposal(request, composition)
            if normalized(proposal.reward.source) not in known:
                break
        return proposal

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The proposal without the terms that the critic's errors name, or another one where none
        is left."""
        source = rejected.reward.source
        genome = _genome(source, request)
        errors = [each.message for each in verdict.findings if each.severity == "error"]
        found, reasons = "\n".join(errors), f"The critic found: {'; '.join(errors)}."
        blamed = [term.name for term in genome.terms if repr(term.name) in found]
        for name in blamed:
            genome = genome.without(name)
        if blamed and not genome.empty:
            note = f"{reasons} So {', '.join(map(repr, blamed))} is left out."
            return _proposal(request, Composition(genome, (note,)))
        misled = (source,) if prefers_failures(verdict) else ()
        # earlier answers to this request that the trajectory gate refused
        refused = [each for each in request.rejections if prefers_failures(each.verdict)]
        earlier = [each.proposal.reward.source for each in refused]
        scene = _scene(request, (*misled, *earlier))
        generator = random.Random(f"{request.seed}/revision/{normalized(source)}")
        composition = compose(scene, Dice(generator, generator.choice(THEMES[1:])))
        notes = (f"{reasons} So this is another draw.", *composition.notes)
        return _proposal(request, composition._replace(notes=notes))


def _scene(request: DesignRequest, misled: tuple[str, ...] = ()) -> Scene:
    refused = [_genome(source, request) for source in (*request.misleading, *misled)]
    return Scene(request.description, request.sentence, refused)


def _offspring(
    request: DesignRequest, scene: Scene, parents: list[Genome], dice: Dice, first: bool
) -> Composition:
    match request.operator:
        case Operator.IMPROVE | Operator.REASON_OVER_PATH:
            return operators.improve(parents[0], request.parents[0].diagnosis, dice)
        case Operator.RETUNE_WEIGHTS | Operator.TUNE_WEIGHTS:
            return operators.retune(parents[0], dice)
        case Operator.CROSSOVER if len(parents) > 1:
            crossed = operators.crossover(parents[0], parents[1], dice)
            # equal parents, or a draw that took all from one, would repeat a reward
            genome = crossed.genome if first else operators.retune(crossed.genome, dice).genome
            return crossed._replace(genome=genome)
        case Operator.DIFFERENT:
            siblings = [_genome(source, request) for source in request.siblings]
            return operators.different(scene, dice, [*parents, *siblings])
        case _:
            return operators.mutate_structure(parents[0], scene, dice)


def _genome(source: str, request: DesignRequest) -> Genome:
    return recover(source, _names(request))


def _names(request: DesignRequest) -> list[str]:
    return [variable.name for variable in request.description.variables]


def _proposal(request: DesignRequest, composition: Composition) -> Proposal:
    source = render(
        composition.genome, request.sentence, [e.name for e in request.description.variables]
    )
    ids = [*(parent.id for parent in request.parents), "nothing", "nothing"]
    reasoning = " ".join((_OPENINGS[request.operator].format(*ids), *composition.notes))
    return Proposal(
        reward=CodeReward(source=source, author=OfflineDesigner.name),
        reasoning=reasoning,
        operator=request.operator,
        parents=tuple(parent.id for parent in request.parents),
        prompt=_asked(request),
        reply=f"{reasoning}\n\n```python\n{source}```\n",
        cost=Cost(money=Decimal(0), prompt_tokens=0, completion_tokens=0),
    )


def _asked(request: DesignRequest) -> str:
    """The request as text, for the run's records."""
    lines = [f"Task: {request.sentence}", f"Metric: {request.description.fitness_doc}"]
    lines += [f"Operator: {request.operator.value}", "", "Variables:"]
    for each in request.description.public_variables():
        lines.append(f"  {each.name} {list(each.shape)} [{each.unit}, {each.frame}]: {each.doc}")
    for parent in request.parents:
        fitness = "unknown" if parent.fitness is None else f"{parent.fitness:.4g}"
        lines += ["", f"Parent {parent.id}, fitness {fitness}:"]
        lines += [parent.diagnosis.text] if parent.diagnosis is not None else []
    return "\n".join(lines) + "\n"
