"""The conversation of `eureka refine` in a terminal: see, say, train."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager

import click

from eureka_agent import wording
from eureka_agent.cli.critique import render_verdict
from eureka_agent.cli.output import say
from eureka_agent.cli.questions import is_yes, line
from eureka_agent.errors import EurekaError
from eureka_agent.feedback.standing import choices_of, what_ranks
from eureka_agent.feedback_records import GRADES, MOST_CLIPS, Grade, Mark, Wish, feedback_line
from eureka_agent.search.table import Decision, Table, with_values

PROMPT = "refine> "
_GRADES: dict[str, Grade | None] = {"1": 2, "2": 1, "3": 0, "4": -1, "5": -2, "0": None}
_COMMANDS = {
    "see [ATTEMPT…]": "make clips, all from the same start states; default: the newest attempts",
    "say [ATTEMPT]": "tell what you saw and what you want changed",
    "pair": "compare two clips, again and again; the pair that tells most comes next",
    "best": "choose the best and the worst of the newest clips",
    "rank terms|metrics": "say what matters, most important first",
    "edit [ATTEMPT]": "change a reward in your $EDITOR",
    "set ATTEMPT NAME VALUE": "change one constant of a reward",
    "from FILE": "give a reward of your own",
    "mark ATTEMPT SECOND [NOTE]": "mark the second at which it went wrong; 2.5:3 is in panel 3",
    "judge choices|fitness|model": "let your choices, the fitness or a model rank the attempts",
    "list": "show the attempts and all that you said",
    "withdraw NUMBER, undo": "take back what you said",
    "train": "make and train the next proposals",
    "finish": "train the best from fresh seeds, and end",
    "quit": "end; all that you said is kept",
}


class Conversation:
    """A person at a terminal."""

    def __init__(
        self, paused: Callable[[], AbstractContextManager[object]], own: str | None = None
    ) -> None:
        """`paused`: frees the terminal of the search's view; `own`: source of a reward that the
        person begins with."""
        self._paused = paused
        self._own = own
        self._greeted = False
        self._actions: dict[str, Callable[[Table, Sequence[str]], Awaitable[None]]] = {
            "see": self._see,
            "say": self._say,
            "pair": self._pair,
            "best": self._best,
            "rank": self._rank,
            "edit": self._edit,
            "set": self._set,
            "from": self._from,
            "mark": self._mark,
            "judge": self._judge,
            "list": self._list,
            "withdraw": self._withdraw,
            "undo": self._undo,
            "help": self._help,
        }

    async def decide(self, table: Table) -> Decision:
        """See `table.Person`."""
        with self._paused():
            await self._list(table, ())
            if not self._greeted:
                self._greeted = True
                if self._own is not None:
                    await self._take(table, self._own, "")
                say("`help` lists what you can do.")
            while True:
                typed = await line(PROMPT)
                if typed is None:
                    say("")
                    return "leave"
                if decision := await self._do(table, typed):
                    return decision

    async def _do(self, table: Table, typed: str) -> Decision | None:
        """Carry out one command; a decision ends the conversation for now."""
        try:
            words = shlex.split(typed)
        except ValueError as error:
            say(f"cannot read this: {error}")
            return None
        if not words:
            return None
        name, *rest = words
        if name == "train":
            return "another"
        if name == "finish":
            return "finish"
        if name in ("quit", "exit", "q"):
            return "leave"
        action = self._actions.get(name)
        if action is None:
            say(f"there is no {name!r}; `help` lists what you can do")
            return None
        try:
            await action(table, rest)
        except EurekaError as error:
            say(f"error: {error.message}")
            if error.hint:
                say(f" hint: {error.hint}")
        return None

    # ── seeing ────────────────────────────────────────────────────────────────────────────────────

    async def _help(self, table: Table, words: Sequence[str]) -> None:
        for name, text in _COMMANDS.items():
            say(f"  {name:<29} {text}")

    async def _list(self, table: Table, words: Sequence[str]) -> None:
        attempts, feedback, by = table.attempts(), table.feedback, what_ranks(table.feedback)
        amount = wording.plural(len(attempts), "trained attempt")
        say(f"{amount}, ranked by {table.ranked_by()}:")
        found = table.preferences(by) if choices_of(feedback) or by == "model" else None
        newest = {each.id for each in table.newest()}
        for each in attempts[:12]:
            parts = [f"  {each.id:<8}"]
            if by == "fitness":
                parts.append(f"fitness {wording.number(each.fitness)}")
            if found is not None:
                mean, deviation = found.strength(each.id)
                parts.append(f"strength {mean:+.2f} ± {deviation:.2f}")
                parts.append(f"best with {found.chance_best[each.id]:.0%}")
            if each.id in newest:
                parts.append("new")
            say("  ".join(parts))
        if len(attempts) > 12:
            say(f"  and {len(attempts) - 12} more")
        if judged := table.judged_words():
            _tell(judged)
        if table.said:
            say("You said:")
        for given in table.said:
            say(f"  {given.number:>5}  {given.who} {feedback_line(given.feedback)}")
            wish = given.feedback
            if isinstance(wish, Wish) and (measure := table.measure_line(wish.reading)):
                _tell(f"         {measure}")

    async def _see(self, table: Table, words: Sequence[str]) -> None:
        names = list(words) or [each.id for each in table.newest()[:MOST_CLIPS]]
        for name, path in (await table.clips(names)).items():
            say(f"  {name:<8} {path}")

    # ── saying ────────────────────────────────────────────────────────────────────────────────────

    async def _say(self, table: Table, words: Sequence[str]) -> None:
        attempt = words[0] if words else ""
        if attempt:
            table.check_trained([attempt])
        saw = await line("What did you see?  (empty: nothing to say)  ") or ""
        wants = await line("What do you want changed?  ") or ""
        wish = table.wish(attempt, saw, wants)
        correction = ""
        while True:
            reading = await table.read(wish, correction)
            _tell(f"I take this as: {reading.text}")
            for title in ("stays", "goes", "changes"):
                if parts := getattr(reading, title):
                    _tell(f"  {title}: {'; '.join(parts)}")
            if measure := table.measure_line(reading):
                _tell(f"  measured by: {measure}")
            if reading.unread:
                _tell(f"  not understood: {', '.join(reading.unread)}")
            answer = await line("Right?  [y]es, [n]o: say it again, [d]rop it  ")
            match (answer or "d").strip().lower():
                case "y" | "yes":
                    say(f"recorded as {table.accept(wish, reading, correction)}")
                    return
                case "n" | "no":
                    correction = await line("What do you mean?  ") or ""
                case "d" | "drop":
                    say("nothing is recorded")
                    return

    async def _pair(self, table: Table, words: Sequence[str]) -> None:
        say(f"1 first {GRADES[2].removeprefix('is ').removesuffix(' than')}, 2 better, 3 alike,")
        say("4 second better, 5 second much better, 0 cannot tell, u undo, q enough")
        while True:
            pair = table.next_pair()
            if pair is None:
                say("there are not two attempts to compare")
                return
            clips = await table.clips(pair)
            for place, name in enumerate(pair, 1):
                say(f"  clip {place}  {clips[name]}")
            answer = (await line("Which is better?  ") or "q").strip().lower()
            if answer == "q":
                return
            if answer == "u":
                await self._undo(table, ())
            elif answer in _GRADES:
                table.compare(pair[0], pair[1], _GRADES[answer])
            else:
                say(f"{answer!r} is none of 0 to 5, u, q")

    async def _best(self, table: Table, words: Sequence[str]) -> None:
        names = [each.id for each in table.newest()[:MOST_CLIPS]]
        if len(names) < 2:
            raise EurekaError("there are not two new attempts to choose from", "train first")
        clips = await table.clips(names)
        for number, name in enumerate(names, 1):
            say(f"  clip {number}  {clips[name]}")
        picked: dict[str, str | None] = {}
        for kind in ("best", "worst"):
            while True:
                answer = (await line(f"The {kind}?  (number, or empty for none)  ") or "").strip()
                if not answer or (answer.isdecimal() and 0 < int(answer) <= len(names)):
                    picked[kind] = names[int(answer) - 1] if answer else None
                    break
                say(f"{answer!r} is none of 1 to {len(names)}")
        say(f"recorded as {table.choose(names, picked['best'], picked['worst'])}")

    async def _rank(self, table: Table, words: Sequence[str]) -> None:
        of = " ".join(words)
        _, known = table.rankable(of)
        _tell(f"{of}: {', '.join(known)}")
        typed = await line("Most important first, with commas:  ") or ""
        number = table.rank(of, [word.strip() for word in typed.split(",") if word.strip()])
        say(f"recorded as {number}")

    async def _edit(self, table: Table, words: Sequence[str]) -> None:
        name = words[0] if words else next((each.id for each in table.attempts()), "")
        edited = source = table.source(name)
        while True:
            try:
                edited = click.edit(edited, extension=".py") or edited
            except click.ClickException as error:
                raise EurekaError(error.message, "set EDITOR to an editor that is here") from None
            if edited == source:
                say("nothing was changed")
                return
            if await self._take(table, edited, name):
                return
            if not await is_yes("Edit it again?"):
                say("nothing is recorded")
                return

    async def _set(self, table: Table, words: Sequence[str]) -> None:
        try:
            name, constant, text = words
            value = float(text)
        except ValueError:
            what = f"expected an attempt, a constant and its value, found {' '.join(words)!r}"
            raise EurekaError(what, "set 1-02 SPEED 2.5") from None
        await self._take(table, with_values(table.source(name), {constant: value}), name)

    async def _from(self, table: Table, words: Sequence[str]) -> None:
        from pathlib import Path

        from eureka_agent.cli.critique import read_reward_file

        if len(words) != 1:
            raise EurekaError("expected a file with a reward function", "from reward.py")
        await self._take(table, read_reward_file(Path(words[0])), "")

    async def _take(self, table: Table, source: str, attempt: str) -> bool:
        """Give a reward of the person's. False if the critic rejects it."""
        verdict, number = await table.give(source, attempt)
        say(render_verdict(verdict, source, "reward.py").plain)
        if number is not None:
            say(f"recorded as {number}; `train` trains it")
        return number is not None

    async def _mark(self, table: Table, words: Sequence[str]) -> None:
        try:
            attempt, second, *note = words
            time, _, panel = second.partition(":")
            place = float(time), int(panel or 1)
        except ValueError:
            what = f"expected an attempt and a second, found {' '.join(words)!r}"
            raise EurekaError(what, "mark 1-02 2.5 it falls, or 2.5:3 in the third panel") from None
        number = await table.mark(attempt, *place, " ".join(note))
        marked = table.feedback[-1].feedback
        assert isinstance(marked, Mark)  # what was just said
        _tell(f"recorded as {number}: {marked.state}")

    async def _judge(self, table: Table, words: Sequence[str]) -> None:
        table.judge_by(" ".join(words))
        await self._list(table, ())

    async def _withdraw(self, table: Table, words: Sequence[str]) -> None:
        if len(words) != 1 or not words[0].isdecimal():
            raise EurekaError("expected the number of what you said", "`list` shows them")
        table.withdraw(int(words[0]))
        say(f"{words[0]} counts no more")

    async def _undo(self, table: Table, words: Sequence[str]) -> None:
        last = table.undo()
        if last is None:
            say("there is nothing to take back")
        else:
            say(f"{last.number} counts no more: {feedback_line(last.feedback)}")


def _tell(text: str) -> None:
    """Print a paragraph, as wide as the terminal, at most 100 columns."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    wrap = textwrap.TextWrapper(
        width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )  # so that a path stays whole
    for part in wrap.wrap(text) or [""]:
        say(part)
