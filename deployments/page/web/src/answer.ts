/** An answer as it comes: its text by how each part was made, and what it took. Nothing of the document is touched here. */

import type { StreamChoice, StreamEvent, Usage, Warning } from "./api";

/** `forced`: nothing else could stand there. `drafted`: guessed ahead, and accepted by the model. `plain`: not told apart. */
export type Kind = "forced" | "drafted" | "sampled" | "plain";

export interface Span {
  kind: Kind;
  text: string;
}

export class Answer {
  readonly spans: Span[] = [];
  readonly warnings: Warning[] = [];
  finish: string | null = null;
  usage: Usage | null = null;
  confidence: Record<string, number> | null = null;
  /** Events with text: as many forwards of the model, if the connection is faster than the model. */
  pieces = 0;
  firstMs: number | null = null;
  endMs = 0;
  private readonly decoder = new TextDecoder();
  private length = 0;
  private calls = -1;

  /** `atMs`: since the request was sent. */
  add(event: StreamEvent, atMs: number): void {
    this.endMs = atMs;
    this.usage = event.usage ?? this.usage;
    this.warnings.push(...(event.maskcast?.warnings ?? []));
    const choice = event.choices?.[0];
    if (choice === undefined) return;
    this.finish = choice.finish_reason ?? this.finish;
    this.confidence = choice.field_confidence ?? this.confidence;
    const added = this.textOf(choice);
    if (added) {
      this.pieces += 1;
      this.firstMs ??= atMs;
    }
  }

  get text(): string {
    return this.spans.map((span) => span.text).join("");
  }

  get forced(): number {
    return this.usage?.completion_tokens_details?.forced_tokens ?? 0;
  }

  get drafted(): number {
    return this.usage?.completion_tokens_details?.accepted_prediction_tokens ?? 0;
  }

  get sampled(): number {
    return (this.usage?.completion_tokens ?? 0) - this.forced - this.drafted;
  }

  private textOf(choice: StreamChoice): boolean {
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
    for (const call of calls ?? []) {
      if (call.index !== this.calls) this.append("plain", `${this.calls < 0 ? "" : "\n"}${call.function?.name ?? ""} `);
      this.calls = call.index;
      this.append("plain", call.function?.arguments ?? "");
    }
    if (reasoning) this.append("plain", reasoning);
    if (content) this.addContent(content, choice);
    return Boolean(content || reasoning || calls?.length);
  }

  private addContent(content: string, choice: StreamChoice): void {
    const characters = Array.from(content); // spans count characters, not UTF-16 units
    const kinds = kindsOf(characters.length, this.length, choice, this.decoder);
    characters.forEach((character, at) => this.append(kinds[at] ?? "plain", character));
    this.length += characters.length;
  }

  private append(kind: Kind, text: string): void {
    const last = this.spans.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) this.spans.push({ kind, text });
  }
}

/** Of the `count` characters of an event, which begin at `start` of the answer. One forward accepts drafts, and samples one token behind them. */
function kindsOf(count: number, start: number, choice: StreamChoice, decoder: TextDecoder): Kind[] {
  const kinds = new Array<Kind>(count).fill("sampled");
  for (const [from, to] of choice.forced_spans ?? []) kinds.fill("forced", Math.max(0, from - start), Math.max(0, to - start));
  let at = 0;
  const chosen: [number, number][] = [];
  for (const token of choice.logprobs?.content ?? []) {
    const text = token.bytes ? decoder.decode(new Uint8Array(token.bytes), { stream: true }) : token.token;
    const end = Math.min(count, at + Array.from(text).length);
    if (end > at && kinds[at] !== "forced") chosen.push([at, end]);
    at = end;
  }
  for (const [from, to] of chosen.slice(0, -1)) {
    for (let place = from; place < to; place += 1) if (kinds[place] !== "forced") kinds[place] = "drafted";
  }
  return kinds;
}
