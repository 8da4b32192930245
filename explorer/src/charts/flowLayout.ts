/** Where the bars and bands of the flows are: pure geometry. */
import type { PrefixFlow } from "../api/types";

export interface FlowBar {
  key: string;
  prefix: readonly number[];
  label: string | null;
  items: number;
  paths: number;
  /** Whether it stands for the prefixes that are not drawn. */
  other: boolean;
  y: number;
  height: number;
  /** Where its band leaves the parent. */
  from: number;
  parent: FlowBar | null;
  /** Whether there is room for its name. */
  named: boolean;
}

const BETWEEN = 3;
const FAMILIES = 7;
const LINE = 14;

interface Planned {
  parent: FlowBar;
  children: PrefixFlow[];
  rest: number;
}

/** Keeps the most loaded prefixes of each layer; the children of a prefix stand together, in the order of their parents. */
export function layOut(flows: readonly PrefixFlow[], total: number, depth: number, height: number, most: number): FlowBar[][] {
  // Three gaps of families and about `most` bars in every column leave room for all columns at the same scale.
  const scale = (height - Math.min(height * 0.3, most * 3 * BETWEEN + most * FAMILIES)) / Math.max(total, 1);
  const root: FlowBar = { key: "", prefix: [], label: null, items: total, paths: 0, other: false, y: 0, height: total * scale, from: 0, parent: null, named: false };
  const columns: FlowBar[][] = [[root]];
  for (let layer = 1; layer <= depth; layer += 1) {
    const column = columns[layer - 1] ?? [];
    const drawn = new Set(column.filter((one) => !one.other).map((one) => one.key));
    const shown = flows
      .filter((one) => one.prefix.length === layer && drawn.has(one.prefix.slice(0, -1).join("-")))
      .sort((a, b) => b.items - a.items)
      .slice(0, layer === 1 ? most : most * 2);
    if (shown.length === 0) break;
    const planned = column.map((parent): Planned => {
      const children = parent.other ? [] : shown.filter((one) => one.prefix.slice(0, -1).join("-") === parent.key);
      return { parent, children, rest: parent.items - children.reduce((sum, one) => sum + one.items, 0) };
    });
    columns.push(place(planned, layer, scale, height));
  }
  return columns;
}

function place(planned: readonly Planned[], layer: number, scale: number, height: number): FlowBar[] {
  const bars: FlowBar[] = [];
  let y = 0;
  for (const { parent, children, rest } of planned) {
    let from = parent.y;
    const add = (bar: Pick<FlowBar, "key" | "prefix" | "label" | "items" | "paths" | "other">): void => {
      bars.push({ ...bar, y, height: bar.items * scale, from, parent, named: false });
      y += bar.items * scale + BETWEEN;
      from += bar.items * scale;
    };
    for (const { prefix, items, paths, label } of children) add({ key: prefix.join("-"), prefix, label: label?.text ?? null, items, paths, other: false });
    if (rest > 0) add({ key: `${parent.key}+${layer}`, prefix: parent.prefix, label: null, items: rest, paths: 0, other: true });
    y += FAMILIES - BETWEEN;
  }
  // The gaps were estimated; if they were too many, the column is squeezed, and if too few, it is spread.
  const used = Math.max(y - FAMILIES, 1);
  const bulk = bars.reduce((sum, one) => sum + one.height, 0);
  const slack = used > bulk ? (height - bulk) / (used - bulk) : 1;
  let gaps = 0;
  let end = 0;
  for (const bar of bars) {
    gaps += bar.y - end;
    end = bar.y + bar.height;
    bar.y += gaps * (Math.min(slack, 3) - 1);
  }
  nameThem(bars);
  return bars;
}

/** Names the largest bars first, and each other one that no name covers yet. */
function nameThem(bars: readonly FlowBar[]): void {
  const taken: number[] = [];
  for (const bar of [...bars].sort((a, b) => b.items - a.items)) {
    if (bar.other) continue;
    const middle = bar.y + bar.height / 2;
    bar.named = taken.every((one) => Math.abs(one - middle) >= LINE);
    if (bar.named) taken.push(middle);
  }
}
