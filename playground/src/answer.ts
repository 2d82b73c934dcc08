/** An answer as it is streamed: its text by how each part was generated, and its figures. Pure: does not touch the document. */

import type { StreamChoice, StreamEvent, Usage } from "./api";

/** `forced`: the grammar allowed nothing else. `drafted`: predicted in advance and accepted by the model. `plain`: unknown. */
export type Kind = "forced" | "drafted" | "sampled" | "plain";

export interface Span {
  kind: Kind;
  text: string;
}

export class Answer {
  readonly spans: Span[] = [];
  finish: string | null = null;
  usage: Usage | null = null;
  confidence: Record<string, number> | null = null;
  firstMs: number | null = null;
  endMs = 0;
  /** In characters of the answer. A span may arrive in an event before its text. */
  private readonly forcedSpans: [number, number][] = [];
  private length = 0;
  private calls = -1;
  /** Spans count the reasoning too, whose marks the parser removes. */
  private hasReasoned = false;

  /** `atMs`: since the request was sent. */
  add(event: StreamEvent, atMs: number): void {
    this.endMs = atMs;
    this.usage = event.usage ?? this.usage;
    const choice = event.choices?.[0];
    if (choice === undefined) return;
    this.finish = choice.finish_reason ?? this.finish;
    this.confidence = choice.field_confidence ?? this.confidence;
    this.forcedSpans.push(...(choice.forced_spans ?? []));
    if (this.addText(choice)) this.firstMs ??= atMs;
  }

  get forced(): number {
    return this.usage?.completion_tokens_details?.forced_tokens ?? 0;
  }

  get drafted(): number {
    return this.usage?.completion_tokens_details?.accepted_prediction_tokens ?? 0;
  }

  /** One per forward pass, except where drafts end the answer. */
  get sampled(): number {
    return Math.max(0, (this.usage?.completion_tokens ?? 0) - this.forced - this.drafted);
  }

  private addText({ delta, logprobs }: StreamChoice): boolean {
    for (const call of delta.tool_calls ?? []) {
      if (call.index !== this.calls) this.append("plain", `${this.calls < 0 ? "" : "\n"}${call.function?.name ?? ""} `);
      this.calls = call.index;
      this.append("plain", call.function?.arguments ?? "");
    }
    if (delta.reasoning) {
      this.hasReasoned = true;
      this.append("plain", delta.reasoning);
    }
    if (delta.content) this.addContent(delta.content, (logprobs?.content ?? []).map(({ token }) => token));
    return Boolean(delta.content || delta.reasoning || delta.tool_calls?.length);
  }

  private addContent(content: string, tokens: string[]): void {
    const characters = Array.from(content); // spans count characters, not UTF-16 units
    const kinds = this.hasReasoned ? [] : this.kindsOf(characters.length, tokens);
    characters.forEach((character, at) => this.append(kinds[at] ?? "plain", character));
    this.length += characters.length;
  }

  /** Of the next `count` characters. An event holds the output of one forward pass: accepted drafts, and one sampled token after them. */
  private kindsOf(count: number, tokens: string[]): Kind[] {
    const kinds = new Array<Kind>(count).fill("sampled");
    for (const [from, to] of this.forcedSpans) kinds.fill("forced", clamp(from - this.length, count), clamp(to - this.length, count));
    const chosen: [number, number][] = [];
    let at = 0;
    for (const token of tokens) {
      const end = Math.min(count, at + Array.from(token).length);
      if (end > at && kinds[at] !== "forced") chosen.push([at, end]);
      at = end;
    }
    for (const [from, to] of chosen.slice(0, -1)) kinds.fill("drafted", from, to);
    return kinds;
  }

  private append(kind: Kind, text: string): void {
    const last = this.spans.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) this.spans.push({ kind, text });
  }
}

function clamp(place: number, most: number): number {
  return Math.max(0, Math.min(most, place));
}
