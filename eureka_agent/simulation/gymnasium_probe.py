"""Reading a Gymnasium environment class's attributes from one copy of the environment."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation import gymnasium_calls as calls
from eureka_agent.simulation.gymnasium_actions import (
    action_channels,
    action_choices,
    check_actions,
    num_actions,
)
from eureka_agent.simulation.gymnasium_making import is_by_id, make_copy
from eureka_agent.simulation.gymnasium_names import names_of
from eureka_agent.simulation.gymnasium_reading import (
    DECLARED,
    ENDS_BY,
    declared_length,
    description,
    episode_length,
    masses_and_sizes,
    numeric_keys,
    observation_variable,
    random_episodes,
    source,
    termination_conditions,
    time_step,
)
from eureka_agent.simulation.gymnasium_spaces import (
    check_observations,
    named_entries,
    num_observations,
    observation_channels,
)
from eureka_agent.simulation.user_modules import third_party_code, top_module
from eureka_agent.task import Variable

if TYPE_CHECKING:
    from eureka_agent.simulation.gymnasium_task import GymnasiumTask

NATIVE_REWARD = Variable(
    "native_reward",
    (),
    "1",
    "-",
    "the reward that the environment itself gives for this step; 0 right after a reset",
    private=True,
)

REACHED = "reached_goal"
"""Cause of an end that is always a success."""


def probe(task: type[GymnasiumTask]) -> None:
    """Set the class's attributes from one copy of the environment, but those that it has."""
    task._remarks = ()
    environment = make_copy(task, {})
    physics: Any = environment.unwrapped
    task._package = top_module(type(physics))
    try:
        observed, described = environment.observation_space, task.described_entries
        try:
            check_actions(task.label(), environment.action_space)
            check_observations(task.label(), observed)
            named = not task.named_observations
            task._entries = named_entries(task.label(), observed, described) if named else ()
        except EnvironmentLoadError as error:
            place = "" if is_by_id(task) else calls.place_of_class(environment)
            raise EnvironmentLoadError(f"{place}{error.message}", error.hint) from None
        registered, own = _registered(task, environment), vars(task)
        declared = declared_length(environment, registered)
        if "max_episode_length" in own:
            declared = own["max_episode_length"], DECLARED, False
        with third_party_code(task._package, "in the first steps of random actions"):
            size = num_observations(environment.observation_space)
            tried = random_episodes(environment, size, declared and declared[0])
            if tried.not_in_space and not is_by_id(task):
                task._remarks += (tried.not_in_space,)
    finally:
        try:
            with third_party_code(task._package, "when it was closed"):
                environment.close()
        except EnvironmentLoadError as error:  # all has been read
            task._remarks += (error.message,)
    actions = environment.action_space
    task._spec = registered
    task.num_observations = size
    task.num_actions, task.action_choices = num_actions(actions), action_choices(actions)
    problem = _set_names(task, environment.observation_space)
    names = task._names
    length, length_from, task.episodes_vary = episode_length(declared, tried)
    seconds, seconds_from = time_step(environment)
    task._has_own_limits = bool(tried.own_limits)
    if "max_episode_length" in own:
        length, length_from, task.episodes_vary = own["max_episode_length"], DECLARED, False
    if "control_dt" in own:
        seconds, seconds_from = own["control_dt"], DECLARED
    task.max_episode_length, task.control_dt = length, seconds
    task.episode_source = f"length {length_from}; time step {seconds_from}"
    task.variables = _variables(task, environment.observation_space, tried.info, problem)
    if "observation_channels" not in own:
        entries = [entry.variable for entry in task._entries]
        task.observation_channels = tuple(
            part.channel for part in task._parts
        ) or observation_channels(environment.observation_space, entries, task.named_observations)
    if "action_channels" not in own:
        task.action_channels = (
            action_channels(actions, inspect.getdoc(type(physics)) or "")
            if names is None or not names.actions
            else names.action_channels(actions)
        )
    _set_ends(task, physics, tried.ends_doc)
    if "masses_and_sizes" not in own:
        given = () if names is None else names.masses_and_sizes
        task.masses_and_sizes = given or masses_and_sizes(physics)
    if own.get("__doc__") is None:
        name = registered.id if registered is not None else task.__name__
        task.__doc__ = description(physics, name) if names is None else names.doc
    task._source = source(physics)


def _set_names(task: type[GymnasiumTask], space: spaces.Space) -> str:
    """Set what the file of an id of Gymnasium's own says; return why its names do not fit, empty
    if they do or there is none."""
    names = names_of(task.gymnasium_id) if is_by_id(task) else None
    if names is None:
        return ""
    task._state_place = names.state
    if "restorable" not in vars(task):
        task.restorable = names.state != "hidden"
    problem = names.problem(space, task.gymnasium_options)
    if problem:
        task._remarks += (f"the observation of {task.label()} has no names: {problem}",)
    elif not task.named_observations:
        task._names, task._parts = names, names.parts
    return problem


def _variables(
    task: type[GymnasiumTask], space: spaces.Space, info: Mapping[str, Any], problem: str
) -> tuple[Variable, ...]:
    """The environment's variables and its own reward. `problem`: why it has no names, or empty."""
    entries = [entry.variable for entry in task._entries]
    parts = [part.variable for part in task._parts]
    named = [variable for variable, _ in task.named_observations] + entries + parts
    taken = {"actions", "terminated", "observation", NATIVE_REWARD.name}
    keys = numeric_keys(info, taken | {variable.name for variable in named})
    described = {} if task._names is None else task._names.info
    # what else is in the info of an environment with names is a part of its reward
    task.info_keys = tuple(key for key in keys if task._names is None or key in described)
    whole = observation_variable(task.num_observations, space, task._parts, problem)
    return (
        *([] if task._entries else [whole]),
        *named,
        *(
            described.get(key)
            or Variable(key, (), "?", "?", f"number {key!r} in Gymnasium's info of this step")
            for key in task.info_keys
        ),
        NATIVE_REWARD,
    )


def _set_ends(task: type[GymnasiumTask], physics: Any, ends_doc: str) -> None:
    """Set causes and meaning of an episode's end. `ends_doc`: as seen in random episodes."""
    own, names = vars(task), task._names
    task._ends_doc = ends_doc
    found = termination_conditions(physics)
    if names is not None:
        task._ends_doc = ENDS_BY.get(names.ends_by, ends_doc)
        found = {"terminated": names.ends_when} if names.ends_when else found
        if names.ends_by == "success" and not {"termination_causes", "success_causes"} & own.keys():
            task.termination_causes = task.success_causes = (REACHED,)
            found = {REACHED: names.ends_when}
    if "termination_conditions" not in own:
        causes = (cause for cause in task.termination_causes if cause in found)
        task.termination_conditions = {cause: found[cause] for cause in causes}


def _registered(
    task: type[GymnasiumTask], environment: gymnasium.Env
) -> gymnasium.envs.registration.EnvSpec | None:
    """The registered specification; the copy's own may lack its time limit and reward threshold."""
    if is_by_id(task):
        return gymnasium.spec(task.gymnasium_id.rpartition(":")[2])
    return environment.spec
