"""Reading a Gymnasium environment class's attributes from one copy of the environment."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces

from eureka_agent.simulation.gymnasium_actions import (
    action_channels,
    action_choices,
    check_actions,
    num_actions,
)
from eureka_agent.simulation.gymnasium_making import is_by_id, make_copy
from eureka_agent.simulation.gymnasium_reading import (
    DECLARED,
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


def probe(task: type[GymnasiumTask]) -> None:
    """Set the class's attributes from one copy of the environment, but those that it has."""
    environment = make_copy(task, {})
    physics: Any = environment.unwrapped
    task._package = top_module(type(physics))
    try:
        check_actions(task.label(), environment.action_space)
        check_observations(task.label(), environment.observation_space)
        task._entries = (
            ()
            if task.named_observations
            else named_entries(task.label(), environment.observation_space, task.described_entries)
        )
        with third_party_code(task._package, "in the first steps of random actions"):
            tried = random_episodes(environment, spaces.flatdim(environment.observation_space))
    finally:
        environment.close()
    registered = _registered(task, environment)
    actions = environment.action_space
    own = vars(task)
    task._spec = registered
    task._ends_doc = tried.ends_doc
    task.num_observations = spaces.flatdim(environment.observation_space)
    task.num_actions, task.action_choices = num_actions(actions), action_choices(actions)
    length, length_from = episode_length(environment, registered, tried.truncated_after)
    seconds, seconds_from = time_step(environment)
    if "max_episode_length" in own:
        length, length_from = own["max_episode_length"], DECLARED
    if "control_dt" in own:
        seconds, seconds_from = own["control_dt"], DECLARED
    task.max_episode_length, task.control_dt = length, seconds
    task.episode_source = f"length {length_from}; time step {seconds_from}"
    entries = [entry.variable for entry in task._entries]
    named = [variable for variable, _ in task.named_observations] + entries
    taken = {"actions", "terminated", "observation", NATIVE_REWARD.name}
    task.info_keys = numeric_keys(tried.info, taken | {variable.name for variable in named})
    whole = observation_variable(task.num_observations, environment.observation_space)
    task.variables = (
        *([] if task._entries else [whole]),
        *named,
        *(
            Variable(key, (), "?", "?", f"number {key!r} in Gymnasium's info of this step")
            for key in task.info_keys
        ),
        NATIVE_REWARD,
    )
    if "observation_channels" not in own:
        task.observation_channels = observation_channels(
            environment.observation_space, named, task.named_observations
        )
    if "action_channels" not in own:
        task.action_channels = action_channels(actions, inspect.getdoc(type(physics)) or "")
    if "termination_conditions" not in own:
        found = termination_conditions(physics)
        causes = (cause for cause in task.termination_causes if cause in found)
        task.termination_conditions = {cause: found[cause] for cause in causes}
    if "masses_and_sizes" not in own:
        task.masses_and_sizes = masses_and_sizes(physics)
    if own.get("__doc__") is None:
        name = registered.id if registered is not None else task.__name__
        task.__doc__ = description(physics, name)
    task._source = source(physics)


def _registered(
    task: type[GymnasiumTask], environment: gymnasium.Env
) -> gymnasium.envs.registration.EnvSpec | None:
    """The registered specification; the copy's own may lack its time limit and reward threshold."""
    if is_by_id(task):
        return gymnasium.spec(task.gymnasium_id.rpartition(":")[2])
    return environment.spec
