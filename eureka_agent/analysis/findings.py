"""Findings from a training's curves: a small pure function each, with reasons for thresholds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eureka_agent.analysis.coverage import never_paid
from eureka_agent.analysis.curves import MIN_CHECKPOINTS, Evidence, noise, rank_correlation
from eureka_agent.label_records import LearnedLabels
from eureka_agent.records import DiagnosisFinding, LearnedBlend

DEAD_SPREAD = 0.01
"""Least variation of a component, relative to the components: less is below a return's noise."""
DOMINANT_SHARE = 0.85
"""Share above which the other components weigh less than a sixth: a policy can ignore them."""
HACKING_CORRELATION = -0.5
"""Rank correlation of reward and fitness from the best checkpoint on: a clear opposite trend."""
FALL_SHARE = 0.2
"""Least fall of the fitness, relative to its whole range."""
NOISE_FACTOR = 2.0
"""Least difference of fitness in standard deviations of its noise."""
LOST_SHARE = 0.5
"""Lost part of all that the fitness ever changed by: more than is left."""
EARLY_SHARE = 0.5
"""Share of episodes that end by failure, from which they are too many …"""
EARLY_LENGTH = 0.8
"""… if they are shorter than this part of the longest: a failure at the end is not early."""
SATURATION = 0.5
"""Share of action entries at their bounds, from which the policy is a switch without gradient …"""
SATURATION_EXCESS = 0.2
"""… if it exceeds the share due to exploration noise by this."""
DEVIATION_FACTOR = 1.5
"""Factor by which a deviation may miss what failures explain, as not every failure is counted."""
ROUNDING = 1e-6
"""Relative change of a constant by rounding: means of single-precision numbers."""
NO_LEARNING_NOISE = 3.0
"""Least gain in deviations of noise: ten equal checkpoints have 1.5 on average, seldom 3."""
LATE_SHARE = 0.2
"""Last part of a training that counts as its end. A steady rise gains the same part there."""
COLLAPSE_SHARE = 0.4
"""Lost part of the best checkpoint's gain, from which a training collapsed."""
STD_LOST = 0.2
"""Action noise after a third of the training, of its first, below which exploration has ended."""
LEAST_EXPLAINED = 0.5
"""Share of the fitness' variance below which most of it is not in the terms."""
RARE = 3.0
"""Deviation of a component in mean magnitudes, from which it is paid rarely: s in a share p of the
steps has a mean of ps and a deviation of about s√p, so this is a ninth of the steps or fewer."""


def dead_components(evidence: Evidence) -> list[DiagnosisFinding]:
    """Components that hardly vary, unless meant for every step or as a rare price."""
    found, points = list[DiagnosisFinding](), evidence.points
    sizes = {name: evidence.size(name, points) for name in evidence.component_names() if points}
    whole = sum(sizes.values())
    for name, size in sizes.items():
        means = [point.components.get(name, 0.0) for point in points]
        deviation = evidence.deviation(name, points)
        spread = max(deviation, max(means) - min(means))
        # the amount paid in one step is deviation² / mean magnitude
        seldom = deviation > RARE * size and deviation * deviation > whole * size
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
        found += _finding("dead-component", f"{message}.", advice, spread, component=name)
    return found


def _stops_at_failures(evidence: Evidence, name: str, size: float) -> bool:
    """True for a component paid in every step but the failing ones: s, in all but a share p of the
    steps, has a deviation of about s√p."""
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
    """True for a constant but for rounding, whose sum is the length of an episode."""
    return spread <= ROUNDING * size


def dominant_component(evidence: Evidence) -> list[DiagnosisFinding]:
    """One component that outweighs all others, unless it is the task or a constant."""
    shares = evidence.shares()
    if len(shares) < 2 or evidence.learned is not None:  # then no term has a size of its own
        return []
    name, share = max(shares.items(), key=lambda item: item[1])
    points = evidence.last_third()
    size = evidence.size(name, points)
    steady = _is_constant(evidence.deviation(name, points), size) or _stops_at_failures(
        evidence, name, size
    )
    if share <= DOMINANT_SHARE or steady or evidence.follows_fitness(name):
        return []
    message = (
        f"Component '{name}' makes up {share:.0%} of the reward's size and does not rise"
        f" with the fitness; the other {len(shares) - 1} hardly count."
    )
    advice = f"scale '{name}' down, unless it alone is the task"
    return _finding("dominant-component", message, advice, share, component=name)


def reward_hacking(evidence: Evidence) -> list[DiagnosisFinding]:
    """The fitness falls from its best checkpoint on, beyond its noise, while the reward rises."""
    known = [each for each in evidence.checkpoints if each.fitness is not None]
    fitness = evidence.fitness()
    if len(known) < MIN_CHECKPOINTS:
        return []
    best = int(fitness.argmax())
    rewards = np.array([each.reward for each in known])
    fall = float(fitness[best] - fitness[-1])
    rises = rewards[-1] > rewards[best]
    correlation = rank_correlation(rewards[best:], fitness[best:])
    least = max(NOISE_FACTOR * noise(fitness), FALL_SHARE * float(np.ptp(fitness)))
    if not rises or fall <= least or correlation > HACKING_CORRELATION:
        return []
    growth = {
        name: known[-1].components.get(name, 0.0) - known[best].components.get(name, 0.0)
        for name in evidence.component_names()
        if not evidence.follows_fitness(name)  # the task itself is not to be cut
    }
    component = max(growth, key=lambda name: growth[name], default=None)
    blame, advice = "", "pay for the task itself"
    if component is not None:
        blame = f"; '{component}' grew most, by {growth[component]:.3g} a step"
        advice = (
            f"the policy is paid for something else than the task: cut or reshape {component!r}"
        )
    message = (
        f"Fitness with exploration noise fell from {fitness[best]:.4g} to {fitness[-1]:.4g}"
        f" while the reward rose from {rewards[best]:.3g} to {rewards[-1]:.3g} a step{blame}."
    )
    return _finding("reward-hacking", message, advice, correlation, component=component)


def lost_without_noise(evidence: Evidence) -> list[DiagnosisFinding]:
    """The kept policy reached its fitness by exploration noise: without it, far less."""
    if evidence.kept is None or evidence.evaluation is None or evidence.score is None:
        return []
    with_noise = evidence.checkpoints[evidence.kept].fitness
    values = [episode.fitness for episode in evidence.evaluation.episodes]
    fitness = evidence.fitness()
    if with_noise is None or len(values) < 2 or len(fitness) < MIN_CHECKPOINTS:
        return []
    error = math.hypot(noise(fitness), float(np.std(values, ddof=1)) / math.sqrt(len(values)))
    fall = with_noise - evidence.score
    whole = float(np.ptp([*fitness, evidence.score]))
    if fall <= max(NOISE_FACTOR * error, LOST_SHARE * whole):
        return []
    message = (
        f"Fitness was {with_noise:.4g} with exploration noise at the kept checkpoint, and"
        f" {evidence.score:.4g} without: chance did there what the policy has not learned."
    )
    advice = (
        "what counts is the policy without noise: look at each term's sign, and let the reward"
        " change with every small step towards the task, so that one action is clearly the best"
    )
    return _finding("lost-without-noise", message, advice, fall)


def early_termination(evidence: Evidence) -> list[DiagnosisFinding]:
    """Most episodes end by failure, well before the time limit."""
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
    good = evidence.good_ends()
    failures = {cause: count for cause, count in ended.items() if cause not in good and count}
    share = sum(failures.values()) / max(1, episodes)
    if share <= EARLY_SHARE or length >= EARLY_LENGTH * longest:
        return []
    cause, count = min(failures.items(), key=lambda item: (-item[1], item[0]))
    message = (
        f"{share:.0%} of {which} ended early, most often by {cause} ({count / episodes:.0%} of"
        f" all), after {length:.0f} of {longest} steps on average."
    )
    advice = f"pay for staying alive and for what keeps {cause} away"
    return _finding("early-termination", message, advice, share, cause=cause)


def saturated_actions(evidence: Evidence) -> list[DiagnosisFinding]:
    """Actions at their bounds far more often than by noise, while the fitness does not rise."""
    points = evidence.last_third()
    if not points or evidence.learns():
        return []
    shares = [point.action_saturation for point in points if point.action_saturation is not None]
    deviations = [point.action_std for point in points if point.action_std is not None]
    if not shares or not deviations:  # choices have no bounds
        return []
    saturation, std = float(np.mean(shares)), float(np.mean(deviations))
    # probability that Gaussian noise of this deviation around 0 lies outside ±0.99
    by_noise = math.erfc(0.99 / (std * math.sqrt(2.0))) if std > 0 else 0.0
    if saturation <= max(SATURATION, by_noise + SATURATION_EXCESS):
        return []
    message = (
        f"{saturation:.0%} of the actions are at their bounds (noise alone would put {by_noise:.0%}"
        " there), and fitness does not rise."
    )
    advice = (
        "a term that tells small actions from large ones near the goal, or a price on jumps of the"
        " actions"
    )
    return _finding("saturated-actions", message, advice, saturation)


def not_a_number(evidence: Evidence) -> list[DiagnosisFinding]:
    """The training broke off because the reward was not a finite number."""
    words = r"not.a.number|\bnan\b|\binf(inite|inity)?\b|not finite"
    if not re.search(words, evidence.failure, re.IGNORECASE):
        return []
    names = evidence.component_names()
    quoted = (n for n in names if re.search(rf"['\"`]{re.escape(n)}['\"`]", evidence.failure))
    what = "policy's observation" if "designed observation" in evidence.failure else "reward"
    message = f"The {what} was no finite number: {evidence.failure}."
    advice = (
        "guard divisions, roots, logarithms and exponentials; clamp what physics does not bound"
    )
    return _finding("not-a-number", message, advice, component=next(quoted, None))


def no_learning(evidence: Evidence) -> list[DiagnosisFinding]:
    """The fitness never leaves the noise around its first value."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS or never_paid(evidence):
        return []
    solved = evidence.description.success_fitness
    gain = float(fitness.max() - fitness[0])
    is_solved = solved is not None and fitness.max() >= solved
    if gain > NO_LEARNING_NOISE * noise(fitness) or is_solved:
        return []
    message = (
        f"Fitness with exploration noise began at {fitness[0]:.4g} and was never better than"
        f" {fitness.max():.4g}, which is within its noise of {noise(fitness):.2g}."
    )
    advice = (
        "the reward gives no way forward: wider temperatures, or a term that changes with every"
        " small step towards the task"
    )
    return _finding("no-learning", message, advice, gain)


def still_improving(evidence: Evidence) -> list[DiagnosisFinding]:
    """The last fifth of a whole training brought a fifth or more of its gain."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS or evidence.failure:
        return []
    places = np.arange(len(fitness), dtype=np.float64)
    late = max(1, round(LATE_SHARE * len(fitness)))
    before, rise = float(fitness[-1 - late]), float(fitness[-1] - fitness[-1 - late])
    gained = float(fitness[-1] - fitness.min())
    about_trend = noise(fitness - np.polyval(np.polyfit(places, fitness, 1), places))
    if rise <= NOISE_FACTOR * about_trend or rise < LATE_SHARE * gained:
        return []
    message = (
        f"Fitness with exploration noise rose from {before:.4g} to {fitness[-1]:.4g} in the last"
        f" {late / len(fitness):.0%} of the training, which is {rise / gained:.0%} of all that it"
        " gained."
    )
    advice = (
        "the rise began late: pay for the first clumsy steps towards the task too, by a wider scale"
        " or by progress"
    )
    return _finding("still-improving", message, advice, rise)


def collapsed(evidence: Evidence) -> list[DiagnosisFinding]:
    """The last checkpoint is far below the best, and the reward fell with it."""
    fitness = evidence.fitness()
    if len(fitness) < MIN_CHECKPOINTS or reward_hacking(evidence):
        return []
    fall = float(fitness.max() - fitness[-1])
    gained = float(fitness.max() - fitness.min())
    if fall <= max(COLLAPSE_SHARE * gained, NOISE_FACTOR * noise(fitness)):
        return []
    message = (
        f"Fitness with exploration noise reached {fitness.max():.4g} and ended at"
        f" {fitness[-1]:.4g}."
    )
    advice = "a smaller or smoother reward keeps the learning stable"
    return _finding("collapsed", message, advice, fall)


def exploration_lost(evidence: Evidence) -> list[DiagnosisFinding]:
    """Action noise, or choices' entropy, vanished within the first third, without a gain."""
    points = evidence.points
    if len(points) < MIN_CHECKPOINTS or evidence.learns():
        return []
    chosen = points[0].action_std is None
    first, third = (
        point.entropy if point.action_std is None else point.action_std
        for point in (points[0], points[len(points) // 3])
    )
    if first is None or third is None:  # another trainer's
        return []
    if first <= 0 or third > STD_LOST * first:
        return []
    message = (
        f"The {'entropy of the choices' if chosen else 'action noise'} fell from {first:.2g} to"
        f" {third:.2g}{' nats' * chosen} within a third of the training."
    )
    advice = (
        "one choice pays at once, whatever the state: pay for what only several together reach"
        if chosen
        else "penalties on effort or motion are too strong, so that doing nothing pays: cut them"
    )
    return _finding("exploration-lost", message, advice, third / first)


def learned_reward(evidence: Evidence) -> list[DiagnosisFinding]:
    """Terms that a learned reward pays for, and how much of the fitness it explains."""
    learned = evidence.learned
    if learned is None:
        return []
    if isinstance(learned, LearnedBlend):
        return _blend(learned)
    if isinstance(learned, LearnedLabels):
        return _labels(learned)
    if not learned.explained:
        message = (
            f"All {learned.episodes} episodes had the same fitness, so nothing was learned of it"
            " and your total was paid."
        )
        advice = "let the total lead to where episodes differ"
        return _finding("learned-reward", message, advice, 0.0)
    order = sorted(learned.slopes.items(), key=lambda each: -abs(each[1]))
    slopes = ", ".join(f"{name} {slope:+.2g}" for name, slope in order)
    message = (
        f"What was paid was learned from {learned.episodes} episodes. Its sums explain"
        f" {learned.explained:.0%} of the variance of their fitness. Slopes, in deviations of the"
        f" fitness for a term that has its first size throughout: {slopes}; the total itself"
        f" {learned.guess:+.2g}."
    )
    advice = (
        "find a term for what the fitness depends on and none of these says"
        if learned.explained < LEAST_EXPLAINED
        else "leave out a term that is near 0, or say what it was for in another way"
    )
    return _finding("learned-reward", message, advice, learned.explained)


def _blend(learned: LearnedBlend) -> list[DiagnosisFinding]:
    message = (
        f"The fitness was paid step by step, and at the end {learned.weight:.0%} of the total with"
        f" it: {min(learned.regions):.0%} to {max(learned.regions):.0%} by region. The rest pulled"
        " the policy another way than the fitness does."
    )
    advice = "keep what it is for"
    if learned.weight < LEAST_EXPLAINED:
        advice = "look for what pays against the task: a sign, a term that can be farmed, an end"
    return _finding("learned-reward", message, advice, learned.weight)


def _labels(learned: LearnedLabels) -> list[DiagnosisFinding]:
    if not learned.labelled:
        message = (
            f"No label came of the {learned.captions} captions of states that the training reached,"
            " so the total alone was paid."
        )
        return _finding("learned-reward", message, "take the total for all that was paid", 0.0)
    message = (
        f"A model labelled {learned.labelled} of the {learned.captions} captions of states that the"
        f" training reached, and they were paid beside the total ({learned.method})."
    )
    for name, captions in (("Best", learned.best), ("Worst", learned.worst)):
        told = (f"{text!r} {value:.2g}" for text, value in captions.items())
        message += f" {name}: {', '.join(told)}." * bool(captions)
    advice = "let the total lead to what no label names"
    return _finding("learned-reward", message, advice, float(learned.labelled))


FINDINGS: tuple[Callable[[Evidence], list[DiagnosisFinding]], ...] = (
    not_a_number,
    learned_reward,
    never_paid,
    reward_hacking,
    collapsed,
    early_termination,
    lost_without_noise,
    no_learning,
    exploration_lost,
    saturated_actions,
    dominant_component,
    dead_components,
    still_improving,
)


def all_findings(evidence: Evidence) -> tuple[DiagnosisFinding, ...]:
    return tuple(finding for find in FINDINGS for finding in find(evidence))


def _finding(
    code: str,
    message: str,
    advice: str,
    value: float | None = None,
    component: str | None = None,
    cause: str | None = None,
) -> list[DiagnosisFinding]:
    return [
        DiagnosisFinding(
            code=code, message=message, advice=advice, value=value, component=component, cause=cause
        )
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
