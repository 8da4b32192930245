/** Horizontal bars with their names and numbers beside them. */
import type { ComponentChildren, JSX } from "preact";

export interface Bar {
  key: string;
  name: ComponentChildren;
  value: number;
  amount: ComponentChildren;
  soft?: boolean;
}

export function Bars({ bars, names, most }: { bars: readonly Bar[]; names?: string; most?: number }): JSX.Element {
  const top = most ?? Math.max(1e-12, ...bars.map((bar) => bar.value));
  return (
    <ul class="bars" style={names ? { "--names": names } : undefined}>
      {bars.map((bar) => (
        <li key={bar.key}>
          <span class="name">{bar.name}</span>
          <span class="track">
            <span class={bar.soft ? "fill soft" : "fill"} style={{ width: `${Math.min(1, bar.value / top) * 52}%` }} />
            <span class="amount">{bar.amount}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** A share of a whole, beside a text that says it. */
export function Meter({ share }: { share: number }): JSX.Element {
  return (
    <span class="meter" aria-hidden="true">
      <span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} />
    </span>
  );
}
