import { defineConfig } from "vite";

// Names without hashes: the built files are committed, and a change of the source changes them alone. The server sends them with an ETag.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../built",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: "page/[name].js", chunkFileNames: "page/[name].js", assetFileNames: "page/[name][extname]" },
    },
  },
});
