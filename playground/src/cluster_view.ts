/** The cluster: engines, tenants, and two minutes of history in small charts. */

import uPlot from "uplot";
import { type Api, ApiError, type ClusterFigures, type Readiness } from "./api";
import { element, find } from "./dom";

const EVERY_MS = 5000;
const SAMPLES = 24;
/** Metrics are reported every ten seconds. A rate over less time would alternate between zero and twice its value. */
const RATE_OVER_S = 9;

interface Chart {
  selector: string;
  colour: string;
  value: (figures: ClusterFigures) => number;
  /** Shown as a rate per second. */
  isCounter: boolean;
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

const CHARTS: Chart[] = [
  { selector: "#chart-running", colour: "--chart-1", isCounter: false, value: ({ engines }) => sum(engines.map((one) => one.running)) },
  { selector: "#chart-requests", colour: "--chart-1", isCounter: true, value: ({ counters }) => counters["requests"] ?? 0 },
  { selector: "#chart-forced", colour: "--chart-2", isCounter: true, value: ({ counters }) => counters["forced_tokens"] ?? 0 },
  { selector: "#chart-drafts", colour: "--chart-3", isCounter: true, value: ({ counters }) => counters["accepted_drafts"] ?? 0 },
  { selector: "#chart-grammars", colour: "--chart-2", isCounter: false, value: ({ engines }) => sum(engines.map((one) => one.grammars)) },
];

export class ClusterView {
  private samples: { at: number; figures: ClusterFigures }[] = [];
  private plots: uPlot[] = [];
  private timer = 0;
  private isBusy = false;

  constructor(private readonly api: Api) {}

  /** Samples only while the panel is open. */
  set isWatching(isWatching: boolean) {
    window.clearInterval(this.timer);
    if (!isWatching) return;
    this.samples = [];
    void this.sample();
    this.timer = window.setInterval(() => document.hidden || void this.sample(), EVERY_MS);
  }

  private async sample(): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      const found = await this.api.cluster();
      this.samples = [...this.samples, { at: Date.now() / 1000, figures: found }].slice(-SAMPLES);
      showState(summary(found));
      find("#cluster-figures").hidden = false;
      this.draw();
      showTables(found);
    } catch (error) {
      await this.showFailure(error as Error);
    } finally {
      this.isBusy = false;
    }
  }

  private async showFailure(error: Error): Promise<void> {
    const isForbidden = error instanceof ApiError && (error.status === 401 || error.status === 403);
    if (isForbidden) find("#cluster-figures").hidden = true;
    const readiness = await this.api.readiness().then(summary, () => "The service cannot be reached");
    showState(`${readiness} · ${isForbidden ? "more with a key that has the scope metrics" : error.message}`);
  }

  private draw(): void {
    if (!this.plots.length) this.plots = CHARTS.map(plotted);
    const times = this.samples.map(({ at }) => at);
    CHARTS.forEach((chart, index) => {
      const values = this.samples.map((_, at) => this.valueAt(chart, at));
      this.plots[index]!.setData([times, values]);
      const now = values.at(-1);
      find(`${chart.selector} .now`).textContent = now == null ? "–" : now.toLocaleString(undefined, { maximumFractionDigits: 1 });
    });
  }

  private valueAt({ value, isCounter }: Chart, index: number): number | null {
    const now = this.samples[index]!;
    if (!isCounter) return value(now.figures);
    const before = this.samples.findLast(({ at }) => at <= now.at - RATE_OVER_S);
    return before ? Math.max(0, value(now.figures) - value(before.figures)) / (now.at - before.at) : null;
  }
}

function showState(text: string): void {
  const state = find("#cluster-state");
  if (state.textContent !== text) state.textContent = text; // else screen readers repeat it
}

function summary({ status, wanted, replicas, redis, degraded }: Readiness): string {
  const running = Object.entries(wanted).map(([name, count]) => `${name} ${replicas[name] ?? 0} of ${count}`);
  const missing = degraded.length ? [`missing: ${degraded.join(", ")}`] : [];
  return [status, ...running, `Redis ${redis ?? "not used"}`, ...missing].join(" · ");
}

function showTables({ engines, requests_by_tenant: tenants, compiles }: ClusterFigures): void {
  const rows = engines.map(({ replica, running, grammars, steps, restarts }) => [replica, running, grammars, steps, restarts]);
  find("#engines tbody").replaceChildren(...rows.map(row));
  find("#tenants tbody").replaceChildren(...Object.entries(tenants).map(([name, requests]) => row([name || "no key", requests])));
  find("#compiles tbody").replaceChildren(...Object.entries(compiles).map(row));
}

function row(values: (string | number)[]): HTMLTableRowElement {
  return element("tr", {}, ...values.map((value) => element("td", {}, value.toLocaleString())));
}

function plotted(chart: Chart): uPlot {
  const parent = find(chart.selector);
  const style = getComputedStyle(document.documentElement);
  const [line, muted] = [style.getPropertyValue(chart.colour), style.getPropertyValue("--muted")];
  return new uPlot(
    {
      width: Math.max(160, parent.clientWidth - 8),
      height: 80,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, __, most) => [0, Math.max(1, most)] } },
      axes: [{ show: false }, { stroke: muted, size: 36, ticks: { show: false }, grid: { show: false } }],
      series: [{}, { stroke: line, width: 2, points: { show: false } }],
    },
    [[], []],
    find(".plot", parent),
  );
}
