// Run by pyodide.sh: node run.mjs WHEELS TREE SHARED [arguments of pytest]
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";

const [wheels, tree, shared, ...rest] = process.argv.slice(2);
const python = await loadPyodide({ env: { HOME: "/home/pyodide", NO_COLOR: "1" } });
const extractDir = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
for (const name of readdirSync(wheels)) {
  python.unpackArchive(new Uint8Array(readFileSync(join(wheels, name))), "wheel", { extractDir });
}
// The files of this machine are mounted, read where they are; what tests write goes to memory.
python.FS.mkdirTree("/tree");
python.FS.mount(python.FS.filesystems.NODEFS, { root: tree }, "/tree");
if (existsSync(shared)) {
  python.FS.mkdirTree("/shared");
  python.FS.mount(python.FS.filesystems.NODEFS, { root: shared }, "/shared");
}
// An uncaught error would be shown with the line it comes from, and that is all of Pyodide.
process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});
python.globals.set("arguments", python.toPy(rest));
const status = python.runPython(`
import importlib, os, platform, sys

importlib.invalidate_caches()
import llmstream, llmstream.cli

print(platform.machine(), sys.version.split()[0], llmstream.implementation, sys.modules["llmstream"].__file__)
status = llmstream.cli.main(["demo"])
print("demo:", status)
for name in [name for name in sys.modules if name.split(".")[0] == "llmstream"]:
    del sys.modules[name]
os.chdir("/tree")
if status in (0, None):
    import pytest

    status = int(pytest.main(["--no-extension", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0", *arguments]))
status
`);
process.exit(status ?? 0);
