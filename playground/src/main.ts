/** The playground: builds requests from the form, and shows their answers while they stream. */

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { AnswerView } from "./answer_view";
import { Api, ApiError, type Body, type Check } from "./api";
import { ClusterView } from "./cluster_view";
import { type ConstraintKind, encoded, fields, isJson, KINDS, parsed, pointerOf, UnreadableConstraint } from "./constraint";
import { element, fill, find } from "./dom";
import { Editor } from "./editor";
import { EXAMPLES } from "./examples";
import { type Language, LANGUAGES, snippet } from "./snippets";

/** A pause in typing after which the constraint is checked. */
const CHECK_AFTER_MS = 600;
const NOTHING = "nothing";
const COMPARISONS: Record<string, string> = {
  [NOTHING]: "nothing",
  unconstrained: "no constraint",
  stepwise: "token by token",
};

class Playground {
  private readonly api = new Api();
  private readonly editor = new Editor(find("#editor"), "Constraint", () => this.onChange());
  private readonly answers = [...document.querySelectorAll<HTMLElement>(".answer")].map((section) => new AnswerView(section));
  private readonly kind = find<HTMLSelectElement>("#kind");
  private readonly prompt = find<HTMLTextAreaElement>("#prompt");
  private readonly comparison = find<HTMLSelectElement>("#comparison");
  private model = "";
  private running: AbortController | null = null;
  private lastRun: Promise<void> = Promise.resolve();
  private checking = new AbortController();
  /** Whether answers are checked when they are complete. The service cannot do that for requests with log probabilities. */
  private isCheckedAfterwards = false;
  private connections = 0;
  private timer = 0;

  async start(): Promise<void> {
    fill(this.kind, KINDS);
    fill(this.comparison, COMPARISONS);
    fill(find("#language"), LANGUAGES);
    fill(find("#example"), Object.fromEntries(EXAMPLES.map(({ name }, index) => [String(index), name])));
    this.listen();
    this.showExample(0);
    await this.connect();
  }

  private listen(): void {
    const example = find<HTMLSelectElement>("#example");
    example.addEventListener("change", () => this.showExample(Number(example.value)));
    this.kind.addEventListener("change", () => this.onChange());
    for (const selector of ["#prompt", "#max-tokens", "#temperature", "#confidence", "#language"]) {
      find(selector).addEventListener("input", () => this.showSnippet());
    }
    find("#run").addEventListener("click", () => this.startRun());
    find("#stop").addEventListener("click", () => this.running?.abort());
    find("#copy").addEventListener("click", () => void copy(find("#snippet")));
    document.addEventListener("keydown", (event) => this.onKey(event));
    find("#key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.api.key = find<HTMLInputElement>("#key").value.trim();
      void this.connect();
    });
    const cluster = new ClusterView(this.api);
    const panel = find<HTMLDetailsElement>("#cluster");
    panel.addEventListener("toggle", () => (cluster.isWatching = panel.open));
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!event.repeat) this.startRun();
    } else if (event.key === "Escape") this.running?.abort();
  }

  private async connect(): Promise<void> {
    const status = find("#model");
    const connection = (this.connections += 1);
    try {
      const [model] = await this.api.models();
      if (connection !== this.connections) return;
      this.model = model!.id;
      status.textContent = `${model!.id}, context of ${model!.max_model_len.toLocaleString()} tokens`;
      find("#key-form").hidden = !this.api.key;
      this.onChange();
    } catch (error) {
      if (connection !== this.connections) return;
      const needsKey = error instanceof ApiError && error.status === 401;
      const question = this.api.key ? "The service does not know this API key." : "This service asks for an API key.";
      find("#key-form").hidden = !needsKey;
      status.textContent = needsKey ? question : `The service cannot be reached: ${(error as Error).message}`;
    }
  }

  private showExample(index: number): void {
    const { kind, constraint, prompt } = EXAMPLES[index]!;
    this.kind.value = kind;
    this.prompt.value = prompt;
    this.editor.text = constraint;
    this.onChange();
  }

  private onChange(): void {
    const kind = this.kind.value as ConstraintKind;
    this.editor.isJson = isJson(kind);
    this.showSnippet();
    this.checking.abort();
    this.editor.show([]);
    find("#check").textContent = "…";
    window.clearTimeout(this.timer);
    if (this.model) this.timer = window.setTimeout(() => void this.check(), CHECK_AFTER_MS);
  }

  private get chosen(): ConstraintKind {
    return this.kind.value as ConstraintKind;
  }

  /** As a client would send it, with the constraint or its placeholder. */
  private body(constraint?: unknown): Body {
    return {
      model: this.model,
      messages: [{ role: "user", content: this.prompt.value }],
      ...fields(this.chosen, constraint),
      temperature: Number(find<HTMLInputElement>("#temperature").value),
      max_tokens: Number(find<HTMLInputElement>("#max-tokens").value),
      ...(find<HTMLInputElement>("#confidence").checked ? { field_confidence: true } : {}),
    };
  }

  private showSnippet(): void {
    const language = find<HTMLSelectElement>("#language").value as Language;
    const root = new URL("./", location.href).href;
    try {
      const body = this.body(parsed(this.chosen, this.editor.text));
      find("#snippet").textContent = snippet(language, body, this.encoded(this.body(), 2), root, Boolean(this.api.key));
    } catch (error) {
      find("#snippet").textContent = (error as Error).message;
    }
  }

  private encoded(body: Body, indent?: number): string {
    return encoded(body, this.chosen, this.editor.text, indent);
  }

  private async check(): Promise<void> {
    this.checking.abort();
    const { signal } = (this.checking = new AbortController());
    const shown = find("#check");
    this.isCheckedAfterwards = false;
    try {
      parsed(this.chosen, this.editor.text);
      const found = await this.api.check(this.encoded({ model: this.model, ...fields(this.chosen) }), signal);
      if (signal.aborted) return;
      this.isCheckedAfterwards = found.checked_afterwards.length > 0;
      const warnings = found.maskcast?.warnings ?? [];
      shown.replaceChildren(element("p", {}, describe(found)), ...warnings.map(({ message }) => element("p", {}, message)));
      this.editor.show(warnings.map(({ message, pointer }) => ({ message, pointer: pointer.replace(/^\/tools\//, "/"), severity: "warning" })));
    } catch (error) {
      if (signal.aborted) return;
      const { message } = error as Error;
      shown.replaceChildren(element("p", { class: "error" }, message));
      if (error instanceof UnreadableConstraint) this.editor.show([{ message, severity: "error", isUnreadable: true }]);
      if (!(error instanceof ApiError)) return;
      if (error.status === 400) this.editor.show([{ message, severity: "error", pointer: pointerOf(this.chosen, error.param) }]);
      if (error.status === 401) find("#key-form").hidden = false;
    }
  }

  private startRun(): void {
    this.running?.abort();
    this.lastRun = this.lastRun.then(() => this.run());
  }

  private async run(): Promise<void> {
    try {
      parsed(this.chosen, this.editor.text);
    } catch {
      await this.check(); // shows the syntax error
      return;
    }
    const { signal } = (this.running = new AbortController());
    const [first, second] = this.answers as [AnswerView, AnswerView];
    const comparison = this.comparison.value;
    const body = this.encoded(this.isCheckedAfterwards ? streamed(this.body()) : withTokenKinds(this.body()));
    const compared = this.encoded(comparison === "stepwise" ? stepwise(this.body()) : unconstrained(this.body()));
    second.hidden = comparison === NOTHING;
    second.title = comparison === "stepwise" ? "Token by token" : "Without a constraint";
    second.clear("Starts when the first one has ended."); // at once they would slow each other down
    this.showRunning(true);
    try {
      await first.run(this.api, body, signal);
      if (comparison !== NOTHING && !signal.aborted) await second.run(this.api, compared, signal);
    } finally {
      this.showRunning(false);
    }
  }

  /** Moves the focus, which a disabled button would lose. */
  private showRunning(isRunning: boolean): void {
    const [run, stop] = [find<HTMLButtonElement>("#run"), find<HTMLButtonElement>("#stop")];
    const hasFocus = document.activeElement === run || document.activeElement === stop;
    [run.disabled, stop.disabled] = [isRunning, !isRunning];
    if (hasFocus) (isRunning ? stop : run).focus();
  }
}

function describe({ backend, stopgap, waited_ms: waited, checked_afterwards: afterwards }: Check): string {
  const later = stopgap ? ", while a faster one is being compiled" : "";
  if (afterwards.length) return `Enforced by ${backend}${later}, but for what is checked when the answer is complete: ${afterwards.join(", ")}.`;
  return `Enforced exactly, by ${backend}${later}. Ready after ${waited.toFixed(1)} ms.`;
}

async function copy(shown: HTMLElement): Promise<void> {
  const button = find("#copy");
  try {
    await navigator.clipboard.writeText(shown.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    window.getSelection()?.selectAllChildren(shown); // browsers have no clipboard for pages of other hosts without TLS
    button.textContent = "Selected: press Ctrl+C";
  }
}

function streamed(body: Body): Body {
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

/** Asks for what tells forced, drafted and sampled text apart. */
function withTokenKinds(body: Body): Body {
  return { ...streamed(body), mark_forced: true, logprobs: true };
}

function unconstrained(body: Body): Body {
  const { response_format, structured_outputs, tools, tool_choice, parallel_tool_calls, field_confidence, ...free } = body;
  return streamed(free);
}

/** Requests for alternatives (`top_logprobs`) are generated token by token. */
function stepwise(body: Body): Body {
  return { ...withTokenKinds(body), top_logprobs: 1 };
}

void new Playground().start();
