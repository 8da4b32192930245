/** One item: its paths side by side, similar items, and for whom it is retrieved. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { ItemCard, ItemRound, PathNeighbour } from "../api/types";
import { Meter } from "../charts/Bars";
import { count, counted, decimal, nameOf, percent, plainValue, timeOf } from "../format";
import { useModel } from "../model";
import { idText, placeOf } from "../router";
import { Answered } from "../ui/Answered";
import { Histories } from "../ui/Histories";
import { Empty, Figure, Figures, ItemLink, keyOf, LabelText, Panel, PathChips, PathLink, Title } from "../ui/Parts";

/** Of more states, only changes are listed. */
const MANY = 8;

export function ItemView({ id }: { id: string }): JSX.Element {
  const state = useAnswer("item", { id });
  return (
    <Answered state={state} what="the item">
      {(card) => <Card card={card} />}
    </Answered>
  );
}

function Card({ card }: { card: ItemCard }): JSX.Element {
  const { depth, abilities } = useModel();
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
        <Panel title={abilities.live ? "Its paths over the publishes" : "Its paths over the rounds"}>
          {card.rounds && card.rounds.length > 0 ? <Rounds rounds={card.rounds} depth={depth} live={abilities.live} /> : <Empty>{noRounds(abilities.live, card.round_sample)}</Empty>}
        </Panel>
        <Panel wide title="Retrieved for" note={card.histories && card.histories.length > 0 ? `${count(card.num_histories)} of the recorded histories get it as an answer.` : undefined}>
          <Histories histories={card.histories} nothing="It is in the answer to none of the recorded histories." />
        </Panel>
      </div>
    </>
  );
}

function noRounds(live: boolean, sample: number): string {
  if (!live) return "Rounds were not recorded for this item.";
  if (sample === 0) return "The live folder keeps only the present state; look again after the next publish.";
  return `It is not among the ${count(sample)} items that are followed: those are a sample, without items that were added or replaced since.`;
}

/** The paths after each round; of many rounds, those in which something changed. */
function Rounds({ rounds, depth, live }: { rounds: readonly ItemRound[]; depth: number; live: boolean }): JSX.Element {
  const keys = rounds.map((round) => new Set(round.paths.map((nodes) => nodes.join("-"))));
  const rows = rounds.map((round, index) => ({ round, before: keys[index - 1] }));
  const isSame = (index: number): boolean => [...(keys[index] ?? [])].join() === [...(keys[index - 1] ?? [])].join();
  const shown = rounds.length > MANY ? rows.filter((_, index) => index === 0 || !isSame(index)) : rows;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">{live ? "Publish" : "Round"}</th>
            <th scope="col">Paths</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ round, before }) => (
            <tr key={round.number}>
              <td class="when">
                {count(round.number)}
                {typeof round.time === "number" && <span class="muted"> {timeOf(round.time)}</span>}
              </td>
              <td>
                <span class="chips">
                  {round.paths.map((nodes) => {
                    const isNew = before !== undefined && !before.has(nodes.join("-"));
                    return (
                      <span key={nodes.join("-")} class={isNew ? "chip changed" : "chip"}>
                        <PathLink nodes={nodes} depth={depth} />
                        {isNew && <span class="muted"> new</span>}
                      </span>
                    );
                  })}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < rounds.length && <p class="muted">The other {count(rounds.length - shown.length)} of the {count(rounds.length)} states did not change its paths.</p>}
    </div>
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
