/** A question as a hook: its last answer stays visible while the next one is on its way. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { toJson } from "./json";
import { AskError, type Answer, type Ask, type Question, type Source } from "./source";

export const SourceContext = createContext<Source | null>(null);

/** Counts the models that were shown; with each, everything is asked again while the old answers stay visible. */
export const EpochContext = createContext(0);

export function useSource(): Source {
  const source = useContext(SourceContext);
  if (!source) throw new Error("no source");
  return source;
}

export interface State<A> {
  answer: A | null;
  error: AskError | null;
  loading: boolean;
  /** What the server does meanwhile, if it asked to come back later; it is asked again. */
  busy: string | null;
  retry: () => void;
}

const KEPT = 60;
const FRESH = 30_000;
/** A server that is busy is asked again after a pause, for two minutes. */
const PAUSE = 1_500;
const ATTEMPTS = 80;

/** Recent answers, so that going back is immediate; for half a minute, since a live model changes. */
class Recent {
  private answers = new Map<string, { value: unknown; until: number }>();

  get(key: string): unknown {
    const found = this.answers.get(key);
    return found && found.until > performance.now() ? found.value : undefined;
  }

  set(key: string, value: unknown): void {
    this.answers.delete(key);
    this.answers.set(key, { value, until: performance.now() + FRESH });
    if (this.answers.size > KEPT) this.answers.delete(this.answers.keys().next().value as string);
  }
}

const recent = new Recent();

/** Asks at once, or after `delay` milliseconds without a change; null asks nothing. */
export function useAnswer<Q extends Question>(question: Q, ask: Ask<Q> | null, delay = 0): State<Answer<Q>> {
  const source = useSource();
  const epoch = useContext(EpochContext);
  const key = ask === null ? "" : `${epoch} ${question} ${toJson(ask)}`;
  const [attempt, setAttempt] = useState(0);
  const [state, setState] = useState<{ key: string; answer: Answer<Q> | null; error: AskError | null }>({
    key: "",
    answer: null,
    error: null,
  });
  const [busy, setBusy] = useState<string | null>(null);
  const latest = useRef(ask);
  latest.current = ask;

  useEffect(() => {
    const wanted = latest.current;
    if (wanted === null) return;
    const known = recent.get(key) as Answer<Q> | undefined;
    if (known !== undefined) {
      setState({ key, answer: known, error: null });
      return;
    }
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let attempts = 0;
    const start = (): void => {
      source.ask(question, wanted, abort.signal).then(
        (answer) => {
          if (abort.signal.aborted) return;
          setBusy(null);
          recent.set(key, answer);
          setState({ key, answer, error: null });
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          if (error instanceof AskError && error.kind === "busy" && ++attempts < ATTEMPTS) {
            setBusy(error.message);
            timer = setTimeout(start, PAUSE);
            return;
          }
          setBusy(null);
          const known = error instanceof AskError ? error : new AskError("failed", String(error));
          setState((before) => ({ key, answer: before.answer, error: known }));
        },
      );
    };
    if (delay > 0) timer = setTimeout(start, delay);
    else start();
    return () => {
      clearTimeout(timer);
      abort.abort();
      setBusy(null);
    };
  }, [key, attempt, source]);

  const current = state.key === key;
  const answer = ask === null ? null : current || state.answer !== null ? state.answer : null;
  return {
    answer,
    error: current && ask !== null ? state.error : null,
    loading: ask !== null && !current,
    busy: ask !== null && !current ? busy : null,
    retry: () => {
      setState((before) => ({ ...before, key: "", error: null }));
      setAttempt((number) => number + 1);
    },
  };
}
