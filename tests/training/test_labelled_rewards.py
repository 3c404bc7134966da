"""Rewards with labels of captions: counts, values by hand, fits that find a planted labelling, and
trainings that go on bit for bit with the same labels at the same iterations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor
from training_environments import PointMass, saved

from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.label_records import CaptionLabel, LabelMethod, LearnedLabels
from eureka_agent.settings import TrainingSettings
from eureka_agent.task import Task
from eureka_agent.training.labels import MOST_CAPTIONS, LabelledReward, logistic_weights
from eureka_agent.training.learned import Lived
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, Trainer

METHODS: tuple[LabelMethod, ...] = ("retrieval", "classification", "ranking")
NOTHING = torch.zeros(0)


def lived(
    captions: Tensor, reached: Tensor | None = None, total: float = 0.0, ends: bool = True
) -> Lived:
    """Steps with these captions, (steps, num_envs). Each is an episode of its own, if it ends."""
    seen = captions.unsqueeze(-1).float() if reached is None else reached
    flat = torch.full(captions.shape, total)
    made = Lived(flat, {}, torch.full(captions.shape, ends), flat, flat, NOTHING, seen)
    made.captions = captions
    return made


def labels(**values: float | None) -> list[CaptionLabel]:
    return [CaptionLabel(code=int(name[1:]), value=value) for name, value in values.items()]


def wanted(reward: LabelledReward) -> dict[int, int]:
    return {each.code: each.count for each in reward.wanted(9)}


def test_retrieval_pays_a_caption_its_label_over_the_root_of_its_count() -> None:
    reward = LabelledReward("retrieval", str)
    captions = torch.tensor([[7, 7, 3], [7, 9, 7]])
    assert reward.wanted(9) == []  # nothing is met
    assert reward.pay(lived(captions)).tolist() == torch.zeros(2, 3).tolist()
    assert wanted(reward) == {7: 4, 9: 1, 3: 1}
    reward.give(labels(c7=1.0, c3=0.5, c4=1.0))
    paid = reward.pay(lived(captions))
    seven, three = 1 / math.sqrt(8), 0.5 / math.sqrt(2)
    expected = [[seven, seven, three], [seven, 0.0, seven]]
    assert paid.flatten().tolist() == pytest.approx([*expected[0], *expected[1]])
    assert wanted(reward) == {9: 2}
    # a caption that was labelled before it is met
    assert reward.pay(lived(torch.tensor([[4, 9, 9]]))).tolist() == [[1.0, 0.0, 0.0]]
    reward.give(labels(c9=None))
    assert reward.wanted(9) == []
    learned = reward.learned()
    assert (learned.captions, learned.labelled) == (4, 3)
    assert [*learned.best.items()] == [("7", 1.0), ("4", 1.0), ("3", 0.5)]


def test_a_caption_is_paid_once_an_episode() -> None:
    reward = LabelledReward("retrieval", str)
    reward.give(labels(c1=1.0, c2=1.0, c3=1.0))

    def paid(captions: list[list[int]], ends: list[list[int]]) -> list[list[float]]:
        given = lived(torch.tensor(captions))
        given.ended.copy_(torch.tensor(ends))
        roots = reward.pay(given) * reward.state()["counts"][given.captions - 1].sqrt()
        return roots.round(decimals=5).tolist()

    # two rows; the first one's episode ends after its third step, the second one's goes on
    assert paid([[1, 1], [1, 2], [2, 1], [1, 1]], [[0, 0], [0, 0], [1, 0], [0, 0]]) == [
        [1.0, 1.0],
        [0.0, 1.0],
        [1.0, 0.0],
        [1.0, 0.0],
    ]
    # both episodes go on: the first has had caption 1, the second 1 and 2; a code is added
    assert paid([[1, 3], [2, 2], [3, 3]], [[0, 0], [0, 1], [0, 0]]) == [
        [0.0, 1.0],
        [1.0, 0.0],
        [1.0, 1.0],
    ]


def test_the_total_is_divided_by_its_size_so_far() -> None:
    reward = LabelledReward("retrieval", str)
    captions = torch.zeros(2, 2, dtype=torch.int64)
    assert reward.pay(lived(captions, total=3.0)).unique().tolist() == [1.0]
    # squares of 9 and 1: the root of their mean is the root of 5
    assert reward.pay(lived(captions, total=1.0)).unique().tolist() == pytest.approx([5**-0.5])


def test_captions_beyond_the_bound_are_neither_counted_nor_paid() -> None:
    reward = LabelledReward("retrieval", str)
    captions = torch.arange(MOST_CAPTIONS + 5).view(1, -1)
    last = MOST_CAPTIONS + 4
    reward.give([*labels(c0=1.0), CaptionLabel(code=last, value=1.0)])
    paid = reward.pay(lived(captions, captions.unsqueeze(-1).float()))
    assert (paid[0, 0], paid[0, -1]) == (1.0, 0.0)
    assert reward.learned().captions == MOST_CAPTIONS


@pytest.mark.parametrize("method", ["classification", "ranking"])
def test_fits_find_a_planted_labelling_also_of_captions_without_a_label(
    method: LabelMethod,
) -> None:
    """Captions are the corners of a cube, those with the first coordinate are good."""
    generator, reward = torch.Generator().manual_seed(0), LabelledReward(method, str)
    corners = torch.tensor([[code >> bit & 1 for bit in range(4)] for code in range(16)])

    def steps() -> Lived:
        captions = torch.randint(16, (50, 8), generator=generator)
        return lived(captions, 10.0 + 3.0 * corners[captions].float())

    reward.pay(steps())
    labelled = [*range(12)]
    if method == "ranking":
        pairs = [(one, other) for one in labelled for other in labelled if one < other]
        apart = [int(corners[one, 0] - corners[other, 0]) for one, other in pairs]
        reward.give(
            CaptionLabel(code=one, other=other, value=0.5 + 0.5 * better)
            for (one, other), better in zip(pairs, apart, strict=True)
        )
    else:
        reward.give(CaptionLabel(code=each, value=float(corners[each, 0])) for each in labelled)
    given = steps()
    paid = reward.pay(given) * reward.state()["counts"][given.captions].sqrt()
    good = corners[given.captions, 0] == 1
    assert paid[good].min() > 0.7
    assert paid[~good].max() < 0.25
    learned = reward.learned()
    assert learned.labelled == 12
    assert all(int(each) & 1 for each in learned.best)
    assert not any(int(each) & 1 for each in learned.worst)


def test_the_logistic_fit_ends_where_its_gradient_is_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(40, 6, generator=generator, dtype=torch.float64) * 5.0
    targets = (torch.rand(40, generator=generator) > 0.5).double()
    weights = logistic_weights(rows, targets).requires_grad_()
    likelihood = torch.nn.functional.binary_cross_entropy_with_logits(
        rows @ weights, targets, reduction="sum"
    )
    (likelihood + 0.5 * weights.square().sum()).backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    assert weights.grad.abs().max() < 1e-6


# ── trainings ─────────────────────────────────────────────────────────────────────────────────────


class CaptionedPoint(PointMass):
    """A point whose captions are its quadrant, and whether it came nearer to the middle."""

    caption_variables = ("position", "previous_position")

    @classmethod
    def caption_codes(cls, values: Mapping[str, Tensor]) -> Tensor:
        now, before = values["position"], values["previous_position"]
        nearer = now.square().sum(-1) < before.square().sum(-1)
        return 4 * (now[:, 0] > 0.0) + 2 * (now[:, 1] > 0.0) + nearer.long()

    @classmethod
    def caption(cls, code: int) -> str:
        return f"quadrant {code // 2}, {'nearer' if code & 1 else 'farther'}"


Made = Callable[..., Trainer]


@pytest.fixture
def captioned(point_task: Task, small_settings: TrainingSettings) -> Made:
    def make(slots: int, environment: type[PointMass] = CaptionedPoint) -> Trainer:
        settings = small_settings.model_copy(update={"env_steps": 40 * 128, "kept_policies": 2})
        return Trainer(environment, point_task, settings, slots, reward_timeout=0.5)

    return make


def answers(method: LabelMethod) -> list[CaptionLabel]:
    """What comes nearer is good."""
    if method != "ranking":
        return [CaptionLabel(code=code, value=float(code & 1)) for code in range(6)]
    return [CaptionLabel(code=code, other=code + 1, value=0.0) for code in (0, 2, 4)]


def train(trainer: Trainer, job: str, method: LabelMethod, done: int = 0) -> MemberFinished:
    """Train to the end, with half of the labels after iteration 5 and the rest after 20."""
    given = answers(method)
    for iteration in range(done + 1, 1000):
        for event in trainer.iterate():
            assert not isinstance(event, MemberFailed), event
            if isinstance(event, MemberFinished) and event.job == job:
                return event
        if iteration in (5, 20):
            trainer.give_labels(job, given[:2] if iteration == 5 else given[2:])
    raise AssertionError("it did not finish")


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_and_a_pause_change_no_bit_of_it(
    captioned: Made,
    point_reward: Callable[..., RewardFunction],
    tmp_path: Path,
    method: LabelMethod,
) -> None:
    how = {"kind": "labels", "method": method}
    alone = captioned(1)
    alone.submit("it", point_reward(), 7, **how)
    reference = train(alone, "it", method)
    learned = reference.outcome.learned
    assert isinstance(learned, LearnedLabels)
    assert (learned.captions, learned.labelled) == (8, 6)
    if method == "retrieval":
        assert all(each.endswith("nearer") for each in [*learned.best][:3])

    crowd = captioned(3)
    crowd.submit("code", point_reward(), 1)
    crowd.submit("it", point_reward(), 7, **how)
    crowd.submit("other", point_reward(), 8, **how)
    crowd.give_labels("other", [CaptionLabel(code=3, value=0.0)])
    assert same(train(crowd, "it", method), reference)

    before, after = captioned(2), captioned(2)
    before.submit("it", point_reward(), 7, **how)
    for iteration in range(1, 18):
        before.iterate()
        if iteration == 5:
            before.give_labels("it", answers(method)[:2])
    snapshot = saved(before, "it", tmp_path / "snapshot")
    after.submit("other", point_reward(), 8, **how)
    after.submit("it", point_reward(), 7, snapshot, **how)
    after.give_labels("it", answers(method)[:2])  # all that is known, as a resumed one gets it
    assert same(train(after, "it", method, done=17), reference)


def same(one: MemberFinished, other: MemberFinished) -> bool:
    """Equal to the bit, but for the seconds."""
    kept = one.policies.keys() == other.policies.keys() and all(
        torch.equal(tensor, other.policies[index][name])
        for index, policy in one.policies.items()
        for name, tensor in policy.items()
    )
    drop = {"seconds"}
    return kept and one.outcome.model_dump(exclude=drop) == other.outcome.model_dump(exclude=drop)


def test_labels_are_learned_from_where_the_total_pays_nothing(
    captioned: Made, point_reward: Callable[..., RewardFunction]
) -> None:
    source = "def compute_reward(speed):\n    return 0.0 * speed, {'speed': speed}\n"
    trainer = captioned(1)
    trainer.submit("it", point_reward(source), 7, kind="labels")
    trainer.give_labels("it", answers("retrieval"))
    rewards = [each.reward for each in train(trainer, "it", "retrieval").outcome.checkpoints]
    assert all(each > 0.0 for each in rewards)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda position: position[:, 0], "float32 of shape (128,)"),
        (lambda position: torch.full((len(position),), -1), "-1 to -1, expected"),
        (lambda position: torch.zeros(3, dtype=torch.int64), "int64 of shape (3,)"),
        (lambda position: torch.zeros(0), "float32 of shape (0,), expected"),
        (lambda position: 3, "gave int, expected"),
    ],
)
def test_codes_that_are_none_blame_the_environment(
    captioned: Made,
    point_reward: Callable[..., RewardFunction],
    given: Callable[[Tensor], Tensor],
    says: str,
) -> None:
    class Faulty(CaptionedPoint):
        @classmethod
        def caption_codes(cls, values: Mapping[str, Tensor]) -> Tensor:
            return given(values["position"])

    trainer = captioned(1, Faulty)
    trainer.submit("it", point_reward(), 7, kind="labels")
    with pytest.raises(EnvironmentFaultError) as caught:
        trainer.iterate()
    assert says in caught.value.message
    assert "caption_codes" in caught.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (3, "gave int, expected a text of 1 to 200"),
        ("", "gave 0 characters"),
        (" ", "gave 1 characters"),
        ("far " * 51, "gave 204 characters, 'far far"),
        ("far\nnear", "printable characters"),
    ],
)
def test_captions_that_are_no_line_of_text_blame_the_environment(
    captioned: Made, point_reward: Callable[..., RewardFunction], text: object, says: str
) -> None:
    class Faulty(CaptionedPoint):
        @classmethod
        def caption(cls, code: int) -> str:
            return text  # type: ignore[return-value]

    trainer = captioned(1, Faulty)
    trainer.submit("it", point_reward(), 7, kind="labels")
    trainer.iterate()
    with pytest.raises(EnvironmentFaultError) as caught:
        trainer.wanted_labels(9)
    assert says in caught.value.message
    assert "caption(" in caught.value.message
    # where nothing asks before its end, with a label by then
    trainer.give_labels("it", [CaptionLabel(code=code, value=1.0) for code in range(8)])
    with pytest.raises(EnvironmentFaultError):
        train(trainer, "it", "retrieval")
