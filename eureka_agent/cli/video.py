"""`eureka video`: episodes of a run's policies as a video."""

from __future__ import annotations

import re
from typing import Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import Command, Number, UsageError
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say

_NAMES = ("best", "median", "worst")
_PIXELS = range(64, 1921)


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempts", nargs=-1, metavar="[ATTEMPT]...", shell_complete=completing.attempts)
@click.option(
    "--episode",
    "episodes",
    multiple=True,
    metavar="[best|median|worst|NUMBER]",
    help="Episode to show, by fitness or by number; several times for several.  [default: best,"
    " median and worst]",
)
@click.option(
    "--seconds",
    type=Number(float, 0.1, 600.0),
    default=10.0,
    show_default=True,
    help="Longest part of an episode.",
)
@click.option(
    "--size",
    metavar="WIDTHxHEIGHT",
    help="Pixels of a picture.  [default: 480x360; 320x240 where three or more stand side by side]",
)
@TRUST
@FORMAT
def video(
    run: str,
    attempts: tuple[str, ...],
    episodes: tuple[str, ...],
    seconds: float,
    size: str | None,
    trust: bool,
    output_format: str,
) -> None:
    """Make a video of the best policy of RUN, or of some ATTEMPTs side by side, and a GIF of its
    first 5 s.

    An ATTEMPT is its id, `human`, `sparse`, or `randomised` for the best training under other
    parameters; `2-03@7` is its training from seed 7. The episodes are those that scored the first
    one; the others play from the same start states, all under the environment's defaults.

    \b
    eureka video latest
    eureka video latest 0-02 2-03 human --episode median
    """
    import asyncio

    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.cli.questions import trust_to_film
    from eureka_agent.sandbox.choose import choose_wall
    from eureka_agent.search import filming

    chosen = tuple(_episode(word) for word in episodes) or filming.EPISODES
    pixels = None if size is None else _size(size)
    opened = open_run(find_run(run), reading=True)
    shown = filming.trained_policies(opened, attempts)
    place = filming.default_video(opened, attempts, shown)
    settings = filming.film_settings(opened, shown, chosen, seconds=seconds, size=pixels)
    if settings.last_number() >= settings.episodes:
        raise UsageError(
            f"--episode is {settings.last_number()}, expected less than {settings.episodes}, the"
            " number of episodes",
            "they are numbered from 0",
        )
    trust_to_film(opened, trust)
    animation = place.with_suffix(".gif")
    wall = choose_wall(opened.settings.sandbox)
    filmed = asyncio.run(filming.film(opened, wall, shown, settings, place, animation))
    if not attempts:
        from eureka_agent.search.recorder import renew_html_report

        renew_html_report(opened)  # which holds this clip
    titles = [each.subject.title for each in shown]
    if output_format == "json":
        episodes_shown = [
            {
                "policy": titles[each.policy],
                "shown": each.shown,
                "number": each.number,
                "fitness": each.episode.fitness,
                "length": each.episode.length,
                "ended_by": each.episode.ended_by,
                "begins_s": each.begins_s,
            }
            for each in filmed.episodes
        ]
        files = {"video": str(place), "gif": str(animation)}
        facts = {"seconds": filmed.seconds}
        print_json({"run": opened.name, **files, **facts, "episodes": episodes_shown})
        return
    for each in filmed.episodes:
        unit = opened.description.fitness_unit
        say(f"{titles[each.policy]}, {_told(each, unit)}")
    say(f"video  {place}  ({filmed.seconds:.1f} s)")
    say(f"gif    {animation}")


def _episode(word: str) -> Any:
    if word in _NAMES:
        return word
    if not word.isdecimal():
        expected = f"expected {', '.join(_NAMES)} or a number from 0 on"
        raise UsageError(f"--episode is {word!r}, {expected}", "such as --episode median")
    return int(word)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if found is None or any(int(side) not in _PIXELS for side in found.groups()):
        expected = f"expected WIDTHxHEIGHT with sides of {_PIXELS[0]} to {_PIXELS[-1]} pixels"
        raise UsageError(f"--size is {text!r}, {expected}", "such as --size 640x480")
    return int(found[1]), int(found[2])


def _told(shown: Any, unit: str) -> str:
    from eureka_agent import wording

    name = shown.shown if shown.shown in _NAMES else "chosen"
    fitness = f"{wording.number(shown.episode.fitness)} {'' if unit == '1' else unit}".rstrip()
    ended = shown.episode.ended_by.replace("_", " ")
    return f"{name} episode (number {shown.number}): fitness {fitness}, ended by {ended}"
