/** Paths with their labels, first items and sizes. */
import type { JSX } from "preact";
import type { PathSummary } from "../api/types";
import { Meter } from "../charts/Bars";
import { counted, nameOf, short } from "../format";
import { LabelText, PathChips } from "./Parts";

export function PathList({ paths, depth, most }: { paths: readonly PathSummary[]; depth: number; most: number }): JSX.Element {
  return (
    <ul class="paths-list">
      {paths.map((one) => (
        <li key={one.path.join("-")}>
          <PathChips nodes={one.path} depth={depth} />
          <span class="what">
            {one.label && <LabelText label={one.label} />}
            {one.first && one.first.length > 0 && (
              <span class="first">
                {one.first.map((item, index) => (
                  <>
                    {index > 0 && " · "}
                    <bdi>{nameOf(item)}</bdi>
                  </>
                ))}
                {one.items > one.first.length && " …"}
              </span>
            )}
          </span>
          <span class="amount">
            <Meter share={one.items / most} />
            {counted(one.items, "item")}
            <span class="muted interactions hide-narrow">{short(one.interactions)} interactions</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
