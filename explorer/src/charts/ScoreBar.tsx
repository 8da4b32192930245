/** A score as the sum of its parts: what adds goes right from zero, what subtracts goes left; the dot is the sum. */
import type { JSX } from "preact";
import type { ScoreParts } from "../api/types";
import { decimal } from "../format";

export const PARTS: readonly (readonly [keyof ScoreParts, string])[] = [
  ["reranker", "match of history and item"],
  ["bias", "popularity (bias)"],
  ["path", "path probability"],
  ["neighbours", "common users (neighbours)"],
];

export interface Range {
  low: number;
  high: number;
}

export function rangeOf(all: readonly ScoreParts[]): Range {
  let low = 0;
  let high = 0;
  for (const parts of all) {
    let below = 0;
    let above = 0;
    for (const [name] of PARTS) {
      if (parts[name] < 0) below += parts[name];
      else above += parts[name];
    }
    low = Math.min(low, below);
    high = Math.max(high, above);
  }
  return { low, high: Math.max(high, low + 1e-9) };
}

export function partsText(parts: ScoreParts): string {
  return PARTS.filter(([name]) => parts[name] !== 0)
    .map(([name, text]) => `${text} ${decimal(parts[name], 2)}`)
    .join("\n");
}

export function ScoreBar({ parts, score, range }: { parts: ScoreParts; score: number; range: Range }): JSX.Element {
  const at = (value: number): number => ((value - range.low) / (range.high - range.low)) * 100;
  let below = 0;
  let above = 0;
  const boxes = PARTS.map(([name]) => {
    const value = parts[name];
    const start = value < 0 ? (below += value) : above;
    if (value > 0) above += value;
    return { name, x: at(start), width: at(start + Math.abs(value)) - at(start) };
  });
  const text = partsText(parts);
  return (
    <svg class="score-bar" width="100%" height={18} role="img" aria-label={`Score ${decimal(score, 2)}: ${text.replaceAll("\n", ", ")}`} data-tip={`${text}\nscore ${decimal(score, 2)}`}>
      {boxes.map((box) => box.width > 0 && <rect key={box.name} class={`part-${box.name}`} x={`${box.x}%`} y={3} width={`${box.width}%`} height={12} />)}
      <line class="zero" x1={`${at(0)}%`} x2={`${at(0)}%`} y1={0} y2={18} />
      <circle class="total" cx={`${at(score)}%`} cy={9} r={5} />
    </svg>
  );
}

export function PartKeys({ all }: { all: readonly ScoreParts[] }): JSX.Element {
  return (
    <p class="keys">
      {PARTS.filter(([name]) => all.some((parts) => parts[name] !== 0)).map(([name, text]) => (
        <span key={name}>
          <i class={`part-${name}`} />
          {text}
        </span>
      ))}
      <span>
        <svg class="inline" width={12} height={12} aria-hidden="true">
          <circle class="total" cx={6} cy={6} r={5} />
        </svg>{" "}
        their sum, the score
      </span>
    </p>
  );
}
