/** Why an item is in the answer, or the layer at which it was lost. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { Id, Why, WhyPath } from "../api/types";
import { rangeOf, ScoreBar } from "../charts/ScoreBar";
import { count, counted, decimal, percent } from "../format";
import { useModel } from "../model";
import { useAnnounce } from "../ui/Announce";
import { Answered } from "../ui/Answered";
import { PathChips } from "../ui/Parts";
import { requestOf, type QueryState } from "./request";

export function WhyPanel({ state, item, onBeam, onDeny }: { state: QueryState; item: Id; onBeam: (beam: number) => void; onDeny?: (() => void) | undefined }): JSX.Element {
  const answered = useAnswer("why", { ...requestOf(state), item }, 60);
  const why = answered.answer;
  useAnnounce(why && !answered.loading ? why.text : null);
  return (
    <Answered state={answered} what="the reason">
      {(found) => <Reason why={found} onBeam={onBeam} onDeny={onDeny} />}
    </Answered>
  );
}

function Reason({ why, onBeam, onDeny }: { why: Why; onBeam: (beam: number) => void; onDeny?: (() => void) | undefined }): JSX.Element {
  const { parts, needed_parts: needed } = why;
  const range = rangeOf([parts, needed].filter((one) => one !== null && one !== undefined));
  const smallest = Math.min(0.1, ...why.paths.flatMap((path) => path.layers.flatMap((layer) => [layer.probability, layer.threshold ?? 1])));
  const low = Math.floor(Math.log10(Math.max(smallest, 1e-30))) - 0.2;
  return (
    <div class="why">
      <p class="verdict">{why.text}</p>
      {typeof why.smallest_beam === "number" && (
        <p>
          <button type="button" onClick={() => onBeam(why.smallest_beam ?? 1)}>
            Use a beam of {count(why.smallest_beam)}
          </button>{" "}
          <span class="muted">It is the smallest that finds the item.</span>
        </p>
      )}
      {parts && needed && typeof why.score === "number" && typeof why.needed === "number" && (
        <div class="versus">
          <span>this item, {decimal(why.score, 2)}</span>
          <ScoreBar parts={parts} score={why.score} range={range} />
          <span>the last that is recommended, {decimal(why.needed, 2)}</span>
          <ScoreBar parts={needed} score={why.needed} range={range} />
        </div>
      )}
      {why.paths.length > 0 && <p class="muted">On each layer the beam keeps the beginnings of paths in the shaded range. The scale is logarithmic.</p>}
      {why.paths.map((path) => (
        <Layers key={path.path.join("-")} path={path} low={low} />
      ))}
      {onDeny && why.reason === "recommended" && (
        <p>
          <button type="button" class="quiet" onClick={onDeny}>
            Leave this item out
          </button>
        </p>
      )}
    </div>
  );
}

/** `low` is the logarithm of the left end of the scale; the right end is 1. */
function Layers({ path, low }: { path: WhyPath; low: number }): JSX.Element {
  const { depth } = useModel();
  const at = (probability: number): number => 100 * (1 - Math.max(low, Math.log10(Math.max(probability, 1e-300))) / low);
  return (
    <section class="why-path" aria-label={`Path ${path.path.join("-")}`}>
      <p class="panel-head">
        <PathChips nodes={path.path} depth={depth} />
        <span class="muted">
          {path.rank === null ? `lost at layer ${path.lost_at}` : `followed, rank ${count(path.rank)}`} · p {percent(path.probability)} · {counted(path.items, "item")}
        </span>
      </p>
      <ol class="why-layers">
        {path.layers.map((layer) => {
          const text = `Layer ${layer.layer}, node ${layer.node}: p ${percent(layer.probability)}${layer.threshold === null ? "" : `; the beam kept ${percent(layer.threshold)} or more`}`;
          return (
            <li key={layer.layer} class={layer.kept ? "" : layer.layer === path.lost_at ? "lost" : "beyond"}>
              <span>layer {layer.layer}</span>
              <svg width="100%" height={20} role="img" aria-label={text} data-tip={text}>
                {layer.threshold !== null && <rect class="kept-zone" x={`${at(layer.threshold)}%`} width={`${100 - at(layer.threshold)}%`} y={2} height={16} />}
                <line class="axis" x1="0%" x2="100%" y1={10} y2={10} />
                {layer.threshold !== null && <line class="threshold" x1={`${at(layer.threshold)}%`} x2={`${at(layer.threshold)}%`} y1={2} y2={18} />}
                <circle class="point" cx={`${Math.min(99, Math.max(1, at(layer.probability)))}%`} cy={10} r={5} />
              </svg>
              <span class="outcome">
                {percent(layer.probability)}
                {layer.kept ? ": kept" : layer.layer === path.lost_at ? `: lost here${layer.threshold === null ? "" : `, needed ${percent(layer.threshold)}`}` : ": not reached"}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
