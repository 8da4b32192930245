/** Recorded histories, each of which opens as a query. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LeadingHistory } from "../api/types";
import { count, percent } from "../format";
import { idText, placeOf } from "../router";
import { Empty, History } from "./Parts";

const FIRST = 6;

export function Histories({ histories, nothing }: { histories: readonly LeadingHistory[] | null; nothing: string }): JSX.Element {
  const [all, setAll] = useState(false);
  if (histories === null) return <Empty>No sample histories were recorded with this model.</Empty>;
  if (histories.length === 0) return <Empty>{nothing}</Empty>;
  return (
    <>
    <ul class="histories">
      {(all ? histories : histories.slice(0, FIRST)).map((one) => (
        <li key={one.number}>
          <span class="muted">
            rank {count(one.rank)}
            {typeof one.probability === "number" && `, p ${percent(one.probability)}`}
          </span>
          <History items={one.history} next={one.next} />
          <a href={placeOf("query", "", { h: one.history.map((item) => idText(item.id)) })} aria-label={`Try it: history ${one.number} as a query`}>
            Try it
          </a>
        </li>
      ))}
    </ul>
    {!all && histories.length > FIRST && (
      <button type="button" class="quiet more" onClick={() => setAll(true)}>
        Show {histories.length - FIRST} more
      </button>
    )}
    </>
  );
}
