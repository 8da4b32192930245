import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

type Shade = { light: string; dark: string };
interface Palette {
  roles: Record<string, Shade>;
  surfaces: Record<string, Shade>;
  sequential: { light: string[]; dark: string[] };
}

const PALETTE = "../src/pathdex/evaluation/palette.json";

/** The palette of the charts and reports as custom properties: one source for both. */
function palette(): Plugin {
  const name = "virtual:palette.css";
  return {
    name: "palette",
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    load(id) {
      if (id !== `\0${name}`) return undefined;
      const { roles, surfaces, sequential } = JSON.parse(readFileSync(new URL(PALETTE, import.meta.url), "utf-8")) as Palette;
      const shades = [
        ...Object.entries({ ...roles, ...surfaces }),
        ...sequential.light.map((light, step): [string, Shade] => [`heat-${step}`, { light, dark: sequential.dark[step] ?? light }]),
      ];
      return `:root{${shades.map(([role, { light, dark }]) => `--${role}:light-dark(${light},${dark});`).join("")}}`;
    },
  };
}

// Names without hashes: the build is committed, and the server sends an ETag.
export default defineConfig({
  base: "./",
  plugins: [palette()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/pathdex/server/explorer_page",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/explorer.js",
        assetFileNames: "assets/explorer[extname]",
        codeSplitting: false,
      },
    },
  },
});
