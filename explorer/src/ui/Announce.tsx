/** Says results aloud, politely. */
import { createContext, type JSX } from "preact";
import { useContext, useEffect } from "preact/hooks";

export const AnnounceContext = createContext<(text: string) => void>(() => undefined);

export function useAnnounce(text: string | null): void {
  const say = useContext(AnnounceContext);
  useEffect(() => {
    if (text) say(text);
  }, [text]);
}

export function LiveRegion({ text }: { text: string }): JSX.Element {
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {text}
    </p>
  );
}
