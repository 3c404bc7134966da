"""A check of an environment's own drawing, where it has one."""

from __future__ import annotations

from eureka_agent.conformance.checks import Nonconforming, NotApplicable, Subject
from eureka_agent.rendering.pictures import RenderingError, rasterise
from eureka_agent.simulation.user_modules import place_of_function
from eureka_agent.simulation.vec_task import VecTask

_SIZE = (160, 120)


def own_drawing(subject: Subject) -> None:
    """`draw` gives a drawing of every kind of row: at the start and after some steps."""
    if subject.loaded.environment_class.draw is VecTask.draw:
        raise NotApplicable
    environment = subject.make()
    environment.reset()
    for _ in range(3):
        drawing = environment.draw(environment.num_envs - 1)
        try:
            rasterise(drawing, _SIZE)
        except RenderingError as error:
            what = f"{place_of_function(type(environment).draw)}{error.message}"
            raise Nonconforming("draw gives what can be drawn", what, error.hint) from None
        environment.advance(environment.actions + 0.5)
    environment.close()
