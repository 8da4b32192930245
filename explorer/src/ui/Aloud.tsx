import type { JSX } from "preact";

/** The name of a link in a chart: in the picture it is not seen. */
export function Aloud({ text }: { text: string }): JSX.Element {
  return (
    <text class="aloud" pointer-events="none">
      {text}
    </text>
  );
}
