"use strict";
// Draws the charts of a document with uPlot, from the JSON in each `figure.chart`. The elements and
// the JSON are described in eureka_agent/report/html/charts.py. A page draws new data with
// `EurekaCharts.set(figure, chart)`.
const EurekaCharts = (() => {
  const HEIGHT = 300;
  const PAPER_WIDTH = "640px";
  const LETTER = 7; // pixels of a letter below an axis
  const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
  const FEW_POINTS = 40; // a line of so few values shows each of them
  const drawn = new Map(); // figure → chart, its element, names of hidden lines, width, plot

  // ── words and colours ──────────────────────────────────────────────────────────────────────────

  // Four digits, or as many as tell neighbours apart on an axis with this step.
  function number(value, step) {
    if (value == null) return "";
    if (step) {
      const digits = (String(Number(step.toPrecision(12))).split(".")[1] || "").length;
      if (Math.abs(value) < 1e6 && digits && digits < 7) return value.toFixed(digits);
    }
    const size = Math.abs(value);
    if (size >= 1e8 || (size > 0 && size < 1e-4)) return value.toExponential(2);
    return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  }

  function count(value) {
    if (value == null) return "";
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
    }
    return String(Number(value.toPrecision(3)));
  }

  function variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  // One hue for each role; other lines take the palette's colours in turn.
  function colours(series) {
    let next = 0;
    return series.map(({ role }) => {
      const own = variable(`chart-${role}`);
      return own || variable(`chart-${1 + (next++ % 6)}`);
    });
  }

  const DASHES = { human: [7, 4], sparse: [2, 3] };

  // ── parts of both kinds of charts ──────────────────────────────────────────────────────────────

  function frame({ clientWidth }) {
    return { width: clientWidth, height: HEIGHT, padding: [12, 16, 0, 0], legend: { show: false } };
  }

  function axis(label, values) {
    return {
      label,
      labelFont: `600 12px ${variable("chart-font")}`,
      font: `12px ${variable("chart-font")}`,
      labelSize: 20,
      stroke: variable("chart-text"),
      grid: { stroke: variable("chart-grid"), width: 1 },
      ticks: { stroke: variable("chart-grid"), width: 1, size: 5 },
      ...(values && {
        values: (_, splits, place, space, step) => splits.map((each) => values(each, step)),
      }),
    };
  }

  function verticalAxis(label) {
    return {
      ...axis(label, number),
      size: (_, values) => 16 + 7 * Math.max(2, ...(values || []).map((each) => each.length)),
    };
  }

  // Range of all numbers, with a margin; a level line gets one, too.
  function range(numbers) {
    const known = numbers.filter((each) => Number.isFinite(each));
    if (!known.length) return [0, 1];
    const low = known.reduce((a, b) => Math.min(a, b));
    const high = known.reduce((a, b) => Math.max(a, b));
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - margin, high + margin];
  }

  function legend(figure, entries) {
    let list = figure.querySelector(":scope > .legend");
    if (!list) {
      list = document.createElement("ul");
      list.className = "legend";
      figure.append(list);
    }
    list.replaceChildren(
      ...entries.map(({ name, colour, mark, pressed, press }) => {
        const item = document.createElement("li");
        const sign = document.createElement(press ? "button" : "span");
        const swatch = document.createElement("i");
        swatch.className = `mark ${mark}`;
        swatch.style.color = colour;
        const value = document.createElement("span");
        value.className = "value";
        sign.append(swatch, name);
        if (press) {
          sign.type = "button";
          sign.title = "hide or show";
          sign.setAttribute("aria-pressed", pressed);
          sign.addEventListener("click", () => sign.setAttribute("aria-pressed", press()));
        }
        item.append(sign, value);
        return item;
      }),
    );
    return [...list.querySelectorAll(".value")];
  }

  // ── lines with bands ───────────────────────────────────────────────────────────────────────────

  function lines(figure, holder, chart, hidden) {
    const tint = colours(chart.series);
    const format = chart.x.format === "count" ? count : number;
    const few = chart.x.values.length <= FEW_POINTS;
    const [low, high] = range(
      chart.series.flatMap((each) => [each.values, each.low || [], each.high || []]).flat(),
    );
    const points = chart.x.values;
    const alone = points.length === 1;
    const beside = { range: [points[0] - 1, points[0] + 1] };
    const top = chart.series.length; // the first line is drawn last, above the others
    const whole = points.every((each) => Number.isInteger(each)) && chart.x.format !== "count";

    function bands(plot) {
      const { ctx } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
      ctx.clip();
      chart.series.forEach((each, index) => {
        if (!each.low || !plot.series[top - index].show) return;
        const known = points.map((_, i) => i).filter((i) => each.low[i] != null);
        if (!known.length) return;
        const place = (i, value) => [
          plot.valToPos(points[i], "x", true), plot.valToPos(value, "y", true),
        ];
        ctx.beginPath();
        known.forEach((i) => ctx.lineTo(...place(i, each.high[i])));
        known.reverse().forEach((i) => ctx.lineTo(...place(i, each.low[i])));
        ctx.closePath();
        ctx.globalAlpha = 0.15;
        ctx.fillStyle = tint[index];
        ctx.fill();
      });
      ctx.restore();
    }

    let cells = [];
    const last = (values) => values.reduce((found, each) => (each == null ? found : each), null);

    function tell(plot) {
      const index = plot.cursor.idx;
      chart.series.forEach((each, i) => {
        const value = index == null ? last(each.values) : each.values[index];
        cells[i].textContent = value == null ? "–" : number(value);
      });
      cells[chart.series.length].textContent =
        index == null ? "at the end of each line" : `at ${format(points[index])} ${chart.x.label}`;
    }

    const plot = new uPlot(
      {
        ...frame(holder),
        cursor: { y: false, drag: { setScale: true, x: true, y: false } },
        scales: { x: { time: false, ...(alone && beside) }, y: { range: [low, high] } },
        axes: [
          { ...axis(chart.x.label, format), size: 30, ...(whole && { incrs: WHOLE_STEPS }) },
          verticalAxis(chart.y.label),
        ],
        series: [
          {},
          ...chart.series.map((each, index) => ({
            show: !hidden.has(each.name),
            stroke: tint[index],
            width: each.role === "best" ? 2.5 : 1.5,
            dash: DASHES[each.role],
            spanGaps: true,
            points: { show: alone || (few && !DASHES[each.role]), size: 6, fill: tint[index] },
          })).reverse(),
        ],
        hooks: { drawAxes: [bands], setCursor: [(plot) => cells.length && tell(plot)] },
      },
      [points, ...chart.series.map((each) => each.values).reverse()],
      holder,
    );
    const entries = chart.series.map((each, index) => ({
      name: each.name,
      colour: tint[index],
      mark: DASHES[each.role] ? each.role : "line",
      pressed: !hidden.has(each.name),
      press: () => {
        const show = hidden.delete(each.name) || !hidden.add(each.name);
        plot.setSeries(top - index, { show });
        return show;
      },
    }));
    cells = legend(figure, [...entries, { name: "", colour: "transparent", mark: "none" }]);
    tell(plot);
    return plot;
  }

  // ── scores with error bars ─────────────────────────────────────────────────────────────────────

  function scores(figure, holder, chart) {
    const rows = chart.rows;
    const tint = colours(rows);
    const places = rows.map((_, index) => index);
    const longest = Math.max(...rows.map((each) => each.name.length));
    const turned = (holder.clientWidth - 90) / rows.length < LETTER * (longest + 1);
    const numbers = rows.flatMap((each) => [each.low, each.high, each.mean, ...each.points]);

    function draw(plot) {
      const { ctx } = plot;
      const scale = devicePixelRatio;
      const room = Math.min(60 * scale, plot.bbox.width / rows.length);
      const at = (value) => plot.valToPos(value, "y", true);
      const line = (from, to) => {
        ctx.beginPath();
        ctx.moveTo(...from);
        ctx.lineTo(...to);
        ctx.stroke();
      };
      ctx.save();
      rows.forEach((each, index) => {
        const x = plot.valToPos(index, "x", true);
        ctx.strokeStyle = ctx.fillStyle = tint[index];
        if (each.mean != null && DASHES[each.role]) {
          ctx.setLineDash(DASHES[each.role].map((length) => length * scale));
          ctx.lineWidth = scale;
          const { left, width } = plot.bbox;
          line([left, at(each.mean)], [left + width, at(each.mean)]);
          ctx.setLineDash([]);
        }
        ctx.lineWidth = 1.2 * scale;
        each.points.forEach((value, place) => {
          const share = each.points.length > 1 ? place / (each.points.length - 1) - 0.5 : 0;
          ctx.beginPath();
          ctx.arc(x + share * room * 0.5, at(value), 3.5 * scale, 0, 2 * Math.PI);
          ctx.stroke();
        });
        ctx.lineWidth = 2.5 * scale;
        if (each.low != null && each.high != null) {
          line([x, at(each.low)], [x, at(each.high)]);
          for (const end of [at(each.low), at(each.high)]) {
            line([x - 8 * scale, end], [x + 8 * scale, end]);
          }
        }
        ctx.beginPath();
        if (each.mean != null) ctx.arc(x, at(each.mean), 5.5 * scale, 0, 2 * Math.PI);
        ctx.fill();
      });
      ctx.restore();
    }

    const plot = new uPlot(
      {
        ...frame(holder),
        cursor: { show: false },
        scales: {
          x: { time: false, range: [-0.5, rows.length - 0.5] },
          y: { range: range(numbers) },
        },
        axes: [
          {
            ...axis(chart.x.label),
            splits: places,
            values: () => rows.map((each) => each.name),
            rotate: turned ? -40 : 0,
            size: turned ? 24 + 5 * Math.min(longest, 16) : 30,
            grid: { show: false },
          },
          verticalAxis(chart.y.label),
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [draw] },
      },
      [places, rows.map((each) => each.mean)],
      holder,
    );
    const ink = variable("chart-text");
    const baselines = rows.filter((each) => DASHES[each.role]);
    legend(figure, [
      { name: "mean", colour: ink, mark: "dot" },
      { name: chart.spread, colour: ink, mark: "bar" },
      { name: chart.point, colour: ink, mark: "ring" },
      ...baselines.map((each) => ({
        name: `mean of ${each.name}`, colour: tint[rows.indexOf(each)], mark: each.role,
      })),
    ]);
    return plot;
  }

  // ── figures ────────────────────────────────────────────────────────────────────────────────────

  const KINDS = { lines, scores };

  function set(figure, chart) {
    let holder = figure.querySelector(":scope > .plot");
    if (!holder) {
      holder = document.createElement("div");
      holder.className = "plot";
      holder.role = "img";
      holder.ariaLabel = `chart of ${chart.y.label} over ${chart.x.label}`;
      figure.querySelector(":scope > figcaption").after(holder);
      resized.observe(holder);
    }
    const { plot, hidden = new Set() } = drawn.get(figure) || {};
    plot?.destroy();
    const known = { chart, holder, hidden, width: holder.clientWidth, plot: null };
    drawn.set(figure, known);
    // nothing can be drawn in a closed <details>; it is drawn when that is opened
    if (known.width) known.plot = KINDS[chart.kind](figure, holder, chart, hidden);
  }

  const resized = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const figure = target.parentElement;
      const known = drawn.get(figure);
      if (!known || known.width === target.clientWidth) continue;
      if (figure.isConnected) set(figure, known.chart);
      else drawn.delete(figure);
    }
  });

  function again() {
    for (const [figure, { chart }] of [...drawn]) set(figure, chart);
  }

  function draw(root = document) {
    for (const figure of root.querySelectorAll("figure.chart")) {
      const data = figure.querySelector(':scope > script[type="application/json"]');
      if (data && !drawn.has(figure)) set(figure, JSON.parse(data.textContent));
    }
  }

  // A page of paper is light, and narrower than most screens.
  function paper(printing) {
    document.documentElement.classList.toggle("light", printing);
    for (const { holder } of drawn.values()) holder.style.width = printing ? PAPER_WIDTH : "";
    again();
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  draw();
  return { draw, set };
})();
