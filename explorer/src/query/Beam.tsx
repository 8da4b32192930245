/** The beam layer by layer: which prefixes were compared, which were kept, and how likely each is. */
import type { JSX } from "preact";
import type { BeamLayer, BeamPrefix, FollowedPath } from "../api/types";
import { count, counted, percent } from "../format";
import { useModel } from "../model";
import { nodesPlace } from "../router";
import { Aloud } from "../ui/Aloud";
import { fit, widthOf } from "../charts/text";
import { useWidth } from "../ui/useWidth";

const ROW = 22;
const HEAD = 40;
const KEPT = 12;
const PRUNED = 3;
const LABEL = 34;
/** Stacked layers have no bands to their parents, so they name whole prefixes. */
const WIDE_LABEL = 70;
const VALUE = 46;

interface Row extends BeamPrefix {
  key: string;
  y: number;
}

/** The first kept prefixes, the asked ones, and the first pruned ones. */
export function rowsOf(layer: BeamLayer, asked: ReadonlySet<string>): Row[] {
  const keyed = layer.prefixes.map((one) => ({ ...one, key: one.prefix.join("-"), y: 0 }));
  const kept = keyed.filter((one) => one.kept);
  const pruned = keyed.filter((one) => !one.kept);
  const chosen = [...kept.slice(0, KEPT), ...kept.slice(KEPT).filter((one) => asked.has(one.key)), ...pruned.filter((one, index) => index < PRUNED || asked.has(one.key))];
  return chosen.map((one, index) => ({ ...one, y: HEAD + index * ROW + (one.kept ? 0 : 8) }));
}

export function Beam({ layers, paths, asked }: { layers: readonly BeamLayer[]; paths: readonly FollowedPath[]; asked: ReadonlySet<string> }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const { depth } = useModel();
  const across = width / Math.max(layers.length, 1) >= 118;
  const columns = layers.map((layer) => rowsOf(layer, asked));
  const gap = across ? Math.min(70, (width / layers.length) * 0.22) : 0;
  const labels = new Map(paths.flatMap((path) => (path.label ? [[path.path.join("-"), path.label.text] as const] : [])));
  // The last layer also has the labels of whole paths, if there is room for them.
  const extra = labels.size > 0 && width > 620 ? Math.min(190, width * 0.26) : 0;
  const inner = across ? (width - extra - gap * (layers.length - 1)) / layers.length : width - extra;
  const start = (index: number): number => (across ? index * (inner + gap) : 0);
  const label = across ? LABEL : WIDE_LABEL;
  const counts = layers.map((layer, index) => countLines(layer, columns[index] ?? [], inner - label + 22 + (index === layers.length - 1 ? extra : 0)));
  const lines = Math.max(1, ...counts.map((one) => one.length));
  const heightOf = (rows: readonly Row[]): number => (rows.at(-1)?.y ?? HEAD) + ROW + 6 + 16 * lines;
  const starts = columns.map((_, index) => (across ? 0 : columns.slice(0, index).reduce((sum, rows) => sum + heightOf(rows) + 10, 0)));
  const height = across ? Math.max(...columns.map(heightOf)) : (starts.at(-1) ?? 0) + heightOf(columns.at(-1) ?? []);
  return (
    <div ref={box}>
      {width > 0 && (
        <svg class="beam" width={width} height={height} role="group" aria-label="The beam, layer by layer">
          {across &&
            columns.slice(1).map((rows, index) => {
              const parents = new Map(columns[index]?.map((row) => [row.key, row]));
              const right = start(index) + inner + 4;
              const left = start(index + 1) + 6;
              return (
                <g key={index} class={`beam-layer layer-${index + 2}`} aria-hidden="true">
                  {rows.map((row) => {
                    const parent = row.kept ? parents.get(row.prefix.slice(0, -1).join("-")) : undefined;
                    if (!parent) return null;
                    const y0 = parent.y + ROW / 2;
                    const y1 = row.y + ROW / 2;
                    return <path key={row.key} class="beam-link" stroke-width={1 + 7 * Math.sqrt(row.probability)} d={`M${right} ${y0}C${right + gap / 2} ${y0} ${left - gap / 2} ${y1} ${left} ${y1}`} />;
                  })}
                </g>
              );
            })}
          {layers.map((layer, index) => (
            <g key={layer.layer} class={`beam-layer layer-${index + 1}`}>
              <g transform={`translate(${start(index)}, ${starts[index]})`}>
                <Column layer={layer} rows={columns[index] ?? []} width={inner} extra={index === layers.length - 1 ? extra : 0} labels={labels} label={label} counts={counts[index] ?? []} depth={depth} asked={asked} />
              </g>
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}

interface ColumnProps {
  layer: BeamLayer;
  rows: readonly Row[];
  width: number;
  /** Room for labels on the right. */
  extra: number;
  labels: ReadonlyMap<string, string>;
  /** Where the bars begin. */
  label: number;
  /** What the rows leave out. */
  counts: readonly string[];
  depth: number;
  asked: ReadonlySet<string>;
}

/** How many prefixes are not in the rows: in one line if that does not reach into the next column. */
function countLines(layer: BeamLayer, rows: readonly Row[], room: number): string[] {
  const keptShown = rows.filter((row) => row.kept).length;
  const counts = [layer.kept > keptShown ? `${count(layer.kept - keptShown)} more kept` : "", `${count(layer.compared - layer.kept)} pruned`].filter(Boolean);
  const line = counts.join(", ");
  return widthOf(line) <= room ? [line] : counts;
}

function Column({ layer, rows, width, extra, labels, label, counts, depth, asked }: ColumnProps): JSX.Element {
  const top = Math.max(1e-30, ...rows.map((row) => row.probability));
  const room = Math.max(8, width - label - VALUE - 6);
  return (
    <>
      <text y={13} font-weight="600">
        Layer {layer.layer}
      </text>
      <text y={29} class="soft">
        {`kept ${count(layer.kept)} of ${count(layer.compared)}${width > 200 ? ` · ${percent(layer.mass)} of the probability` : ""}`}
      </text>
      {rows.map((row) => {
        const tip = `${row.key}: p ${percent(row.probability)}, this step ${percent(row.step)}\n${counted(row.items, "item")} below\n${row.kept ? `kept, rank ${count(row.rank)}` : `pruned, rank ${count(row.rank)}`}`;
        const name = ["beam-row", row.kept ? "" : "pruned", asked.has(row.key) ? "asked" : ""].filter(Boolean).join(" ");
        return (
          <a key={row.key} href={nodesPlace(row.prefix, depth)} class={name} data-tip={tip}>
            <Aloud text={tip.replaceAll("\n", ", ")} />
            <g aria-hidden="true" transform={`translate(0, ${row.y})`}>
              <rect class="target" width={width + extra} height={ROW} rx={3} />
              <text x={label - 8} y={15} text-anchor="end">
                {label === LABEL ? row.prefix.at(-1) : row.key}
              </text>
              <rect x={label} y={4} width={Math.max(1.5, (row.probability / top) * room)} height={ROW - 8} rx={2} />
              <text class="soft" x={label + Math.max(1.5, (row.probability / top) * room) + 5} y={15}>
                {percent(row.probability)}
              </text>
              {extra > 0 && labels.has(row.key) && (
                <text x={width + 8} y={15}>
                  {fit(labels.get(row.key) ?? "", extra - 8, asked.has(row.key) ? 700 : 400)}
                </text>
              )}
            </g>
          </a>
        );
      })}
      {counts.map((text, line) => (
        <text key={line} class="soft" x={label - 22} y={(rows.at(-1)?.y ?? HEAD) + ROW + 16 + 15 * line}>
          {text}
        </text>
      ))}
    </>
  );
}
