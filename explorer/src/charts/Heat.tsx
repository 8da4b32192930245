/** The load of the nodes, one strip of cells per layer. The arrow keys walk through the cells. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { count, counted, short } from "../format";
import { go, layerPlace } from "../router";
import { useWidth } from "../ui/useWidth";

export interface Loads {
  layer: number;
  items: readonly number[];
  /** Paths in use by node, if they are known. */
  paths?: readonly number[];
  nodes_per_cell: number;
  dead?: number;
  entropy_share?: number;
}

const LEVELS = 6;
const GAP = 2;

/** 0 for nothing, then classes of equal width on a square-root scale. */
const level = (items: number, most: number): number =>
  items === 0 ? 0 : Math.max(1, Math.ceil(Math.sqrt(items / Math.max(most, 1)) * LEVELS));

/** Columns that fill the width with cells of a good size; a round number, so that rows can be read. */
function columnsFor(cells: number, width: number): number {
  const fits = Math.max(1, Math.floor(width / (cells > 300 ? 13 : 17)));
  if (cells <= fits) return cells;
  return [200, 100, 50, 40, 25, 20, 16, 10].find((one) => one <= fits) ?? fits;
}

export function HeatStrips({ layers, nodes, linked }: { layers: readonly Loads[]; nodes: number; linked?: boolean }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [sorted, setSorted] = useState(false);
  const most = Math.max(1, ...layers.map((layer) => Math.max(0, ...layer.items)));
  return (
    <div ref={box}>
      <div class="panel-head">
        <Scale most={most} />
        <span class="choices" role="group" aria-label="Order of the nodes">
          <button type="button" aria-pressed={!sorted} onClick={() => setSorted(false)}>
            by number
          </button>
          <button type="button" aria-pressed={sorted} onClick={() => setSorted(true)}>
            by load
          </button>
        </span>
      </div>
      {width > 0 && layers.map((layer) => <Strip key={layer.layer} layer={layer} most={most} width={width} sorted={sorted} nodes={nodes} depth={layers.length} linked={linked === true} />)}
    </div>
  );
}

function Scale({ most }: { most: number }): JSX.Element {
  return (
    <span class="scale">
      0
      <svg width={LEVELS * 18 + 18} height={12} aria-hidden="true">
        {Array.from({ length: LEVELS + 1 }, (_, step) => (
          <rect key={step} class={`heat-${step}`} x={step * 18} width={17} height={12} rx={2} />
        ))}
      </svg>
      {count(most)} items on a node
    </span>
  );
}

function Strip({ layer, most, width, sorted, nodes, depth, linked }: { layer: Loads; most: number; width: number; sorted: boolean; nodes: number; depth: number; linked: boolean }): JSX.Element {
  const [at, setAt] = useState(0);
  const svg = useRef<SVGSVGElement>(null);
  const cells = layer.items.length;
  const columns = columnsFor(cells, width);
  const rows = Math.ceil(cells / columns);
  const cellWidth = Math.min((width + GAP) / columns, 96);
  const height = Math.max(12, Math.min(cellWidth, rows > 1 ? 22 : 34));
  const order = layer.items.map((_, cell) => cell);
  if (sorted) order.sort((a, b) => (layer.items[b] ?? 0) - (layer.items[a] ?? 0));
  const last = (cell: number): number => Math.min((cell + 1) * layer.nodes_per_cell, nodes) - 1;
  const open = (cell: number): void => go(layerPlace(depth, layer.layer, cell * layer.nodes_per_cell, last(cell)));
  const nameOfCell = (cell: number): string => {
    const first = cell * layer.nodes_per_cell;
    return layer.nodes_per_cell > 1 ? `nodes ${first} to ${last(cell)}` : `node ${first}`;
  };
  const busiest = layer.items.indexOf(Math.max(...layer.items));

  const move = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: cells - 1 - at };
    if (event.key === "Enter" && linked) {
      open(order[at] ?? 0);
      return;
    }
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(Math.max(at + step, 0), cells - 1);
    setAt(next);
    svg.current?.querySelector<SVGElement>(`[data-at="${next}"]`)?.focus();
  };

  return (
    <div class="strip">
      <div class="strip-head">
        <strong>Layer {layer.layer}</strong>
        <span class="muted">
          busiest: {nameOfCell(busiest)} with {counted(layer.items[busiest] ?? 0, "item")}
          {layer.entropy_share !== undefined && ` · evenness ${layer.entropy_share.toFixed(2)}`}
          {layer.dead !== undefined && layer.dead > 0 && ` · ${counted(layer.dead, "node")} unused`}
        </span>
      </div>
      <svg ref={svg} width={width} height={rows * (height + GAP) - GAP} role="group" aria-label={`Load of layer ${layer.layer}, ${cells} cells; move with the arrow keys${linked ? ", open with Enter" : ""}`} onKeyDown={move}>
        {order.map((cell, position) => {
          const items = layer.items[cell] ?? 0;
          const text = `${nameOfCell(cell)}: ${counted(items, "item")}${layer.paths ? ` on ${counted(layer.paths[cell] ?? 0, "path")}` : ""}`;
          const shade = level(items, most);
          const x = (position % columns) * cellWidth;
          const y = Math.floor(position / columns) * (height + GAP);
          return (
            <g key={cell}>
              <rect
                class={items === 0 ? "cell dead" : `cell heat-${shade}`}
                x={x + (items === 0 ? 0.5 : 0)}
                y={y + (items === 0 ? 0.5 : 0)}
                width={Math.max(1, cellWidth - GAP - (items === 0 ? 1 : 0))}
                height={height - (items === 0 ? 1 : 0)}
                rx={2}
                data-at={position}
                data-tip={`Layer ${layer.layer}, ${text}`}
                tabIndex={position === at ? 0 : -1}
                role={linked ? "link" : "img"}
                aria-label={text}
                onFocus={() => setAt(position)}
                onClick={linked ? () => open(cell) : undefined}
              />
              {cellWidth >= 34 && (
                <text class={shade >= 4 ? "on-dark" : ""} x={x + (cellWidth - GAP) / 2} y={y + height / 2 + 4} text-anchor="middle" pointer-events="none" aria-hidden="true">
                  {short(items)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
