/** What happens on the server meanwhile, in a corner that moves nothing: preparing, and newer models. */
import type { JSX } from "preact";
import { count } from "../format";
import type { Status } from "../api/types";

/** Preparing that is over sooner is not mentioned. */
const LONG = 1;

export function Notices({ status, shown, onUpdate, onFollow }: { status: Status | null; shown: string | null; onUpdate: () => void; onFollow: () => void }): JSX.Element {
  const newer = status !== null && shown !== null && status.model !== shown;
  const preparing = status?.preparing && (status.seconds ?? 0) >= LONG ? status : null;
  return (
    <div class="notices" role="status">
      {preparing && (
        <p class="notice">
          <span class="pulse" aria-hidden="true" />
          <span>
            Preparing {preparing.preparing}
            <span class="muted" aria-hidden="true">
              {" "}
              · {count(preparing.seconds ?? 0)} s
            </span>
          </span>
        </p>
      )}
      {newer && (
        <p class="notice">
          <span>{status.live ? "The live model has moved on." : "The server has a newer model."}</span>
          <button type="button" class="primary" onClick={onUpdate}>
            Update
          </button>
          {status.live && (
            <button type="button" onClick={onFollow}>
              Keep updating
            </button>
          )}
        </p>
      )}
    </div>
  );
}
