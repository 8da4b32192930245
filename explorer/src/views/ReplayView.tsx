/** How the index came to be, round by round. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAnswer } from "../api/useAnswer";
import type { Id, Replay, Round, Warning } from "../api/types";
import { Bars } from "../charts/Bars";
import { HeatStrips } from "../charts/Heat";
import { Line, type Point } from "../charts/Lines";
import { count, counted, decimal, humane, nameOf, percent, timeOf } from "../format";
import { useModel } from "../model";
import { Plane } from "../replay/Plane";
import { movesAt, trackOf, type Move } from "../replay/moves";
import { go, idText, parseId, placeOf } from "../router";
import { Answered } from "../ui/Answered";
import { Empty, ItemLink, keyOf, Panel, PathLink, Title } from "../ui/Parts";
import { Warnings } from "../ui/Warnings";

const ITEMS = 200;
const STEP = 1100;
const LISTED = 40;

export function ReplayView({ options }: { options: URLSearchParams }): JSX.Element {
  const state = useAnswer("replay", { items: ITEMS });
  return (
    <>
      <Title note="Training repeats two steps: the network learns to find the paths, and items move to the paths where they are found best.">How it came to be</Title>
      <Answered state={state} what="the rounds">
        {(replay) => <Found replay={replay} options={options} />}
      </Answered>
    </>
  );
}

function Found({ replay, options }: { replay: Replay; options: URLSearchParams }): JSX.Element {
  const model = useModel();
  const rounds = replay.rounds;
  const last = Math.max(0, rounds.length - 1);
  const given = options.get("round");
  const at = given === null ? last : Math.min(last, Math.max(0, rounds.findIndex((one) => one.number === Number(given))));
  const asked = options.get("item");
  const followed = asked === null ? null : parseId(asked);
  const [playing, setPlaying] = useState(false);
  const now = rounds[at];
  const move = (round: number, item: Id | null = followed): void =>
    go(placeOf("replay", "", { round: rounds[round]?.number ?? null, item: item === null ? null : idText(item) }), true);

  useEffect(() => {
    if (!playing) return undefined;
    if (at >= last) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => move(at + 1), STEP);
    return () => clearTimeout(timer);
  }, [playing, at, last]);

  const tracks = useMemo(() => replay.items.map(trackOf), [replay]);
  const moves = useMemo(() => movesAt(tracks, at), [tracks, at]);
  const unit = replay.source === "live" ? "publish" : "round";
  const name = (number: number): string => (number === 0 ? "the start" : `${unit} ${number}`);

  if (!now) {
    return (
      <>
        <Empty>{replay.note ?? "Nothing was recorded about the training of this model."}</Empty>
        <Losses losses={replay.losses} rounds={[]} />
      </>
    );
  }
  return (
    <div class="stack">
      {replay.note && <p class="banner">{replay.note}</p>}
      <div class="panel player">
        <button
          type="button"
          class="primary"
          onClick={() => {
            if (!playing && at >= last) move(0);
            setPlaying(!playing);
          }}
        >
          {playing ? "Pause" : "Play"}
        </button>
        <input
          type="range"
          min={0}
          max={last}
          step={1}
          value={at}
          aria-label={replay.source === "live" ? "Publish" : "Round of training"}
          aria-valuetext={name(now.number)}
          onInput={(event) => {
            setPlaying(false);
            move(Number(event.currentTarget.value));
          }}
        />
        <span class="now-text" aria-live={playing ? "off" : "polite"}>
          {at === 0 ? "" : "after "}
          {name(now.number)}
          {typeof now.time === "number" && <span class="muted"> {timeOf(now.time)}</span>}
        </span>
      </div>
      <Warnings warnings={(now.warnings ?? []).map(warningOf)} />
      {replay.recorded && (
        <Panel
          title="Items moving between paths"
          note={`Each dot is a path of one of the ${count(tracks.length)} most popular recorded items, placed by its first two nodes. Orange dots moved in this ${unit}${now.moved === null ? "" : `; ${percent(now.moved)} of the paths of all ${count(replay.sample)} recorded items did`}.`}
          actions={<Follow replay={replay} followed={followed} onFollow={(id) => move(at, id)} />}
        >
          <Plane tracks={tracks} round={at} nodes={model.num_nodes} depth={model.depth} followed={followed} onFollow={(id) => move(at, id)} />
          <Moved moves={moves} depth={model.depth} unit={unit} first={at === 0} />
        </Panel>
      )}
      <Curves replay={replay} now={now.number} unit={unit} />
      {now.loads.length > 0 && (
        <Panel title="Load of the nodes" note={`The ${count(replay.sample)} recorded items, after ${name(now.number)}.`}>
          <HeatStrips nodes={model.num_nodes} layers={now.loads.map((items, index) => ({ layer: index + 1, items, nodes_per_cell: model.layers[index]?.nodes_per_cell ?? 1 }))} />
        </Panel>
      )}
      {Object.keys(now.sizes).length > 0 && (
        <Panel title="Sizes of paths" note={`Paths by the number of recorded items on them, after ${name(now.number)}.`}>
          <Bars most={Math.max(1, ...rounds.flatMap((one) => Object.values(one.sizes)))} bars={Object.entries(now.sizes).map(([size, paths]) => ({ key: size, name: size === "1" ? "1 item" : `${size.replace("-", "–")} items`, value: paths, amount: counted(paths, "path") }))} />
        </Panel>
      )}
      <Losses losses={replay.losses} rounds={replay.rounds} />
    </div>
  );
}

function Follow({ replay, followed, onFollow }: { replay: Replay; followed: Id | null; onFollow: (id: Id | null) => void }): JSX.Element {
  return (
    <label class="follow">
      <span>Follow</span>
      <select
        value={followed === null ? "" : String(replay.items.findIndex((item) => keyOf(item.id) === keyOf(followed)))}
        onChange={(event) => {
          const item = replay.items[event.currentTarget.value === "" ? -1 : Number(event.currentTarget.value)];
          onFollow(item ? item.id : null);
        }}
      >
        <option value="">no item</option>
        {replay.items.map((item, index) => (
          <option key={keyOf(item.id)} value={String(index)}>
            {nameOf(item)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** `W102: what was found; what to do` in its parts. */
function warningOf(text: string): Warning {
  const [, code = "", message = text, advice] = /^(W\d+): (.*?)(?:; (.*))?$/.exec(text) ?? [];
  return { code, message, advice: advice ?? null };
}

function Moved({ moves, depth, unit, first }: { moves: readonly Move[]; depth: number; unit: string; first: boolean }): JSX.Element {
  if (first) return <Empty>This is where the items began.</Empty>;
  if (moves.length === 0) return <Empty>None of these items moved in this {unit}.</Empty>;
  return (
    <details>
      <summary>{counted(moves.length, "move")} as a table</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Item</th>
              <th scope="col">From</th>
              <th scope="col">To</th>
            </tr>
          </thead>
          <tbody>
            {moves.slice(0, LISTED).map(({ item, from, to }, index) => (
              <tr key={index}>
                <td>
                  <ItemLink item={item} />
                </td>
                <td>{from ? <PathLink nodes={from} depth={depth} /> : "–"}</td>
                <td>{to ? <PathLink nodes={to} depth={depth} /> : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {moves.length > LISTED && <p class="muted">and {count(moves.length - LISTED)} more</p>}
    </details>
  );
}

const NAMES: Record<string, string> = {
  moved: "Paths that moved",
  structure: "Loss of the path network",
  objective: "Objective of the M-step",
  overlap: "Paths kept",
  used_paths: "Paths in use",
  item_mean_size: "Items on an item's path",
  top_size: "Items on the largest path",
  entropy_share: "Evenness of the nodes",
  dead_nodes: "Unused nodes",
  reranker: "Loss of the reranker",
  encoder: "Loss of the encoder",
  softmax: "Loss of the encoder",
  held_out_f: "F of held-out users",
  recall: "Held-out items on the beam's paths",
};
const nameOfFigure = (name: string): string => NAMES[name] ?? humane(name);

/** Figures that are known for at least two rounds, those that a reader looks for first. */
const FIRST = ["recall", "structure", "objective", "hit", "overlap", "used_paths", "item_mean_size", "top_size"];

function seriesOf(rounds: readonly Round[]): [string, Point[]][] {
  const names = [...new Set(rounds.flatMap((round) => Object.keys(round.figures)))];
  const order = (name: string): number => {
    const place = FIRST.findIndex((one) => name.includes(one));
    return place < 0 ? FIRST.length : place;
  };
  return names
    .map((name): [string, Point[]] => [name, rounds.flatMap((round) => (typeof round.figures[name] === "number" ? [{ round: round.number, value: round.figures[name] }] : []))])
    .filter(([, points]) => points.length > 1 && points.some((point) => point.value !== points[0]?.value))
    .sort(([a], [b]) => order(a) - order(b));
}

function formatFor(name: string): (value: number) => string {
  if (/overlap|share|recall|hit|moved/.test(name)) return percent;
  return (value) => (Number.isInteger(value) && Math.abs(value) >= 10 ? count(value) : (Math.abs(value) < 1000 && !Number.isInteger(value) ? value.toPrecision(3).replace("-", "−") : count(value)));
}

function Curves({ replay, now, unit }: { replay: Replay; now: number; unit: string }): JSX.Element | null {
  const moved = replay.rounds.flatMap((one) => (typeof one.moved === "number" ? [{ round: one.number, value: one.moved }] : []));
  const series: [string, Point[]][] = [...(moved.length > 1 ? [["moved", moved] as [string, Point[]]] : []), ...seriesOf(replay.rounds).filter(([name]) => name !== "overlap" || moved.length < 2)];
  if (series.length === 0) return null;
  return (
    <Panel title={`Figures by ${unit}`} note={`The orange dot is the chosen ${unit}.`}>
      <div class="small-charts">
        {series.slice(0, 6).map(([name, points]) => (
          <Line key={name} title={nameOfFigure(name)} points={points} now={now} format={formatFor(name)} unit={unit} />
        ))}
      </div>
    </Panel>
  );
}

/** Figures of epochs, without those that are already drawn by round. */
function Losses({ losses, rounds }: { losses: readonly Round[]; rounds: readonly Round[] }): JSX.Element | null {
  const drawn = new Set(rounds.flatMap((round) => Object.keys(round.figures)));
  const series = seriesOf(losses)
    .filter(([name]) => name === "structure" || !drawn.has(name))
    .slice(0, 6);
  if (series.length === 0) return null;
  return (
    <Panel title="Figures by epoch" note={`${counted(losses.length, "epoch")}: those of the encoder and of the path network, in the order of the training.`}>
      <div class="small-charts">
        {series.map(([name, points]) => (
          <Line key={name} title={nameOfFigure(name)} points={points} now={null} format={(value) => decimal(value, 3)} unit="epoch" />
        ))}
      </div>
    </Panel>
  );
}
