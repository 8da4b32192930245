/** Small parts that every view uses. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Id, NamedItem, PathLabel } from "../api/types";
import { count, nameOf } from "../format";
import { itemPlace, nodesPlace, prefixPlace } from "../router";

/** The heading of a view; it takes the focus when the view opens, so that a screen reader says where one is. */
export function Title({ children, kicker, note }: { children: ComponentChildren; kicker?: string; note?: ComponentChildren }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const text = heading.current?.textContent;
    document.title = text ? `${text} · Pathdex explorer` : "Pathdex explorer";
  });
  return (
    <header class="title">
      {kicker && <p class="kicker">{kicker}</p>}
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {note && <p class="lead">{note}</p>}
    </header>
  );
}

export function Panel({
  title,
  note,
  children,
  wide,
  actions,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
  wide?: boolean;
  actions?: ComponentChildren;
}): JSX.Element {
  const id = `panel-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return (
    <section class={wide ? "panel wide" : "panel"} aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {actions}
      </div>
      {note && <p class="note">{note}</p>}
      {children}
    </section>
  );
}

export function Figures({ children }: { children: ComponentChildren }): JSX.Element {
  return <dl class="figures">{children}</dl>;
}

export function Figure({ name, value, note }: { name: string; value: string; note?: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span class="value">{value}</span>
        {note && <span class="unit"> {note}</span>}
      </dd>
    </div>
  );
}

/** The nodes of a path; each leads to its prefix, the last to the path. */
export function PathChips({ nodes, depth }: { nodes: readonly number[]; depth: number }): JSX.Element {
  return (
    <span class="path-chips" role="group" aria-label={`Path ${nodes.join(", ")}`}>
      {nodes.map((node, layer) => (
        <a
          key={layer}
          href={layer + 1 < depth ? prefixPlace(nodes.slice(0, layer + 1)) : nodesPlace(nodes, depth)}
          class="node"
          aria-label={layer + 1 < depth ? `Prefix ${nodes.slice(0, layer + 1).join("-")}` : `Path ${nodes.join("-")}`}
        >
          {node}
        </a>
      ))}
    </span>
  );
}

/** A path as one link. */
export function PathLink({ nodes, depth }: { nodes: readonly number[]; depth: number }): JSX.Element {
  return (
    <a class="path-link" href={nodesPlace(nodes, depth)}>
      {nodes.join("-")}
    </a>
  );
}

export function ItemLink({ item }: { item: NamedItem }): JSX.Element {
  return (
    <a class="item-link" href={itemPlace(item.id)}>
      {nameOf(item)}
    </a>
  );
}

/** The id beside a title; nothing if the id is the title. */
export function IdTag({ item }: { item: NamedItem }): JSX.Element | null {
  return item.title && item.title !== String(item.id) ? <span class="id">{String(item.id)}</span> : null;
}

export function LabelText({ label, fallback = "no label" }: { label: PathLabel | null | undefined; fallback?: string }): JSX.Element {
  return label ? <span class="label">{label.text}</span> : <span class="label none">{fallback}</span>;
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

export function Pager({
  page,
  pages,
  total,
  noun,
  onPage,
}: {
  page: number;
  pages: number;
  total: number;
  noun: string;
  onPage: (page: number) => void;
}): JSX.Element | null {
  if (pages <= 1) return null;
  return (
    <nav class="pager" aria-label={`Pages of ${noun}`}>
      <button type="button" disabled={page <= 1} onClick={() => onPage(Math.min(page - 1, pages))}>
        Previous
      </button>
      <span>
        Page {count(page)} of {count(pages)} <span class="muted">({count(total)} {noun})</span>
      </span>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
        Next
      </button>
    </nav>
  );
}

/** The latest items of a history, oldest first. */
export function History({ items, next, shown = 5 }: { items: readonly NamedItem[]; next?: NamedItem | null | undefined; shown?: number }): JSX.Element {
  return (
    <span class="history">
      {items.length > shown && <span class="muted">… </span>}
      {items.slice(-shown).map((item, index) => (
        <span key={index} class="step">
          <ItemLink item={item} />
        </span>
      ))}
      {next && (
        <span class="step next">
          <span class="muted">then </span>
          <ItemLink item={next} />
        </span>
      )}
    </span>
  );
}

export const keyOf = (id: Id): string => `${typeof id} ${id}`;
