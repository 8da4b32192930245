/** One figure over the rounds: a line with its first and last value, and the value of the chosen round. */
import type { JSX } from "preact";
import { useWidth } from "../ui/useWidth";

export interface Point {
  round: number;
  value: number;
}

const HEIGHT = 84;
const PAD = { left: 6, right: 10, top: 10, bottom: 18 };

export function Line({ title, points, now, format, unit = "round" }: { title: string; points: readonly Point[]; now: number | null; format: (value: number) => string; unit?: string }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const values = points.map((point) => point.value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const first = points[0]?.round ?? 0;
  const last = points.at(-1)?.round ?? 1;
  const x = (round: number): number => PAD.left + ((round - first) / Math.max(last - first, 1)) * (width - PAD.left - PAD.right);
  const y = (value: number): number => (high === low ? HEIGHT / 2 : HEIGHT - PAD.bottom - ((value - low) / (high - low)) * (HEIGHT - PAD.top - PAD.bottom));
  const shown = points.filter((point) => now === null || point.round <= now).at(-1) ?? points.at(-1);
  const lastPoint = points.at(-1);
  return (
    <div ref={box}>
      <h3 class="line-title">
        <span>{title}</span> <span>{shown && format(shown.value)}</span>
      </h3>
      {width > 0 && shown && lastPoint && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${title}: ${format(values[0] ?? 0)} in ${unit} ${first}, ${format(lastPoint.value)} in ${unit} ${last}`}>
          <line class="axis" x1={PAD.left} x2={width - PAD.right} y1={HEIGHT - PAD.bottom} y2={HEIGHT - PAD.bottom} />
          <polyline class="line" points={points.map((point) => `${x(point.round)},${y(point.value)}`).join(" ")} />
          {points.map((point) => (
            <circle key={point.round} class="point" cx={x(point.round)} cy={y(point.value)} r={2.5} data-tip={`${unit} ${point.round}: ${format(point.value)}`} />
          ))}
          <circle class="point now" cx={x(shown.round)} cy={y(shown.value)} r={5} stroke-width={2} />
          <text class="soft" x={PAD.left} y={HEIGHT - 3}>
            {first}
          </text>
          <text class="soft" x={width - PAD.right} y={HEIGHT - 3} text-anchor="end">
            {unit} {last}
          </text>
        </svg>
      )}
    </div>
  );
}
