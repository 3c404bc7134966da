"""A car in city traffic, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import Constant, RandomWalks, Walk, vectors
from torch import Tensor

from eureka_agent.task import Variable


class Car(RandomWalks):
    """A car that is to follow its lane at a good speed behind other traffic without hitting
    anything.

    The first action is the steering, the second the pedal: 1 is full throttle, -1 full brake. An
    episode ends with a collision.
    """

    num_actions = 2
    control_dt = 0.1
    walks: ClassVar = {
        "speed": Walk(1, 4.0, 2.0, 8.0),
        "lateral": Walk(1, 0.8, 0.7),
        "heading": Walk(1, 0.12, 0.2),
        "gap": Walk(1, 14.0, 5.0, 22.0),
        "path": Walk(2, 40.0, 9.0),
        "waypoint": Walk(2, 25.0, 0.0, (60.0, 10.0)),
        "pedestrian": Walk(2, 8.0, 2.0, (12.0, 4.0)),
    }
    variables = (
        *vectors("body", "m/s", 0, (0.0, 25.0), speed="forward speed; the car has no reverse"),
        *vectors("body", "m/s", 10, (0.0, 25.0), speed_history="forward speed over the last ten steps, the newest last"),
        *vectors("body", "m/s", 0, relative_speed="speed of the car ahead less the own"),
        *vectors("body", "m/s²", 0, acceleration="forward acceleration", lateral_acceleration="acceleration to the left"),
        *vectors("world", "m", 0, (-3.0, 3.0), lane_offset="distance to the lane's centre line, left is positive"),
        *vectors("world", "m", 0, (0.0, 3.0), min_pos="distance to the nearest point of the route"),
        *vectors("world", "m", 0, (0.0, 300.0), distance_to_lead="free distance to the car ahead", distance_to_waypoint="distance to the next waypoint"),
        *vectors("world", "rad", 0, (-3.1416, 3.1416), heading_error="angle between the car and the lane, anticlockwise is positive"),
        *vectors("world", "m", 2, position="position of the car: x, y", waypoint_position="position of the next waypoint: x, y",
                 pedestrian_position="position of the nearest pedestrian in the car's frame: ahead, left"),
        *vectors("-", "1", 0, (0.0, 1.0), collision="1 where the car touches anything, else 0", on_road="1 where all wheels are on the road, else 0",
                 throttle="0 to 1", brake="0 to 1"),
        *vectors("-", "1", 0, (0.0, 2.0), traffic_light="0 green, 1 yellow, 2 red"),
        *vectors("-", "1", 0, (-1.0, 1.0), steering="position of the steering wheel", prev_steering="steering one step before"),
        Variable("true_score", (), "1", "-", "how good this step was", private=True),
        *vectors("world", "m/s", 0, (10.0, 13.9), speed_limit="allowed speed on this road, 10 or 13.9"),
    )  # fmt: skip
    constants = (
        Constant("dt", 0.1, "s", "control step"),
        Constant("lane_half_width", 1.75, "m", "half the width of a lane"),
        Constant("max_speed", 20.0, "m/s", "speed at full throttle"),
        Constant("safe_distance", 10.0, "m", "distance to keep from the car ahead"),
    )

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.history = torch.zeros(num_envs, 10, device=self.device)

    def simulate(self) -> None:
        self.history = torch.cat([self.history[:, 1:], self.at("speed").clamp(min=0.0)], dim=-1)

    def reset_idx(self, env_ids: Tensor) -> None:
        super().reset_idx(env_ids)
        self.history[env_ids] = self.at("speed")[env_ids].clamp(min=0.0)

    def compute_variables(self) -> dict[str, Tensor]:
        speed, lateral = self.history[:, -1], self.at("lateral")[:, 0]
        position, waypoint = self.at("path"), self.at("waypoint")
        limit = torch.where(waypoint[:, 0] > 60.0, 13.9, 10.0)
        light = (waypoint[:, 1] > 10.0).float() + (waypoint[:, 1] > 20.0).float()
        return {
            "speed": speed,
            "speed_history": self.history,
            "relative_speed": self.velocity("gap")[:, 0],
            "acceleration": (speed - self.history[:, -2]) / self.control_dt,
            "lateral_acceleration": speed * self.velocity("heading")[:, 0],
            "lane_offset": lateral,
            "min_pos": lateral.abs(),
            "distance_to_lead": self.at("gap")[:, 0].clamp(min=0.0),
            "distance_to_waypoint": (waypoint - position).norm(dim=-1),
            "heading_error": self.at("heading")[:, 0],
            "position": position,
            "waypoint_position": waypoint,
            "pedestrian_position": self.at("pedestrian"),
            "collision": self.touches().float(),
            "on_road": (lateral.abs() < 1.6).float(),
            "traffic_light": light,
            "steering": self.actions[:, 0],
            "prev_steering": self.prev_actions[:, 0],
            "throttle": self.actions[:, 1].clamp(min=0.0),
            "brake": (-self.actions[:, 1]).clamp(min=0.0),
            "speed_limit": limit,
            "true_score": speed * (lateral.abs() < 1.0),
        }

    def touches(self) -> Tensor:
        """True in rows where the car ahead or the kerb was hit."""
        return (self.at("gap")[:, 0] <= 0.0) | (self.at("lateral")[:, 0].abs() > 2.2)

    def compute_termination(self) -> Tensor:
        return self.touches()
