/** Helpers for elements. Text of users and models is only set as text, never as HTML. */

export function find<T extends HTMLElement>(selector: string, within: ParentNode = document): T {
  const element = within.querySelector<T>(selector);
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
}

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function fill(select: HTMLSelectElement, options: Record<string, string>): void {
  select.replaceChildren(...Object.entries(options).map(([value, label]) => element("option", { value }, label)));
}
