"""What can be read off a training's curves: one small pure function per finding, with its
thresholds and their reasons."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eureka_agent.analysis.curves import MIN_CHECKPOINTS, Evidence, noise, rank_correlation
from eureka_agent.records import DiagnosisFinding

DEAD_SPREAD = 0.01
"""A component that varies by less than 1 % of its own size, or of all components together, steers
nothing: it is below the noise of a return."""
DOMINANT_SHARE = 0.85
"""Above this the other components together weigh less than a sixth: a policy can ignore them."""
HACKING_CORRELATION = -0.5
"""Rank correlation of reward and fitness from the best checkpoint on; −0.5 over five checkpoints is
a clear opposite trend."""
FALL_SHARE = 0.2
"""A fall of the fitness counts from a fifth of all that it ever moved."""
NOISE_FACTOR = 2.0
"""Differences of fitness count from two standard deviations of its noise."""
EARLY_SHARE = 0.5
"""More than half of the episodes end by failure."""
EARLY_LENGTH = 0.8
"""… and last less than four fifths of what they could: failing in the last moment is no early
end."""
SATURATION = 0.5
"""Half of all action entries at their bounds: the policy is a switch, and its gradient is gone
there."""
SATURATION_EXCESS = 0.2
"""… and a fifth more of them than the exploration noise alone would put there."""
DEVIATION_FACTOR = 1.5
"""Factor by which a deviation may miss what failures explain: not every episode that failed is
counted."""
ROUNDING = 1e-6
"""Part of its size by which a constant may seem to change: means of single-precision numbers."""
NO_LEARNING_NOISE = 3.0
"""The best of ten equal checkpoints is 1.5 standard deviations above the first on average, seldom
3."""
LATE_SHARE = 0.2
"""Last part of a training that counts as its end. A rise as steep as it ever was brings the same
part of the gain there."""
COLLAPSE_SHARE = 0.4
"""The last checkpoint has lost two fifths or more of what the best one had gained."""
STD_LOST = 0.2
"""Action noise below a fifth of its first value after a third of the training: what is not found by
then is not found."""
RARE = 3.0
"""Deviation of a component, in its mean sizes, from which it is paid seldom and much: s in a share
p of the steps has a mean of ps and a deviation of about s√p, so this is a ninth of the steps or
fewer."""


def dead_components(evidence: Evidence) -> list[DiagnosisFinding]:
    """Components that never move, by themselves or next to the others; not those that do no harm.

    A constant pays for every further step, or for nothing; a small price or a seldom one may be all
    that it is meant to be.
    """
    found = []
    points = evidence.points
    if not points:
        return []
    sizes = {
        name: _mean([point.component_magnitudes.get(name, 0.0) for point in points])
        for name in evidence.component_names()
    }
    whole = sum(sizes.values())
    for name, size in sizes.items():
        means = [point.components.get(name, 0.0) for point in points]
        deviation = _mean([point.component_deviations.get(name, 0.0) for point in points])
        spread = max(deviation, max(means) - min(means))
        seldom = (
            deviation > RARE * size and deviation * deviation > whole * size
        )  # the size when it is paid is deviation² / mean size
        if size == 0.0:
            message = f"Component '{name}' is 0 in every step"
            advice = (
                "if it is to be paid for something, that never happens: lead there; a price for"
                " what never happens does no harm"
            )
        elif _is_constant(spread, size) or seldom or _stops_at_failures(evidence, name, size):
            continue
        elif spread <= DEAD_SPREAD * size:
            message = f"Component '{name}' is {np.mean(means):.3g} in every step and hardly changes"
            advice = (
                "give it another scale, temperature or form, so that it tells better states from"
                " worse ones"
            )
        elif spread <= DEAD_SPREAD * whole and _mean(means) > 0:
            message = (
                f"Component '{name}' changes by {spread:.2g} where all components together are"
                f" {whole:.3g}"
            )
            advice = "raise its weight, if it is to matter"
        else:
            continue
        found.append(
            DiagnosisFinding(
                code="dead-component",
                message=f"{message}.",
                advice=advice,
                component=name,
                value=spread,
            )
        )
    return found


def _stops_at_failures(evidence: Evidence, name: str, size: float) -> bool:
    """Paid in every step but the failing ones: s, in all but a share p of the steps, has a
    deviation of about s√p."""
    failures = sum(
        count
        for point in evidence.points
        for cause, count in point.terminations.items()
        if cause not in evidence.good_ends()
    )
    share = failures / max(1, evidence.points[-1].env_steps)
    deviations = [point.component_deviations.get(name, 0.0) for point in evidence.points]
    deviation = math.sqrt(_mean([each * each for each in deviations]))
    expected = size * math.sqrt(share)
    return expected / DEVIATION_FACTOR <= deviation <= expected * DEVIATION_FACTOR


def _is_constant(spread: float, size: float) -> bool:
    """The same number in every step, but for rounding: worth what the length of an episode is."""
    return spread <= ROUNDING * size


def dominant_component(evidence: Evidence) -> list[DiagnosisFinding]:
    """One component that outweighs all others, unless it is the task, or the same in every step."""
    shares = evidence.shares()
    if len(shares) < 2:
        return []
    name, share = max(shares.items(), key=lambda item: item[1])
    points = evidence.last_third()
    size = _mean([point.component_magnitudes.get(name, 0.0) for point in points])
    deviation = _mean([point.component_deviations.get(name, 0.0) for point in points])
    steady = _is_constant(deviation, size) or _stops_at_failures(evidence, name, size)
    if share <= DOMINANT_SHARE or steady or evidence.follows_fitness(name):
        return []
    return [
        DiagnosisFinding(
            code="dominant-component",
            message=(
                f"Component '{name}' makes up {share:.0%} of the reward's size and does not rise"
                f" with the fitness; the other {len(shares) - 1} hardly count."
            ),
            advice=f"scale '{name}' down, unless it alone is the task",
            component=name,
            value=share,
        )
    ]


def reward_hacking(evidence: Evidence) -> list[DiagnosisFinding]:
    """From its best checkpoint on the fitness falls, beyond its noise, while the reward rises."""
    known = [each for each in evidence.checkpoints if each.fitness is not None]
    fitness = evidence.fitness()
    if len(known) < MIN_CHECKPOINTS:
        return []
    best = int(fitness.argmax())
    rewards = np.array([each.reward for each in known])
    fall = float(fitness[best] - fitness[-1])
    rises = rewards[-1] > rewards[best]
    correlation = rank_correlation(rewards[best:], fitness[best:])
    if (
        not rises
        or fall <= max(NOISE_FACTOR * noise(fitness), FALL_SHARE * float(np.ptp(fitness)))
        or correlation > HACKING_CORRELATION
    ):
        return []
    growth = {
        name: known[-1].components.get(name, 0.0) - known[best].components.get(name, 0.0)
        for name in evidence.component_names()
        if not evidence.follows_fitness(name)  # the task itself is not to be cut
    }
    component = max(growth, key=lambda name: growth[name], default=None)
    blame = (
        f"; '{component}' grew most, by {growth[component]:.3g} a step"
        if component is not None
        else ""
    )
    return [
        DiagnosisFinding(
            code="reward-hacking",
            message=(
                f"Fitness with exploration noise fell from {fitness[best]:.4g} to {fitness[-1]:.4g}"
                f" while the reward rose from {rewards[best]:.3g} to {rewards[-1]:.3g} a"
                f" step{blame}."
            ),
            advice=(
                f"the policy is paid for something else than the task: cut or reshape {component!r}"
                if component
                else "pay for the task itself"
            ),
            component=component,
            value=correlation,
        )
    ]


def early_termination(evidence: Evidence) -> list[DiagnosisFinding]:
    """Most episodes end by failure, well before their time: those without exploration noise, where
    they are known."""
    longest = evidence.description.max_episode_length
    if evidence.evaluation is not None and evidence.evaluation.episodes:
        evaluated = evidence.evaluation.episodes
        ended = Counter(episode.ended_by for episode in evaluated)
        length = _mean([episode.length for episode in evaluated])
        which = f"{len(evaluated)} episodes without exploration noise"
    else:
        points = evidence.last_third()
        ended = sum((Counter(point.terminations) for point in points), Counter[str]())
        lengths = [
            (point.episode_length, point.episodes)
            for point in points
            if point.episode_length is not None and point.episodes
        ]
        if not lengths:
            return []
        length = sum(value * count for value, count in lengths) / sum(count for _, count in lengths)
        which = "the episodes of the training's last third, with exploration noise,"
    episodes = sum(ended.values())
    failures = {
        cause: count
        for cause, count in ended.items()
        if cause not in evidence.good_ends() and count
    }
    share = sum(failures.values()) / max(1, episodes)
    if share <= EARLY_SHARE or length >= EARLY_LENGTH * longest:
        return []
    cause, count = min(failures.items(), key=lambda item: (-item[1], item[0]))
    return [
        DiagnosisFinding(
            code="early-termination",
            message=(
                f"{share:.0%} of {which} ended early, most often by {cause} ({count / episodes:.0%}"
                f" of all), after {length:.0f} of {longest} steps on average."
            ),
            advice=f"pay for staying alive and for what keeps {cause} away",
            cause=cause,
            value=share,
        )
    ]


def saturated_actions(evidence: Evidence) -> list[DiagnosisFinding]:
    """Actions at their bounds far more often than exploration noise explains, in a training that
    does not get better by it."""
    points = evidence.last_third()
    if not points or evidence.learns():
        return []
    shares = [point.action_saturation for point in points if point.action_saturation is not None]
    deviations = [point.action_std for point in points if point.action_std is not None]
    if not shares or not deviations:  # choices have no bounds
        return []
    saturation, std = float(np.mean(shares)), float(np.mean(deviations))
    # chance that Gaussian noise of this deviation around 0 lies outside ±0.99
    by_noise = math.erfc(0.99 / (std * math.sqrt(2.0))) if std > 0 else 0.0
    if saturation <= max(SATURATION, by_noise + SATURATION_EXCESS):
        return []
    return [
        DiagnosisFinding(
            code="saturated-actions",
            message=(
                f"{saturation:.0%} of the actions are at their bounds (noise alone would put"
                f" {by_noise:.0%} there), and fitness does not rise."
            ),
            advice=(
                "a term that tells small actions from large ones near the goal, or a price on jumps"
                " of the actions"
            ),
            value=saturation,
        )
    ]


def not_a_number(evidence: Evidence) -> list[DiagnosisFinding]:
    """The training broke off because the reward was no finite number."""
    if not re.search(
        r"not.a.number|\bnan\b|\binf(inite|inity)?\b|not finite", evidence.failure, re.IGNORECASE
    ):
        return []
    component = next(
        (
            name
            for name in evidence.component_names()
            if re.search(rf"['\"`]{re.escape(name)}['\"`]", evidence.failure)
        ),
        None,
    )
    return [
        DiagnosisFinding(
            code="not-a-number",
            message=f"The reward was no finite number: {evidence.failure}.",
            advice=(
                "guard divisions, roots, logarithms and exponentials; clamp what physics does not"
                " bound"
            ),
            component=component,
        )
    ]


def no_learning(evidence: Evidence) -> list[DiagnosisFinding]:
    """The fitness never leaves the noise around its first value."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS:
        return []
    solved = evidence.description.success_fitness
    gain = float(fitness.max() - fitness[0])
    if gain > NO_LEARNING_NOISE * noise(fitness) or (
        solved is not None and fitness.max() >= solved
    ):
        return []
    return [
        DiagnosisFinding(
            code="no-learning",
            message=(
                f"Fitness with exploration noise began at {fitness[0]:.4g} and was never better"
                f" than {fitness.max():.4g}, which is within its noise of {noise(fitness):.2g}."
            ),
            advice=(
                "the reward gives no way forward: wider temperatures, or a term that changes with"
                " every small step towards the task"
            ),
            value=gain,
        )
    ]


def still_improving(evidence: Evidence) -> list[DiagnosisFinding]:
    """The last fifth of a whole training brought a fifth or more of what it gained: the rise had
    not slackened."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS or not evidence.ended or evidence.failure:
        return []
    places = np.arange(len(fitness), dtype=np.float64)
    late = max(1, round(LATE_SHARE * len(fitness)))
    before, rise = float(fitness[-1 - late]), float(fitness[-1] - fitness[-1 - late])
    gained = float(fitness[-1] - fitness.min())
    about_trend = noise(fitness - np.polyval(np.polyfit(places, fitness, 1), places))
    if rise <= NOISE_FACTOR * about_trend or rise < LATE_SHARE * gained:
        return []
    return [
        DiagnosisFinding(
            code="still-improving",
            message=(
                f"Fitness with exploration noise rose from {before:.4g} to {fitness[-1]:.4g} in the"
                f" last {late / len(fitness):.0%} of the training, which is {rise / gained:.0%} of"
                " all that it gained."
            ),
            advice=(
                "the rise began late: pay for the first clumsy steps towards the task too, by a"
                " wider scale or by progress"
            ),
            value=rise,
        )
    ]


def collapsed(evidence: Evidence) -> list[DiagnosisFinding]:
    """The last checkpoint is far below the best one, and the reward fell with it."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS or reward_hacking(evidence):
        return []
    fall = float(fitness.max() - fitness[-1])
    gained = float(fitness.max() - fitness.min())
    if fall <= max(COLLAPSE_SHARE * gained, NOISE_FACTOR * noise(fitness)):
        return []
    return [
        DiagnosisFinding(
            code="collapsed",
            message=(
                f"Fitness with exploration noise reached {fitness.max():.4g} and ended at"
                f" {fitness[-1]:.4g}."
            ),
            advice="a smaller or smoother reward keeps the learning stable",
            value=fall,
        )
    ]


def exploration_lost(evidence: Evidence) -> list[DiagnosisFinding]:
    """The action noise, or the entropy of choices, shrank to almost nothing within the first third,
    and the policy is none the better for it."""
    points = evidence.points
    if len(points) < MIN_CHECKPOINTS or evidence.learns():
        return []
    chosen = points[0].action_std is None
    first, third = (
        point.entropy if point.action_std is None else point.action_std
        for point in (points[0], points[len(points) // 3])
    )
    if first <= 0 or third > STD_LOST * first:
        return []
    return [
        DiagnosisFinding(
            code="exploration-lost",
            message=(
                f"The {'entropy of the choices' if chosen else 'action noise'} fell from"
                f" {first:.2g} to {third:.2g}{' nats' * chosen} within a third of the training."
            ),
            advice=(
                "one choice pays at once, whatever the state: pay for what only several together"
                " reach"
                if chosen
                else "penalties on effort or motion are too strong, so that doing nothing pays: cut"
                " them"
            ),
            value=third / first,
        )
    ]


FINDINGS: tuple[Callable[[Evidence], list[DiagnosisFinding]], ...] = (
    not_a_number,
    reward_hacking,
    collapsed,
    early_termination,
    no_learning,
    exploration_lost,
    saturated_actions,
    dominant_component,
    dead_components,
    still_improving,
)
"""All findings, the most telling first."""


def all_findings(evidence: Evidence) -> tuple[DiagnosisFinding, ...]:
    """Everything that can be read off the evidence."""
    return tuple(finding for find in FINDINGS for finding in find(evidence))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
