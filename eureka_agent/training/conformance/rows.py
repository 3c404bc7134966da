"""Checks of `eureka envs --check` that compare trajectories: rows that are independent, restorable
and moved by each action, episodes that begin anew, captions, parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import torch
from torch import Tensor

from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, copied_variables, run
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.conformance import checks
from eureka_agent.training.environment_faults import (
    OBSERVATIONS,
    checked_caption,
    checked_codes,
)

ROW_TOLERANCE = 1e-4
_ROWS_ALONE = 16
_COMPARED_STEPS = 30
_STEPS_BEFORE = 40
_PARAMETER_STEPS = 130
"""A push that comes every 2 s falls among them in some row."""
_SHORT_EPISODE = 9
_SHOWN = 8
_REST_OF_STATE = (
    "add the tensors that hold the rest of the state to row_tensors, or set `restorable = False` in"
    " the class"
)


Pairs = Iterable[tuple[int, int]]
_ALL_ROWS = [(row, row) for row in range(checks.ROWS)]


def _difference(
    states: tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
    words: tuple[str, str],
    pairs: Pairs = _ALL_ROWS,
) -> tuple[str, str]:
    """Name of the first number that differs beyond rounding, and both values in words; or empty."""
    for row, place in pairs:
        for name in states[0]:
            one, other = states[0][name][row].float(), states[1][name][place].float()
            close = torch.isclose(one, other, ROW_TOLERANCE, ROW_TOLERANCE, equal_nan=True)
            if bool(close.all()):
                continue
            column = int((~close).flatten().nonzero()[0])
            where = f", column {column}," if one.dim() else ""
            values = (float(each.flatten()[column]) for each in (one, other))
            told = (f"{value:.7g} {word}" for value, word in zip(values, words, strict=True))
            return name, f"{name}{where} is {' and '.join(told)}"
    return "", ""


def _numbers(step: RecordedStep) -> dict[str, Tensor]:
    return {**step.values, OBSERVATIONS: step.observations}


def _unequal(one: RecordedStep, other: RecordedStep) -> list[str]:
    """Names of what is not equal to the bit."""
    others = _numbers(other)
    return [name for name, value in _numbers(one).items() if not torch.equal(value, others[name])]


def _begun(environment: VecTask) -> VecTask:
    """The environment, at the start of the same episodes in any instance."""
    rows = torch.arange(checks.ROWS)
    environment.seed_rows(rows, 1000 + rows)
    environment.reset()
    return environment


def _episode(environment: VecTask, steps: int, seed: int) -> list[RecordedStep]:
    """Start, recorded as a step, and steps of the same episodes in any instance."""
    _begun(environment)
    none = torch.zeros(checks.ROWS, dtype=torch.bool)
    start = RecordedStep(environment.obs_buf.clone(), copied_variables(environment), none, none)
    return [start, *run(environment, actions_for(environment, steps, seed))]


# ── random numbers and episodes ───────────────────────────────────────────────────────────────────


def same_seed(subject: checks.Subject) -> None:
    """Equal seeds give equal trajectories."""
    first, second = subject.steps(_COMPARED_STEPS), subject.steps(_COMPARED_STEPS)
    for index, steps in enumerate(zip(first, second, strict=True)):
        if different := _unequal(*steps):
            expected = "two runs with seed 0 give the same values"
            hint = f"draw random numbers from {subject.cls.random_numbers}"
            actual = f"{', '.join(different)} differ in step {index}"
            raise checks.Nonconforming(expected, actual, hint)


def begun_anew(subject: checks.Subject) -> None:
    """An episode is the same in a used instance as in a fresh one."""
    fresh, used = subject.make(seed=0), subject.make(seed=1)
    used.tell_rows_from_constants(subject.make(checks.ROWS + 1))
    expected = _episode(fresh, _COMPARED_STEPS, 11)

    def changed_by(names: Sequence[str]) -> str:
        """What differs in new episodes, in words, after these attributes were spoiled."""
        for name in names:
            value = _own_tensors(used)[name]
            with suppress(RuntimeError):  # not writable in place, such as an expanded tensor
                if value.is_floating_point():
                    value.add_(1.0)
                elif value.dtype == torch.bool:
                    value.logical_not_()
        found = _episode(used, _COMPARED_STEPS, 11)
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            states, words = (_numbers(one), _numbers(other)), ("fresh", "after other episodes")
            if text := _difference(states, words)[1]:
                when = f"in step {index} of the episode" if index else "right after a reset"
                return f"{text} {when}"
        return ""

    names, written = list[str](), _written_by_steps(used)
    left = changed_by([])
    if left:
        starts, after = (_own_tensors(_begun(each)) for each in (subject.make(seed=2), used))
        same = (name for name in written if name in starts)
        pairs = ((each, starts[each].nan_to_num(), after[each].nan_to_num()) for each in same)
        names = [each for each, one, other in pairs if not torch.equal(one, other)]
    elif changed_by(written):  # other episodes may leave other values: spoil what steps write
        texts = {name: text for name in written if (text := changed_by([name]))}
        names, left = list(texts), next(iter(texts.values()), "")
    if left:
        told = ", ".join(f"self.{name}" for name in names[:_SHOWN])
        raise checks.Nonconforming(
            "an episode that does not depend on the one before",
            f"what an episode leaves in {told} is there in the next: {left}" if told else left,
            " and ".join(
                f"write `self.{name}[env_ids] = …` in reset_idx" for name in names[:_SHOWN]
            )
            or "let the reset set all of the state, also what lies outside of tensors",
        )
    for environment in (fresh, used):
        environment.close()


def _own_tensors(environment: VecTask) -> dict[str, Tensor]:
    found = VecTask.row_tensors(environment).items()
    own = {name: value for name, value in found if name in vars(environment)}
    return {name: it for name, it in own.items() if name != "obs_buf" and not it.is_inference()}


def _written_by_steps(environment: VecTask) -> list[str]:
    """Names of attributes that steps write, changed or not; leaves the episodes unfinished."""
    before = {name: (value, value._version) for name, value in _own_tensors(environment).items()}
    for _ in run(environment, actions_for(environment, _STEPS_BEFORE, seed=12)):
        pass
    after = _own_tensors(environment)
    return [
        name
        for name, (value, version) in before.items()
        if name in after and (after[name] is not value or after[name]._version != version)
    ]


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def row_independence(subject: checks.Subject) -> None:
    """A row alone and the same row among others have the same trajectory."""
    row, seed = 5, torch.tensor([123])
    many, alone = subject.make(seed=0), subject.make(1, seed=1)
    many.seed_rows(torch.tensor([row]), seed)
    alone.seed_rows(torch.tensor([0]), seed)
    many.reset()
    alone.reset()
    actions = actions_for(many, _COMPARED_STEPS, seed=3)
    steps = zip(run(many, actions), run(alone, actions[:, row : row + 1]), strict=True)
    for index, (among, single) in enumerate(steps):
        states, words = (_numbers(among), _numbers(single)), (f"among {checks.ROWS}", "alone")
        name, text = _difference(states, words, [(row, 0)])
        if name:
            expected = f"{name} of a row is the same alone and among {checks.ROWS} rows"
            hint = f"let no operation mix rows, and draw random numbers from {many.random_numbers}"
            raise checks.Nonconforming(expected, f"{text} in step {index}", hint)


def restored_rows(subject: checks.Subject) -> None:
    """Rows loaded into another instance by `load_row_state` continue as before."""
    first, second, wider = subject.make(seed=0), subject.make(seed=1), subject.make(checks.ROWS + 1)
    if not first.restorable:
        raise checks.NotApplicable
    for environment, seed in ((first, 4), (second, 5)):
        environment.tell_rows_from_constants(wider)
        for _ in run(environment, actions_for(environment, _STEPS_BEFORE // 2, seed)):
            pass
    taken, put = torch.tensor([1, 2, 3]), torch.tensor([4, 6, 7])
    pairs = list(zip(taken.tolist(), put.tolist(), strict=True))
    second.load_row_state(put, first.row_state(taken))
    second.reset_rows(torch.tensor([0, 5]))
    observations = ({OBSERVATIONS: first.obs_buf}, {OBSERVATIONS: second.obs_buf})
    name, text = _difference(observations, ("before", "after"), pairs)
    if name:
        raise checks.Nonconforming(
            "observations of a row stay as they are after load_row_state, when others are reset",
            text,
            f"{_REST_OF_STATE}, and let reset_idx change the rows of env_ids alone",
        )
    actions = actions_for(first, _COMPARED_STEPS, seed=6)
    moved = actions.clone()
    moved[:, put] = actions[:, taken]
    for index, (one, other) in enumerate(zip(run(first, actions), run(second, moved), strict=True)):
        states, words = (_numbers(one), _numbers(other)), ("where it was", "where it was loaded")
        name, text = _difference(states, words, pairs)
        if name:
            expected = f"{name} of a row continues unchanged after row_state and load_row_state"
            raise checks.Nonconforming(expected, f"{text} {index + 1} steps later", _REST_OF_STATE)


def masked_resets(subject: checks.Subject) -> None:
    """On a GPU a step resets every row and restores unchanged those whose episode continues."""
    if "cuda" not in subject.cls.device_types or not subject.cls.restorable:
        raise checks.NotApplicable
    by_index, by_mask, wider = subject.make(), subject.make(), subject.make(checks.ROWS + 1)
    for environment in (by_index, by_mask):
        environment.tell_rows_from_constants(wider)
        environment.max_episode_length = _SHORT_EPISODE
        environment.progress_buf[:] = torch.arange(checks.ROWS) % _SHORT_EPISODE
    by_mask.resets_by_mask = True
    actions = actions_for(by_index, _STEPS_BEFORE, seed=7)
    for index, steps in enumerate(zip(run(by_index, actions), run(by_mask, actions), strict=True)):
        for name in _unequal(*steps):
            expected, found = (_numbers(step)[name] for step in steps)
            row = int((expected != found).reshape(checks.ROWS, -1).any(dim=1).nonzero()[0])
            raise checks.Nonconforming(
                f"{name} are the same whether a GPU's resets or the CPU's were made",
                f"{found[row].tolist()!r} against {expected[row].tolist()!r} after step {index}",
                _REST_OF_STATE,
            )


# ── captions ──────────────────────────────────────────────────────────────────────────────────────


def captions(subject: checks.Subject) -> Iterator[checks.Note]:
    """A state's caption depends on its variables alone, is a line of text, and each code has its
    own."""
    cls, steps = subject.cls, subject.sound_steps()
    if not cls.caption_variables or not steps:
        raise checks.NotApplicable
    environment = subject.make(1)
    values = {name: torch.cat([it.values[name] for it in steps]) for name in cls.caption_variables}
    count = checks.ROWS * len(steps)

    def codes_of(rows: slice) -> Tensor:
        given = {name: value[rows].clone() for name, value in values.items()}
        codes = checked_codes(environment.caption_codes(given), len(range(count)[rows]), cls)
        for name, value in given.items():
            if not torch.equal(value, values[name][rows]):
                expected, hint = "caption_codes writes into no value", "compute with a copy of it"
                raise checks.Nonconforming(expected, f"it changed {name!r}", hint)
        return codes

    codes = codes_of(slice(0, count))
    alone = [slice(row, row + 1) for row in range(0, count, -(-count // _ROWS_ALONE))]
    for rows, when in ((slice(0, count), "in a second call"), *((row, "alone") for row in alone)):
        again = codes_of(rows)
        for one, other in zip(codes[rows].tolist(), again.tolist(), strict=True):
            if one != other:
                raise checks.Nonconforming(
                    "the same code for the same values, each row for itself",
                    f"{one} among {count} rows, {other} {when}",
                    "let caption_codes draw no random number, keep no state and mix no rows",
                )
    code_of = dict[str, int]()
    for code in codes.unique().tolist():
        text = checked_caption(environment.caption(code), code, cls)
        if (other := code_of.setdefault(text, code)) != code:
            expected, hint = "a text of its own for each code", "give them one code, or two texts"
            raise checks.Nonconforming(expected, f"{text!r} for {other} and {code}", hint)
    yield checks.Note(f"{len(code_of)} in {count:,} states")


# ── parameters ────────────────────────────────────────────────────────────────────────────────────


def parameters(subject: checks.Subject) -> Iterator[checks.Note]:
    """Each parameter changes the states at both ends of its range, all of which stay finite, and
    none does at its default."""
    declared = subject.cls.parameters
    if not declared:
        raise checks.NotApplicable

    def played(distribution: Distribution) -> list[RecordedStep]:
        environment = subject.make()
        environment.set_parameters(torch.arange(checks.ROWS), distribution)
        steps = _episode(environment, _PARAMETER_STEPS, 13)
        environment.close()
        return steps

    usual = played(DEFAULTS)
    defaults = {each.name: (each.default, each.default) for each in declared}
    for index, (one, other) in enumerate(zip(usual, played(defaults), strict=True)):
        if _unequal(one, other):
            states = _numbers(one), _numbers(other)
            text = _difference(states, ("without", "with them"))[1]
            raise checks.Nonconforming(
                "the same numbers, to the bit, with all parameters set to their defaults",
                f"{text or 'the last bits differ'}, {index} steps after a reset",
                "compute them so that the default gives the unchanged number: a factor of 1, a"
                " force of 0",
            )
    ends = [(each, end) for each in declared for end in (each.low, each.high)]
    for parameter, end in ends:
        if end == parameter.default:
            continue
        what = f"{parameter.name} = {end:g}"
        found = played({parameter.name: (end, end)})
        for index, step in enumerate(found):
            when = f"{index} steps after a reset with {what}, an end of its range"
            checks.check_finite(subject, step, when)
        if not any(map(_unequal, usual, found)):
            raise checks.Nonconforming(
                f"states that differ with {what} from those with {parameter.default:g}",
                f"all are equal in {_PARAMETER_STEPS} steps of random actions",
                f'read self.parameter_values["{parameter.name}"], in parameters_changed where'
                " something is computed from it, or take the parameter out",
            )
    yield checks.Note(f"{len(declared)}: {', '.join(each.name for each in declared)}")
