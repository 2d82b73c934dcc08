/** The constraint editor: CodeMirror in a shadow root, where its style sheets comply with the Content-Security-Policy. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, syntaxHighlighting, syntaxTree, ensureSyntaxTree } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { SyntaxNode, Tree } from "@lezer/common";

/** `pointer` is a JSON Pointer (RFC 6901). Without one the first line is marked; `isUnreadable` marks the first syntax error instead. */
export interface Fault {
  message: string;
  severity: "error" | "warning";
  pointer?: string | null;
  isUnreadable?: boolean;
}

const THEME = EditorView.theme({
  "&": { fontSize: "0.85rem", color: "var(--text)", backgroundColor: "var(--field)", maxHeight: "22rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.45" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--muted)", border: "none" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line)" },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: tags.string, color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-value)" },
]);

export class Editor {
  private readonly view: EditorView;
  private readonly language = new Compartment();

  constructor(parent: HTMLElement, label: string, onChange: () => void) {
    const root = parent.attachShadow({ mode: "open" });
    this.view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        extensions: [
          lineNumbers(),
          history(),
          bracketMatching(),
          lintGutter(),
          this.language.of(json()),
          syntaxHighlighting(COLOURS),
          // Tab is not bound, so that it leaves the editor; Ctrl+Enter runs the request.
          keymap.of([...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"), ...historyKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.updateListener.of((update) => update.docChanged && onChange()),
          THEME,
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  set isJson(isJson: boolean) {
    this.view.dispatch({ effects: this.language.reconfigure(isJson ? json() : []) });
  }

  show(faults: Fault[]): void {
    const diagnostics = faults.map(({ message, severity, pointer, isUnreadable }): Diagnostic => {
      const [from, to] = isUnreadable ? this.firstError() : this.range(pointer ?? "");
      return { from, to, severity, message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  private firstError(): [number, number] {
    let found: [number, number] | null = null;
    this.tree().iterate({
      enter: ({ type, from, to }) => {
        if (type.isError) found ??= [from, to];
      },
    });
    const end = this.view.state.doc.length;
    return found ?? [end, end];
  }

  private tree(): Tree {
    const { state } = this.view;
    return ensureSyntaxTree(state, state.doc.length, 200) ?? syntaxTree(state);
  }

  /** The name or item that the pointer leads to, or the deepest one that exists. */
  private range(pointer: string): [number, number] {
    const { state } = this.view;
    let node = this.tree().topNode.firstChild;
    let found: [number, number] = [0, state.doc.line(1).to];
    for (const part of pointer.split("/").slice(1)) {
      const child = node && childOf(node, unescaped(part), (from, to) => state.sliceDoc(from, to));
      if (!child) break;
      found = child.range;
      node = child.value;
    }
    return found;
  }
}

function unescaped(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Null if the text is not a JSON string. */
function nameOf(text: string): string | null {
  try {
    return JSON.parse(text) as string;
  } catch {
    return null;
  }
}

function childOf(
  node: SyntaxNode,
  part: string,
  text: (from: number, to: number) => string,
): { range: [number, number]; value: SyntaxNode | null } | null {
  if (node.name === "Object") {
    for (const property of node.getChildren("Property")) {
      const name = property.getChild("PropertyName");
      if (name && nameOf(text(name.from, name.to)) === part) return { range: [name.from, name.to], value: property.lastChild };
    }
  }
  if (node.name === "Array") {
    const items: SyntaxNode[] = [];
    for (let child = node.firstChild; child; child = child.nextSibling) if (/^[A-Z]/.test(child.name)) items.push(child);
    const item = items[Number(part)];
    if (item) return { range: [item.from, item.to], value: item };
  }
  return null;
}
