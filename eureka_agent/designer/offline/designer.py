"""The designer that needs no language model and no key: the default where none is set, and the
baseline that one has to beat."""

from __future__ import annotations

import random
from collections.abc import Iterable
from decimal import Decimal

from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.offline import operators
from eureka_agent.designer.offline.compose import Composition, compose
from eureka_agent.designer.offline.dice import FREE, THEMES, Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.render import recover, render
from eureka_agent.designer.offline.terms import Genome
from eureka_agent.designer.offline.wishes import in_order, with_wishes
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
    Operator.CROSSOVER: "Crossed {0} with {1}.",
    Operator.DIFFERENT: "Tried something else than {0}.",
}


class OfflineDesigner:
    """Composes rewards from variables and the task's words, and evolves them by fitness."""

    name = "offline"
    concurrent = False

    async def propose(self, request: DesignRequest) -> Proposal:
        """A reward that is none of the siblings, parents or failures; the same for each request."""
        scene = Scene(request.description, request.sentence)
        parents = _genomes(request, [parent.reward.source for parent in request.parents])
        parents = [genome for genome in parents if not genome.empty]
        failed = [each.reward for each in request.failures if each.stage in ("rejected", "failed")]
        rewards = [*(parent.reward for parent in request.parents), *failed]
        sources = [*request.siblings, *(reward.source for reward in rewards)]
        known = set(map(normalized, sources))
        asked_before = request.siblings or request.failures or request.parents
        for attempt in range(_TRIES):
            generator = random.Random(f"{request.seed}/{attempt}")
            first, place = attempt == 0, len(request.siblings)
            if parents and request.operator is not Operator.FRESH:
                made = _offspring(request, scene, parents, Dice(generator, FREE), first)
            elif first and not asked_before:
                made = compose(scene, Dice(generator))
            else:
                # siblings go through the themes, then they draw one
                next_in_turn = first and 0 < place < len(THEMES)
                theme = THEMES[place] if next_in_turn else generator.choice(THEMES[2:])
                made = compose(scene, Dice(generator, theme))
            proposal = _proposal(request, _as_told(request, made))
            if normalized(proposal.reward.source) not in known:
                break
        return proposal

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The proposal without the terms that errors name; where none is left the most promising
        draft, or another draw."""
        (genome,) = _genomes(request, [rejected.reward.source])
        errors = [each.message for each in verdict.findings if each.severity == "error"]
        found, reasons = "\n".join(errors), f"The critic found: {'; '.join(errors)}."
        blamed = [term.name for term in genome.terms if repr(term.name) in found]
        for name in blamed:
            genome = genome.without(name)
        if blamed and not genome.empty:
            note = f"{reasons} So {', '.join(map(repr, blamed))} is left out."
            return _proposal(request, Composition(genome, (note,)))
        if request.drafts:
            draft = request.drafts[0]
            note = f"{reasons} So the next draft is taken."
            return draft.model_copy(update={"reasoning": f"{note} {draft.reasoning}"})
        scene = Scene(request.description, request.sentence)
        generator = random.Random(f"{request.seed}/revision/{normalized(rejected.reward.source)}")
        made = compose(scene, Dice(generator, generator.choice(THEMES[1:])))
        notes = (f"{reasons} So this is another draw.", *made.notes)
        return _proposal(request, made._replace(notes=notes))


def _variables(request: DesignRequest) -> list[str]:
    return [variable.name for variable in request.description.variables]


def _genomes(request: DesignRequest, sources: Iterable[str]) -> list[Genome]:
    return [recover(source, _variables(request)) for source in sources]


def _offspring(
    request: DesignRequest, scene: Scene, parents: list[Genome], dice: Dice, first: bool
) -> Composition:
    match request.operator:
        case Operator.IMPROVE | Operator.REASON_OVER_PATH:
            return operators.improve(parents[0], request.parents[0].diagnosis, dice)
        case Operator.RETUNE_WEIGHTS:
            return operators.retune(parents[0], dice)
        case Operator.CROSSOVER if len(parents) > 1:
            crossed = operators.crossover(parents[0], parents[1], dice)
            # equal parents, or a draw that took all from one, would repeat a reward
            genome = crossed.genome if first else operators.retune(crossed.genome, dice).genome
            return crossed._replace(genome=genome)
        case Operator.DIFFERENT:
            known = [*parents, *_genomes(request, request.siblings)]
            return operators.different(scene, dice, known)
        case _:
            return operators.mutate_structure(parents[0], scene, dice)


def _as_told(request: DesignRequest, made: Composition) -> Composition:
    """The composition as a person's wishes and order of terms have it."""
    if not request.told:
        return made
    genome, wished = with_wishes(made.genome, request.description, request.told)
    genome, ordered = in_order(genome, request.told)
    return made._replace(genome=genome, notes=(*made.notes, *filter(None, (wished, ordered))))


def _proposal(request: DesignRequest, made: Composition) -> Proposal:
    source = render(made.genome, request.sentence, _variables(request))
    parents = tuple(parent.id for parent in request.parents)
    opening = _OPENINGS[request.operator].format(*parents, "nothing", "nothing")
    reasoning = " ".join((opening, *made.notes))
    return Proposal(
        reward=CodeReward(source=source, author=OfflineDesigner.name),
        reasoning=reasoning,
        operator=request.operator,
        parents=parents,
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
