/** The final ranking with the parts of each score, and what changed against the default query. */
import type { JSX } from "preact";
import type { Id, RankedItem, Trace } from "../api/types";
import { PartKeys, rangeOf, ScoreBar } from "../charts/ScoreBar";
import { counted, decimal, nameOf } from "../format";
import { ItemLink, keyOf } from "../ui/Parts";

const SOURCES: Record<RankedItem["source"], (item: RankedItem) => string> = {
  paths: (item) => counted(item.paths.length, "path"),
  neighbours: () => "common users",
  both: (item) => `${counted(item.paths.length, "path")} + common users`,
  listed: () => "one of few eligible items",
};

export function Ranking({ trace, plain, asked, onAsk, children }: { trace: Trace; plain: Trace | null; asked: Id | null; onAsk: (id: Id | null) => void; children?: (item: RankedItem) => JSX.Element | null }): JSX.Element {
  const chosen = trace.items.filter((item) => item.recommended);
  const beyond = trace.items.filter((item) => !item.recommended).slice(0, 10);
  const range = rangeOf([...chosen, ...beyond].map((item) => item.parts));
  const before = plain && new Map(plain.items.map((item) => [keyOf(item.id), item]));
  const gone = plain ? plain.items.filter((item) => item.recommended && !chosen.some((one) => keyOf(one.id) === keyOf(item.id))) : [];
  const row = (item: RankedItem): JSX.Element => {
    const open = asked !== null && keyOf(asked) === keyOf(item.id);
    return (
      <li key={keyOf(item.id)} class={item.recommended ? "" : "beyond"}>
        <span class="rank">{item.rank}</span>
        <span>
          <ItemLink item={item} />
          {before && item.recommended && <Change item={item} before={before.get(keyOf(item.id))} />}
          <span class="source">{SOURCES[item.source](item)}</span>
        </span>
        <span class="parts">
          <ScoreBar parts={item.parts} score={item.score} range={range} />
          <span class="score">{decimal(item.score, 2)}</span>
        </span>
        <button type="button" class="quiet" aria-expanded={open} aria-label={`${item.recommended ? "Why" : "Why not"} ${nameOf(item)}?`} onClick={() => onAsk(open ? null : item.id)}>
          {item.recommended ? "Why?" : "Why not?"}
        </button>
        {open && <div class="detail">{children?.(item)}</div>}
      </li>
    );
  };
  return (
    <>
      <PartKeys all={chosen.map((item) => item.parts)} />
      <ol class="ranking">{chosen.map(row)}</ol>
      {gone.length > 0 && (
        <p class="gone-list">
          <span class="muted">No longer in the answer: </span>
          {gone.map((item, index) => (
            <span key={keyOf(item.id)}>
              {index > 0 && " · "}
              <ItemLink item={item} />{" "}
              <button type="button" class="quiet" aria-label={`Why not ${nameOf(item)}?`} onClick={() => onAsk(item.id)}>
                Why not?
              </button>
            </span>
          ))}
        </p>
      )}
      {beyond.length > 0 && (
        <details>
          <summary>The next {beyond.length} candidates</summary>
          <ol class="ranking">{beyond.map(row)}</ol>
        </details>
      )}
    </>
  );
}

function Change({ item, before }: { item: RankedItem; before: RankedItem | undefined }): JSX.Element | null {
  if (!before?.recommended) return <span class="change new">new</span>;
  const by = before.rank - item.rank;
  if (by === 0) return null;
  return (
    <span class={by > 0 ? "change up" : "change down"}>
      <span aria-hidden="true">
        {by > 0 ? "▲" : "▼"}
        {Math.abs(by)}
      </span>
      <span class="visually-hidden">{by > 0 ? `${by} higher` : `${-by} lower`}</span>
    </span>
  );
}
