/** What a view shows while it waits, and if there is no answer. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { AskError } from "../api/source";
import { setToken } from "../api/token";
import type { State } from "../api/useAnswer";
import { useId } from "preact/hooks";

export function Answered<A>({ state, what, doing, children }: { state: State<A>; what: string; doing?: string | null | undefined; children: (answer: A) => ComponentChildren }): JSX.Element {
  const { answer, error, loading, busy, retry } = state;
  return (
    <div class="answered" aria-busy={loading}>
      {error ? <Failed error={error} retry={retry} /> : busy !== null ? <Waiting text={`${capital(busy)} …`} /> : answer !== null ? children(answer) : loading ? <Waiting text={doing ? `Preparing ${doing} …` : `Loading ${what} …`} /> : null}
    </div>
  );
}

function Waiting({ text }: { text: string }): JSX.Element {
  return (
    <div class="waiting" role="status">
      <span class="pulse" aria-hidden="true" />
      {text}
    </div>
  );
}

const HEADINGS: Record<AskError["kind"], string> = {
  unauthorised: "This server asks for a token",
  missing: "Not found",
  "needs-server": "Not in this file",
  failed: "That did not work",
  offline: "No connection",
  busy: "The server is busy",
};

export function Failed({ error, retry }: { error: AskError; retry: () => void }): JSX.Element {
  return (
    <div class={`message ${error.kind}`} role="alert">
      <h2>{HEADINGS[error.kind]}</h2>
      <p>{error.message}</p>
      {error.remedy && error.kind !== "unauthorised" && <p class="muted">{capital(error.remedy)}</p>}
      {error.kind === "unauthorised" && <TokenForm retry={retry} />}
      {(error.kind === "failed" || error.kind === "offline" || error.kind === "busy") && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function TokenForm({ retry }: { retry: () => void }): JSX.Element {
  const [given, setGiven] = useState("");
  const id = useId();
  return (
    <form
      class="token-form"
      onSubmit={(event) => {
        event.preventDefault();
        setToken(given.trim());
        retry();
      }}
    >
      <label for={id}>Token</label>
      <input id={id} type="password" autocomplete="off" required value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
      <button type="submit" class="primary">
        Open
      </button>
      <p class="muted">Kept in this tab until it is closed, and sent only to this server.</p>
    </form>
  );
}
