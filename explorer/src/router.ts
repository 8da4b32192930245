/** Addresses: everything that can be looked at has one, after the hash. */
import { useEffect, useState } from "preact/hooks";
import type { Id } from "./api/types";

export interface Place {
  /** The view: the first part. */
  view: string;
  /** What it shows, decoded. */
  name: string;
  options: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path = "", options = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const slash = path.indexOf("/");
  const view = slash < 0 ? path : path.slice(0, slash);
  return { view: view || "overview", name: slash < 0 ? "" : decode(path.slice(slash + 1)), options: new URLSearchParams(options) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The page of a list, from 1. */
export const pageOf = (options: URLSearchParams): number => Math.min(1_000_000, Math.max(1, Math.floor(Number(options.get("page"))) || 1));

export type Options = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export function placeOf(view: string, name = "", options: Options = {}): string {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    if (Array.isArray(value)) value.forEach((one: string) => given.append(key, one));
    else given.set(key, String(value));
  }
  const path = view === "overview" ? "" : view;
  const rest = given.toString();
  return `#/${path}${name ? `/${encodeURIComponent(name)}` : ""}${rest ? `?${rest}` : ""}`;
}

export const pathPlace = (nodes: readonly number[]): string => placeOf("path", nodes.join("-"));
export const prefixPlace = (nodes: readonly number[]): string => placeOf("paths", nodes.join("-"));
export const itemPlace = (id: Id): string => placeOf("item", String(id));

/** A whole path has its card; a prefix has the list of the paths below it. */
export const nodesPlace = (nodes: readonly number[], depth: number): string =>
  nodes.length >= depth ? pathPlace(nodes) : prefixPlace(nodes);

/** Nodes of any layer, from `first` to `last`; one of the first layer is a prefix. */
export const layerPlace = (depth: number, layer: number, first: number, last = first): string =>
  layer === 1 && first === last ? nodesPlace([first], depth) : placeOf("node", String(first), { layer, last: last === first ? null : last });

/** Ids keep their type in an address: integers are bare, and text that looks like one is quoted. */
export const idText = (id: Id): string =>
  typeof id === "string" && /^(-?\d+|".*)$/.test(id) ? JSON.stringify(id) : String(id);

export function parseId(text: string): Id {
  if (/^-?\d+$/.test(text)) {
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : BigInt(text);
  }
  if (text.startsWith('"')) {
    try {
      return String(JSON.parse(text));
    } catch {
      return text;
    }
  }
  return text;
}

export function go(hash: string, replace = false): void {
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    dispatchEvent(new Event("hashchange"));
  } else location.hash = hash;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parsePlace(hash);
}
