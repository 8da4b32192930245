/** Where answers come from: a server, or the data inside an exported file. */
import type * as T from "./types";
import type { TraceQuery } from "./types";

/** Every question of the page, with its answer. */
export interface Questions {
  status: [Record<string, never>, T.Status];
  overview: [Record<string, never>, T.Overview];
  paths: [T.PathsQuery, T.Paths];
  node: [T.NodeQuery, T.Node];
  path: [T.PathQuery, T.PathCard];
  items: [T.ItemsQuery, T.Items];
  item: [T.ItemQuery, T.ItemCard];
  query: [T.TraceQuery, T.Trace];
  why: [T.WhyQuery, T.Why];
  replay: [T.ReplayQuery, T.Replay];
  compare: [T.CompareQuery, T.Compare];
}

export type Question = keyof Questions;
export type Ask<Q extends Question> = Questions[Q][0];
export type Answer<Q extends Question> = Questions[Q][1];

export interface Source {
  /** Whether this is an exported file, which answers only what it holds. */
  readonly isFile: boolean;
  /** The queries of an exported file, which are all that it can answer. */
  readonly recorded: readonly TraceQuery[];
  ask<Q extends Question>(question: Q, ask: Ask<Q>, signal?: AbortSignal): Promise<Answer<Q>>;
}

export type Kind = "unauthorised" | "missing" | "needs-server" | "failed" | "offline" | "busy";

/** A question without an answer: what is wrong, and the way out. */
export class AskError extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
    readonly remedy?: string,
  ) {
    super(message);
  }
}
