import { defineConfig } from "vite";

// Names without hashes: the build is committed, and the server sends an ETag.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/pathdex/server/explorer_page",
    emptyOutDir: true,
    target: "es2022",
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
