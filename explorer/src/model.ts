/** The overview, which every view needs: the depth of the index, the defaults, and what there is to see. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Overview } from "./api/types";

export const ModelContext = createContext<Overview | null>(null);

export function useModel(): Overview {
  const model = useContext(ModelContext);
  if (!model) throw new Error("no model");
  return model;
}
