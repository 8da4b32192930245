/** One path: its items, what they have in common, who is led here, and how it came to be. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { PathCard } from "../api/types";
import { Meter } from "../charts/Bars";
import { DotRange } from "../charts/DotRange";
import { RoundBars } from "../charts/RoundBars";
import { count, counted, decimal, percent, plainValue, short } from "../format";
import { useModel } from "../model";
import { go, pageOf, placeOf } from "../router";
import { Answered } from "../ui/Answered";
import { Histories } from "../ui/Histories";
import { Empty, Figure, Figures, IdTag, ItemLink, keyOf, LabelText, Pager, Panel, PathChips, Title } from "../ui/Parts";

export function PathView({ path, options }: { path: string; options: URLSearchParams }): JSX.Element {
  const page = pageOf(options);
  const state = useAnswer("path", { path, page, size: 25 });
  return (
    <Answered state={state} what="the path">
      {(card) => <Card card={card} />}
    </Answered>
  );
}

function Card({ card }: { card: PathCard }): JSX.Element {
  const { depth, abilities } = useModel();
  const name = card.path.join("-");
  return (
    <>
      <p class="crumbs">
        <a href={placeOf("paths")}>All paths</a>
        <PathChips nodes={card.path} depth={depth} />
      </p>
      <Title kicker={`Path ${name}`} note={card.label ? `Labelled by what is frequent on its ${card.label.sample < card.num_items ? `${count(card.label.sample)} most popular items` : counted(card.num_items, "item")} and rare elsewhere.` : "Its items have no metadata in common that is rare elsewhere."}>
        {card.label?.text ?? `Path ${name}`}
      </Title>
      <Figures>
        <Figure name="Items" value={count(card.num_items)} />
        <Figure name="Interactions" value={count(card.interactions)} />
        {card.cohesion && <Figure name="Similarity of its items" value={decimal(card.cohesion.similarity, 2)} note={`drawn at random: ${decimal(card.cohesion.random_similarity, 2)}`} />}
      </Figures>
      <div class="grid">
        <Panel wide title="Items">
          <Members card={card} />
          <Pager page={card.page} pages={card.pages} total={card.num_items} noun="items" onPage={(page) => go(placeOf("path", name, { page }))} />
        </Panel>
        <div class="stack">
          {card.label && card.label.terms.length > 0 && (
            <Panel title="What the label says" note="Words of titles and values of attributes, with the items of the sample that have them.">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Term</th>
                    <th scope="col">From</th>
                    <th scope="col" class="number">
                      Items
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {card.label.terms.map((term) => (
                    <tr key={`${term.column} ${term.term}`}>
                      <td>{term.term}</td>
                      <td class="muted">{term.column}</td>
                      <td class="number">
                        <span class="with-meter">
                          <Meter share={term.items / card.label!.sample} />
                          {count(term.items)} of {count(card.label!.sample)}
                        </span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Panel>
          )}
          <Panel title="How it came to be" note={card.rounds ? `After each ${abilities.live ? "publish of the live model" : "round of training"}, among ${counted(card.round_sample, abilities.live ? "followed item" : "recorded item")}.` : undefined}>
            {card.rounds && card.rounds.length > 0 ? (
              <RoundBars rounds={card.rounds} unit={abilities.live ? "publish" : "round"} />
            ) : (
              <Empty>{abilities.live ? "The live folder keeps only the present state; look again after the next publish." : "Rounds were not recorded for this model."}</Empty>
            )}
          </Panel>
        </div>
        <div class="stack">
          <Panel title="How its items relate" note="The filled dot is this path; the ring is the whole catalogue.">
            {card.cohesion ? <Relations card={card} /> : <Empty>Too few items to compare.</Empty>}
          </Panel>
        </div>
        <Panel wide title="Paths nearby" note="Paths that begin with the same nodes.">
          {card.neighbours.length > 0 ? (
            <ul class="plain-list near-paths">
              {card.neighbours.map((near) => (
                <li key={near.path.join("-")}>
                  <PathChips nodes={near.path} depth={depth} />
                  <LabelText label={near.label} fallback="" />
                  <span class="amount">{counted(near.items, "item")}</span>
                </li>
              ))}
            </ul>
          ) : (
            <Empty>No other path begins with the same nodes.</Empty>
          )}
        </Panel>
        <Panel wide title="Who is led here" note={card.histories && card.histories.length > 0 ? `${count(card.num_histories)} of the recorded histories have this path in their beam.` : undefined}>
          <Histories histories={card.histories} nothing="None of the recorded histories is led here." />
        </Panel>
      </div>
    </>
  );
}

function Members({ card }: { card: PathCard }): JSX.Element {
  const most = Math.max(...card.items.map((item) => item.share), 1e-9);
  return (
    <div class="scroll">
      <table class="members">
        <thead>
          <tr>
            <th scope="col">Item</th>
            <th scope="col" class="hide-narrow">
              Details
            </th>
            <th scope="col" class="number">
              Interactions
            </th>
            <th scope="col" class="number hide-narrow">
              Similarity to the path
            </th>
          </tr>
        </thead>
        <tbody>
          {card.items.map((item) => (
            <tr key={keyOf(item.id)}>
              <td>
                <ItemLink item={item} />
                <IdTag item={item} />
              </td>
              <td class="muted hide-narrow">{item.details ? Object.values(item.details).map(plainValue).join(" · ") : "–"}</td>
              <td class="number">
                <span class="with-meter">
                  <Meter share={item.share / most} />
                  <span>
                    {short(item.interactions)} <span class="muted hide-narrow">({percent(item.share)})</span>
                  </span>
                </span>
              </td>
              <td class="number hide-narrow">
                <span class="with-meter">
                  <Meter share={item.similarity} />
                  {decimal(item.similarity, 2)}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Relations({ card }: { card: PathCard }): JSX.Element | null {
  const { cohesion } = card;
  if (!cohesion) return null;
  return (
    <>
      <DotRange name="Similarity of item vectors" here={cohesion.similarity} elsewhere={cohesion.random_similarity} text={(value) => decimal(value, 2)} />
      {cohesion.shared.map((one) => (
        <DotRange key={`${one.column} ${one.value}`} name={one.value} kind={one.column} here={one.items / one.sample} elsewhere={one.catalogue_share} text={percent} />
      ))}
    </>
  );
}
