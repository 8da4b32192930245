import type { JSX } from "preact";
import type { Warning } from "../api/types";

/** What the health checks found, with what to do about it. */
export function Warnings({ warnings }: { warnings: readonly Warning[] }): JSX.Element | null {
  if (warnings.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {warnings.map((one, index) => (
        <li key={index} class="warning">
          <strong>
            {one.message}
            {typeof one.round === "number" && <span class="muted"> (round {one.round})</span>}
          </strong>
          {one.advice && <span>{one.advice}</span>}
          <span class="muted">
            <code>{one.code}</code>
            {one.docs && ` · see ${one.docs}`}
          </span>
        </li>
      ))}
    </ul>
  );
}
