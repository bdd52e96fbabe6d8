// Charts of samples, by uPlot: filled when the page is there, and again every five seconds while somebody looks.
"use strict";

(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const LINES = ["--ready", "--flight", "--delayed", "--dead", "--done"];
  const EVERY_MS = 5000;

  function short(value) {
    if (value === null) return "–";
    const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
    for (const [size, unit] of steps) if (Math.abs(value) >= size) return `${+(value / size).toPrecision(3)} ${unit}`;
    return String(+value.toPrecision(3));
  }

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.measures = JSON.parse(figure.dataset.measures);
      this.labels = JSON.parse(figure.dataset.labels);
      this.last = "1h";
      this.plot = null;
      for (const button of figure.querySelectorAll("[data-last]")) {
        button.addEventListener("click", () => this.choose(button.dataset.last));
      }
      new ResizeObserver(() => this.resize()).observe(figure);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.drop(); this.load(); });
      this.load();
      setInterval(() => { if (!document.hidden && figure.isConnected) this.load(); }, EVERY_MS);
    }

    choose(last) {
      this.last = last;
      for (const button of this.figure.querySelectorAll("[data-last]")) {
        button.setAttribute("aria-pressed", String(button.dataset.last === last));
      }
      this.load();
    }

    async load() {
      const asked = new URLSearchParams({ of: this.figure.dataset.of, name: this.figure.dataset.name, last: this.last });
      const answer = await fetch(`/console/history?${asked}`).catch(() => null);
      const found = answer?.ok ? await answer.json() : null; // null, too, while nothing was sampled
      const data = found === null ? null : this.columns(found);
      this.figure.dataset.state = data === null ? "empty" : "drawn";
      if (data === null) return this.drop();
      if (this.plot === null) this.draw(data); else this.plot.setData(data);
    }

    columns(found) {
      const lines = this.measures.map((name) => found.series[name] ?? []);
      const count = Math.max(...lines.map((line) => line.length));
      if (!Number.isFinite(count) || count === 0) return null;
      const end = found.end_ms / 1000, step = found.step_ms / 1000;
      const times = Array.from({ length: count }, (_, index) => end - (count - 1 - index) * step);
      return [times, ...lines.map((line) => line.length ? line : new Array(count).fill(null))];
    }

    draw(data) {
      const soft = colour("--soft"), line = colour("--line");
      const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
      this.plot = new uPlot({
        width: this.figure.clientWidth, height: 170,
        series: [{}, ...this.measures.map((_, index) => ({
          label: this.labels[index], stroke: colour(LINES[index]), width: 1.5, spanGaps: true, points: { show: false },
          value: (_, value) => short(value),
        }))],
        axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map(short) }],
        scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.05] } },
        cursor: { drag: { x: false, y: false } },
        legend: { show: this.measures.length > 1, live: false },
      }, data, this.figure.querySelector(".plot"));
    }

    drop() {
      this.plot?.destroy();
      this.plot = null;
    }

    resize() {
      this.plot?.setSize({ width: this.figure.clientWidth, height: 170 });
    }
  }

  // When the page has been drawn: charts are filled by a request of their own.
  addEventListener("load", () => {
    for (const figure of document.querySelectorAll("figure.chart:not([data-state])")) {
      figure.dataset.state = "new";
      new Chart(figure);
    }
  });
})();
