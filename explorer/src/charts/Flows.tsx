/** The busiest prefixes as bands from layer to layer; what is not shown is one grey band per prefix. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { PrefixFlow } from "../api/types";
import { counted, percent, short } from "../format";
import { nodesPlace } from "../router";
import { Aloud } from "../ui/Aloud";
import { useWidth } from "../ui/useWidth";
import { fit, widthOf } from "./text";
import { layOut, type FlowBar } from "./flowLayout";

const BAR = 10;
const TOP = 24;
/** A grey bar of this height says how much it holds. */
const TOLD = 26;

export function Flows({ flows, total, depth }: { flows: readonly PrefixFlow[]; total: number; depth: number }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [lit, setLit] = useState<string | null>(null);
  const narrow = width < 560;
  const tops = flows.filter((one) => one.prefix.length === 1).length;
  const most = narrow ? 8 : tops <= 20 ? tops : 12;
  const few = flows.length <= 6;
  const height = few ? 220 : narrow ? 440 : most > 12 ? 620 : 560;
  const columns = useMemo(() => layOut(flows, total, narrow ? Math.min(depth, 2) : depth, height, most), [flows, total, depth, height, narrow, most]);
  const layers = columns.length - 1;
  // The first bands only spread out, so they need less room than the others; the last column needs room for its labels.
  const step = (width - BAR) / (layers + 0.35);
  const x = (layer: number): number => (layer === 0 ? 0 : (layer - 0.65) * step);
  const isLit = (one: FlowBar): boolean => lit !== null && !one.other && (one.key === lit || lit.startsWith(`${one.key}-`));
  const each = (draw: (one: FlowBar, layer: number) => JSX.Element | null): (JSX.Element | null)[] => columns.flatMap((column, layer) => column.map((one) => draw(one, layer)));
  const hover = (one: FlowBar): object => ({
    onPointerEnter: () => setLit(one.key),
    onPointerLeave: () => setLit(null),
    onFocus: () => setLit(one.key),
    onBlur: () => setLit(null),
  });
  return (
    <div ref={box}>
      {width > 0 && (
        <svg width={width} height={height + TOP + 4} role="group" aria-label="Items by prefix, layer by layer">
          {columns.map((_, layer) => (
            <text key={layer} class="soft" x={x(layer)} y={12}>
              {layer === 0 ? "all" : `layer ${layer}`}
            </text>
          ))}
          <g transform={`translate(0, ${TOP})`}>
            {each((one, layer) => one.parent && <path key={one.key} class={["flow-band", one.other ? "other" : "", isLit(one) ? "lit" : ""].join(" ")} d={band(x(layer - 1) + BAR, one.from, x(layer), one.y, Math.max(one.height, 0.75))} />)}
            {each((one, layer) => {
              const bar = <rect x={x(layer)} y={one.y} width={BAR} height={Math.max(one.height, 1)} rx={2} data-tip={tipOf(one, total)} />;
              if (one.other || layer === 0) {
                return (
                  <g key={one.key} class={one.other ? "flow other" : "flow"}>
                    {bar}
                    {one.other && one.height >= TOLD && one.prefix.length === 0 && (layer === 1 || layer === layers) && (
                      <text class="soft" x={x(layer) + BAR + 6} y={one.y + one.height / 2 + 4}>
                        {short(one.items)} more
                      </text>
                    )}
                  </g>
                );
              }
              const label = one.named ? labelOf(one, layer === layers ? width - x(layer) - BAR - 8 : step - BAR - 14) : "";
              return (
                <a key={one.key} class={isLit(one) ? "flow lit" : "flow"} href={nodesPlace(one.prefix, depth)} {...hover(one)}>
                  <Aloud text={`Prefix ${tipOf(one, total).replace("\n", ", ")}`} />
                  {bar}
                  {one.named && (
                    <text x={x(layer) + BAR + 6} y={one.y + one.height / 2 + 4} aria-hidden="true">
                      <tspan font-weight="650">{one.prefix.at(-1)}</tspan>
                      {label && <tspan dx="6">{label}</tspan>}
                    </text>
                  )}
                </a>
              );
            })}
          </g>
        </svg>
      )}
    </div>
  );
}

function tipOf(one: FlowBar, total: number): string {
  const share = percent(one.items / total);
  if (one.other) return `${counted(one.items, "item")} on prefixes that are not drawn (${share})`;
  const paths = one.paths ? ` on ${counted(one.paths, "path")}` : "";
  return `${one.key || "all"}${one.label ? `: ${one.label}` : ""}\n${counted(one.items, "item")} (${share})${paths}`;
}

function labelOf(one: FlowBar, width: number): string {
  const text = one.label ?? `${short(one.items)} items`;
  return fit(text, width - widthOf(String(one.prefix.at(-1))) - 8);
}

function band(x0: number, y0: number, x1: number, y1: number, height: number): string {
  const middle = (x0 + x1) / 2;
  return `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}V${y1 + height}C${middle} ${y1 + height} ${middle} ${y0 + height} ${x0} ${y0 + height}Z`;
}
