/** Followed items on the plane of the first two layers: each dot is one path of an item, and it moves when the item does. */
import type { JSX } from "preact";
import type { Id } from "../api/types";
import { nameOf } from "../format";
import { keyOf } from "../ui/Parts";
import { widthOf } from "../charts/text";
import { useWidth } from "../ui/useWidth";
import type { Track } from "./moves";

const LEFT = 32;
const BOTTOM = 36;

/** A number between -0.5 and 0.5 that is always the same for the same text, so that dots on one cell do not hide. */
function scatter(text: string): number {
  let hash = 2166136261;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 16777619);
  return ((hash >>> 8) % 1000) / 1000 - 0.5;
}

export function Plane({ tracks, round, nodes, depth, followed, onFollow }: { tracks: readonly Track[]; round: number; nodes: number; depth: number; followed: Id | null; onFollow: (id: Id) => void }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const left = LEFT + widthOf(String(nodes - 1));
  const height = Math.max(280, Math.min(width * 0.62, 520));
  const cellX = (width - left - 8) / nodes;
  const cellY = (height - BOTTOM - 8) / nodes;
  const x = (path: readonly number[], key: string): number => left + ((path[0] ?? 0) + 0.5 + scatter(key) * 0.7) * cellX;
  const y = (path: readonly number[], key: string): number => (depth > 1 ? 8 + ((path[1] ?? 0) + 0.5 + scatter(`${key}y`) * 0.7) * cellY : height / 2 + scatter(`${key}y`) * height * 0.6);
  const lines = nodes <= 40;
  // Numbers that do not touch.
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => one * cellX >= 22 && one * cellY >= 15) ?? nodes;
  const ticks = Array.from({ length: Math.ceil(nodes / every) }, (_, place) => place * every);
  return (
    <div ref={box} class="plane">
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={`${tracks.length} items on the nodes of the first two layers after round ${round}; the table below names those that moved`}>
          {lines &&
            Array.from({ length: nodes + 1 }, (_, node) => (
              <g key={node} class="axis">
                <line x1={left + node * cellX} x2={left + node * cellX} y1={8} y2={height - BOTTOM} />
                {depth > 1 && <line x1={left} x2={width - 8} y1={8 + node * cellY} y2={8 + node * cellY} />}
              </g>
            ))}
          {ticks.map((node) => (
            <g key={node} class="ticks">
              <text class="soft" x={left + (node + 0.5) * cellX} y={height - BOTTOM + 14} text-anchor="middle">
                {node}
              </text>
              {depth > 1 && (
                <text class="soft" x={left - 6} y={8 + (node + 0.5) * cellY + 4} text-anchor="end">
                  {node}
                </text>
              )}
            </g>
          ))}
          <text class="soft" x={left} y={height - 4}>
            node of layer 1
          </text>
          {depth > 1 && (
            <text class="soft" transform={`translate(11, ${height - BOTTOM}) rotate(-90)`}>
              node of layer 2
            </text>
          )}
          {tracks.map(({ item, places }) => {
            const chosen = followed !== null && keyOf(followed) === keyOf(item.id);
            return (places[round] ?? []).map((path, place) => {
              if (!path) return null;
              const key = `${String(item.id)} ${place}`;
              const before = places[round - 1]?.[place];
              const moved = round > 0 && (!before || before.join("-") !== path.join("-"));
              return (
                <g key={key}>
                  {chosen && <polyline class="trail" points={places.slice(0, round + 1).flatMap((one) => (one[place] ? [`${x(one[place], key)},${y(one[place], key)}`] : [])).join(" ")} />}
                  <circle
                    class={chosen ? "dot followed" : moved ? "dot moved" : "dot"}
                    cx={x(path, key)}
                    cy={y(path, key)}
                    r={chosen ? 6 : 4}
                    data-tip={`${nameOf(item)}\npath ${path.join("-")}${moved && before ? `, from ${before.join("-")}` : ""}`}
                    onClick={() => onFollow(item.id)}
                  />
                </g>
              );
            });
          })}
        </svg>
      )}
    </div>
  );
}
