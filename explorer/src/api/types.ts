/** The server's answers, generated from its OpenAPI document. */
import type { components, paths } from "./schema";

type Schemas = components["schemas"];

/** What may follow the `?` of a route. */
type Parameters<Route extends keyof paths> = paths[Route] extends { get: { parameters: { query?: infer Query } } } ? NonNullable<Query> : never;

/** An item id. Integers beyond 2^53 are kept as `bigint`, see json.ts; they are only shown and sent back. */
export type Id = string | number | bigint;

/** The same type with `Id` in the place of the ids that JSON declares. */
type WithIds<T> = T extends (infer E)[]
  ? WithIds<E>[]
  : T extends object
    ? { [K in keyof T]: K extends "id" | "item" ? Id : WithIds<T[K]> }
    : T;

export type Overview = WithIds<Schemas["ExploreOverview"]>;
export type LayerLoad = Schemas["LayerLoad"];
export type PrefixFlow = Schemas["PrefixFlow"];
export type SizeClass = Schemas["SizeClass"];
export type Warning = Schemas["ExploreWarning"];
export type Health = Schemas["IndexHealth"];
export type Round = Schemas["Round"];
export type PathLabel = Schemas["PathLabel"];
export type PathSummary = WithIds<Schemas["PathSummary"]>;
export type Paths = WithIds<Schemas["ExplorePaths"]>;
export type Node = WithIds<Schemas["ExploreNode"]>;
export type Status = Schemas["ExploreStatus"];
export type PathCard = WithIds<Schemas["PathCard"]>;
export type PathMember = WithIds<Schemas["PathMember"]>;
export type PathRound = Schemas["PathRound"];
export type ItemRound = Schemas["ItemRound"];
export type LeadingHistory = WithIds<Schemas["LeadingHistory"]>;
export type NamedItem = { id: Id; title?: string | null };
export type ItemEntry = WithIds<Schemas["ItemEntry"]>;
export type Items = WithIds<Schemas["ExploreItems"]>;
export type ItemCard = WithIds<Schemas["ItemCard"]>;
export type ItemPath = WithIds<Schemas["ItemPath"]>;
export type PathNeighbour = WithIds<Schemas["PathNeighbour"]>;
export type Trace = WithIds<Schemas["ExploreTrace"]>;
export type BeamLayer = Schemas["BeamLayer"];
export type BeamPrefix = Schemas["BeamPrefix"];
export type FollowedPath = Schemas["FollowedPath"];
export type RankedItem = WithIds<Schemas["RankedItem"]>;
export type ScoreParts = Schemas["ScoreParts"];
export type Why = WithIds<Schemas["ExploreWhy"]>;
export type WhyPath = Schemas["WhyPath"];
export type Replay = WithIds<Schemas["ExploreReplay"]>;
export type ReplayItem = WithIds<Schemas["ReplayItem"]>;
export type ReplayRound = Schemas["ReplayRound"];
export type Compare = WithIds<Schemas["ExploreCompare"]>;
export type MovedItem = WithIds<Schemas["MovedItem"]>;
export type ChangedAnswer = WithIds<Schemas["ChangedAnswer"]>;

export type Conditions = { [column: string]: unknown };
export type PathsQuery = Parameters<"/v1/explore/paths">;
export type NodeQuery = { node: number } & Parameters<"/v1/explore/nodes/{node}">;
export type PathQuery = { path: string } & Parameters<"/v1/explore/paths/{path}">;
export type ItemsQuery = Parameters<"/v1/explore/items">;
export type ItemQuery = { id: string };
export type ReplayQuery = Parameters<"/v1/explore/replay">;
export type CompareQuery = Parameters<"/v1/explore/compare">;
export type TraceQuery = Omit<Schemas["ExploreQuery"], "history" | "allow" | "deny" | "where"> & {
  history: Id[];
  allow?: Id[] | null;
  deny?: Id[];
  where?: Conditions | null;
};
export type WhyQuery = TraceQuery & { item: Id };
export type ErrorAnswer = Schemas["ErrorResponse"];
