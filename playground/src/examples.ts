/** Examples that a model of 135 million parameters can answer, and one that the service refuses. */

import type { ConstraintKind } from "./constraint";

export interface Example {
  name: string;
  kind: ConstraintKind;
  constraint: string;
  prompt: string;
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

const object = (properties: Record<string, unknown>): unknown => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

export const EXAMPLES: Example[] = [
  {
    name: "Extract fields",
    kind: "json_schema",
    constraint: pretty(
      object({
        customer: { type: "string", maxLength: 40 },
        order_number: { type: "integer", minimum: 1, maximum: 99999 },
        product: { type: "string", maxLength: 40 },
        wants: { enum: ["refund", "replacement", "information"] },
      }),
    ),
    prompt:
      "Extract the fields as JSON.\n\nHello, this is Maria Lindqvist. My order 48213, the blue kettle, arrived broken. Please send me a new one.",
  },
  {
    name: "Classify a review",
    kind: "json_schema",
    constraint: pretty(
      object({
        sentiment: { enum: ["positive", "negative", "mixed"] },
        topic: { enum: ["delivery", "quality", "price", "service"] },
        recommends: { type: "boolean" },
      }),
    ),
    prompt: "Classify this review.\n\nThe shoes fit well and look great, but they took three weeks to arrive.",
  },
  {
    name: "Choose one of four",
    kind: "choice",
    constraint: pretty(["billing", "technical support", "sales", "something else"]),
    prompt: "Which department should answer this? \"I was charged twice for my subscription this month.\"",
  },
  {
    name: "Date by regex",
    kind: "regex",
    constraint: String.raw`20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])`,
    prompt: "When is the meeting? Answer with the date alone.\n\n\"Let us meet on the fourth of March 2026 at nine.\"",
  },
  {
    name: "SQL by grammar",
    kind: "ebnf",
    constraint: `root ::= "SELECT " columns " FROM " table where? ";"
columns ::= column (", " column){0,2}
column ::= "name" | "city" | "age" | "COUNT(*)"
table ::= "customers" | "orders"
where ::= " WHERE " column " " ("=" | ">" | "<") " " value
value ::= [0-9]{1,4} | "'" [A-Za-z ]{1,20} "'"
`,
    prompt: "Write the SQL query: the names of all customers who live in Oslo.",
  },
  {
    name: "Call a tool",
    kind: "tools",
    constraint: pretty([
      {
        type: "function",
        function: {
          name: "set_alarm",
          description: "Sets an alarm.",
          parameters: object({ hour: { type: "integer", minimum: 0, maximum: 23 }, minute: { type: "integer", minimum: 0, maximum: 59 } }),
        },
      },
      {
        type: "function",
        function: {
          name: "play_music",
          description: "Plays music of an artist.",
          parameters: object({ artist: { type: "string", maxLength: 40 } }),
        },
      },
    ]),
    prompt: "Wake me at half past six tomorrow.",
  },
  {
    name: "A schema that is refused",
    kind: "json_schema",
    constraint: pretty({
      type: "object",
      properties: { code: { type: "string", pattern: "^([a-z]+)-\\1$" }, name: { type: "string" } },
      required: ["code"],
    }),
    prompt: "Make a code of a word twice, with a hyphen between.",
  },
];
