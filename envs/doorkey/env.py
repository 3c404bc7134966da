"""MiniGrid's DoorKey in plain torch: a room, a locked door and its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Drawing
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Variable

from . import captions, drawing

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
"""MiniGrid's actions, in its order."""
EMPTY, WALL, GOAL, KEY, OPEN, CLOSED, LOCKED = range(7)
"""Contents of a cell; the last three are a door."""
WAYS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Column and row of a step in each direction: right, down, left, up."""
LEAST_SIZE, LARGEST_SIZE = 5, 16

DEFAULT_TASK = "reach_goal"

_CELLS = "cells"
_AHEAD = "cells ahead of the agent, cells to its right (negative: behind it, to its left)"


def _offset(what: str, more: str = "") -> Variable:
    name = f"{what}_offset_b"
    return Variable(name, (2,), _CELLS, "body", f"where the {what} is: {_AHEAD}{more}")


def _distance(what: str, more: str = "") -> Variable:
    doc = f"columns plus rows between the agent and the {what}, walls not regarded{more}"
    return Variable(f"{what}_distance", (), _CELLS, "world", doc, (0.0, 2.0 * LARGEST_SIZE))


def _position(what: str, more: str) -> Variable:
    doc = f"cell of the {what}: column from the left, row from the top, the outer wall is 0; {more}"
    return Variable(f"{what}_position", (2,), _CELLS, "world", doc, (0.0, LARGEST_SIZE - 1.0))


def _flag(name: str, doc: str) -> Variable:
    return Variable(name, (), "1", "-", f"1 {doc}, else 0", (0.0, 1.0))


def outcome(cell: int, choice: int, carrying: bool) -> tuple[int, bool, bool]:
    """Contents that a choice leaves in the cell in front of the agent, whether the agent steps onto
    it, and whether it carries the key then."""
    if choice == FORWARD:
        return cell, cell in (EMPTY, GOAL, OPEN), carrying
    if choice == PICK_UP and cell == KEY:
        return EMPTY, False, True
    if choice == DROP and cell == EMPTY and carrying:
        return KEY, False, False
    if choice == TOGGLE and (cell == CLOSED or (cell == LOCKED and carrying)):
        return OPEN, False, carrying
    if choice == TOGGLE and cell == OPEN:
        return CLOSED, False, carrying
    return cell, False, carrying


class DoorKey(VecTask):
    """A square of cells, seen from above, with a wall that parts it into a left and a right room.
    The agent starts in the left room, where a key lies. The wall has a locked door, and the goal is
    in the right room's bottom right corner.

    The rules are MiniGrid's (DoorKey, Chevalier-Boisvert et al. 2023). A step is one choice: turn
    left, turn right, one cell forward, pick up the key, drop it, toggle the door, or nothing. Pick
    up, drop and toggle act on the cell in front of the agent. Toggling opens a locked door if the
    agent carries the key; a door that has been unlocked opens and closes without it. The agent
    walks through an open door, and neither through a wall nor over the key. The key can be dropped
    on an empty cell alone. Wall, door, key and agent are placed anew in each episode, which lasts
    360 steps at most and ends when the agent steps on the goal.
    """

    variables = (
        _position("agent", "walls are in column and row 0 and in the last ones"),
        Variable(
            "agent_direction",
            (2,),
            "1",
            "world",
            "direction that it looks in: (1, 0) right, (0, 1) down, (-1, 0) left, (0, -1) up",
            (-1.0, 1.0),
        ),
        _position("key", "the agent's own while it carries the key"),
        _position("door", "its column is that of the wall between the rooms"),
        _position("goal", "the right room's bottom right corner"),
        _offset("key", "; 0, 0 while the agent carries it"),
        _offset("door"),
        _offset("goal"),
        _distance("key", "; 0 while the agent carries it"),
        _distance("door"),
        _distance("goal", "; the episode ends at 0"),
        _flag("has_key", "while the agent carries the key"),
        _flag("door_unlocked", "from the moment on when the door was opened with the key"),
        _flag("door_open", "while the door is open"),
        Variable(
            "columns_past_door",
            (),
            _CELLS,
            "world",
            "the agent's column less the door's: negative in the left room, 0 in the door",
            (-float(LARGEST_SIZE), float(LARGEST_SIZE)),
        ),
        _flag("in_goal_room", "while the agent is to the right of the wall with the door"),
        _flag("facing_wall", "if the cell in front of the agent is a wall"),
        _flag("facing_key", "if the key lies on the cell in front of the agent"),
        _flag("facing_door", "if the door, open or not, is in front of the agent"),
        _flag("facing_goal", "if the goal is in front of the agent"),
        Variable(
            "steps_left",
            (),
            "1",
            "-",
            "share of the episode's steps that is left: 1 at its start, 0 at its time limit",
            (0.0, 1.0),
        ),
    )
    observation_channels = (
        Channel("agent_position", ("column", "row"), _CELLS, "world", "cell", 0.1),
        Channel("agent_direction", ("right", "down"), "1", "world", "where the agent looks"),
        Channel("key_offset_b", ("ahead", "right"), _CELLS, "body", "0, 0 while carried", 0.2),
        Channel("door_offset_b", ("ahead", "right"), _CELLS, "body", "from agent to door", 0.2),
        Channel("goal_offset_b", ("ahead", "right"), _CELLS, "body", "from agent to goal", 0.2),
        Channel("has_key", doc="1 while the key is carried"),
        Channel("door_unlocked", doc="1 once the key was used"),
        Channel("door_open", doc="1 while the door is open"),
        Channel("columns_past_door", (), _CELLS, "world", "negative in the left room", 0.2),
        Channel("facing_wall", doc="1 if a wall is in front"),
        Channel("facing_key", doc="1 if the key is in front"),
        Channel("facing_door", doc="1 if the door is in front"),
        Channel("steps_left", doc="share of the episode that is left"),
    )
    action_channels = (
        Channel(
            "choice",
            doc="0 turn left, 1 turn right, 2 step forward, 3 pick up, 4 drop, 5 toggle, 6 nothing",
        ),
    )
    device_types = ("cpu", "cuda")
    num_observations = 18
    num_actions = 1
    action_choices = (7,)
    max_episode_length = 360
    control_dt = 1.0
    termination_causes = ("reached_goal",)
    success_causes = ("reached_goal",)
    termination_conditions: Mapping[str, str] = {"reached_goal": "goal_distance below 1"}
    caption_variables = captions.VARIABLES
    caption_codes = staticmethod(captions.codes)
    caption = staticmethod(captions.PARTS.text)

    def __init__(
        self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0, *, size: int = 8
    ) -> None:
        """`size` cells along each side, the outer walls among them."""
        super().__init__(num_envs, device, seed)
        if not LEAST_SIZE <= size <= LARGEST_SIZE:
            raise ValueError(f"size is {size!r}, expected {LEAST_SIZE} to {LARGEST_SIZE}")
        self.size = size
        self.masses_and_sizes = (
            f"{size} × {size} cells, the outer walls among them",
            f"goal at column {size - 2}, row {size - 2}",
        )
        self._rules = torch.tensor(
            [
                [
                    [outcome(cell, choice, carrying) for carrying in (False, True)]
                    for choice in range(7)
                ]
                for cell in range(7)
            ],
            device=self.device,
        ).view(-1, 3)
        """`outcome` of cell, choice and carrying. Shape: (7 * 7 * 2, 3)."""
        self._turns = torch.tensor([-1, 1, 0, 0, 0, 0, 0], device=self.device)
        self._frames = torch.tensor(
            [[[x, -y], [y, x]] for x, y in WAYS], dtype=torch.float32, device=self.device
        )
        """Columns: the way ahead and to the right in each direction. Shape: (4, 2, 2)."""
        self._coordinates = torch.tensor(
            [[float(cell % size), float(cell // size)] for cell in range(size * size)],
            device=self.device,
        )
        self._steps = torch.tensor([column + size * row for column, row in WAYS]).to(self.device)
        self._facing = torch.tensor(
            [
                [float(cell in kinds) for kinds in ((WALL,), (KEY,), (OPEN, CLOSED, LOCKED))]
                for cell in range(7)
            ],
            device=self.device,
        )
        self._door_flags = torch.tensor(
            [[float(cell != LOCKED), float(cell == OPEN)] for cell in range(7)], device=self.device
        )
        self._rooms = torch.tensor([_rooms(size, wall) for wall in range(size)]).to(self.device)
        # a cell is its number row by row: column + size * row
        self.cells = torch.zeros(num_envs, size * size, dtype=torch.int64, device=self.device)
        self.agent = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self.goal = torch.full_like(self.agent, size - 2 + size * (size - 2))
        self.direction = torch.zeros_like(self.agent)
        self.carrying = torch.zeros_like(self.agent)
        self.key = torch.zeros_like(self.agent)
        """Cell where the key lies; the agent's own while it is carried."""
        self.door = torch.zeros_like(self.agent)

    def pre_physics_step(self, actions: Tensor) -> None:
        choice = actions[:, 0].long()
        front = self.agent + self._steps[self.direction]
        place = front.unsqueeze(-1)
        cell = self.cells.gather(1, place).squeeze(-1)
        after, moves, self.carrying = self._rules[(cell * 7 + choice) * 2 + self.carrying].unbind(
            dim=-1
        )
        self.cells.scatter_(1, place, after.unsqueeze(-1))
        self.agent = torch.where(moves == 1, front, self.agent)
        self.direction = (self.direction + self._turns[choice]) & 3
        lies_at = torch.where(after == KEY, front, self.key)
        self.key = torch.where(self.carrying == 1, self.agent, lies_at)

    def _places(self) -> Tensor:
        """Column and row of agent, key, door and goal. Shape: (num_envs, 4, 2)."""
        places = torch.stack([self.agent, self.key, self.door, self.goal], dim=-1)
        return self._coordinates[places]

    def compute_observations(self) -> None:
        places = self._places()
        own = places[:, 0]
        frame = self._frames[self.direction]
        front = self.agent + self._steps[self.direction]
        cells = self.cells.gather(1, torch.stack([front, self.door], dim=-1))
        entries = (
            0.1 * own,
            frame[:, :, 0],
            0.2 * torch.bmm(places[:, 1:] - own.unsqueeze(1), frame).flatten(1),
            self.carrying.unsqueeze(-1),
            self._door_flags[cells[:, 1]],
            0.2 * (own[:, :1] - places[:, 2, :1]),
            self._facing[cells[:, 0]],
            (1.0 - self.progress_buf / self.max_episode_length).unsqueeze(-1),
        )
        torch.cat(entries, dim=-1, out=self.obs_buf)

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        flags = ("has_key", "door_unlocked", "door_open")
        facing = ("facing_wall", "facing_key", "facing_door")
        found: dict[str, Tensor | Callable[[], Tensor]] = {
            "agent_direction": self.obs_buf[:, 2:4],
            "agent_position": lambda: self._places()[:, 0],
            **{name: self.obs_buf[:, 10 + number] for number, name in enumerate(flags)},
            **{name: self.obs_buf[:, 14 + number] for number, name in enumerate(facing)},
            "columns_past_door": lambda: self.obs_buf[:, 13].mul(5.0).round(),
            "in_goal_room": lambda: (self.obs_buf[:, 13] > 0.0).float(),
            "facing_goal": self._faces_goal,
            "steps_left": self.obs_buf[:, 17],
        }
        for number, name in enumerate(("key", "door", "goal")):
            found[f"{name}_position"] = partial(self._position, number)
            found[f"{name}_offset_b"] = partial(self._offset, number)
            found[f"{name}_distance"] = partial(self._distance, number)
        return found

    def _faces_goal(self) -> Tensor:
        return (self.agent + self._steps[self.direction] == self.goal).float()

    def _position(self, number: int) -> Tensor:
        return self._places()[:, number + 1]

    def _offset(self, number: int) -> Tensor:
        return self.obs_buf[:, 4 + 2 * number : 6 + 2 * number].mul(5.0).round()

    def _distance(self, number: int) -> Tensor:
        return self._offset(number).abs().sum(dim=-1)

    def compute_termination(self) -> dict[str, Tensor]:
        return {"reached_goal": self.agent == self.goal}

    def draw(self, row: int) -> Drawing:
        """See drawing.py."""
        places = [int(place[row]) for place in (self.agent, self.key, self.door)]
        agent, key, door = ((place % self.size, place // self.size) for place in places)
        state = int(self.cells[row, places[2]])
        return drawing.draw(
            self.size,
            agent,
            WAYS[int(self.direction[row])],
            key,
            door,
            state == OPEN,
            state == LOCKED,
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        """Places of MiniGrid's distribution: wall, door, agent, and key on another cell."""
        draws = self.random.uniform(env_ids, 5)
        size, height = self.size, self.size - 2
        # columns 2 to size - 3, rows 1 to size - 3
        wall = 2 + (draws[:, 0] * (size - 4)).long()
        door = wall + size * (1 + (draws[:, 1] * (size - 3)).long())
        free = (wall - 1) * height
        place = (draws[:, 2] * free).long()
        other = (draws[:, 3] * (free - 1)).long()
        other = other + (other >= place).long()
        agent, key = (1 + each // height + size * (1 + each % height) for each in (place, other))
        cells = self._rooms[wall].scatter(1, door.unsqueeze(-1), LOCKED)
        self.cells[env_ids] = cells.scatter(1, key.unsqueeze(-1), KEY)
        self.agent[env_ids] = agent
        self.key[env_ids] = key
        self.door[env_ids] = door
        self.direction[env_ids] = (draws[:, 4] * 4).long()
        self.carrying.index_fill_(0, env_ids, 0)


def _rooms(size: int, wall: int) -> list[int]:
    """Cells of two rooms parted by a wall, row by row, with the goal."""
    last = size - 1
    cells = [
        WALL if column in (0, wall, last) or row in (0, last) else EMPTY
        for row in range(size)
        for column in range(size)
    ]
    cells[size - 2 + size * (size - 2)] = GOAL
    return cells
