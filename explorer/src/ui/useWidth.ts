/** The width of an element, for charts that choose what fits. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export function useWidth<E extends Element>(): [RefObject<E | null>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watched = element.current;
    if (!watched) return undefined;
    setWidth(watched.getBoundingClientRect().width);
    const observer = new ResizeObserver((entries) => {
      const entry = entries[0];
      if (entry) setWidth(entry.contentRect.width);
    });
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return [element, Math.floor(width)];
}

export function useReducedMotion(): boolean {
  const [query] = useState(() => matchMedia("(prefers-reduced-motion: reduce)"));
  return query.matches;
}
