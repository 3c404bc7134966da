"""`eureka refine`: a run refined by a person's words, choices and edits."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.critique import read_reward_file, render_verdict
from eureka_agent.cli.output import TRUST, say
from eureka_agent.cli.questions import is_yes, line
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import ANSWERS
from eureka_agent.report.blocks import Block, Words
from eureka_agent.report.terminal import CleanConsole, render_block
from eureka_agent.search import board
from eureka_agent.search.refinement import Refinement

if TYPE_CHECKING:
    from eureka_agent.archive.run_folder import Run
    from eureka_agent.report.screen import Screen

PROMPT = "refine> "
Action = Callable[[Refinement, Sequence[str]], Awaitable[None]]


class Conversation:
    """A person at a terminal, as `refinement.Person`."""

    def __init__(
        self, paused: Callable[[], AbstractContextManager[object]], own: str | None = None
    ) -> None:
        """`paused`: frees the terminal of the search's view; `own`: source of a reward that the
        person begins with."""
        self._paused = paused
        self._own = own
        self._greeted = False

    async def __call__(self, at: Refinement) -> None:
        with self._paused():
            await _list(at, ())
            if not self._greeted:
                self._greeted = True
                if self._own is not None:
                    await _take(at, self._own, "")
                say("`help` lists what you can do.")
            while at.run.archive.state.decision is None:
                typed = await line(PROMPT)
                if typed is None:  # the end of the input
                    say("")
                    await _decide("leave", at, ())
                    return
                try:
                    await _carry_out(at, typed)
                except EurekaError as error:
                    say(f"error: {error.message}")
                    if error.hint:
                        say(f" hint: {error.hint}")


async def _carry_out(at: Refinement, typed: str) -> None:
    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise EurekaError(f"cannot read this: {error}") from None
    if words:
        action = _ACTIONS.get(words[0])
        if action is None:
            raise EurekaError(f"there is no {words[0]!r}", "`help` lists what you can do")
        await action(at, words[1:])


# ── seeing ────────────────────────────────────────────────────────────────────────────────────────


async def _help(at: Refinement, words: Sequence[str]) -> None:
    for usage, (_, text) in _COMMANDS.items():
        say(f"  {usage:<29} {text}")


async def _list(at: Refinement, words: Sequence[str]) -> None:
    _show(*board.board(at.run))
    for number, said in board.said_lines(at.run).items():
        _show(Words(f"{number:>5}  {said}"))


async def _see(at: Refinement, words: Sequence[str]) -> None:
    for name, path in (await at.clips.of(words or board.newest_names(at.run))).items():
        say(f"  {name:<8} {path}")


# ── saying ────────────────────────────────────────────────────────────────────────────────────────


async def _say(kind: str, name: str, at: Refinement, words: Sequence[str]) -> None:
    """Say feedback of one field, named by `name`."""
    say(at.say({"kind": kind, name: " ".join(words)}))


async def _decide(then: str, at: Refinement, words: Sequence[str]) -> None:
    await _say("decision", "then", at, [then])


async def _wish(at: Refinement, words: Sequence[str]) -> None:
    board.check_trained(words, at.run)
    saw = await line("What did you see?  (empty: nothing to say)  ") or ""
    wants = await line("What do you want changed?  ") or ""
    wish = {"kind": "wish", "attempt": " ".join(words), "saw": saw, "wants": wants}
    correction = ""
    while True:
        read = await at.read(wish, correction)
        _show(board.reading_facts(at.run, read))
        answer = await line("Right?  [y]es, [n]o: say it again, [d]rop it  ")
        match (answer or "d").strip().lower():
            case "y" | "yes":
                say(at.say(read))
                return
            case "n" | "no":
                correction = await line("What do you mean?  ") or ""
            case "d" | "drop":
                say("nothing is recorded")
                return


async def _pair(at: Refinement, words: Sequence[str]) -> None:
    keys = ", ".join(f"{key} {text}" for key, (_, text) in ANSWERS.items())
    _show(Words(f"{keys}, u undo, q enough"))
    while pair := board.next_pair(at.run):
        clips = await at.clips.of(pair)
        for place, name in enumerate(pair, 1):
            say(f"  clip {place}  {clips[name]}")
        answer = (await line("Which is better?  ") or "q").strip().lower()
        if answer == "q":
            return
        if answer == "u":
            say(at.undo())
        elif answer in ANSWERS:
            first, second = pair
            grade = ANSWERS[answer][0]
            at.say({"kind": "comparison", "first": first, "second": second, "grade": grade})
        else:
            say(f"{answer!r} is none of {', '.join(ANSWERS)}, u, q")
    say("there are not two attempts to compare")


async def _best(at: Refinement, words: Sequence[str]) -> None:
    await _see(at, ())
    typed = (await line("The best and the worst?  (names, - for none)  ") or "").split()
    best, worst = [None if name == "-" else name for name in (*typed, "-", "-")][:2]
    shown = board.newest_names(at.run)
    say(at.say({"kind": "choice", "shown": shown, "best": best, "worst": worst}))


async def _rank(at: Refinement, words: Sequence[str]) -> None:
    of = " ".join(words)
    attempt = "" if of == "metrics" else board.best_name(at.run)
    _show(Words(f"{of}: {', '.join(board.rankable(at.run, of, attempt))}"))
    typed = await line("Most important first, with commas:  ") or ""
    order = [word.strip() for word in typed.split(",") if word.strip()]
    say(at.say({"kind": "importance", "of": of, "attempt": attempt, "order": order}))


async def _edit(at: Refinement, words: Sequence[str]) -> None:
    name = words[0] if words else board.best_name(at.run)
    edited = source = board.source_of(at.run, name)
    while True:
        try:
            edited = click.edit(edited, extension=".py") or edited
        except click.ClickException as error:
            raise EurekaError(error.message, "set EDITOR to an editor that is here") from None
        if edited == source:
            say("nothing was changed")
            return
        if await _take(at, edited, name) or not await is_yes("Edit it again?"):
            return


async def _from(at: Refinement, words: Sequence[str]) -> None:
    if len(words) != 1:
        raise EurekaError("expected a file with a reward function", "from reward.py")
    await _take(at, read_reward_file(Path(words[0])), "")


async def _take(at: Refinement, source: str, attempt: str) -> bool:
    """Give a reward of the person's. False if the critic rejects it."""
    verdict, answer = await at.give(source, attempt)
    say(render_verdict(verdict, source, "reward.py").plain)
    if answer:
        say(answer)
    return verdict.accepted


async def _mark(at: Refinement, words: Sequence[str]) -> None:
    try:
        attempt, second, *note = words
        time, _, panel = second.partition(":")
        place = float(time), int(panel or 1)
    except ValueError:
        what = f"expected an attempt and a second, found {' '.join(words)!r}"
        raise EurekaError(what, "mark 1-02 2.5 it falls, or 2.5:3 in the third panel") from None
    _show(Words(await at.mark(attempt, *place, " ".join(note))))


async def _undo(at: Refinement, words: Sequence[str]) -> None:
    say(at.undo())


def _show(*blocks: Block) -> None:
    for block in blocks:
        CleanConsole().print(*render_block(block))


_COMMANDS: dict[str, tuple[Action, str]] = {
    "see [ATTEMPT…]": (_see, "make clips from the same start states; default: the newest attempts"),
    "say [ATTEMPT]": (_wish, "tell what you saw and what you want changed"),
    "pair": (_pair, "compare two clips, again and again; the pair that tells most comes next"),
    "best": (_best, "choose the best and the worst of the newest clips"),
    "rank terms|metrics": (_rank, "say what matters, most important first"),
    "edit [ATTEMPT]": (_edit, "change a reward in your $EDITOR"),
    "from FILE": (_from, "give a reward of your own"),
    "mark ATTEMPT SECOND [NOTE]": (_mark, "mark when it went wrong; 2.5:3 is in panel 3"),
    "judge choices|fitness|model": (partial(_say, "judge", "by"), "let that rank the attempts"),
    "list": (_list, "show the attempts and all that you said"),
    "withdraw NUMBER": (partial(_say, "withdrawal", "of"), "take back what you said"),
    "undo": (_undo, "take back what you said last"),
    "train": (partial(_decide, "another"), "make and train the next proposals"),
    "finish": (partial(_decide, "finish"), "train the best from fresh seeds, and end"),
    "quit": (partial(_decide, "leave"), "end; all that you said is kept"),
    "help": (_help, "show this"),
}
_ACTIONS = {usage.split()[0]: action for usage, (action, _) in _COMMANDS.items()}


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.option("--from", "own", type=FILE, help="A reward of your own, trained in the first round.")
@click.option(
    "--replay",
    "earlier",
    help="Another run, refined before: say again what was said there, round by round.",
)
@click.option(
    "--max-cost", type=str, help="US dollars that may be spent on models, over the whole run."
)
@TRUST
def refine(
    run: str, own: Path | None, earlier: str | None, max_cost: str | None, trust: bool
) -> None:
    """Refine RUN: watch what it trained, say what you want, train, and watch again.

    Clips show the attempts from the same start state. You can say what you saw and what you want
    changed, compare clips, order what matters, edit a reward, or mark the second at which it went
    wrong. All of it is recorded at once, and `eureka refine RUN` goes on after any end.

    \b
    eureka refine latest
    eureka refine latest --from my_reward.py
    eureka refine latest --replay runs/20260102-101500_ant_run
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.cli.questions import trust_to_resume
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.refinement import replayed
    from eureka_agent.search.resumption import with_changes
    from eureka_agent.search.session import resume

    if own is not None and earlier is not None:
        raise click.UsageError("--replay and --from do not go together")
    changes: dict[str, Any] = {} if max_cost is None else {"max_cost": max_cost}
    source = None if own is None else read_reward_file(own)
    with reading(run) as opened:
        opened.settings = with_changes(opened, changes)
        trust_to_resume(opened, trust)
    person = None
    if earlier is not None:
        with reading(earlier) as other:
            trust_to_resume(other, trust)  # rewards that were given there are trained here
            person = replayed(other.archive.entries())

    def begin(screen: Screen) -> Coroutine[Any, Any, Run]:
        speaker = person or Conversation(screen.paused, source)
        return resume(opened.folder, screen, changes, person=speaker)

    watch(begin, "text")
