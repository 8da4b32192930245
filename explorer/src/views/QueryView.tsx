/** A query step by step: history, beam, candidates, ranking, and the reasons. */
import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { useAnswer, useSource } from "../api/useAnswer";
import type { Id, Trace } from "../api/types";
import { count, counted, nameOf, percent } from "../format";
import { useModel } from "../model";
import { named, remember } from "../names";
import { go } from "../router";
import { Beam } from "../query/Beam";
import { Controls } from "../query/Controls";
import { Ranking } from "../query/Ranking";
import { plainRequest, queryPlace, readQuery, requestOf, type QueryState } from "../query/request";
import { WhyPanel } from "../query/WhyPanel";
import { useAnnounce } from "../ui/Announce";
import { Answered } from "../ui/Answered";
import { Finder } from "../ui/Finder";
import { keyOf, LabelText, Panel, PathChips, Title } from "../ui/Parts";

export function QueryView({ options }: { options: URLSearchParams }): JSX.Element {
  const source = useSource();
  const given = readQuery(options);
  const [first] = source.recorded;
  const state = first && given.history.length === 0 ? { ...given, history: first.history } : given;
  // Several controls may change the state before the address is read again.
  const latest = useRef(state);
  latest.current = state;
  const change = (next: Partial<QueryState>): void => {
    latest.current = { ...latest.current, ...next };
    go(queryPlace(latest.current), true);
  };
  const answered = useAnswer("query", requestOf(state), 60);
  const plainAsk = plainRequest(state);
  const plainAnswered = useAnswer("query", plainAsk, 60);
  const trace = answered.answer;
  for (const one of [trace, plainAnswered.answer]) remember([...(one?.history ?? []), ...(one?.items ?? [])]);
  useAnnounce(trace && !answered.loading ? `${counted(trace.items.filter((one) => one.recommended).length, "recommendation")} from ${counted(trace.num_candidates, "candidate")}${trace.items[0] ? `; first ${nameOf(trace.items[0])}` : ""}` : null);
  const asked = (id: Id | null): void => change({ asked: id });
  return (
    <>
      <Title note="A history goes in; the beam follows the most likely nodes of each layer; the items on the paths it reaches are scored.">Ask the index</Title>
      <div class="query">
        {source.isFile ? <Recorded state={state} change={change} /> : <Controls state={state} change={change} />}
        <Answered state={answered} what="the answer">
          {(found) => (
            <div class="stack">
              <Steps trace={found} state={state} plain={plainAsk && !plainAnswered.loading ? plainAnswered.answer : null} onAsk={asked} change={change} />
            </div>
          )}
        </Answered>
      </div>
    </>
  );
}

/** In an exported file: the choice of a recorded history. */
function Recorded({ state, change }: { state: QueryState; change: (next: Partial<QueryState>) => void }): JSX.Element {
  const { recorded } = useSource();
  const id = useId();
  const key = (history: readonly Id[]): string => history.map(keyOf).join(" ");
  const chosen = recorded.findIndex((one) => key(one.history) === key(state.history));
  return (
    <Panel title="History" note="This file answers the queries that were recorded with it. For others, open the model itself: pathdex explore RUN">
      <div class="field">
        <label for={id}>Recorded history</label>
        <select id={id} value={String(chosen)} onChange={(event) => change({ history: [...(recorded[Number(event.currentTarget.value)]?.history ?? [])], asked: null })}>
          {chosen < 0 && <option value="-1">none of them</option>}
          {recorded.map((one, index) => (
            <option key={index} value={String(index)}>
              {`${index + 1}: ${counted(one.history.length, "item")}`}
            </option>
          ))}
        </select>
      </div>
      <ol class="basket">
        {state.history.map((one, index) => (
          <li key={index}>
            <span class="name">{nameOf(named(one))}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Steps({ trace, state, plain, onAsk, change }: { trace: Trace; state: QueryState; plain: Trace | null; onAsk: (id: Id | null) => void; change: (next: Partial<QueryState>) => void }): JSX.Element {
  const { depth, items } = useModel();
  const { isFile } = useSource();
  const listed = state.asked !== null && trace.items.some((item) => keyOf(item.id) === keyOf(state.asked as Id));
  const askedPaths = trace.items.find((item) => state.asked !== null && keyOf(item.id) === keyOf(state.asked))?.paths ?? [];
  const asked = new Set(askedPaths.flatMap((path) => path.map((_, layer) => path.slice(0, layer + 1).join("-"))));
  const reason = (id: Id): JSX.Element => (
    <WhyPanel state={state} item={id} onBeam={(beam) => change({ beam, candidates: null })} onDeny={state.deny.includes(id) ? undefined : () => change({ deny: [...state.deny, id], asked: null })} />
  );
  return (
    <>
      {trace.unknown > 0 && <p class="banner">{counted(trace.unknown, "item")} of the history {trace.unknown === 1 ? "is" : "are"} not in the catalogue and had no effect.</p>}
      <Panel title="The beam" note={<BeamNote trace={trace} />}>
        {trace.mode === "beam" && trace.layers.length > 0 ? <Beam layers={trace.layers} paths={trace.paths} asked={asked} /> : <p class="empty">So few items are eligible that each was scored; no path had to be followed.</p>}
        {trace.paths.length > 0 && (
          <details>
            <summary>
              The {count(trace.paths.length)} {trace.paths.length < trace.num_paths ? `first of ${count(trace.num_paths)} ` : ""}paths that were followed
            </summary>
            <ol class="plain-list followed">
              {trace.paths.map((path) => (
                <li key={path.path.join("-")}>
                  <span>
                    <PathChips nodes={path.path} depth={depth} /> <LabelText label={path.label} fallback="" />
                  </span>
                  <span class="amount">
                    p {percent(path.probability)} · {count(path.candidates)} of {counted(path.items, "item")} scored
                  </span>
                </li>
              ))}
            </ol>
          </details>
        )}
      </Panel>
      <Panel
        title="The answer"
        note={
          <>
            {counted(trace.num_candidates, "candidate")} of {counted(items, "item")} scored
            {trace.from_neighbours > 0 && <>, {count(trace.from_neighbours)} of them from items with common users</>}. <Compared trace={trace} plain={plain} />
          </>
        }
      >
        {trace.items.length > 0 ? (
          <Ranking trace={trace} plain={plain} asked={state.asked} onAsk={onAsk}>
            {(item) => reason(item.id)}
          </Ranking>
        ) : (
          <p class="empty">Nothing passes these filters.</p>
        )}
      </Panel>
      {!isFile && <Panel title="Why not …?" note="Choose any item of the catalogue to see what kept it out.">
        <Finder label="Item to ask about" hideLabel placeholder="Title or id" onPick={(item) => {
            remember([item]);
            onAsk(item.id);
          }} />
        {state.asked !== null && !listed && (
          <>
            <AskedName id={state.asked} />
            {reason(state.asked)}
          </>
        )}
      </Panel>}
    </>
  );
}

function AskedName({ id }: { id: Id }): JSX.Element {
  const unknown = named(id).title === undefined;
  const { answer } = useAnswer("items", unknown ? { search: String(id), size: 1 } : null);
  if (answer) remember(answer.items);
  return <h3>{nameOf(named(id))}</h3>;
}

function BeamNote({ trace }: { trace: Trace }): JSX.Element {
  return (
    <>
      On each layer the beam keeps the {count(trace.beam)} most likely beginnings of paths, given {counted(trace.used, "item")} of the history
      {trace.beam > trace.requested_beam && <> (it began with {count(trace.requested_beam)} and doubled until it found enough items)</>}. Bars show their probability; grey ones were pruned.
    </>
  );
}

function Compared({ trace, plain }: { trace: Trace; plain: Trace | null }): JSX.Element | null {
  if (!plain) return null;
  const before = new Set(plain.items.filter((item) => item.recommended).map((item) => keyOf(item.id)));
  const now = trace.items.filter((item) => item.recommended);
  const same = now.filter((item) => before.has(keyOf(item.id))).length;
  return (
    <strong>
      {count(same)} of {count(now.length)} are also in the default answer.
    </strong>
  );
}
