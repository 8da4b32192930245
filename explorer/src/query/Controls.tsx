/** The left side of a query: its history, how far it looks, and what is left out. */
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { count, nameOf } from "../format";
import { useModel } from "../model";
import { named, remember } from "../names";
import { Finder } from "../ui/Finder";
import { keyOf, Panel } from "../ui/Parts";
import { conditionText, readCondition, type QueryState } from "./request";

/** Steps of about a quarter, up to `most`, with the given values among them. */
export function stepsTo(most: number, ...values: (number | null)[]): number[] {
  const steps = new Set<number>(values.filter((one): one is number => one !== null));
  for (let value = 1; value < most; value = Math.max(value + 1, Math.round(value * 1.25))) steps.add(value);
  steps.add(most);
  return [...steps].sort((a, b) => a - b);
}

export function Controls({ state, change }: { state: QueryState; change: (next: Partial<QueryState>) => void }): JSX.Element {
  const { abilities } = useModel();
  return (
    <Panel title="History">
      <div class="controls">
        <Basket state={state} change={change} />
        <Finder
          label="Add an item"
          placeholder={abilities.titles ? "Title or id" : "Id"}
          onPick={(item) => {
            remember([item]);
            change({ history: [...state.history, item.id] });
          }}
        />
        <Budget state={state} change={change} />
        <fieldset>
          <legend>Filters</legend>
          <label class="check">
            <input type="checkbox" checked={!state.keepSeen} onChange={(event) => change({ keepSeen: !event.currentTarget.checked })} />
            Leave out items of the history
          </label>
          {state.deny.length > 0 && (
            <ul class="basket" aria-label="Items left out">
              {state.deny.map((id) => (
                <li key={keyOf(id)}>
                  <span class="name">not {nameOf(named(id))}</span>
                  <button type="button" aria-label={`Allow ${nameOf(named(id))} again`} onClick={() => change({ deny: state.deny.filter((one) => one !== id) })}>
                    ✕
                  </button>
                </li>
              ))}
            </ul>
          )}
          {Object.keys(state.where).length > 0 && (
            <ul class="basket" aria-label="Conditions">
              {Object.entries(state.where).map(([column, condition]) => (
                <li key={column}>
                  <span class="name">
                    {column}: {conditionText(condition)}
                  </span>
                  <button type="button" aria-label={`Remove the condition on ${column}`} onClick={() => change({ where: Object.fromEntries(Object.entries(state.where).filter(([name]) => name !== column)) })}>
                    ✕
                  </button>
                </li>
              ))}
            </ul>
          )}
          {abilities.attributes.length > 0 && <AddCondition columns={abilities.attributes} add={(column, condition) => change({ where: { ...state.where, [column]: condition } })} />}
        </fieldset>
      </div>
    </Panel>
  );
}

function Basket({ state, change }: { state: QueryState; change: (next: Partial<QueryState>) => void }): JSX.Element {
  const { history } = state;
  const move = (from: number, by: number): void => {
    const next = [...history];
    const [one] = next.splice(from, 1);
    if (one !== undefined) next.splice(from + by, 0, one);
    change({ history: next });
  };
  if (history.length === 0) return <p class="muted">Empty. Without a history the answer is the same for everyone.</p>;
  return (
    <>
      <ol class="basket" aria-label="Items of the history, oldest first">
        {history.map((id, index) => {
          const name = nameOf(named(id));
          return (
            <li key={`${index} ${keyOf(id)}`}>
              <span class="name">{name}</span>
              <button type="button" disabled={index === 0} aria-label={`Move ${name} earlier`} onClick={() => move(index, -1)}>
                ↑
              </button>
              <button type="button" disabled={index === history.length - 1} aria-label={`Move ${name} later`} onClick={() => move(index, 1)}>
                ↓
              </button>
              <button type="button" aria-label={`Remove ${name}`} onClick={() => change({ history: history.filter((_, other) => other !== index) })}>
                ✕
              </button>
            </li>
          );
        })}
      </ol>
      <button type="button" class="quiet clear" onClick={() => change({ history: [], asked: null })}>
        Clear
      </button>
    </>
  );
}

function Budget({ state, change }: { state: QueryState; change: (next: Partial<QueryState>) => void }): JSX.Element {
  const model = useModel();
  const id = useId();
  const byCandidates = state.candidates !== null;
  const [most] = useState(() => Math.max(2, Math.min(model.used_paths, model.beam * 8, 1000)));
  const beam = state.beam ?? model.beam;
  const beams = stepsTo(most, model.beam, state.beam);
  // Fewer candidates than items to recommend cannot be asked for.
  const budgets = stepsTo(Math.max(2, state.n, Math.min(model.items, 5000)), state.n, state.candidates).filter((one) => one >= state.n || one === state.candidates);
  const steps = byCandidates ? budgets : beams;
  const value = byCandidates ? (state.candidates ?? 1) : beam;
  return (
    <fieldset>
      <legend>How far to look</legend>
      <span class="choices" role="group" aria-label="What bounds the query">
        <button type="button" aria-pressed={!byCandidates} onClick={() => change({ candidates: null })}>
          beam
        </button>
        <button type="button" aria-pressed={byCandidates} onClick={() => change({ beam: null, candidates: Math.max(state.n, Math.min(100, model.items)) })}>
          candidates
        </button>
      </span>
      <div class="field">
        <label for={id}>
          {byCandidates ? "Items to score" : "Paths per layer"}
          <output for={id}>
            {count(value)}
            {!byCandidates && value === model.beam && <span class="muted"> (default)</span>}
          </output>
        </label>
        <input
          id={id}
          type="range"
          min={0}
          max={steps.length - 1}
          step={1}
          value={steps.indexOf(value)}
          aria-valuetext={count(value)}
          onInput={(event) => {
            const next = steps[Number(event.currentTarget.value)] ?? value;
            change(byCandidates ? { candidates: next } : { beam: next === model.beam ? null : next });
          }}
        />
      </div>
      <div class="field">
        <label for={`${id}-n`}>Items to recommend</label>
        <select id={`${id}-n`} value={String(state.n)} onChange={(event) => {
            const n = Number(event.currentTarget.value);
            change({ n, candidates: state.candidates === null ? null : Math.max(n, state.candidates) });
          }}>
          {[...new Set([5, 10, 20, 50, state.n])].sort((a, b) => a - b).map((n) => (
            <option key={n} value={String(n)}>
              {n}
            </option>
          ))}
        </select>
      </div>
    </fieldset>
  );
}

function AddCondition({ columns, add }: { columns: readonly string[]; add: (column: string, condition: unknown) => void }): JSX.Element {
  const id = useId();
  const [column, setColumn] = useState(columns[0] ?? "");
  const [text, setText] = useState("");
  return (
    <form
      class="condition"
      onSubmit={(event) => {
        event.preventDefault();
        if (!text.trim()) return;
        add(column, readCondition(text));
        setText("");
      }}
    >
      <label class="visually-hidden" for={`${id}-column`}>
        Column
      </label>
      <select id={`${id}-column`} value={column} onChange={(event) => setColumn(event.currentTarget.value)}>
        {columns.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
      <label class="visually-hidden" for={`${id}-value`}>
        Value of {column}: text, a number, or a range such as 2..5
      </label>
      <input id={`${id}-value`} type="text" placeholder="value, or 2..5" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit">Add</button>
    </form>
  );
}
