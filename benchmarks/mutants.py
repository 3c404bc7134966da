"""Faults planted one at a time in a copy of the project, and the tests that catch each.

    python benchmarks/mutants.py [PATTERN …] [--list] [--jobs N] [--limit SECONDS] [--results FILE]
    [--against FILE]

Shows that a change of the tests lost nothing: run it before (`--results before.json`) and after
(`--against before.json`). results/mutants.json has such a run. The faults are in faults/*.toml;
`_faults.py` describes their form. Patterns name faults (`training/adam_*`) or parts (`training`).
Without a pattern all faults are tried, which takes two idle cores under an hour with `--jobs 2`.
`--drawn` tries those that were drawn at random (`drawn_faults.py`).

First, all tests that the faults name are run without a fault: a test that fails there catches
nothing. Then each fault is planted in a copy, its tests are run until five of them fail, and it is
taken out. It is caught if a test fails that did not fail without it, or if its tests do not end in
time.

Exit status: 0; 1 if a fault survives (with `--against`: one that was caught then, or no longer
exists), cannot be planted, or has no test that runs; 2 for a faulty command line.
"""

from __future__ import annotations

import argparse
import compileall
import itertools
import json
import os
import py_compile
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from _faults import FAULTS, Fault, copy_project, load_faults, select
from _results import commit

from eureka_agent.errors import signal_name

ROOT = FAULTS.parent.parent
MOST_FAILURES = 5
LIMIT_SECONDS = 240.0
_LONGEST_CONTROL_SECONDS = 3600.0

Outcome = Literal["caught", "survives", "no end", "not tested", "does not apply"]
CAUGHT: tuple[Outcome, ...] = ("caught", "no end")


@dataclass(frozen=True)
class TestRun:
    """A run of pytest."""

    ended: bool
    """False if it was killed because its time was over."""
    ran: int
    """Tests that were not skipped."""
    failed: tuple[str, ...]
    """Tests that failed or could not run, as pytest names them."""
    output: str
    seconds: float


@dataclass(frozen=True)
class Result:
    """The fate of a fault."""

    outcome: Outcome
    caught_by: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    commit: str = ""
    """Commit on which the fault was tried."""


def run_tests(project: Path, tests: Sequence[str], limit_s: float, most_failures: int) -> TestRun:
    """Run tests in a copy of the project, each folder of `tests` by itself: several have helpers of
    the same name."""
    runs: list[TestRun] = []
    for _, group in itertools.groupby(sorted(tests), key=lambda test: Path(test).parts[:2]):
        left_s = limit_s - sum(run.seconds for run in runs)
        runs.append(_run_folder(project, list(group), left_s, most_failures))
        if not runs[-1].ended or len(runs[-1].failed) >= most_failures:
            break
    return TestRun(
        ended=runs[-1].ended,
        ran=sum(run.ran for run in runs),
        failed=tuple(test for run in runs for test in run.failed),
        output="\n".join(run.output for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


def _run_folder(project: Path, tests: Sequence[str], limit_s: float, most_failures: int) -> TestRun:
    """One run of pytest, in a group of processes that is killed at the end."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        report, said = Path(folder, "report.xml"), Path(folder, "output.txt")
        command = [
            *(sys.executable, "-m", "pytest", *tests, "-q", "--tb=line", "-p", "no:cacheprovider"),
            *(f"--maxfail={most_failures}", f"--junit-xml={report}", "-o", "junit_family=xunit1"),
        ]
        begin = time.monotonic()
        with said.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=project,
                env={**os.environ, "PYTHONPATH": str(project)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(limit_s)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            finally:
                _kill_group(process.pid)
                process.wait()
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        ran, failed = _read(cases)
        if ended and process.returncode < 0:  # what was let loose may end pytest itself
            failed = (*failed, f"pytest, ended by {signal_name(-process.returncode)}")
        elif not report.exists():  # faulthandler's own limit, on one test
            ended = False
        text = said.read_text(errors="replace")
        return TestRun(ended, ran, failed, text, time.monotonic() - begin)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(group, signal.SIGKILL)


def _read(cases: Iterable[ElementTree.Element]) -> tuple[int, tuple[str, ...]]:
    """The number of tests that ran, and the names of the failed ones."""
    ran, failed = 0, []
    for case in cases:
        ran += case.find("skipped") is None
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append("::".join(filter(None, (case.get("file"), case.get("name")))))
    return ran, tuple(dict.fromkeys(failed))


def try_fault(fault: Fault, project: Path, known: frozenset[str], limit_s: float) -> Result:
    """Plant a fault in a copy of the project and run its tests. `known`: tests that fail without
    it."""
    reason = fault.why_not(project)
    if reason:
        return Result("does not apply", reason=reason)
    with fault.planted(project):
        for tests in filter(None, (fault.tests, fault.wider)):
            run = run_tests(project, tests, limit_s, MOST_FAILURES + len(known))
            caught_by = tuple(test for test in run.failed if test not in known)
            if caught_by or not run.ended:
                break
    seconds = round(run.seconds, 1)
    if not run.ended:
        return Result("no end", caught_by, f"killed after {limit_s:g} s", seconds)
    if caught_by:
        return Result("caught", caught_by, seconds=seconds)
    if not run.ran:
        last = (run.output.strip().splitlines() or ["pytest said nothing"])[-1]
        return Result("not tested", reason=f"no test ran: {last}", seconds=seconds)
    return Result("survives", seconds=seconds)


def try_all(
    faults: Sequence[Fault], root: Path, jobs: int, limit_s: float
) -> Iterator[tuple[str, Result]]:
    """Each fault's name and result, printed when it is known.

    `jobs`: copies of the project, in each of which one fault at a time is tried.
    """
    tried_on = commit()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            project = Path(folder, str(number))
            copy_project(root, project)
            compileall.compile_dir(
                project / "eureka_agent",
                quiet=1,
                invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
            )
            copies.put(project)
        with ThreadPoolExecutor(jobs) as pool:
            known = frozenset(_failing_without_fault(faults, copies, pool, root, jobs))

            def one(fault: Fault) -> tuple[str, Result]:
                project = copies.get()
                try:
                    result = try_fault(fault, project, known, limit_s)
                finally:
                    copies.put(project)
                print(line(fault.name, result), flush=True)
                return fault.name, replace(result, commit=tried_on)

            yield from pool.map(one, faults)


def _failing_without_fault(
    faults: Sequence[Fault],
    copies: SimpleQueue[Path],
    pool: ThreadPoolExecutor,
    root: Path,
    jobs: int,
) -> tuple[str, ...]:
    """Tests of these faults that fail without any of them."""
    planted = (fault for fault in faults if not fault.why_not(root))
    named = {test for fault in planted for test in (*fault.tests, *fault.wider)}
    parts = [sorted(named)[first::jobs] for first in range(jobs)]

    def failing(tests: list[str]) -> tuple[str, ...]:
        project = copies.get()
        try:
            run = run_tests(project, tests, _LONGEST_CONTROL_SECONDS, sys.maxsize)
        finally:
            copies.put(project)
        if not run.ended or (not run.ran and not run.failed):
            print(f"without any fault these tests do not run:\n{run.output[-2000:]}", flush=True)
        return run.failed

    begin = time.monotonic()
    found = [test for failed in pool.map(failing, filter(None, parts)) for test in failed]
    print(f"without any fault: {len(found)} failing tests, {time.monotonic() - begin:.0f} s")
    for test in found:
        print(f"  FAILS WITHOUT ANY FAULT  {test}")
    return tuple(found)


def line(name: str, result: Result) -> str:
    """A result for people; loud where the fault was not caught."""
    outcome = "caught" if result.outcome == "caught" else result.outcome.upper()
    head = f"{outcome:15} {name}  ({result.seconds:.0f} s)" + (
        f": {result.reason}" if result.reason else ""
    )
    return "\n".join([head, *(f"    {test}" for test in result.caught_by)])


def lost(
    results: dict[str, Result], earlier: dict[str, Result], patterns: Sequence[str]
) -> list[str]:
    """Faults that were caught earlier and are not caught now. If all faults were tried, one that no
    longer exists is lost too."""
    return [
        name
        for name, before in earlier.items()
        if before.outcome in CAUGHT
        and (results[name].outcome not in CAUGHT if name in results else not patterns)
    ]


def load_results(path: Path) -> dict[str, Result]:
    """Results by fault, as `--results` stored them."""
    stored = json.loads(path.read_text(encoding="utf-8"))["faults"]
    return {
        name: Result(**{**result, "caught_by": tuple(result["caught_by"])})
        for name, result in stored.items()
    }


def store(path: Path, results: dict[str, Result], faults: Iterable[str]) -> None:
    """Write results as JSON. The file's results for others of these `faults` stay, so a run can be
    made in parts."""
    stored = {**(load_results(path) if path.exists() else {}), **results}
    there = {name: stored[name] for name in faults if name in stored}
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "counts": Counter(result.outcome for result in there.values()),
        "faults": {name: asdict(result) for name, result in there.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def show_list(faults: Sequence[Fault], root: Path) -> int:
    """Print the faults. Returns the exit status: 1 if one cannot be planted."""
    broken = 0
    for fault in faults:
        reason = fault.why_not(root)
        broken += bool(reason)
        print(f"{fault.name:45} {fault.what}" + (f"\n  DOES NOT APPLY: {reason}" if reason else ""))
    print(f"{len(faults)} faults" + (f", {broken} of which do not apply" if broken else ""))
    return int(broken > 0)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, folder: Path = FAULTS) -> int:
    """Do what the command line says. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="faults or parts")
    parser.add_argument("--drawn", action="store_true", help="those of drawn_faults.py")
    parser.add_argument("--list", action="store_true", help="name the faults and run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (1)")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_SECONDS, help="seconds for a fault's tests (240)"
    )
    parser.add_argument("--results", type=Path, help="file for the results, as JSON")
    parser.add_argument("--against", type=Path, help="earlier results to compare with")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}, expected 1 or more")
    try:
        every = load_faults(folder / "drawn" if options.drawn else folder)
        faults = select(every, options.patterns)
        earlier = None if options.against is None else load_results(options.against)
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(str(error))
    if options.list:
        return show_list(faults, root)
    begin = time.monotonic()
    results = {}
    for name, result in try_all(faults, root, options.jobs, options.limit):
        results[name] = result
        if options.results is not None:
            store(options.results, results, [fault.name for fault in every])
    minutes = (time.monotonic() - begin) / 60.0
    counts = Counter(result.outcome for result in results.values())
    print(f"\n{len(results)} faults in {minutes:.0f} minutes: ", end="")
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    for name, result in results.items():
        if result.outcome not in CAUGHT:
            print(line(name, result))
    unplanted = counts["does not apply"] + counts["not tested"]
    if earlier is None:
        return int(unplanted + counts["survives"] > 0)
    now_lost = lost(results, earlier, options.patterns)
    for name in now_lost:
        print(f"LOST: {name} was caught by {', '.join(earlier[name].caught_by) or 'its tests'}")
    print(f"{len(now_lost)} faults are lost against {options.against}")
    return int(unplanted > 0 or bool(now_lost))


if __name__ == "__main__":
    sys.exit(main())
