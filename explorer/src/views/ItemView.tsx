/** One item: its paths side by side, similar items, and for whom it is retrieved. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { ItemCard, PathNeighbour } from "../api/types";
import { Meter } from "../charts/Bars";
import { count, counted, decimal, nameOf, percent, plainValue } from "../format";
import { useModel } from "../model";
import { idText, placeOf } from "../router";
import { Answered } from "../ui/Answered";
import { Histories } from "../ui/Histories";
import { Empty, Figure, Figures, ItemLink, keyOf, LabelText, Panel, PathChips, PathLink, Title } from "../ui/Parts";

export function ItemView({ id }: { id: string }): JSX.Element {
  const state = useAnswer("item", { id });
  return (
    <Answered state={state} what="the item">
      {(card) => <Card card={card} />}
    </Answered>
  );
}

function Card({ card }: { card: ItemCard }): JSX.Element {
  const { depth } = useModel();
  const details = Object.entries(card.details ?? {});
  return (
    <>
      <Title kicker={card.title ? `Item ${String(card.id)}` : "Item"}>{nameOf(card)}</Title>
      {details.length > 0 && (
        <p class="chips item-details">
          {details.map(([name, value]) => (
            <span key={name} class="chip">
              <span class="muted">{name}</span> {plainValue(value)}
            </span>
          ))}
        </p>
      )}
      <Figures>
        <Figure name="Interactions" value={count(card.interactions)} />
        <Figure name="Popularity" value={`#${count(card.popularity_rank)}`} note={`of ${count(card.num_items)}`} />
        <Figure name="Paths" value={count(card.paths.length)} />
      </Figures>
      <div class="grid">
        <Panel
          wide
          title="Its paths"
          note={card.paths.length > 1 ? "An item that means different things lives on different paths. Below each: the most similar items there." : undefined}
          actions={<a href={placeOf("query", "", { h: [idText(card.id)] })}>Query with this item</a>}
        >
          {card.paths.length > 0 ? (
            <div class="item-paths">
              {card.paths.map((path) => (
                <section key={path.path.join("-")} class="item-path" aria-label={`Path ${path.path.join("-")}`}>
                  <LabelText label={path.label} fallback="no label" />
                  <PathChips nodes={path.path} depth={depth} />
                  <p class="muted">
                    {counted(path.items, "item")}; this one has {percent(path.share)} of the interactions
                  </p>
                  <Near items={path.neighbours} nothing="It is alone here." />
                </section>
              ))}
            </div>
          ) : (
            <Empty>It has no path yet, so no query finds it. New items of a live model get theirs with the next update.</Empty>
          )}
        </Panel>
        <Panel title="Similar items" note="By their vectors, over the whole catalogue.">
          <Near items={card.similar} nothing="None were found." />
        </Panel>
        <Panel title="Its paths over the rounds">
          {card.rounds && card.rounds.length > 0 ? (
            <div class="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Round</th>
                    <th scope="col">Paths</th>
                  </tr>
                </thead>
                <tbody>
                  {card.rounds.map((round, index) => {
                    const before = new Set(card.rounds?.[index - 1]?.paths.map((one) => one.join("-")));
                    return (
                      <tr key={round.number}>
                        <td>{round.number}</td>
                        <td>
                          <span class="chips">
                            {round.paths.map((nodes) => (
                              <span key={nodes.join("-")} class={index > 0 && !before.has(nodes.join("-")) ? "chip changed" : "chip"}>
                                <PathLink nodes={nodes} depth={depth} />
                                {index > 0 && !before.has(nodes.join("-")) && <span class="muted"> new</span>}
                              </span>
                            ))}
                          </span>
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>Rounds were not recorded for this item.</Empty>
          )}
        </Panel>
        <Panel wide title="Retrieved for" note={card.histories && card.histories.length > 0 ? `${count(card.num_histories)} of the recorded histories get it as an answer.` : undefined}>
          <Histories histories={card.histories} nothing="It is in the answer to none of the recorded histories." />
        </Panel>
      </div>
    </>
  );
}

function Near({ items, nothing }: { items: readonly PathNeighbour[]; nothing: string }): JSX.Element {
  if (items.length === 0) return <Empty>{nothing}</Empty>;
  return (
    <ul class="plain-list">
      {items.map((item) => (
        <li key={keyOf(item.id)}>
          <ItemLink item={item} />
          <span class="amount" data-tip={`similarity ${decimal(item.similarity, 2)}, ${counted(item.interactions, "interaction")}`}>
            <span class="near">
              <Meter share={item.similarity} />
            </span>{" "}
            {decimal(item.similarity, 2)}
          </span>
        </li>
      ))}
    </ul>
  );
}
