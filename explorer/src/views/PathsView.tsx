/** The tree of prefixes, one level at a time, and the paths below one. */
import type { JSX } from "preact";
import { useAnswer } from "../api/useAnswer";
import type { Paths } from "../api/types";
import { Bars } from "../charts/Bars";
import { count, counted, short } from "../format";
import { useModel } from "../model";
import { go, nodesPlace, pageOf, placeOf } from "../router";
import { useAnnounce } from "../ui/Announce";
import { Answered } from "../ui/Answered";
import { Empty, Pager, Panel, PathChips, Title } from "../ui/Parts";
import { PathList } from "../ui/PathList";
import { sortOf, Sorts } from "../ui/Sorts";

const CHILDREN = 16;

export function PathsView({ prefix, options }: { prefix: string; options: URLSearchParams }): JSX.Element {
  const sort = sortOf(options, "items");
  const page = pageOf(options);
  const state = useAnswer("paths", { prefix, sort, page, size: 25 });
  useAnnounce(state.answer ? `${counted(state.answer.num_paths, "path")}, page ${state.answer.page} of ${state.answer.pages}` : null);
  return (
    <Answered state={state} what="paths">
      {(answer) => <Found answer={answer} prefix={prefix} sort={sort} />}
    </Answered>
  );
}

function Found({ answer, prefix, sort }: { answer: Paths; prefix: string; sort: string }): JSX.Element {
  const { depth, used_paths } = useModel();
  const nodes = answer.prefix;
  const whole = nodes.length === 0;
  return (
    <>
      {!whole && (
        <p class="crumbs">
          <a href={placeOf("paths")}>All paths</a>
          <PathChips nodes={nodes} depth={depth} />
        </p>
      )}
      <Title note={whole ? <>{counted(used_paths, "path")} in use. Open a node to go one layer deeper.</> : <>{counted(answer.items, "item")} on {counted(answer.num_paths, "path")} that begin with {nodes.join(", ")}.</>}>
        {whole ? "All paths" : (answer.label?.text ?? `Prefix ${nodes.join("-")}`)}
      </Title>
      {answer.num_paths === 0 ? (
        <Empty>
          No path in use begins like this. <a href={placeOf("paths")}>See all paths.</a>
        </Empty>
      ) : (
        <div class="stack">
          {answer.children.length > 0 && (
            <Panel title={`Layer ${nodes.length + 1}`} note={`The busiest of ${counted(answer.num_children, "node")} below.`}>
              <Bars
                names="4.5rem"
                bars={answer.children.slice(0, CHILDREN).map((child) => ({
                  key: String(child.node),
                  name: (
                    <a class="node" href={nodesPlace([...nodes, child.node], depth)}>
                      {child.node}
                    </a>
                  ),
                  value: child.items,
                  amount: (
                    <>
                      {counted(child.items, "item")}
                      <span class="hide-narrow">
                        , {counted(child.paths, "path")}, {short(child.interactions)} interactions
                      </span>
                    </>
                  ),
                }))}
              />
              {answer.num_children > CHILDREN && <p class="muted">and {count(answer.num_children - CHILDREN)} more nodes</p>}
            </Panel>
          )}
          <Panel
            title="Paths"
            actions={
              <Sorts sort={sort} onSort={(next) => go(placeOf("paths", prefix, { sort: next === "items" ? null : next }), true)} />
            }
          >
            <PathList paths={answer.paths} depth={depth} most={Math.max(1, ...answer.paths.map((one) => one.items))} />
            <Pager page={answer.page} pages={answer.pages} total={answer.num_paths} noun="paths" onPage={(next) => go(placeOf("paths", prefix, { sort: sort === "items" ? null : sort, page: next }))} />
          </Panel>
        </div>
      )}
    </>
  );
}
