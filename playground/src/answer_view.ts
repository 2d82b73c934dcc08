/** Shows one answer while it streams: its text by how it was made, its figures, and the confidence of its fields. */

import { type Api, ApiError } from "./api";
import { Answer } from "./answer";
import { element, find } from "./dom";

const FINISHED: Record<string, string> = {
  stop: "Complete.",
  tool_calls: "Complete.",
  length: "Cut off at the maximum number of tokens.",
};

export class AnswerView {
  private readonly text: HTMLElement;
  private readonly status: HTMLElement;
  private readonly figures: HTMLElement;
  private readonly confidence: HTMLElement;
  private shown = 0;

  constructor(private readonly section: HTMLElement) {
    this.text = find(".answer-text", section);
    this.status = find(".answer-status", section);
    this.figures = find(".figures", section);
    this.confidence = find(".confidence", section);
  }

  set title(title: string) {
    find("h3", this.section).textContent = title;
  }

  set hidden(hidden: boolean) {
    this.section.hidden = hidden;
  }

  /** Returns when the answer has ended, failed or been stopped. */
  async run(api: Api, body: string, signal: AbortSignal): Promise<void> {
    this.clear("Waiting for the first token …");
    const answer = new Answer();
    const began = performance.now();
    this.text.setAttribute("aria-busy", "true");
    try {
      for await (const event of api.stream(body, signal)) {
        if (event.error) throw new Error(event.error.message);
        answer.add(event, performance.now() - began);
        this.showText(answer);
      }
      this.showStatus(FINISHED[answer.finish ?? ""] ?? "The stream ended early.");
    } catch (error) {
      this.showFailure(error, signal);
    } finally {
      this.text.removeAttribute("aria-busy");
      if (!answer.drafted) this.withdrawDrafts();
      this.showFigures(answer);
      this.showConfidence(answer);
    }
  }

  clear(status: string): void {
    for (const part of [this.text, this.figures, this.confidence]) part.replaceChildren();
    this.shown = 0;
    this.showStatus(status);
  }

  private showFailure(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) this.showStatus("Stopped.");
    else if (error instanceof ApiError) this.showStatus(`Refused (${error.status}${error.code ? `, ${error.code}` : ""}): ${error.message}`, true);
    else this.showStatus(`The stream failed: ${(error as Error).message}`, true);
  }

  private showStatus(text: string, isError = false): void {
    if (this.status.textContent !== text) this.status.textContent = text; // else screen readers repeat it
    this.status.classList.toggle("error", isError);
  }

  /** Only the last span grows. */
  private showText(answer: Answer): void {
    if (answer.spans.length) this.showStatus("Streaming …");
    for (let at = Math.max(0, this.shown - 1); at < answer.spans.length; at += 1) {
      const { kind, text } = answer.spans[at]!;
      const there = this.text.children[at];
      if (there) there.textContent = text;
      else this.text.append(element("span", { class: kind, title: kind === "plain" ? "" : kind }, text));
    }
    this.shown = answer.spans.length;
  }

  /** Merged events look like drafts; the figures tell that there were none. */
  private withdrawDrafts(): void {
    for (const span of this.text.querySelectorAll(".drafted")) span.className = "sampled";
  }

  private showFigures(answer: Answer): void {
    if (!answer.usage) return;
    const seconds = answer.endMs / 1000;
    const tokens = answer.usage.completion_tokens;
    const figures: [string, string][] = [
      ["tokens", String(tokens)],
      ["forced", String(answer.forced)],
      ["drafted", String(answer.drafted)],
      ["sampled", String(answer.sampled)],
      ["forward passes saved", `${tokens - answer.sampled} of ${tokens}`],
      ["time to first token", answer.firstMs === null ? "–" : `${answer.firstMs.toFixed(0)} ms`],
      ["total time", `${seconds.toFixed(2)} s`],
      ["tokens per second", seconds ? (tokens / seconds).toFixed(1) : "–"],
    ];
    this.figures.replaceChildren(
      ...figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
    );
  }

  private showConfidence(answer: Answer): void {
    const rows = Object.entries(answer.confidence ?? {}).map(([pointer, value]) => {
      const bar = element("meter", { min: "0", max: "1", value: String(value), "aria-label": `confidence of ${pointer || "the answer"}` });
      return element("div", {}, element("dt", {}, pointer || "the answer"), element("dd", {}, bar, ` ${(100 * value).toFixed(0)} %`));
    });
    this.confidence.replaceChildren(...rows);
  }
}
