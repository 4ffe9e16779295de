// Writes plotly.min.js, with the kinds of traces in traces.cjs, and the licences of all packages that are in it.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const FOLDER = "../../tracediff/report/page/";
const PACKAGE = /^node_modules\/(?:@[^/]+\/)?[^/]+/;
const { version } = JSON.parse(readFileSync("node_modules/plotly.js/package.json"));

const { metafile } = await build({
  entryPoints: ["traces.cjs"],
  outfile: `${FOLDER}plotly.min.js`,
  bundle: true,
  minify: true,
  metafile: true,
  format: "iife",
  globalName: "Plotly",
  target: "es2020",
  legalComments: "none",
  banner: { js: `/* plotly.js v${version}, in part. Copyright Plotly, Inc.; MIT license. Built by tracediff, which has its parts' licenses. */` },
  define: { global: "window", "define.amd": "false" },
  loader: { ".css": "empty" }, // only maps have any
});

// A text that several packages share is written once.
const texts = new Map();
const [{ inputs }] = Object.values(metafile.outputs);
const folders = Object.keys(inputs).filter((path) => inputs[path].bytesInOutput).flatMap((path) => path.match(PACKAGE) ?? []);
for (const folder of [...new Set(folders)].sort()) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`));
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  const text = file ? readFileSync(`${folder}/${file}`, "utf-8").replaceAll("\r", "").trim() : license;
  texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
}
const sections = [...texts].map(([text, names]) => `${names.join(", ")}\n\n${text.replaceAll(/[ \t]+$/gm, "")}\n`);
writeFileSync(`${FOLDER}plotly.LICENSE.txt`, sections.join(`\n${"-".repeat(80)}\n\n`));
