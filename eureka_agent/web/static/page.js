"use strict";
// What the page does beside htmx: redraws charts with new data, plays videos in step, says when the
// connection is lost, and leads to neighbours by the arrow keys.
(() => {
  // ── charts ─────────────────────────────────────────────────────────────────────────────────────

  // New figures come into a hidden element: a drawn one would lose its canvas if it were replaced.
  function redraw(news) {
    for (const part of news.querySelectorAll("[data-chart]")) {
      const place = document.querySelector(`#charts [data-chart="${part.dataset.chart}"]`);
      const figure = part.querySelector("figure");
      if (!place || !figure) continue;
      const drawn = place.querySelector("figure");
      if (drawn) {
        EurekaCharts.set(drawn, JSON.parse(figure.querySelector("script").textContent));
      } else {
        place.replaceChildren(figure);
        EurekaCharts.draw(place);
      }
    }
    news.replaceChildren();
  }

  document.addEventListener("htmx:after:swap", () => {
    const news = document.getElementById("part-charts");
    if (news && news.childElementCount) redraw(news);
  });

  // ── the log ────────────────────────────────────────────────────────────────────────────────────

  let follows = true; // until someone scrolls up

  function followLog() {
    const log = document.querySelector("pre.log");
    if (log && follows) log.scrollTop = log.scrollHeight;
  }

  document.addEventListener("scroll", (event) => {
    const log = event.target;
    if (!log.matches?.("pre.log")) return;
    follows = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
  }, true);
  document.addEventListener("toggle", followLog, true);
  document.addEventListener("htmx:after:swap", followLog);
  followLog();

  // ── the connection ─────────────────────────────────────────────────────────────────────────────

  function tell(text) {
    const place = document.getElementById("part-fault");
    if (place && place.textContent !== text) place.textContent = text;
  }

  document.addEventListener("htmx:sse:error", () => {
    tell("The connection is lost: does the program that serves this page still run? Trying again …");
  });
  document.addEventListener("htmx:sse:after:connection", () => tell(""));

  // ── videos in step ─────────────────────────────────────────────────────────────────────────────

  const LAG_S = 0.15; // a video that is further off is put in its place

  function together(group) {
    const videos = [...group.querySelectorAll("video")];
    const player = group.parentElement.querySelector("[data-player]");
    const play = player.querySelector("[data-play]");
    const scrub = player.querySelector("[data-scrub]");
    const time = player.querySelector("[data-time]");
    const length = () => Math.max(0, ...videos.map((each) => each.duration || 0));
    let playing = false;
    let at = 0;
    let last = 0;

    function place(video, seconds) {
      const wanted = Math.min(seconds, video.duration || 0);
      if (!playing || Math.abs(video.currentTime - wanted) > LAG_S) video.currentTime = wanted;
    }

    function show() {
      scrub.value = length() ? Math.round((1000 * at) / length()) : 0;
      scrub.setAttribute("aria-valuetext", `${at.toFixed(1)} seconds`);
      time.textContent = `${at.toFixed(1)} of ${length().toFixed(1)} s`;
      group.dispatchEvent(new CustomEvent("eureka:time", { bubbles: true, detail: at }));
    }

    function stop() {
      playing = false;
      play.textContent = "Play";
      videos.forEach((each) => each.pause());
    }

    function step(now) {
      if (!playing) return;
      at = Math.min(at + (now - last) / 1000, length());
      last = now;
      for (const video of videos) {
        if (at >= video.duration) video.pause();
        else place(video, at);
      }
      show();
      if (length() && at >= length()) stop(); // without a length none has come yet
      else requestAnimationFrame(step);
    }

    play.addEventListener("click", () => {
      if (playing) return stop();
      if (at >= length()) at = 0;
      videos.forEach((each) => place(each, at));
      playing = true;
      play.textContent = "Pause";
      videos.forEach((each) => each.play().catch(() => {}));
      last = performance.now();
      requestAnimationFrame(step);
    });
    scrub.addEventListener("input", () => {
      stop();
      at = (scrub.value / 1000) * length();
      videos.forEach((each) => place(each, at));
      show();
    });
    videos.forEach((each) => each.addEventListener("loadedmetadata", () => {
      place(each, at); // it may come after the others were moved
      if (playing) each.play().catch(() => {});
      show();
    }));
    player.hidden = false;
    show();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (group.matches("[data-play-now]") && !still) play.click();
  }

  const grouped = new WeakSet();

  function findGroups() {
    for (const group of document.querySelectorAll("[data-together]")) {
      if (!grouped.has(group)) together(group);
      grouped.add(group);
    }
  }

  document.addEventListener("htmx:after:swap", findGroups);
  findGroups();

  // ── keys ───────────────────────────────────────────────────────────────────────────────────────

  const ARROWS = { ArrowLeft: "prev", ArrowRight: "next" };

  document.addEventListener("keydown", (event) => {
    const direction = ARROWS[event.key];
    if (!direction || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    // elements that use the arrows themselves
    if (event.target.closest("input, select, textarea, video, [tabindex], .wide")) return;
    document.querySelector(`a[rel="${direction}"]`)?.click();
  });
})();
