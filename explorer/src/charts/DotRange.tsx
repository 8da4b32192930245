/** Two shares on one line from 0 to 1: here, and elsewhere. */
import type { JSX } from "preact";

export function DotRange({ name, kind, here, elsewhere, text }: { name: string; kind?: string; here: number; elsewhere: number; text: (value: number) => string }): JSX.Element {
  const at = (value: number): string => `${2 + Math.min(1, Math.max(0, value)) * 96}%`;
  const label = `${name}: ${text(here)} here, ${text(elsewhere)} elsewhere`;
  return (
    <div class="dot-range">
      <span>
        {name} {kind && <span class="muted">{kind}</span>}
      </span>
      <span class="amount">
        <strong>{text(here)}</strong> <span class="muted">against {text(elsewhere)}</span>
      </span>
      <svg width="100%" height={14} role="img" aria-label={label} data-tip={label}>
        <line class="axis" x1="2%" x2="98%" y1={7} y2={7} />
        <line class="reach" x1={at(Math.min(here, elsewhere))} x2={at(Math.max(here, elsewhere))} y1={7} y2={7} />
        <circle class="ring" cx={at(elsewhere)} cy={7} r={4.5} />
        <circle class="point" cx={at(here)} cy={7} r={5} />
      </svg>
    </div>
  );
}
