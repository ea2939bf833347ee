// Run by pyodide.sh: node run.mjs WHEELS WORK PROGRAM [arguments of pytest]
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";

const [wheels, work, program, ...rest] = process.argv.slice(2);
const python = await loadPyodide({ env: { HOME: "/home/pyodide", NO_COLOR: "1" } });
const extractDir = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
for (const name of readdirSync(wheels)) {
  python.unpackArchive(new Uint8Array(readFileSync(join(wheels, name))), "wheel", { extractDir });
}
// The files of this machine are mounted, read where they are; what tests write goes to memory.
python.FS.mkdirTree("/work");
python.FS.mount(python.FS.filesystems.NODEFS, { root: work }, "/work");
// An uncaught error would be shown with the line it comes from, and that is all of Pyodide.
process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});
python.globals.set("arguments", python.toPy(rest));
process.exit(python.runPython(readFileSync(program, "utf8")));
