/** Kinds of constraints, and how each is written in a request. */

import type { Body } from "./api";

export type ConstraintKind = "json_schema" | "choice" | "regex" | "ebnf" | "lark" | "structural_tag" | "tools";

export const KINDS: Record<ConstraintKind, string> = {
  json_schema: "JSON Schema",
  choice: "Choices (a JSON array)",
  regex: "Regular expression",
  ebnf: "EBNF (GBNF)",
  lark: "Lark grammar",
  structural_tag: "Structural tag",
  tools: "Tools (one must be called)",
};

const IN_JSON: ReadonlySet<ConstraintKind> = new Set(["json_schema", "choice", "structural_tag", "tools"]);

/** The text cannot be read; `at` is the place in it, if that is known. */
export class UnreadableConstraint extends Error {
  constructor(
    message: string,
    readonly at: number | null,
  ) {
    super(message);
  }
}

export function isJson(kind: ConstraintKind): boolean {
  return IN_JSON.has(kind);
}

/** The fields of a chat's body. Throws UnreadableConstraint. */
export function fields(kind: ConstraintKind, text: string): Body {
  switch (kind) {
    case "json_schema":
      return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: parsed(text) } } };
    case "choice":
      return { structured_outputs: { choice: parsed(text) } };
    case "regex":
      return { structured_outputs: { regex: text.replace(/\n$/, "") } };
    case "ebnf":
    case "lark":
      return { structured_outputs: { grammar: text } };
    case "structural_tag":
      return { response_format: parsed(text) };
    case "tools":
      return { tools: parsed(text), tool_choice: "required" };
  }
}

/** The field that holds the editor's text. */
const ROOTS: Partial<Record<ConstraintKind, string>> = {
  json_schema: "response_format.json_schema.schema",
  structural_tag: "response_format",
  tools: "tools",
};

/** A place that the service names (`tools[0].function.parameters#/properties/hour`) as a JSON Pointer into the editor's text. */
export function pointerOf(kind: ConstraintKind, param: string | null): string | null {
  const [path = "", pointer = ""] = param?.split("#") ?? [];
  const root = ROOTS[kind];
  if (root === undefined || !path.startsWith(root)) return null;
  return path.slice(root.length).replace(/\[(\d+)\]|\.([^.[]+)/g, (_, item, name) => `/${item ?? name}`) + pointer;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = (error as Error).message;
    const at = /position (\d+)/.exec(message);
    throw new UnreadableConstraint(`This is no JSON: ${message}`, at ? Number(at[1]) : null);
  }
}
