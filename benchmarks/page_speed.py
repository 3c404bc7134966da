"""Speed of the page of `eureka ui`: a run of 1,000 attempts, each of about 30 KB with the request
to a model that designed it.

    python benchmarks/page_speed.py [--attempts 1000]

Four figures: the server's time for each page, from its request to the last byte, at the first look
and after; the time until a browser paints a run's page; the memory of the server's process once all
pages were looked at; and its CPU time while browsers watch a run that grows by one attempt a
second, and one that stands still.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import show_speed
from _results import write_result

from eureka_agent.archive.artefacts import CURVES, attempt_folder
from eureka_agent.archive.files import locked
from eureka_agent.archive.run_folder import list_runs, open_run
from eureka_agent.journal import entries
from eureka_agent.records import CurvePoint
from eureka_agent.report.curves import write_curves_csv

NAME = "page_speed"
CURVE = tuple(
    CurvePoint(
        env_steps=1000 * number,
        fitness=float(number),
        episode_length=100.0,
        episodes=4,
        reward=0.5,
        components={f"component_{name}": 0.25 for name in range(5)},
        component_magnitudes={f"component_{name}": 0.25 for name in range(5)},
        component_deviations={f"component_{name}": 0.25 for name in range(5)},
        terminations={"off_track": 1},
        action_saturation=0.0,
        action_std=1.0,
        learning_rate=1e-3,
        kl=0.01,
        entropy=1.4,
        value_loss=2.0,
        policy_loss=-0.1,
        explained_variance=0.75,
    )
    for number in range(1, 301)
)


class Served:
    """A real `eureka ui` on a runs folder."""

    def __init__(self, runs: Path) -> None:
        command = [sys.executable, "-m", "eureka_agent.cli.main", "ui"]
        self.process = subprocess.Popen(
            command, env={**os.environ, "EUREKA_RUNS": str(runs)}, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = httpx.URL(self.process.stdout.readline().split()[-1])
        self.client = httpx.Client(base_url=self.address.copy_with(query=None), timeout=60.0)
        self.client.get(self.address)

    def milliseconds(self, path: str) -> float:
        """Wall time of a request, to its last byte."""
        began = time.perf_counter()
        self.client.get(path).raise_for_status()
        return 1000 * (time.perf_counter() - began)

    def megabytes(self, field: str = "VmHWM") -> float:
        """Most resident memory of the process so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024

    def cpu_seconds(self) -> float:
        """CPU time of the process so far."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def watch(self, run: str) -> None:
        """Watch a run until the server ends, as a browser does."""

        def read() -> None:
            try:
                with self.client.stream("GET", f"/runs/{run}/live", timeout=None) as stream:
                    for _ in stream.iter_raw():
                        pass
            except httpx.HTTPError:
                return

        threading.Thread(target=read, daemon=True).start()

    def end(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait()


def times_of_pages(served: Served, run: str, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each page, first and then the least of several."""
    pages = {
        "list": "/",
        "run": f"/runs/{run}",
        "attempts": f"/runs/{run}/attempts?page=3",
        "attempt": f"/runs/{run}/attempts/1-03",
        "compare": f"/runs/{run}/compare?attempt=1-02&attempt=1-03",
    }
    found = {}
    for name, path in pages.items():
        first = served.milliseconds(path)
        later = min(served.milliseconds(path) for _ in range(repeats))
        found[name] = {"first_ms": round(first, 1), "later_ms": round(later, 1)}
        print(f"{name:<10} {first:6.1f} ms at first, {later:6.1f} ms later")
    return found


def first_paint(served: Served, run: str, repeats: int) -> dict[str, float]:
    """Milliseconds until a new browser, with nothing in its cache, paints a run's page: the median
    of several. Empty without a browser."""
    path = shutil.which("chromium")
    if path is None:
        return {}
    from playwright.sync_api import sync_playwright

    script = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for _ in range(repeats):
            context = browser.new_context()
            page = context.new_page()
            page.goto(str(served.address))
            page.goto(str(served.address.copy_with(path=f"/runs/{run}", query=None)))
            page.wait_for_function(f"{script.partition('[0]')[0]}.length > 0")
            times.append(float(page.evaluate(script)))
            context.close()
        browser.close()
    print(f"first paint of the run: {statistics.median(times):.0f} ms")
    return {"median_ms": round(statistics.median(times), 1), "most_ms": round(max(times), 1)}


def share_while_watched(served: Served, folder: Path, seconds: float, grows: bool) -> float:
    """Share of one core that the server takes while a run is watched."""
    opened = open_run(folder)
    number = len(opened.archive.attempts_in_brief())
    with locked(folder):
        opened.archive.append(entries.SearchEndedEarly(text=""))
        for _ in range(3):
            served.watch(folder.name)
        time.sleep(5.0)  # the first look reads the whole journal
        before, began = served.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            if grows:
                show_speed._write_attempt(opened.archive, number)
                number += 1
            time.sleep(1.0)
        used = served.cpu_seconds() - before
    opened.archive.close()
    return used / seconds


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    found: dict[str, object] = {"attempts": arguments.attempts}
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place)
        show_speed.write_run(runs, arguments.attempts)
        (folder,) = list_runs(runs)
        for sample in range(1, show_speed.SAMPLES + 1):
            below = attempt_folder(folder, f"1-{sample:02}")
            below.mkdir(parents=True)
            write_curves_csv(below / CURVES, CURVE)
        served = Served(runs)
        try:
            time.sleep(1.0)  # a person takes as long to open the address
            found["pages"] = times_of_pages(served, folder.name, arguments.repeats)
            found["first_paint"] = first_paint(served, folder.name, arguments.repeats)
            for grows in (False, True):
                share = share_while_watched(served, folder, arguments.seconds, grows)
                name = "growing" if grows else "idle"
                found[f"{name}_share_of_a_core"] = round(share, 4)
                print(f"{name} run, watched by 3 browsers: {share:.2%} of one core")
            found["megabytes"] = round(served.megabytes())
            print(f"{served.megabytes():.0f} MB at most")
        finally:
            served.end()
    write_result(NAME, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
