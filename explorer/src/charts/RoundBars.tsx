/** A path round by round: items above the line, those who left below it. */
import type { JSX } from "preact";
import type { PathRound } from "../api/types";
import { count, timeOf } from "../format";
import { useWidth } from "../ui/useWidth";

const UP = 110;

export function RoundBars({ rounds, unit }: { rounds: readonly PathRound[]; unit: string }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const most = Math.max(1, ...rounds.map((one) => Math.max(one.items, one.left)));
  const step = Math.min(72, width / Math.max(rounds.length, 1));
  const scale = UP / most;
  const leavers = Math.max(...rounds.map((one) => one.left)) * scale;
  const height = UP + leavers + 40;
  const last = rounds.at(-1);
  // Numbers that would touch are left out.
  const every = Math.ceil((8 * String(last?.number ?? 0).length + 8) / Math.max(step, 1));
  const nameOfRound = (one: PathRound): string => (one.number === 0 ? "at the start" : `after ${unit} ${one.number}`);
  return (
    <div ref={box}>
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={`Items after each ${unit}: ${rounds.map((one) => `${nameOfRound(one)}: ${one.items}, ${one.entered} came, ${one.left} left`).join("; ")}`}>
          <g transform="translate(0, 18)">
            {rounds.map((one, index) => {
              const x = index * step;
              const stayed = Math.max(0, one.items - one.entered);
              const wide = Math.max(2, step - 8);
              return (
                <g key={one.number} data-tip={`${nameOfRound(one)}: ${count(one.items)} items${typeof one.time === "number" ? `, ${timeOf(one.time)}` : ""}\n${count(one.entered)} came, ${count(one.left)} left`}>
                  <rect x={x} y={-18} width={step} height={height} fill="transparent" />
                  <rect class="stayed" x={x} y={UP - stayed * scale} width={wide} height={stayed * scale} />
                  <rect class="entered" x={x} y={UP - one.items * scale} width={wide} height={one.entered * scale} />
                  <rect class="left" x={x} y={UP + 1} width={wide} height={one.left * scale} />
                  <text x={x + wide / 2} y={UP - one.items * scale - 5} text-anchor="middle">
                    {step >= 22 || one === last ? count(one.items) : ""}
                  </text>
                  <text class="soft" x={x + wide / 2} y={UP + leavers + 17} text-anchor="middle">
                    {(rounds.length - 1 - index) % every === 0 ? one.number : ""}
                  </text>
                </g>
              );
            })}
            <line class="zero" x1={0} x2={rounds.length * step} y1={UP + 0.5} y2={UP + 0.5} />
          </g>
        </svg>
      )}
      <p class="keys">
        <span>
          <i class="key stayed" />
          stayed
        </span>
        <span>
          <i class="key entered" />
          came
        </span>
        <span>
          <i class="key left" />
          left
        </span>
      </p>
    </div>
  );
}
