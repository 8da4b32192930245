/** Which model the server answers about at present, and what it still prepares: asked every few seconds. */
import { useEffect, useState } from "preact/hooks";
import type { Status } from "./types";
import { useSource } from "./useAnswer";

const FIRST = 500;
const SOON = 1_000;
const LATER = 5_000;

/** The latest status since `shown` was answered; null while none is known. Nothing is asked in the background of the browser, nor for a file. */
export function useStatus(active: boolean, shown: unknown): Status | null {
  const source = useSource();
  const [status, setStatus] = useState<Status | null>(null);
  useEffect(() => {
    if (!active || source.isFile) return undefined;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      clearTimeout(timer);
      if (document.hidden) return;
      source.ask("status", {}, abort.signal).then(
        (found) => {
          if (abort.signal.aborted) return;
          setStatus(found);
          timer = setTimeout(look, found.preparing ? SOON : LATER);
        },
        () => {
          if (!abort.signal.aborted) timer = setTimeout(look, LATER);
        },
      );
    };
    timer = setTimeout(look, FIRST);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      abort.abort();
      document.removeEventListener("visibilitychange", look);
      setStatus(null);
    };
  }, [active, source, shown]);
  return status;
}
