import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

/** The licences of the packages in the bundle, which their notices must go with. */
function licences() {
  return {
    name: "licences",
    generateBundle() {
      const folders = [...this.getModuleIds()].map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]);
      const texts = [...new Set(folders)].filter(Boolean).sort().map(licenceOf);
      this.emitFile({ type: "asset", fileName: "assets/licences.txt", source: texts.join("\n") });
    },
  };
}

function licenceOf(folder) {
  const { name, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = existsSync(folder) && readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}\n`;
}

// Names without hashes: the built files are committed, and a change of the source changes them alone. The server sends them with an ETag.
export default defineConfig({
  base: "./",
  plugins: [licences()],
  build: {
    outDir: "../deployments/playground/built",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: "assets/[name].js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/[name][extname]" },
    },
  },
});
