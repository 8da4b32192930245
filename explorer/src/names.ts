/** Titles of items that were seen, so that an id in the address can be shown by its title. */
import type { Id, NamedItem } from "./api/types";
import { keyOf } from "./ui/Parts";

const seen = new Map<string, NamedItem>();

export function remember(items: readonly NamedItem[]): void {
  for (const item of items) seen.set(keyOf(item.id), item);
}

export const named = (id: Id): NamedItem => seen.get(keyOf(id)) ?? { id };
