/** The index at a glance. */
import type { JSX } from "preact";
import type { Health, Overview, Round } from "../api/types";
import { Bars, Meter } from "../charts/Bars";
import { Flows } from "../charts/Flows";
import { HeatStrips } from "../charts/Heat";
import { count, counted, decimal, humane, percent, plainValue, short } from "../format";
import { useModel } from "../model";
import { nodesPlace, placeOf } from "../router";
import { Empty, Figure, Figures, Panel, Title } from "../ui/Parts";
import { PathList } from "../ui/PathList";
import { Warnings } from "../ui/Warnings";

export function OverviewView(): JSX.Element {
  const model = useModel();
  const { health } = model;
  return (
    <>
      <Title
        kicker={model.estimator}
        note={
          <>
            <strong>{counted(model.items, "item")}</strong> live on <strong>{counted(model.used_paths, "path")}</strong>, {model.paths_per_item} each. A path is one of{" "}
            {count(model.num_nodes)} nodes in {model.depth === 1 ? "one layer" : `each of ${model.depth} layers`}; an average item shares its path with {decimal(Math.max(0, health.item_mean_size - 1)).replace(/\.0$/, "")} others.
          </>
        }
      >
        What was learned
      </Title>
      <Warnings warnings={model.warnings} />
      <Figures>
        <Figure name="Items" value={count(model.items)} />
        <Figure name="Interactions" value={short(model.interactions)} />
        <Figure name="Structure" value={`${count(model.num_nodes)} × ${model.depth}`} note={`nodes × layers`} />
        <Figure name="Paths in use" value={count(model.used_paths)} note={`of ${short(model.num_nodes ** model.depth)}`} />
        <Figure name="Items on a path" value={decimal(health.item_mean_size)} note={`at most ${count(health.top_size)}`} />
        <Figure name="Beam" value={count(model.beam)} note="paths per query" />
      </Figures>
      <div class="grid">
        <Panel wide title="Load of the nodes" note="How many items pass through each node; an item counts once for each of its paths. Even loads keep queries short. An unused node has a dashed outline. Open a node to see its paths.">
          <HeatStrips layers={model.layers} nodes={model.num_nodes} linked />
        </Panel>
        <Panel wide title="Where the items go" note="Each bar is a prefix, the first nodes of paths; its height is the number of items below it. The busiest are drawn and named; grey stands for the others. Open one to see its paths.">
          <Flows flows={model.flows} total={model.entries} depth={model.depth} />
          <FlowTable model={model} />
        </Panel>
        <div class="stack">
          <Panel title="Sizes of paths" note="A query scores the items on the paths that it follows, so large paths cost time.">
            <Bars
              bars={model.sizes.map((one) => ({
                key: String(one.low),
                name: one.low === one.high ? counted(one.low, "item") : `${count(one.low)}–${count(one.high)} items`,
                value: one.paths,
                amount: counted(one.paths, "path"),
              }))}
            />
          </Panel>
          <Panel title="What training chose">
            {model.choices.length > 0 ? (
              <ul class="plain-list">
                {model.choices.map((choice) => (
                  <li key={choice}>{choice}</li>
                ))}
              </ul>
            ) : (
              <Empty>No choices were recorded.</Empty>
            )}
          </Panel>
        </div>
        <div class="stack">
          <Panel title="Health">
            <HealthTable health={health} rounds={model.rounds} />
          </Panel>
          <Panel title="Hyper-parameters">
            <details>
              <summary>Show all {Object.keys(model.config).length}</summary>
              <table>
                <tbody>
                  {Object.entries(model.config).map(([name, value]) => (
                    <tr key={name}>
                      <td>
                        <code>{name}</code>
                      </td>
                      <td class="number">{plainValue(value)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </details>
          </Panel>
        </div>
        <Panel
          wide
          title="Largest paths"
          actions={
            <a href={placeOf("paths")}>
              All paths
            </a>
          }
        >
          <PathList paths={model.largest} depth={model.depth} most={Math.max(1, ...model.largest.map((one) => one.items))} />
        </Panel>
      </div>
    </>
  );
}

const amount = (items: number): string => (Number.isInteger(items) ? counted(items, "item") : `${decimal(items)} items`);

function FlowTable({ model }: { model: Overview }): JSX.Element {
  return (
    <details>
      <summary>The same as a table</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Prefix</th>
              <th scope="col">Label</th>
              <th scope="col" class="number">
                Items
              </th>
              <th scope="col" class="number">
                Paths
              </th>
            </tr>
          </thead>
          <tbody>
            {model.flows.map((flow) => (
              <tr key={flow.prefix.join("-")}>
                <td>
                  <a class="path-link" href={nodesPlace(flow.prefix, model.depth)}>
                    {flow.prefix.join("-")}
                  </a>
                </td>
                <td>{flow.label?.text ?? "–"}</td>
                <td class="number">{count(flow.items)}</td>
                <td class="number">{count(flow.paths)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function HealthTable({ health, rounds }: { health: Health; rounds: readonly Round[] }): JSX.Element {
  const overlap = health.overlap ?? rounds.at(-1)?.figures["overlap"];
  const shares: [string, number, string][] = health.entropy_share.map((share, layer) => [`Evenness of layer ${layer + 1}`, share, share.toFixed(2)]);
  if (typeof overlap === "number") shares.push(["Paths kept in the last round", overlap, percent(overlap)]);
  const figures: [string, string][] = [
    ["Median size", amount(health.median_size)],
    ["Size of the 99th percentile", amount(health.p99_size)],
    ["Largest path", counted(health.top_size, "item")],
    ["Distinct paths per item", `${decimal(health.distinct_paths, 2)} of ${health.paths_per_item}`],
    ["Unused nodes", count(health.dead_nodes.reduce((sum, one) => sum + one, 0))],
    ["Items without a path", count(health.unreachable_items)],
  ];
  return (
    <table>
      <tbody>
        {shares.map(([name, share, text]) => (
          <tr key={name}>
            <td>{humane(name)}</td>
            <td class="number">
              <span class="with-meter">
                <Meter share={share} />
                {text}
              </span>
            </td>
          </tr>
        ))}
        {figures.map(([name, value]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="number">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
