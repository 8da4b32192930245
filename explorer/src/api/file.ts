/** Answers from the data inside an exported file; what it does not hold needs a server. */
import { parseJson } from "./json";
import { AskError, type Answer, type Ask, type Question, type Source } from "./source";
import type * as T from "./types";

interface Search {
  id: T.Id;
  title: string | null;
  interactions: number;
}

export interface Recorded {
  request: T.TraceQuery;
  trace: T.Trace;
}

export interface FileData {
  format: "pathdex-explorer";
  version: 1;
  exported: string;
  overview: T.Overview;
  prefixes: Record<string, T.Paths>;
  nodes: Record<string, T.Node>;
  paths: Record<string, T.PathCard>;
  items: Record<string, T.ItemCard>;
  search: Search[];
  queries: Recorded[];
  replay: T.Replay;
  compare: T.Compare | null;
  limits: { bytes: number; items: number; paths: number; prefixes: number; nodes: number; queries: number; complete: boolean };
}

export function readEmbedded(): FileData | null {
  const text = document.getElementById("pathdex-data")?.textContent;
  return text ? (parseJson(text) as FileData) : null;
}

const REMEDY = "Open the model itself: pathdex explore RUN";

const notHere = (what: string): AskError => new AskError("needs-server", `This file is a sample and does not hold ${what}.`, REMEDY);

const fold = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase();

const wordsOf = (text: string): string[] => fold(text).match(/[\p{L}\p{N}]+/gu) ?? [];

export class FileSource implements Source {
  readonly isFile = true;
  private words: string[][] | null = null;

  constructor(readonly data: FileData) {}

  get recorded(): readonly T.TraceQuery[] {
    return this.data.queries.map((one) => one.request);
  }

  ask<Q extends Question>(question: Q, ask: Ask<Q>): Promise<Answer<Q>> {
    const answers: { [K in Question]: (ask: Ask<K>) => Answer<K> } = {
      status: () => ({ model: this.data.overview.model, live: false, preparing: null, seconds: null }),
      overview: () => this.data.overview,
      paths: (wanted) => this.pathsUnder(wanted),
      node: (wanted) => this.node(wanted),
      path: (wanted) => this.path(wanted),
      items: (wanted) => this.search(wanted),
      item: ({ id }) => entryOf(this.data.items, id, "this item"),
      query: (wanted) => this.query(wanted),
      why: () => {
        throw notHere("the answer to this question");
      },
      replay: () => this.data.replay,
      compare: (wanted) => this.compare(wanted),
    };
    return new Promise((resolve) => resolve(answers[question](ask)));
  }

  private pathsUnder({ prefix = "", sort = "items", page = 1, size = 50 }: T.PathsQuery): T.Paths {
    const entry = entryOf(this.data.prefixes, prefix, "this prefix");
    return paged(entry, "paths", sorted(entry, sort, "items"), entry.num_paths, page, size);
  }

  private node({ node, layer, last, sort = "interactions", page = 1, size = 50 }: T.NodeQuery): T.Node {
    const entry = entryOf(this.data.nodes, `${layer}:${node}-${last ?? node}`, "this node");
    return paged(entry, "paths", sorted(entry, sort, "interactions"), entry.num_paths, page, size);
  }

  private path({ path, page = 1, size = 50 }: T.PathQuery): T.PathCard {
    const card = entryOf(this.data.paths, path, "this path");
    return paged(card, "items", card.items, card.num_items, page, size);
  }

  private search({ search = "", page = 1, size = 20 }: T.ItemsQuery): T.Items {
    this.words ??= this.data.search.map((item) => wordsOf(item.title ?? ""));
    const wanted = wordsOf(search);
    const hits = search.trim()
      ? this.data.search.filter((item, index) => String(item.id) === search.trim() || (wanted.length > 0 && wanted.every((word) => this.words?.[index]?.some((one) => one.startsWith(word)))))
      : this.data.search;
    const items = hits.slice((page - 1) * size, page * size).map(({ id, title, interactions }) => ({ id, interactions, ...(title === null ? {} : { title }) }));
    return { model: this.data.overview.model, search, items, total: hits.length, page, pages: Math.max(1, Math.ceil(hits.length / size)), searched: this.data.search.length };
  }

  private query({ history, beam, candidates, deny, where, n, exclude_seen: excludeSeen }: T.TraceQuery): T.Trace {
    const changed = beam || candidates || deny?.length || where || (n ?? 10) !== 10 || excludeSeen === false;
    const key = history.map(String).join("\n");
    const recorded = changed ? undefined : this.data.queries.find((one) => one.request.history.map(String).join("\n") === key);
    return found(recorded, "the answer to this query").trace;
  }

  private compare({ sort = "companions", page = 1, size = 50 }: T.CompareQuery): T.Compare {
    const entry = found(this.data.compare ?? undefined, "a comparison");
    const moved = [...entry.moved];
    if (sort !== "companions" && entry.num_moved > moved.length) throw notHere("all items that moved, so it cannot sort them");
    if (sort === "paths") moved.sort((a, b) => a.kept - b.kept);
    if (sort === "interactions") moved.sort((a, b) => b.interactions - a.interactions);
    return paged(entry, "moved", moved, entry.num_moved, page, size);
  }
}

function found<V>(value: V | undefined, what: string): V {
  if (value === undefined) throw notHere(what);
  return value;
}

/** An entry of the file; a name such as "constructor" is in every object, but not in the file. */
const entryOf = <V>(entries: Record<string, V>, name: string, what: string): V => found(Object.hasOwn(entries, name) ? entries[name] : undefined, what);

/** The paths of an entry in an order; the file may hold only the first ones of the order `held`. */
function sorted(entry: T.Paths | T.Node, sort: string, held: string): T.PathSummary[] {
  if (sort === held) return entry.paths;
  if (entry.num_paths > entry.paths.length) throw notHere("all of these paths, so it cannot sort them");
  const paths = [...entry.paths];
  if (sort === "path") return paths.sort((a, b) => a.path.reduce((order, node, layer) => order || node - (b.path[layer] ?? 0), 0));
  return paths.sort((a, b) => (sort === "items" ? b.items - a.items : b.interactions - a.interactions));
}

/** A page of a list that the file may hold only the beginning of. */
function paged<A extends object, K extends keyof A>(answer: A, name: K, all: A[K] & readonly unknown[], total: number, page: number, size: number): A {
  const first = (page - 1) * size;
  if (first >= all.length && first > 0 && first < total) throw notHere("this page of the list");
  return { ...answer, [name]: all.slice(first, first + size), page, pages: Math.max(1, Math.ceil(total / size)) };
}
