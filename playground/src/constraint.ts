/** Kinds of constraints, and the request fields for each. */

import type { Body } from "./api";

export type ConstraintKind = "json_schema" | "choice" | "regex" | "ebnf" | "lark" | "structural_tag" | "tools";

export const KINDS: Record<ConstraintKind, string> = {
  json_schema: "JSON Schema",
  choice: "Choices (a JSON array)",
  regex: "Regular expression",
  ebnf: "EBNF (GBNF)",
  lark: "Lark grammar",
  structural_tag: "Structural tag",
  tools: "Tools (exactly one is called)",
};

const IN_JSON: ReadonlySet<ConstraintKind> = new Set(["json_schema", "choice", "structural_tag", "tools"]);

/** The text is no JSON. */
export class UnreadableConstraint extends Error {}

/** A placeholder for the editor's text, which is sent unchanged: JSON.parse and JSON.stringify would reorder numeric names and round large
 * numbers. */
const PLACEHOLDER = `the constraint ${Math.random()}`;

export function isJson(kind: ConstraintKind): boolean {
  return IN_JSON.has(kind);
}

/** The request fields with the constraint, or with the placeholder that `encoded` replaces by the editor's text. */
export function fields(kind: ConstraintKind, constraint: unknown = PLACEHOLDER): Body {
  switch (kind) {
    case "json_schema":
      return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: constraint } } };
    case "choice":
      return { structured_outputs: { choice: constraint } };
    case "regex":
      return { structured_outputs: { regex: constraint } };
    case "ebnf":
    case "lark":
      return { structured_outputs: { grammar: constraint } };
    case "structural_tag":
      return { response_format: constraint };
    case "tools":
      return { tools: constraint, tool_choice: "required", parallel_tool_calls: false };
  }
}

/** The value of the editor's text. Throws UnreadableConstraint. */
export function parsed(kind: ConstraintKind, text: string): unknown {
  if (!isJson(kind)) return kind === "regex" ? text.replace(/\n+$/, "") : text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnreadableConstraint(`This is no JSON: ${(error as Error).message}`);
  }
}

/** A body of `fields` as JSON. */
export function encoded(body: Body, kind: ConstraintKind, text: string, indent?: number): string {
  const constraint = isJson(kind) ? text : JSON.stringify(parsed(kind, text));
  return JSON.stringify(body, null, indent).replace(JSON.stringify(PLACEHOLDER), () => constraint);
}

/** The field that holds the editor's text. */
const ROOTS: Partial<Record<ConstraintKind, string>> = {
  json_schema: "response_format.json_schema.schema",
  structural_tag: "response_format",
  tools: "tools",
};

/** A place that the service names (`tools[0].function.parameters#/properties/hour`) as a JSON Pointer into the editor's text. */
export function pointerOf(kind: ConstraintKind, param: string | null): string | null {
  const [, path = "", pointer = ""] = /^([^#]*)#?(.*)$/s.exec(param ?? "") ?? [];
  const root = ROOTS[kind];
  if (root === undefined || !path.startsWith(root)) return null;
  return path.slice(root.length).replace(/\[(\d+)\]|\.([^.[]+)/g, (_, item, name) => `/${item ?? name}`) + pointer;
}
