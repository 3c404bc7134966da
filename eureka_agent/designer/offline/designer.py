"""The designer that needs no LLM and no key: the default where none is set, and the baseline that
an LLM has to beat."""

from __future__ import annotations

import random
from decimal import Decimal

from eureka_agent.designer.interface import DesignRequest, prefers_failures
from eureka_agent.designer.offline import operators
from eureka_agent.designer.offline.compose import Composition, compose, scene_of, theme_for
from eureka_agent.designer.offline.dice import THEMES, Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.render import recover, render
from eureka_agent.designer.offline.vocabulary import Intent
from eureka_agent.designer.source_tools import normalized
from eureka_agent.records import Cost, Operator, Proposal, Verdict

_TRIES = 24
"""Draws until a proposal differs from what is already there."""


class OfflineDesigner:
    """Composes rewards from the variables' docs and the task's words, and evolves them by
    fitness."""

    name = "offline"
    concurrent = False

    async def propose(self, request: DesignRequest) -> Proposal:
        """A reward that is none of the request's siblings, parents or failures. The same request
        gives the same proposal."""
        scene, intents = self._scene(request)
        known = {normalized(source) for source in _known_sources(request)}
        for attempt in range(_TRIES):
            generator = random.Random(f"{request.seed}/{attempt}")
            composition = self._compose(request, scene, intents, generator, first=attempt == 0)
            source = render(composition.genome, request.sentence, _names(request))
            if normalized(source) not in known:
                break
        return _proposal(request, composition, source)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The proposal without the terms that the critic's errors name, or another one where none
        is left."""
        genome = recover(rejected.source, _names(request))
        errors = [finding for finding in verdict.findings if finding.severity == "error"]
        blamed = [
            term.name
            for term in genome.terms
            for finding in errors
            if repr(term.name) in finding.message
        ]
        for name in blamed:
            genome = genome.without(name)
        reasons = "; ".join(finding.message for finding in errors)
        if blamed and not genome.empty:
            note = (
                f"The critic found: {reasons}. So {', '.join(map(repr, dict.fromkeys(blamed)))} is"
                " left out."
            )
            composition = Composition(genome, (note,))
        else:
            misled = (*((rejected.source,) if prefers_failures(verdict) else ()), *_misled(request))
            scene, intents = self._scene(request, misled)
            generator = random.Random(f"{request.seed}/revision/{normalized(rejected.source)}")
            composition = compose(scene, intents, Dice(generator, generator.choice(THEMES[1:])))
            note = f"The critic found: {reasons}. So this is another draw."
            composition = Composition(composition.genome, (note, *composition.notes))
        return _proposal(
            request, composition, render(composition.genome, request.sentence, _names(request))
        )

    def _scene(
        self, request: DesignRequest, misled: tuple[str, ...] = ()
    ) -> tuple[Scene, tuple[Intent, ...]]:
        refused = [recover(source, _names(request)) for source in (*request.misleading, *misled)]
        return scene_of(request.description, request.sentence, refused)

    def _compose(
        self,
        request: DesignRequest,
        scene: Scene,
        intents: tuple[Intent, ...],
        generator: random.Random,
        first: bool,
    ) -> Composition:
        dice = Dice(generator, THEMES[-2])
        parents = [recover(parent.source, _names(request)) for parent in request.parents]
        parents = [genome for genome in parents if not genome.empty]
        if not parents or request.operator is Operator.FRESH:
            fresh_search = (
                first and not request.siblings and not request.failures and not request.parents
            )
            place = len(request.siblings) if first else 0
            return compose(
                scene, intents, Dice(generator, theme_for(place, generator, fresh_search))
            )
        match request.operator:
            case Operator.IMPROVE | Operator.REASON_OVER_PATH:
                return operators.improve(parents[0], request.parents[0].diagnosis, dice)
            case Operator.RETUNE_WEIGHTS | Operator.TUNE_WEIGHTS:
                return operators.retune(parents[0], dice)
            case Operator.CROSSOVER if len(parents) > 1:
                crossed = operators.crossover(parents[0], parents[1], dice)
                # equal parents, or a draw that took all from one, would repeat a reward
                return (
                    crossed
                    if first
                    else Composition(operators.retune(crossed.genome, dice).genome, crossed.notes)
                )
            case Operator.DIFFERENT:
                siblings = [recover(source, _names(request)) for source in request.siblings]
                return operators.different(scene, intents, dice, [*parents, *siblings])
            case _:
                return operators.mutate_structure(parents[0], scene, intents, dice)


def _misled(request: DesignRequest) -> tuple[str, ...]:
    """Earlier answers to this request that the trajectory gate refused."""
    return tuple(
        each.proposal.source for each in request.rejections if prefers_failures(each.verdict)
    )


def _names(request: DesignRequest) -> tuple[str, ...]:
    return tuple(variable.name for variable in request.description.variables)


def _known_sources(request: DesignRequest) -> list[str]:
    return [
        *request.siblings,
        *(parent.source for parent in request.parents),
        *(
            failure.source
            for failure in request.failures
            if failure.stage == "rejected" or failure.stage == "failed"
        ),
    ]


def _proposal(request: DesignRequest, composition: Composition, source: str) -> Proposal:
    reasoning = _reasoning(request, composition)
    return Proposal(
        source=source,
        reasoning=reasoning,
        operator=request.operator,
        parents=tuple(parent.id for parent in request.parents),
        designer=OfflineDesigner.name,
        prompt=_asked(request),
        reply=f"{reasoning}\n\n```python\n{source}```\n",
        cost=Cost(money=Decimal(0), prompt_tokens=0, completion_tokens=0),
    )


def _reasoning(request: DesignRequest, composition: Composition) -> str:
    """A paragraph in plain words."""
    opening = {
        Operator.FRESH: "Composed from the sentence and the variables.",
        Operator.IMPROVE: "Improved on {0}, as its diagnosis asks.",
        Operator.REASON_OVER_PATH: "Improved on {0}, as its diagnosis asks.",
        Operator.MUTATE_STRUCTURE: "Changed the structure of {0}.",
        Operator.RETUNE_WEIGHTS: "Kept the structure of {0} and changed its weights.",
        Operator.TUNE_WEIGHTS: "Kept the structure of {0} and changed its weights.",
        Operator.CROSSOVER: "Crossed {0} with {1}.",
        Operator.DIFFERENT: "Tried something else than {0}.",
    }[request.operator]
    ids = [parent.id for parent in request.parents] + ["nothing", "nothing"]
    return " ".join((opening.format(*ids), *composition.notes))


def _asked(request: DesignRequest) -> str:
    """The request as text, for the run's records."""
    description = request.description
    lines = [
        f"Task: {request.sentence}",
        f"Metric: {description.fitness_doc}",
        f"Operator: {request.operator.value}",
        "",
        "Variables:",
    ]
    for variable in description.public_variables():
        lines.append(
            f"  {variable.name} {list(variable.shape)} [{variable.unit}, {variable.frame}]:"
            f" {variable.doc}"
        )
    for parent in request.parents:
        fitness = "unknown" if parent.fitness is None else f"{parent.fitness:.4g}"
        lines += [
            "",
            f"Parent {parent.id}, fitness {fitness}:",
            *([parent.diagnosis.text] if parent.diagnosis is not None else []),
        ]
    for failure in request.failures:
        lines += ["", f"Came to nothing: {failure.id} ({failure.stage}): {failure.reason}"]
    return "\n".join(lines) + "\n"
