/** Text in charts, cut to the room that it has. */

/** As in charts.css. */
const SIZE = 12;
const KEPT = 4_000;
const widths = new Map<string, number>();
let pen: CanvasRenderingContext2D | null | undefined;

/** The width of a text in a chart. */
export function widthOf(text: string, weight = 400): number {
  const key = `${weight} ${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  if (pen === undefined) pen = document.createElement("canvas").getContext("2d");
  if (pen) pen.font = `${weight} ${SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  const found = pen ? pen.measureText(text).width : text.length * SIZE * 0.6;
  if (widths.size >= KEPT) widths.clear();
  widths.set(key, found);
  return found;
}

/** A text, or as much of its beginning as fits; nothing if that would be a letter or two. */
export function fit(text: string, room: number, weight = 400): string {
  if (widthOf(text, weight) <= room) return text;
  const letters = Array.from(text);
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(`${letters.slice(0, middle).join("").trimEnd()}…`, weight) <= room) low = middle;
    else high = middle - 1;
  }
  return low > 2 ? `${letters.slice(0, low).join("").trimEnd()}…` : "";
}
