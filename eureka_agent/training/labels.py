"""Labelled rewards: the designer's total, and what a model said of the states that are reached.

A model labels captions of states while a training runs (ONI, Zheng et al., arXiv:2410.23022). Of
its labels a step is paid a value of 0 to 1, divided by the root of the number of steps that had its
caption in this training, so that what is new pays most; and a caption is paid once an episode, for
a key that is dropped and picked up again would be worth more than a door. The value is the
caption's own label (retrieval), a logistic regression over observations on the labels
(classification), or on comparisons of captions (ranking: Bradley and Terry), fitted anew when there
are more labels. A training never waits for labels. It is determined by its seed, and by the
iterations between which labels come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from eureka_agent.label_records import CaptionLabel, CaptionMet, LabelMethod, LearnedLabels
from eureka_agent.training.learned import LearnedPay, Lived, sizes_of

WEIGHT = 1.0
"""Pay of a step with a new caption of value 1, beside a total of root mean square 1."""
MOST_CAPTIONS = 4096
"""Captions that a training counts; further ones are paid nothing."""
SHOWN = 5
"""Captions of the highest and of the lowest values that are told."""
_RIDGE = 1.0
_LARGEST_INPUT = 5.0
_NEWTON_STEPS, _LONGEST_STEP, _SHORTEST_STEP = 12, 10.0, 1e-9
_GIVEN = "given"


def logistic_weights(rows: Tensor, targets: Tensor) -> Tensor:
    """Weights w of sigmoid(rows @ w) closest to targets of 0 to 1, with a ridge, by Newton's steps.
    Shapes: (rows, columns), (rows,); float64."""
    ridge = _RIDGE * torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    weights = torch.zeros_like(rows[0])
    for _ in range(_NEWTON_STEPS):
        found = (rows @ weights).sigmoid()
        gradient = rows.T @ (found - targets) + ridge @ weights
        curvature = rows.T @ (rows * (found * (1.0 - found)).unsqueeze(-1)) + ridge
        step = torch.linalg.solve(curvature, gradient)
        weights = weights - step * (_LONGEST_STEP / step.norm()).clamp(max=1.0)
        if step.norm() < _SHORTEST_STEP:
            break
    return weights


class LabelledReward(LearnedPay):
    """Pay of the total and of labels."""

    kept = ("codes", "counts", "values", "mean", "sizes", "weights", "size")

    def __init__(self, method: LabelMethod, caption: Callable[[int], str]) -> None:
        """`caption`: gives the words of a code."""
        super().__init__()
        self._method, self._caption = method, caption
        self._answers: dict[tuple[int, int], float] = {}
        """Value by code and other code (-1 for a label); NaN where no answer is to be had."""
        self._checked = 0, 0
        """Numbers of answers and captions at the last look for new ones."""

    def give(self, labels: Iterable[CaptionLabel]) -> None:
        """Take over labels, which count from the next iteration on."""
        for each in labels:
            other = -1 if each.other is None else each.other
            self._answers[each.code, other] = math.nan if each.value is None else each.value

    def wanted(self, most: int) -> list[CaptionMet]:
        """Captions without an answer, the most met first."""
        if not self._state:
            return []
        answered = {code for pair in self._answers for code in pair}
        met = zip(self._state["counts"].tolist(), self._state["codes"].tolist(), strict=True)
        left = sorted((each for each in met if each[1] not in answered), reverse=True)[:most]
        return [CaptionMet(code=code, text=self._caption(code), count=n) for n, code in left]

    def pay(self, lived: Lived) -> Tensor:
        if not self._state:
            self._begin(lived)
        state = self._state
        state["squares"] += lived.total.square().mean().double()
        state["iterations"] += 1.0
        size = (state["squares"] / state["iterations"]).sqrt().float()
        state["size"].copy_(torch.where(size > 0.0, size, 1.0))
        inputs = self._inputs(lived.reached.flatten(0, 1))
        places, known = self._count(lived.captions.flatten(), inputs)
        first = self._first(places.view_as(lived.ended), known.view_as(lived.ended), lived.ended)
        self._fit()
        if self._method == "retrieval":
            value = state["values"][places]
        else:
            value = self._value(inputs @ state["weights"]) * (state["fitted"] > 0.0)
        paid = value * first.flatten() / state["counts"][places].clamp(min=1.0).sqrt()
        return lived.total / state["size"] + WEIGHT * paid.view_as(lived.total)

    def learned(self) -> LearnedLabels:
        state = self._state
        codes, counts = state["codes"].tolist(), state["counts"].tolist()
        answered = {
            code for pair, value in self._answers.items() if not math.isnan(value) for code in pair
        }
        # of equal values the one that was met most
        rows = sorted(zip(state["values"].tolist(), counts, codes, strict=True), reverse=True)
        order = [(self._caption(code), value) for value, _, code in rows if code in answered]
        return LearnedLabels(
            method=self._method,
            captions=len(codes),
            labelled=len(order),
            best=dict(order[:SHOWN]),
            worst=dict(order[SHOWN:][-SHOWN:]),
        )

    def state(self) -> dict[str, Tensor]:
        answers = [(*pair, value) for pair, value in sorted(self._answers.items())]
        table = torch.tensor(answers, dtype=torch.float64).view(-1, 3)
        return {**self._state, _GIVEN: table}

    def load(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        rows = {(int(code), int(other)): value for code, other, value in state[_GIVEN].tolist()}
        self._answers = rows | self._answers
        super().load({name: each for name, each in state.items() if name != _GIVEN}, device)

    def _begin(self, lived: Lived) -> None:
        """Empty state. Inputs are centred and scaled by the first iteration."""
        rows = lived.reached.flatten(0, 1)
        mean, device = rows.mean(dim=0), rows.device
        self._state = {"mean": mean, "sizes": sizes_of(rows - mean)}
        columns = self._inputs(rows).shape[1]
        self._state |= {
            "codes": torch.zeros(0, dtype=torch.int64, device=device),
            "counts": torch.zeros(0, device=device),
            "sums": torch.zeros(0, columns, device=device),
            "values": torch.zeros(0, device=device),
            "met": torch.zeros(lived.ended.shape[1], 0, dtype=torch.bool, device=device),
            "weights": torch.zeros(columns, device=device),
            "fitted": torch.zeros((), device=device),
            "squares": torch.zeros((), dtype=torch.float64, device=device),
            "iterations": torch.zeros((), dtype=torch.float64, device=device),
            "size": torch.ones((), device=device),
        }

    def _inputs(self, observations: Tensor) -> Tensor:
        """Scaled observations with a last column of ones, (rows, columns); no columns for
        retrieval."""
        if self._method == "retrieval":
            return observations[:, :0]
        scaled = (observations - self._state["mean"]) / self._state["sizes"]
        scaled = scaled.clamp(-_LARGEST_INPUT, _LARGEST_INPUT)
        return torch.cat([scaled, torch.ones_like(scaled[:, :1])], dim=1)

    def _count(self, captions: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Count the captions of an iteration; the place of each step's and whether it is counted,
        (rows,) each."""
        state = self._state
        found, place_of, times = captions.unique(return_inverse=True, return_counts=True)
        new = found[~torch.isin(found, state["codes"])][: MOST_CAPTIONS - len(state["codes"])]
        if len(new):
            codes, order = torch.cat([state["codes"], new]).sort()
            state["codes"] = codes
            for name in ("counts", "sums", "values"):
                old = state[name]
                state[name] = torch.cat([old, old.new_zeros(len(new), *old.shape[1:])])[order]
            met = state["met"]
            met = torch.cat([met, met.new_zeros(len(met), len(new))], dim=1)
            state["met"] = met[:, order].contiguous()
        places = torch.searchsorted(state["codes"], found)
        places = places.clamp(max=len(state["codes"]) - 1)
        known = state["codes"][places] == found
        state["counts"].index_add_(0, places, (times * known).to(state["counts"]))
        sums = inputs.new_zeros(len(found), inputs.shape[1]).index_add_(0, place_of, inputs)
        state["sums"].index_add_(0, places, sums * known.unsqueeze(-1))
        return places[place_of], known[place_of]

    def _first(self, places: Tensor, known: Tensor, ended: Tensor) -> Tensor:
        """Steps that are the first ones with their captions in their episodes. Shapes: (steps,
        num_envs)."""
        met, rows = self._state["met"], torch.arange(ended.shape[1], device=ended.device)
        flat, at = met.view(-1), rows * met.shape[1] + places
        before, all_known = torch.empty_like(known), bool(known.all())
        for step, some_end in enumerate(ended.any(dim=1).tolist()):
            torch.index_select(flat, 0, at[step], out=before[step])
            flat.index_fill_(0, at[step] if all_known else at[step][known[step]], True)
            if some_end:
                met &= ~ended[step].unsqueeze(-1)
        return known & ~before

    def _fit(self) -> None:
        """Take over answers that have come, or whose captions were met first, since the last
        fit."""
        state = self._state
        met = len(self._answers), len(state["codes"])
        if met == self._checked:
            return
        self._checked = met
        place_of = {code: place for place, code in enumerate(state["codes"].tolist())}
        compares = self._method == "ranking"
        answers = [
            (place_of[code], place_of.get(other, -1), value)
            for (code, other), value in sorted(self._answers.items())
            if code in place_of and (other in place_of) is compares and not math.isnan(value)
        ]
        if len(answers) == int(state["fitted"]):
            return
        state["fitted"].fill_(len(answers))
        table = torch.tensor(answers, dtype=torch.float64, device=state["sizes"].device)
        first, targets = table[:, 0].long(), table[:, 2]
        if self._method == "retrieval":
            state["values"][first] = targets.float()
            return
        means = state["sums"].double() / state["counts"].double().unsqueeze(-1)
        rows = means[first]
        if compares:
            rows = rows - means[table[:, 1].long()]
        weights = logistic_weights(rows, targets)
        if compares:  # the mean of what was compared is worth nothing
            ends = table[:, :2].long().unique()
            weights[-1] = -(means[ends] @ weights).mean()
        state["weights"].copy_(weights)
        state["values"].copy_(self._value(means @ weights))

    def _value(self, scores: Tensor) -> Tensor:
        """Values of 0 to 1. A ranking's are of the chance to be better than the mean, from a half
        on."""
        chance = scores.sigmoid()
        return chance if self._method == "classification" else (2.0 * chance - 1.0).clamp(min=0.0)
