/** What changed from another model to this one: items that moved, answers that changed. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useAnswer } from "../api/useAnswer";
import type { ChangedAnswer, Compare, CompareQuery, NamedItem } from "../api/types";
import { Bars } from "../charts/Bars";
import { count, counted, percent } from "../format";
import { useModel } from "../model";
import { go, idText, pageOf, placeOf } from "../router";
import { Answered } from "../ui/Answered";
import { Empty, Figure, Figures, History, ItemLink, keyOf, Pager, Panel, PathLink, Title } from "../ui/Parts";

const SORTS: readonly (readonly [NonNullable<CompareQuery["sort"]>, string])[] = [
  ["companions", "new company"],
  ["paths", "new paths"],
  ["interactions", "most popular"],
];

const FIRST = 4;

export function CompareView({ options }: { options: URLSearchParams }): JSX.Element {
  const { abilities } = useModel();
  const sort = SORTS.find(([name]) => name === options.get("sort"))?.[0] ?? "companions";
  const page = pageOf(options);
  const state = useAnswer("compare", abilities.comparison ? { sort, page, size: 25 } : null);
  if (!abilities.comparison) {
    return (
      <>
        <Title>Compare two models</Title>
        <Empty>
          There is no second model. Start with one: <code>pathdex explore RUN --compare OTHER</code>
        </Empty>
      </>
    );
  }
  return (
    <Answered state={state} what="the comparison">
      {(compare) => <Found compare={compare} sort={sort} />}
    </Answered>
  );
}

function Found({ compare, sort }: { compare: Compare; sort: string }): JSX.Element {
  const { depth } = useModel();
  const change = (options: { sort?: string; page?: number }, replace: boolean): void => {
    const next = options.sort ?? sort;
    go(placeOf("compare", "", { sort: next === "companions" ? null : next, page: options.page }), replace);
  };
  return (
    <>
      <Title
        note={
          <>
            From model <code>{compare.other}</code> to <code>{compare.model}</code>.{" "}
            {!compare.same_structure && "Their structures differ, so only companions and answers can be compared, not paths."}
          </>
        }
      >
        What changed
      </Title>
      <Figures>
        <Figure name="Items in both" value={count(compare.common_items)} note={`+${count(compare.only_here)} −${count(compare.only_there)}`} />
        {compare.paths_kept !== null && <Figure name="Paths kept" value={percent(compare.paths_kept)} />}
        {compare.companions_kept !== null && <Figure name="Companions kept" value={percent(compare.companions_kept)} note={`${count(compare.sample)} items`} />}
        {compare.overlap !== null && <Figure name="Answers in common" value={percent(compare.overlap)} note={`first ${compare.n}`} />}
        {compare.first_same !== null && <Figure name="Same first item" value={percent(compare.first_same)} />}
      </Figures>
      <div class="grid">
        {compare.same_structure && compare.kept_counts.length > 0 && (
          <Panel title="Paths kept per item">
            <Bars bars={compare.kept_counts.map((items, kept) => ({ key: String(kept), name: kept === 0 ? "none" : kept === compare.kept_counts.length - 1 ? `all ${kept}` : `${kept}`, value: items, amount: counted(items, "item") }))} />
          </Panel>
        )}
        <Panel title="Items of only one model">
          {compare.only_here + compare.only_there === 0 && <Empty>Both have the same items.</Empty>}
          {compare.only_here > 0 && <NameList title={`New: ${count(compare.only_here)}`} items={compare.new_items} link />}
          {compare.only_there > 0 && <NameList title={`Gone: ${count(compare.only_there)}`} items={compare.gone_items} />}
        </Panel>
        <Panel
          wide
          title="Items that moved"
          note="Numbers of nodes mean nothing by themselves: an item whose companions stayed has not moved, even if its path has another number."
          actions={
            <span class="choices" role="group" aria-label="Order of the items">
              {SORTS.map(([name, text]) => (
                <button key={name} type="button" aria-pressed={sort === name} onClick={() => change({ sort: name }, true)}>
                  {text}
                </button>
              ))}
            </span>
          }
        >
          {compare.moved.length > 0 ? <Moved compare={compare} depth={depth} /> : <Empty>No item moved.</Empty>}
          <Pager page={compare.page} pages={compare.pages} total={compare.num_moved} noun="items" onPage={(page) => change({ page }, false)} />
        </Panel>
        <Panel wide title="Answers that changed" note={`The answers of both models to ${counted(compare.num_answers, "history", "histories")}${compare.histories === "popular items" ? ", each one popular item" : ""}; those that changed most come first. Struck out: no longer in the answer. Bold: new in it.`}>
          {compare.answers.length > 0 ? (
            <Answers answers={compare.answers} />
          ) : (
            <Empty>No answers were compared.</Empty>
          )}
        </Panel>
      </div>
    </>
  );
}

function NameList({ title, items, link }: { title: string; items: readonly NamedItem[]; link?: boolean }): JSX.Element {
  return (
    <div>
      <h3>{title}</h3>
      {items.length > 0 && (
        <p class="chips">
          {items.map((item) => (
            <span key={keyOf(item.id)} class="chip">
              {link ? <ItemLink item={item} /> : (item.title ?? String(item.id))}
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

function Moved({ compare, depth }: { compare: Compare; depth: number }): JSX.Element {
  const paths = (all: number[][], linked: boolean): JSX.Element => (
    <span class="chips">
      {all.map((nodes) => (
        <span key={nodes.join("-")} class="chip">
          {linked ? <PathLink nodes={nodes} depth={depth} /> : <code>{nodes.join("-")}</code>}
        </span>
      ))}
    </span>
  );
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Item</th>
            <th scope="col" class="hide-narrow">
              Before
            </th>
            <th scope="col">Now</th>
            <th scope="col" class="number">
              Companions kept
            </th>
          </tr>
        </thead>
        <tbody>
          {compare.moved.map((item) => (
            <tr key={keyOf(item.id)}>
              <td>
                <ItemLink item={item} />
              </td>
              <td class="hide-narrow">{paths(item.before, false)}</td>
              <td>{paths(item.after, true)}</td>
              <td class="number">{item.companions_kept === null ? "–" : percent(item.companions_kept)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Answers({ answers }: { answers: readonly ChangedAnswer[] }): JSX.Element {
  const [shown, setShown] = useState(FIRST);
  return (
    <>
      <ul class="answers">
        {answers.slice(0, shown).map((answer) => (
          <Answer key={answer.number} answer={answer} />
        ))}
      </ul>
      {shown < answers.length && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + FIRST * 2)}>
          Show more
        </button>
      )}
    </>
  );
}

function Answer({ answer }: { answer: ChangedAnswer }): JSX.Element {
  const before = new Set(answer.before.map((item) => keyOf(item.id)));
  const after = new Set(answer.after.map((item) => keyOf(item.id)));
  return (
    <li>
      <p>
        <span class="muted">After </span>
        <History items={answer.history} /> <span class="muted">· {percent(answer.overlap)} in common · </span>
        <a href={placeOf("query", "", { h: answer.history.map((item) => idText(item.id)) })}>Try it</a>
      </p>
      <div class="sides">
        <div>
          <h3>Before</h3>
          <ol>
            {answer.before.map((item) => (
              <li key={keyOf(item.id)} class={after.has(keyOf(item.id)) ? "" : "gone"}>
                <ItemLink item={item} />
              </li>
            ))}
          </ol>
        </div>
        <div>
          <h3>Now</h3>
          <ol>
            {answer.after.map((item) => (
              <li key={keyOf(item.id)} class={before.has(keyOf(item.id)) ? "" : "added"}>
                <ItemLink item={item} />
              </li>
            ))}
          </ol>
        </div>
      </div>
    </li>
  );
}
