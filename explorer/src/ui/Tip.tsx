/** One tooltip for all charts: it follows the pointer and the focus, and repeats the text that a screen reader says. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

interface Shown {
  text: string;
  x: number;
  y: number;
}

/** Marks of charts carry their text in `data-tip`. */
export function Tips(): JSX.Element | null {
  const [shown, setShown] = useState<Shown | null>(null);
  useEffect(() => {
    const show = (event: Event): void => {
      const mark = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
      const text = mark?.getAttribute("data-tip");
      if (!mark || !text) {
        setShown(null);
        return;
      }
      const box = mark.getBoundingClientRect();
      setShown({ text, x: box.x + box.width / 2, y: box.y });
    };
    const hide = (): void => setShown(null);
    const escape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") hide();
    };
    document.addEventListener("pointerover", show);
    document.addEventListener("focusin", show);
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", escape);
    addEventListener("scroll", hide, { capture: true, passive: true });
    return () => {
      document.removeEventListener("pointerover", show);
      document.removeEventListener("focusin", show);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("keydown", escape);
      removeEventListener("scroll", hide, { capture: true });
    };
  }, []);
  if (!shown) return null;
  const below = shown.y < 90;
  const left = Math.min(Math.max(shown.x, 110), document.documentElement.clientWidth - 110);
  return (
    <div class={below ? "tip below" : "tip"} aria-hidden="true" style={{ left: `${left}px`, top: `${below ? shown.y + 24 : shown.y - 8}px` }}>
      {shown.text}
    </div>
  );
}
