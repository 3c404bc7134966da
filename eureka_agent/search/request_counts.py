"""Requests of a search to models, in advance: the first request of each role is made and counted,
and no model is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from eureka_agent.analysis.diagnose import Analyst
from eureka_agent.analysis.judge import ModelJudge
from eureka_agent.analysis.parameter_prior import prior_of, values_to_score
from eureka_agent.critic.review import Reviewer
from eureka_agent.designer.distribution_writer import DistributionRequest, DistributionWriter
from eureka_agent.designer.fitness_writer import opening as opening_of_fitness
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import LanguageModelDesigner
from eureka_agent.llm.batches import LIVE_ROLES
from eureka_agent.llm.budget import CHARACTERS_PER_TOKEN, IMAGE_TOKENS
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, LanguageModel, Role
from eureka_agent.records import Cost, Diagnosis, Message, Operator, TaskDescription
from eureka_agent.report.plan import RoleEstimate
from eureka_agent.rewards import CodeReward
from eureka_agent.search.models import Models
from eureka_agent.search.seeing import COMPARISONS
from eureka_agent.settings import SearchSettings, strategy_name

LATER_CHARACTERS = 13_000
"""Characters of parents, curves and failures that a designer's prompt has after the first
generation: 12,600 on the ant and 14,100 on the quadcopter in 60 requests of recorded searches with
a language model, 10,000 on cartpole with the offline designer (benchmarks/LOG.md)."""
SOURCE_CHARACTERS = 1_500
"""Characters of a reward: 850 of the recorded cartpole search, 1,900 by the offline designer."""
DIAGNOSIS_CHARACTERS = 2_500
"""Characters of a diagnosis (cartpole, offline designer)."""
REPLY_TOKENS = {
    Role.DESIGNER: 570,  # 2,300 characters in 100 replies of recorded searches
    Role.REVIEWER: 250,  # three sentences in JSON
    Role.ANALYST: 425,  # the 250 words that it is asked for
    Role.JUDGE: 50,
    Role.METRIC: 800,  # a fitness is a reward with a page of words
    Role.RANDOMISER: 800,  # four distributions of six parameters in JSON
}
"""Tokens of a usual reply. Hidden reasoning, which models count too, is not in it."""
DOUBTED_SHARE = 0.125
"""Part of the proposals that the critic doubts: two of sixteen (docs/field-trial.md)."""


class _Counted:
    """A gateway that asks nobody and counts the tokens of a prompt."""

    def __init__(self) -> None:
        self.tokens = 0

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        """Count a request. The reply says nothing."""
        self.tokens = _tokens(request.messages)
        return Message(role=request.role.value, model=model.name, request="", reply="…")


def _tokens(messages: Sequence[ChatMessage]) -> int:
    characters = sum(len(message.content) for message in messages)
    pictures = sum(len(message.images) for message in messages)
    return characters // CHARACTERS_PER_TOKEN + pictures * IMAGE_TOKENS


async def count_requests(
    models: Models, settings: SearchSettings, description: TaskDescription
) -> list[RoleEstimate]:
    """Requests by role and model, for all proposals of the search, without revisions and without
    discounts for repeated prompts."""
    found = []
    sizes = await _prompt_sizes(models, settings, description)
    for role, model, requests, size in _asked(models, settings, sizes):
        reply = requests * min(REPLY_TOKENS[role], models.reply_tokens or REPLY_TOKENS[role])
        prompt, price = requests * size, models.prices.get(model.name)
        batched = settings.llm_batch and role not in LIVE_ROLES
        cost = Cost(prompt_tokens=prompt, completion_tokens=reply, batched=batched)
        money = None if price is None else price.money(cost)
        if requests:
            found.append(RoleEstimate(role.value, model.name, requests, prompt, reply, money))
    return found


def _asked(
    models: Models, settings: SearchSettings, sizes: dict[Role, int]
) -> Iterator[tuple[Role, LanguageModel, int, int]]:
    """Role, model, number of requests and tokens of each prompt."""
    first, later = settings.samples, settings.samples * (settings.iterations - 1)
    drafted = first + later * settings.drafts_of_each
    grown = (
        0 if strategy_name(settings) == "best-of-n" else LATER_CHARACTERS // CHARACTERS_PER_TOKEN
    )
    prompt = sizes[Role.DESIGNER] + grown * later * settings.drafts_of_each // drafted
    if settings.fitness == "written":
        yield Role.METRIC, models.designers[0], 1, sizes[Role.METRIC]
    # models share the proposals by their success, which nobody knows: equally
    shares = len(models.designers)
    for place, designer in enumerate(models.designers):
        requests = (drafted + place) // shares
        yield Role.DESIGNER, designer, requests, prompt
    if models.reviewer is not None:
        share = 1.0 if models.review_all else DOUBTED_SHARE
        reviews = math.ceil(share * (first + later))
        yield Role.REVIEWER, models.reviewer, reviews, sizes[Role.REVIEWER]
    if models.analyst is not None:
        analyses = (settings.iterations - 1) * _parents_analysed(settings)
        yield Role.ANALYST, models.analyst, analyses, sizes[Role.ANALYST]
    if models.judge is not None:
        comparisons = COMPARISONS * (first + later)
        yield Role.JUDGE, models.judge, comparisons + 1, sizes[Role.JUDGE]  # one asks if it sees
    if settings.randomise:
        yield Role.RANDOMISER, models.designers[0], 1, sizes[Role.RANDOMISER]


def _parents_analysed(settings: SearchSettings) -> int:
    """Different first parents of a generation, whose trainings the analyst reads."""
    match strategy_name(settings):
        case "best-of-n":
            return 0
        case "islands":  # every second choice takes an island's best
            return max(1, settings.samples // 2)
        case "tree":
            return settings.samples
    return 1


async def _prompt_sizes(
    models: Models, settings: SearchSettings, description: TaskDescription
) -> dict[Role, int]:
    """Tokens of the first prompt of each role that is asked."""
    sentence = settings.sentence or description.sentence
    reward = CodeReward(source="x" * SOURCE_CHARACTERS, author="")
    counted, sizes = _Counted(), dict[Role, int]()
    task = (description, sentence, settings)
    request = DesignRequest(
        description=description,
        sentence=sentence,
        operator=Operator.FRESH,
        parents=(),
        failures=(),
        seed=settings.seed,
        settings=settings,
    )
    designer = ConfiguredModel(models.designers[0], counted)
    await LanguageModelDesigner([designer]).propose(request)
    sizes[Role.DESIGNER] = counted.tokens
    if models.reviewer is not None:
        await Reviewer(ConfiguredModel(models.reviewer, counted), *task).review(reward, "")
        sizes[Role.REVIEWER] = counted.tokens
    if models.analyst is not None:
        analyst = Analyst(ConfiguredModel(models.analyst, counted), *task)
        await analyst.analyse("", reward, _DIAGNOSIS)
        sizes[Role.ANALYST] = counted.tokens + (2 * IMAGE_TOKENS if settings.analyst_sees else 0)
    if models.judge is not None:
        judge = ConfiguredModel(models.judge, counted)
        await ModelJudge(judge, description, sentence).compare(b"", b"")
        sizes[Role.JUDGE] = counted.tokens
    if settings.randomise:
        writer = DistributionWriter(designer, *task)
        parameters = description.parameters  # with made-up scores
        scores: dict[tuple[str, float], float | None] = {
            (each.name, value): 0.1234 for each in parameters for value in values_to_score(each)
        }
        prior = prior_of(parameters, 1.234, 0.1234, scores, settings.scoring_episodes)
        asked = DistributionRequest("", reward, prior, (), settings.randomise)
        sizes[Role.RANDOMISER] = _tokens(writer.opening(asked))
    if settings.fitness == "written":
        sizes[Role.METRIC] = _tokens(opening_of_fitness(description, sentence))
    return sizes


_DIAGNOSIS = Diagnosis(
    fitness=0.0,
    fitness_values=(),
    episode_length_values=(),
    components=(),
    findings=(),
    text="x" * DIAGNOSIS_CHARACTERS,
)
