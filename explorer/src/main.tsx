import { render } from "preact";
import { FileSource, readEmbedded } from "./api/file";
import { ServerSource } from "./api/server";
import { App } from "./app";
import { remember } from "./names";
import "virtual:palette.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/parts.css";
import "./styles/charts.css";
import "./styles/lists.css";
import "./styles/query.css";
import "./styles/views.css";

const root = document.getElementById("app");
const embedded = readEmbedded();
if (embedded) remember(embedded.search.map(({ id, title }) => (title === null ? { id } : { id, title })));
if (root) render(<App source={embedded ? new FileSource(embedded) : new ServerSource()} />, root);
