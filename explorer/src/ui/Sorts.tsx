/** The orders of a list of paths. */
import type { JSX } from "preact";
import type { PathsQuery } from "../api/types";

export type Sort = NonNullable<PathsQuery["sort"]>;

const SORTS: readonly (readonly [Sort, string])[] = [
  ["items", "most items"],
  ["interactions", "most interactions"],
  ["path", "by number"],
];

export const sortOf = (options: URLSearchParams, usual: Sort): Sort => SORTS.find(([name]) => name === options.get("sort"))?.[0] ?? usual;

export function Sorts({ sort, onSort }: { sort: string; onSort: (sort: Sort) => void }): JSX.Element {
  return (
    <span class="choices" role="group" aria-label="Order of the paths">
      {SORTS.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={sort === name} onClick={() => onSort(name)}>
          {text}
        </button>
      ))}
    </span>
  );
}
