"""PPO in one file, in the manner of CleanRL, on a simulator of its own. It uses the core alone."""

from pathlib import Path

import eureka_adapter as eureka
import torch
from torch import nn
from torch.distributions import Normal

HORIZON, GAMMA, LAMBDA = 32, 0.95, 0.95


class Sleds:
    """Sleds that a motor pushes along a line; a row that ends, 2 m from 0, restarts."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs

    def reset(self, seeds: list) -> tuple:
        drawn = [torch.rand(2, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
        self.generator = torch.Generator().manual_seed(seeds[0])
        self.state, self.age = torch.stack(drawn) * 2 - 1, torch.zeros(self.num_envs)
        return self.state.clone(), self.values()

    def values(self) -> dict:
        return {"position": self.state[:, 0].clone(), "velocity": self.state[:, 1].clone()}

    def step(self, actions: torch.Tensor) -> eureka.Step:
        actions = actions.clamp(-1, 1)
        self.state[:, 1] += 0.2 * actions[:, 0]
        self.state[:, 0] += 0.1 * self.state[:, 1]
        self.age += 1
        reached, fell, late = self.values(), self.state[:, 0].abs() > 2, self.age >= 50
        ended = fell | late
        self.state[ended] = torch.rand(int(ended.sum()), 2, generator=self.generator) * 2 - 1
        self.age[ended] = 0
        ends, seen = (fell, late & ~fell), self.state.clone()
        return eureka.Step(reached, actions, *ends, start=self.values(), observations=seen)


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
        self.log_std = nn.Parameter(torch.zeros(1))

    def policy(self, observations: torch.Tensor) -> Normal:
        return Normal(self.actor(observations), self.log_std.exp())


def train(job: eureka.Job, training: eureka.Training) -> None:
    saved = eureka.load_state(training.state) if training.state else {"env_steps": 0}
    torch.manual_seed(eureka.episode_seed("agent", training.seed, saved["env_steps"]))
    agent, env = Agent(), Sleds(job.num_envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    if training.state:
        agent.load_state_dict(saved["agent"])
        optimizer.load_state_dict(saved["optimizer"])
    seeds = [eureka.episode_seed(training.seed, "row", row) for row in range(job.num_envs)]
    observations, start = env.reset(seeds)
    training.begin(start, saved["env_steps"])

    def save_state(path: Path) -> None:
        state = {"agent": agent.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "env_steps": training.env_steps}, path)

    while not training.over:
        rollout = []
        for _ in range(HORIZON):
            with torch.no_grad():
                policy, value = agent.policy(observations), agent.critic(observations)
                actions = policy.sample()
                step = env.step(actions)
                # an episode that ran out of time would have gone on from the state it reached
                late = agent.critic(torch.stack([*step.values.values()], dim=1)) * step.truncated
                reward = training.step(step) + GAMMA * late
                log_prob = policy.log_prob(actions)[:, 0]
            alive = 1.0 - (step.terminated | step.truncated).float()
            rollout.append((observations, actions, log_prob, value, reward, alive))
            observations = step.observations
        columns = zip(*rollout, strict=True)
        seen, actions, log_probs, values, rewards, alive = map(torch.stack, columns)
        following, gain, advantages = agent.critic(observations).detach(), 0.0, rewards.clone()
        for t in reversed(range(HORIZON)):
            gain = rewards[t] - values[t] + GAMMA * alive[t] * (following + LAMBDA * gain)
            following, advantages[t] = values[t], gain
        returns, scaled = advantages + values, (advantages - advantages.mean()) / advantages.std()
        batch = [each.flatten(0, 1) for each in (seen, actions, log_probs, scaled, returns)]
        for part in [part for _ in range(4) for part in torch.randperm(len(batch[0])).chunk(4)]:
            observed, action, before, advantage, target = (each[part] for each in batch)
            ratio = (agent.policy(observed).log_prob(action)[:, 0] - before).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            optimizer.zero_grad()
            ((agent.critic(observed) - target).square().mean() - gain.mean()).backward()
            optimizer.step()
        training.keep(lambda path: eureka.save_arrays(path, agent.state_dict()), save_state)
    training.end(lambda path: eureka.save_arrays(path, agent.state_dict()))


def load_policy(path: Path) -> nn.Module:
    agent = Agent()
    agent.load_state_dict(eureka.load_arrays(path))
    return agent.actor.requires_grad_(False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    job = eureka.Job.open()
    position = eureka.Variable("position", (), "m", doc="place on the line; 0 is its middle")
    velocity = eureka.Variable("velocity", (), "m/s", doc="velocity along the line")
    sizes = {"num_observations": 2, "num_actions": 1, "max_episode_length": 50}
    job.described([position, velocity], control_dt=0.1, doc="A sled on a line of 4 m.", **sizes)
    if job.mode == "train":
        train(job, job.trainings[0])
    else:
        eureka.play(job, Sleds(job.num_envs), load_policy)
