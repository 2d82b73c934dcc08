/** The page: what is chosen and typed becomes a request, and answers are shown as they come. */

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { AnswerView } from "./answer_view";
import { Api, ApiError, type Body, type Check } from "./api";
import { Cluster } from "./cluster";
import { type ConstraintKind, fields, isJson, KINDS, pointerOf, UnreadableConstraint } from "./constraint";
import { element, fill, find } from "./dom";
import { Editor, type Fault } from "./editor";
import { EXAMPLES } from "./examples";
import { type Language, LANGUAGES, snippet } from "./snippets";

const CHECK_AFTER_MS = 600;
const NOTHING = "nothing";
const BESIDE: Record<string, string> = {
  [NOTHING]: "nothing",
  free: "the same without a constraint",
  stepped: "the same token by token",
};

class Page {
  private readonly api = new Api();
  private readonly editor = new Editor(find("#editor"), "Constraint", () => this.onChange());
  private readonly answers = [...document.querySelectorAll<HTMLElement>(".answer")].map((section) => new AnswerView(section));
  private readonly kind = find<HTMLSelectElement>("#kind");
  private readonly prompt = find<HTMLTextAreaElement>("#prompt");
  private readonly beside = find<HTMLSelectElement>("#beside");
  private model = "";
  private running: AbortController | null = null;
  private checking = new AbortController();
  private timer = 0;

  async start(): Promise<void> {
    fill(this.kind, KINDS);
    fill(this.beside, BESIDE);
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
    find("#run").addEventListener("click", () => void this.run());
    find("#stop").addEventListener("click", () => this.running?.abort());
    find("#copy").addEventListener("click", () => void navigator.clipboard.writeText(find("#snippet").textContent ?? ""));
    document.addEventListener("keydown", (event) => this.onKey(event));
    find("#key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.api.key = find<HTMLInputElement>("#key").value.trim();
      void this.connect();
    });
    const cluster = new Cluster(this.api);
    const panel = find<HTMLDetailsElement>("#cluster");
    panel.addEventListener("toggle", () => (cluster.isWatching = panel.open));
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.run();
    } else if (event.key === "Escape") this.running?.abort();
  }

  private async connect(): Promise<void> {
    const told = find("#model");
    try {
      const [model] = await this.api.models();
      this.model = model!.id;
      told.textContent = `${model!.id}, context of ${model!.max_model_len.toLocaleString()} tokens`;
      find("#key-form").hidden = !this.api.key;
      this.onChange();
    } catch (error) {
      const needsKey = error instanceof ApiError && error.status === 401;
      find("#key-form").hidden = !needsKey;
      told.textContent = needsKey ? "This service asks for an API key." : `The service cannot be reached: ${(error as Error).message}`;
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
    window.clearTimeout(this.timer);
    if (this.model) this.timer = window.setTimeout(() => void this.check(), CHECK_AFTER_MS);
  }

  /** Throws UnreadableConstraint. */
  private constraint(): Body {
    return fields(this.kind.value as ConstraintKind, this.editor.text);
  }

  /** As a user would send it. Throws UnreadableConstraint. */
  private body(): Body {
    return {
      model: this.model,
      messages: [{ role: "user", content: this.prompt.value }],
      ...this.constraint(),
      temperature: Number(find<HTMLInputElement>("#temperature").value),
      max_tokens: Number(find<HTMLInputElement>("#max-tokens").value),
      ...(find<HTMLInputElement>("#confidence").checked ? { field_confidence: true } : {}),
    };
  }

  private showSnippet(): void {
    const language = find<HTMLSelectElement>("#language").value as Language;
    const root = new URL("./", location.href).href;
    try {
      find("#snippet").textContent = snippet(language, this.body(), root, Boolean(this.api.key));
    } catch (error) {
      find("#snippet").textContent = (error as Error).message;
    }
  }

  private async check(): Promise<void> {
    this.checking.abort();
    const { signal } = (this.checking = new AbortController());
    const shown = find("#check");
    try {
      const found = await this.api.check({ model: this.model, ...this.constraint() }, signal);
      const warnings = found.maskcast?.warnings ?? [];
      shown.replaceChildren(element("p", {}, keptHow(found)), ...warnings.map(({ message }) => element("p", {}, message)));
      this.editor.show(warnings.map(({ message, pointer }) => ({ message, pointer: pointer.replace(/^\/tools\//, "/"), severity: "warning" })));
    } catch (error) {
      if (signal.aborted) return;
      const fault = faultOf(this.kind.value as ConstraintKind, error as Error);
      shown.replaceChildren(element("p", { class: "error" }, fault.message));
      this.editor.show([fault]);
    }
  }

  private async run(): Promise<void> {
    this.running?.abort();
    let body: Body;
    try {
      body = this.body();
    } catch {
      await this.check(); // it says what cannot be read
      return;
    }
    const running = (this.running = new AbortController());
    const [run, stop] = [find<HTMLButtonElement>("#run"), find<HTMLButtonElement>("#stop")];
    [run.disabled, stop.disabled] = [true, false];
    const [first, second] = this.answers as [AnswerView, AnswerView];
    const beside = this.beside.value;
    second.hidden = beside === NOTHING;
    await first.run(this.api, marked(body), running.signal); // one after the other: they would slow each other down
    if (beside !== NOTHING && !running.signal.aborted) {
      second.title = beside === "free" ? "Without a constraint" : "Token by token";
      await second.run(this.api, beside === "free" ? without(body) : stepped(body), running.signal);
    }
    [run.disabled, stop.disabled] = [false, true];
  }
}

function keptHow(check: Check): string {
  const later = check.stopgap ? ", while a faster one is being compiled" : "";
  const after = check.checked_afterwards.length ? ` Checked when the answer is complete: ${check.checked_afterwards.join(", ")}.` : "";
  return `Enforced exactly, by ${check.backend}${later}. Ready after ${check.waited_ms.toFixed(1)} ms.${after}`;
}

function faultOf(kind: ConstraintKind, error: Error): Fault {
  if (error instanceof UnreadableConstraint) return { message: error.message, severity: "error", at: error.at };
  return { message: error.message, severity: "error", pointer: error instanceof ApiError ? pointerOf(kind, error.param) : null };
}

/** With what tells forced, drafted and sampled text apart. */
function marked(body: Body): Body {
  return { ...body, stream: true, stream_options: { include_usage: true }, mark_forced: true, logprobs: true };
}

function without(body: Body): Body {
  const { response_format, structured_outputs, tools, tool_choice, field_confidence, ...free } = body;
  return { ...free, stream: true, stream_options: { include_usage: true } };
}

/** Whoever asks for alternatives of each token gets each token from the model. */
function stepped(body: Body): Body {
  return { ...marked(body), top_logprobs: 1 };
}

void new Page().start();
