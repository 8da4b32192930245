/** A node of any layer, or a few consecutive ones: the paths through it, and the nodes before and after. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { Node, NodeQuery } from "../api/types";
import { Bars } from "../charts/Bars";
import { count, counted, short } from "../format";
import { useModel } from "../model";
import { go, layerPlace, pageOf, placeOf } from "../router";
import { useAnnounce } from "../ui/Announce";
import { Answered } from "../ui/Answered";
import { Empty, Figure, Figures, Pager, Panel, Title } from "../ui/Parts";
import { PathList } from "../ui/PathList";
import { sortOf, Sorts } from "../ui/Sorts";

const SHOWN = 8;

export function NodeView({ node, options }: { node: string; options: URLSearchParams }): JSX.Element {
  const last = options.get("last");
  const sort = sortOf(options, "interactions");
  const query: NodeQuery = {
    node: Number(node),
    layer: Number(options.get("layer") ?? 1),
    ...(last === null ? {} : { last: Number(last) }),
    sort,
    page: pageOf(options),
    size: 25,
  };
  const state = useAnswer("node", query);
  useAnnounce(state.answer ? `${counted(state.answer.num_paths, "path")}, page ${state.answer.page} of ${state.answer.pages}` : null);
  return (
    <Answered state={state} what="the node">
      {(answer) => <Found answer={answer} sort={sort} />}
    </Answered>
  );
}

function Found({ answer, sort }: { answer: Node; sort: string }): JSX.Element {
  const { depth, layers } = useModel();
  const { layer, first, last } = answer;
  const own = first === last ? `Node ${first}` : `Nodes ${first} to ${last}`;
  const load = layers[layer - 1];
  const total = load ? load.items.reduce((sum, one) => sum + one, 0) : 0;
  const place = (more: { sort?: string | null; page?: number }): string => placeOf("node", String(first), { layer, last: last === first ? null : last, ...more });
  return (
    <>
      <p class="crumbs">
        <a href={placeOf("overview")}>Overview</a>
        <span class="muted">layer {layer}</span>
      </p>
      <Title
        kicker={answer.label ? `${own} of layer ${layer}` : undefined}
        note={
          <>
            {counted(answer.items, "item")} on {counted(answer.num_paths, "path")} through {first === last ? `node ${first}` : `nodes ${first} to ${last}`} of layer {layer}, whatever the other nodes are.
          </>
        }
      >
        {answer.label?.text ?? `${own} of layer ${layer}`}
      </Title>
      {answer.num_paths === 0 ? (
        <Empty>
          No path in use has {first === last ? "this node" : "these nodes"} in layer {layer}. <a href={placeOf("overview")}>Go to the overview.</a>
        </Empty>
      ) : (
        <>
          <Figures>
            <Figure name="Items" value={count(answer.items)} note={total > 0 ? `${Math.round((100 * answer.items) / total)}% of the layer` : ""} />
            <Figure name="Paths" value={count(answer.num_paths)} />
            <Figure name="Interactions" value={short(answer.interactions)} />
          </Figures>
          <div class="grid">
            {answer.others.map((other) => (
              <Panel
                key={other.layer}
                wide={answer.others.length === 1}
                title={`Layer ${other.layer}`}
                note={`${other.layer < layer ? "Where these paths come from" : "Where these paths lead"}: ${other.num_nodes > SHOWN ? `the busiest of ${counted(other.num_nodes, "node")}` : counted(other.num_nodes, "node")}.`}
              >
                <Bars
                  names="4.5rem"
                  bars={other.nodes.slice(0, SHOWN).map((one) => ({
                    key: String(one.node),
                    name: (
                      <a class="node" href={layerPlace(depth, other.layer, one.node)} aria-label={`Node ${one.node} of layer ${other.layer}`}>
                        {one.node}
                      </a>
                    ),
                    value: one.items,
                    amount: (
                      <>
                        {counted(one.items, "item")}
                        <span class="hide-narrow">, {counted(one.paths, "path")}</span>
                      </>
                    ),
                  }))}
                />
              </Panel>
            ))}
            <Panel wide title="Paths" actions={<Sorts sort={sort} onSort={(next) => go(place({ sort: next === "interactions" ? null : next }), true)} />}>
              <PathList paths={answer.paths} depth={depth} most={Math.max(1, ...answer.paths.map((one) => one.items))} />
              <Pager page={answer.page} pages={answer.pages} total={answer.num_paths} noun="paths" onPage={(page) => go(place({ sort: sort === "interactions" ? null : sort, page }))} />
            </Panel>
          </div>
        </>
      )}
    </>
  );
}
