/** Items from round to round: which path became which. */
import type { ReplayItem } from "../api/types";

export interface Track {
  item: ReplayItem;
  /** By round, then by place: the nodes of a path; null where the item has fewer paths. */
  places: (readonly number[] | null)[][];
}

const same = (a: readonly number[] | null | undefined, b: readonly number[]): boolean => !!a && a.length === b.length && a.every((node, layer) => node === b[layer]);

/** Gives each path a place that it keeps as long as the item has it, since the order of an item's paths means nothing. */
export function trackOf(item: ReplayItem): Track {
  const width = Math.max(0, ...item.paths.map((paths) => paths.length));
  const places: (readonly number[] | null)[][] = [];
  for (const paths of item.paths) {
    const before = places.at(-1);
    const now: (readonly number[] | null)[] = Array.from({ length: width }, () => null);
    const left: number[][] = [];
    for (const path of paths) {
      const place = before?.findIndex((one) => same(one, path)) ?? -1;
      if (place >= 0) now[place] = path;
      else left.push(path);
    }
    for (let place = 0; place < width; place += 1) now[place] ??= left.shift() ?? null;
    places.push(now);
  }
  return { item, places };
}

export interface Move {
  item: ReplayItem;
  from: readonly number[] | null;
  to: readonly number[] | null;
}

/** The paths that changed from the round before to a round. */
export function movesAt(tracks: readonly Track[], round: number): Move[] {
  if (round === 0) return [];
  return tracks.flatMap(({ item, places }) =>
    (places[round] ?? []).flatMap((to, place) => {
      const from = places[round - 1]?.[place] ?? null;
      return to && from && same(from, to) ? [] : to || from ? [{ item, from, to }] : [];
    }),
  );
}
