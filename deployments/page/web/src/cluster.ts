/** The service as its metrics tell it: a minute's history in small charts. */

import uPlot from "uplot";
import { type Api, ApiError } from "./api";
import { find } from "./dom";

const EVERY_MS = 2000;
const SAMPLES = 30;

/** Sums of a metric over all its labels, by name. */
export function totals(page: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of page.split("\n")) {
    const sample = /^(maskcast_\w+)(?:\{.*\})? (\S+)$/.exec(line);
    const name = sample?.[1]?.replace(/_total$/, "");
    if (name) found.set(name, (found.get(name) ?? 0) + Number(sample![2]));
  }
  return found;
}

interface Chart {
  selector: string;
  label: string;
  /** A counter's increase is shown by the second, a gauge as it is. */
  metric: string;
  isCounter: boolean;
  colour: string;
}

const CHARTS: Chart[] = [
  { selector: "#chart-running", label: "requests running", metric: "maskcast_engine_running", isCounter: false, colour: "--chart-1" },
  { selector: "#chart-requests", label: "requests a second", metric: "maskcast_requests", isCounter: true, colour: "--chart-1" },
  { selector: "#chart-forced", label: "forced tokens a second", metric: "maskcast_forced_tokens", isCounter: true, colour: "--chart-2" },
  { selector: "#chart-drafts", label: "accepted drafts a second", metric: "maskcast_engine_accepted_drafts", isCounter: true, colour: "--chart-3" },
  { selector: "#chart-grammars", label: "grammars in engines", metric: "maskcast_engine_grammars_resident", isCounter: false, colour: "--chart-2" },
];

export class Cluster {
  private readonly times: number[] = [];
  private readonly series = CHARTS.map((): (number | null)[] => []);
  private plots: uPlot[] = [];
  private before: Map<string, number> | null = null;
  private timer = 0;

  constructor(private readonly api: Api) {}

  /** While the part of the page is open and seen. */
  set isWatching(isWatching: boolean) {
    window.clearInterval(this.timer);
    if (!isWatching) return;
    void this.sample();
    this.timer = window.setInterval(() => document.hidden || void this.sample(), EVERY_MS);
  }

  private async sample(): Promise<void> {
    const [state, figures] = [find("#cluster-state"), find("#cluster-charts")];
    try {
      const readiness = await this.api.readiness();
      const replicas = Object.entries(readiness.wanted).map(([name, wanted]) => `${name} ${readiness.replicas[name] ?? 0} of ${wanted}`);
      state.textContent = [`${readiness.status}`, ...replicas, `Redis ${readiness.redis ?? "not used"}`].join(" · ");
      this.add(totals(await this.api.metrics()));
      figures.hidden = false;
    } catch (error) {
      const isForbidden = error instanceof ApiError && (error.status === 401 || error.status === 403);
      if (isForbidden) figures.hidden = true;
      state.textContent += isForbidden ? " · charts need a key with the scope metrics" : "";
      if (!isForbidden) state.textContent = "The service cannot be reached.";
    }
  }

  private add(now: Map<string, number>): void {
    const at = Date.now() / 1000;
    const elapsed = at - (this.times.at(-1) ?? at);
    this.times.push(at);
    CHARTS.forEach(({ metric, isCounter }, index) => {
      const value = now.get(metric) ?? 0;
      const increase = this.before && elapsed ? Math.max(0, value - (this.before.get(metric) ?? 0)) / elapsed : null;
      this.series[index]!.push(isCounter ? increase : value);
    });
    this.before = now;
    for (const values of [this.times, ...this.series]) if (values.length > SAMPLES) values.shift();
    this.draw();
  }

  private draw(): void {
    if (!this.plots.length) this.plots = CHARTS.map(plotted);
    this.plots.forEach((plot, index) => plot.setData([this.times, this.series[index]!]));
    CHARTS.forEach(({ selector }, index) => {
      const value = this.series[index]!.at(-1);
      find(`${selector} .now`).textContent = value == null ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: 1 });
    });
  }
}

function plotted(chart: Chart): uPlot {
  const parent = find(chart.selector);
  const style = getComputedStyle(document.documentElement);
  const [line, muted] = [style.getPropertyValue(chart.colour), style.getPropertyValue("--muted")];
  return new uPlot(
    {
      width: Math.max(160, parent.clientWidth - 24),
      height: 80,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, __, most) => [0, Math.max(1, most)] } },
      axes: [{ show: false }, { stroke: muted, size: 36, ticks: { show: false }, grid: { show: false } }],
      series: [{}, { label: chart.label, stroke: line, width: 2 }],
    },
    [[], []],
    find(".plot", parent),
  );
}
