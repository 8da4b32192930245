/** The busiest prefixes as bands from layer to layer; what is not shown is one grey band per prefix. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PrefixFlow } from "../api/types";
import { counted, percent, short } from "../format";
import { nodesPlace } from "../router";
import { useWidth } from "../ui/useWidth";

interface Placed {
  key: string;
  prefix: readonly number[];
  label: string | null;
  items: number;
  paths: number;
  other: boolean;
  y: number;
  height: number;
  /** Where the band leaves the parent. */
  from: number;
  parent: Placed | null;
}

const BAR = 10;

/** Keeps the most loaded prefixes of each layer and stacks the children of a prefix beside it. */
export function layOut(flows: readonly PrefixFlow[], total: number, depth: number, height: number, most: number): Placed[][] {
  const scale = height / Math.max(total, 1);
  const root: Placed = { key: "", prefix: [], label: null, items: total, paths: 0, other: false, y: 0, height, from: 0, parent: null };
  const columns: Placed[][] = [[root]];
  for (let layer = 1; layer <= depth; layer += 1) {
    const parents = new Map(columns[layer - 1]?.filter((one) => !one.other).map((one) => [one.key, one]));
    const shown = flows
      .filter((one) => one.prefix.length === layer && parents.has(one.prefix.slice(0, -1).join("-")))
      .sort((a, b) => b.items - a.items)
      .slice(0, most * (layer === 1 ? 1 : 2));
    if (shown.length === 0) break;
    const column: Placed[] = [];
    for (const parent of columns[layer - 1] ?? []) {
      let at = parent.y;
      const children = shown.filter((one) => !parent.other && one.prefix.slice(0, -1).join("-") === parent.key);
      for (const { prefix, items, paths, label } of children) {
        column.push({ key: prefix.join("-"), prefix, label: label?.text ?? null, items, paths, other: false, y: at, height: items * scale, from: at, parent });
        at += items * scale;
      }
      const rest = parent.items - children.reduce((sum, one) => sum + one.items, 0);
      if (rest > 0 && (!parent.other || layer < depth)) {
        column.push({ key: `${parent.key}+${layer}`, prefix: parent.prefix, label: null, items: rest, paths: 0, other: true, y: at, height: rest * scale, from: at, parent });
      }
    }
    columns.push(column);
  }
  return columns;
}

export function Flows({ flows, total, depth }: { flows: readonly PrefixFlow[]; total: number; depth: number }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [lit, setLit] = useState<string | null>(null);
  const narrow = width < 560;
  const height = narrow ? 420 : 520;
  const columns = layOut(flows, total, depth, height, narrow ? 7 : 12);
  const step = columns.length > 1 ? (width - BAR) / (columns.length - 0.35) : width;
  const isLit = (one: Placed): boolean => lit !== null && !one.other && (one.key === lit || lit.startsWith(`${one.key}-`));
  const x = (layer: number): number => layer * step;
  return (
    <div ref={box}>
      {width > 0 && (
        <svg width={width} height={height + 24} role="group" aria-label="Items by prefix, layer by layer">
          {columns.map((_, layer) => (
            <text key={layer} class="soft" x={x(layer)} y={12}>
              {layer === 0 ? (narrow ? "all" : "all items") : `layer ${layer}`}
            </text>
          ))}
          <g transform="translate(0, 22)">
            {columns.map((column, layer) =>
              column.map((one) => {
                const { parent } = one;
                const visible = Math.max(one.height - 1, 0.75);
                const share = percent(one.items / total);
                const text = one.other
                  ? `${counted(one.items, "more entry", "more entries")}, not shown (${share})`
                  : `${one.key || "all"}${one.label ? `: ${one.label}` : ""}\n${counted(one.items, "item")} (${share})${one.paths ? ` on ${counted(one.paths, "path")}` : ""}`;
                const mark = (
                  <>
                    {parent && <path class={one.other ? "flow-band other" : "flow-band"} d={band(x(layer - 1) + BAR, one.from, x(layer), one.y, visible)} />}
                    <rect x={x(layer)} y={one.y} width={BAR} height={visible} rx={2} data-tip={text} />
                    {one.height >= 13 && layer > 0 && !one.other && (
                      <text x={x(layer) + BAR + 6} y={one.y + one.height / 2 + 4} pointer-events="none">
                        <tspan font-weight="600">{one.prefix.at(-1)}</tspan>
                        {fitted(one, step - BAR - 14, layer === columns.length - 1)}
                      </text>
                    )}
                    {one.other && one.height >= 26 && (
                      <text class="soft" x={x(layer) + BAR + 6} y={one.y + one.height / 2 + 4} pointer-events="none">
                        {short(one.items)} elsewhere
                      </text>
                    )}
                  </>
                );
                const name = ["flow", one.other ? "other" : "", isLit(one) ? "lit" : ""].filter(Boolean).join(" ");
                return one.other || layer === 0 ? (
                  <g key={one.key} class={one.other ? name : `${name} root`}>
                    {mark}
                  </g>
                ) : (
                  <a
                    key={one.key}
                    class={name}
                    href={nodesPlace(one.prefix, depth)}
                    aria-label={`Prefix ${text.replace("\n", ", ")}`}
                    onPointerEnter={() => setLit(one.key)}
                    onPointerLeave={() => setLit(null)}
                    onFocus={() => setLit(one.key)}
                    onBlur={() => setLit(null)}
                  >
                    {mark}
                  </a>
                );
              }),
            )}
          </g>
        </svg>
      )}
    </div>
  );
}

function fitted(one: Placed, width: number, last: boolean): string {
  const room = Math.floor(width / 6.4) - String(one.prefix.at(-1)).length - 1;
  const amount = ` · ${short(one.items)}`;
  if (!one.label) return room >= amount.length ? amount : "";
  const full = `  ${one.label}`;
  if (full.length + (last ? 0 : 0) <= room) return full;
  return room > 6 ? `${full.slice(0, room - 1).trimEnd()}…` : "";
}

function band(x0: number, y0: number, x1: number, y1: number, height: number): string {
  const middle = (x0 + x1) / 2;
  return `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}V${y1 + height}C${middle} ${y1 + height} ${middle} ${y0 + height} ${x0} ${y0 + height}Z`;
}
