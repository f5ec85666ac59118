//go:build unix

package sandbox_test

func python(name, script, prints string) control {
	return control{name: "python " + name, programs: []string{"python3"}, args: []string{"-c", script}, prints: prints}
}

// systemPython runs the system's own Python. A program in the home folder, where others may
// write, cannot use unix sockets with names.
func systemPython(name, script, prints string) control {
	c := python(name, script, prints)
	c.programs = []string{"/usr/bin/python3"}
	return c
}

func pythonControls() []control {
	return []control{
		python("multiprocessing process and pipe", `
import multiprocessing as mp
def work(c):
    c.send([x * x for x in c.recv()]); c.close()
if __name__ == "__main__":
    mp.set_start_method("fork")
    ours, theirs = mp.Pipe()
    p = mp.Process(target=work, args=(theirs,)); p.start()
    ours.send([1, 2, 3]); print(ours.recv()); p.join(); print(p.exitcode)
`, "[1, 4, 9]\n0"),
		python("multiprocessing pool, queue, lock", `
import multiprocessing as mp
mp.set_start_method("fork")
lock, queue = mp.Lock(), mp.Queue()
def work(n):
    with lock: return n * 2
with mp.Pool(2) as pool: print(sum(pool.map(work, range(100))))
queue.put("queued"); print(queue.get(timeout=30))
`, "9900\nqueued"),
		python("shared memory", `
from multiprocessing import shared_memory
a = shared_memory.SharedMemory(create=True, size=1 << 20)
b = shared_memory.SharedMemory(name=a.name)
a.buf[:5] = b"hello"; print(bytes(b.buf[:5]).decode())
b.close(); a.close(); a.unlink()
`, "hello"),
		python("concurrent.futures", `
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool: print(sum(pool.map(lambda n: n + 1, range(1000))))
`, "500500"),
		python("tempfile", `
import os, tempfile
with tempfile.TemporaryDirectory() as d:
    with tempfile.NamedTemporaryFile("w+", dir=d) as f:
        f.write("x" * 100000); f.flush(); print(os.path.getsize(f.name))
with tempfile.TemporaryFile() as f: f.write(b"abc"); f.seek(0); print(f.read().decode())
with tempfile.SpooledTemporaryFile(10) as f: f.write(b"y" * 100); print(f.tell())
`, "100000\nabc\n100"),
		python("sqlite3", `
import sqlite3
for name in (":memory:", "data.db"):
    db = sqlite3.connect(name)
    if name != ":memory:": print(db.execute("pragma journal_mode=wal").fetchone()[0])
    with db:
        db.execute("create table t(x)"); db.executemany("insert into t values(?)", [(i,) for i in range(1000)])
    print(db.execute("select count(*), sum(x) from t").fetchone()); db.close()
`, "(1000, 499500)\nwal\n(1000, 499500)"),
		python("subprocess", `
import subprocess
print(subprocess.run(["sh", "-c", "cat; echo err >&2; exit 3"], input="in\n", capture_output=True, text=True))
print(subprocess.check_output("echo $((6 * 7)) | cat", shell=True, text=True).strip())
`, "CompletedProcess(args=['sh', '-c', 'cat; echo err >&2; exit 3'], returncode=3, stdout='in\\n', stderr='err\\n')\n42"),
		python("imports", `
import ctypes, ssl, hashlib, json, lzma, bz2, zlib, decimal, csv, xml.dom.minidom, unicodedata, zoneinfo, uuid, secrets, socket, http.client
import os
libc = ctypes.CDLL(None); print(libc.getpid() == os.getpid())
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 3)(3, 1, 2); libc.qsort(a, 3, 4, compare(lambda x, y: x[0] - y[0])); print(list(a))
ssl.create_default_context(); print(hashlib.sha256(b"").hexdigest()[:8], len(secrets.token_bytes(16)))
`, "True\n[1, 2, 3]\ne3b0c442 16"),
		python("asyncio", `
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo out", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip(), await asyncio.to_thread(sum, [1, 2]))
asyncio.run(main())
`, "out 3"),
		python("locks, mmap, links", `
import fcntl, mmap, os
with open("f", "w+b") as f:
    fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); f.truncate(8192)
    with mmap.mmap(f.fileno(), 8192) as m: m[:3] = b"abc"
os.link("f", "g"); os.symlink("f", "h"); os.mkfifo("p"); os.replace("g", "i"); os.chmod("i", 0o600); os.utime("i", (1, 1))
print(open("h", "rb").read(3).decode(), os.stat("i").st_nlink, os.stat("i").st_mode & 0o777, int(os.stat("i").st_mtime))
`, "abc 2 384 1"),
		{
			name: "python pseudo terminal", programs: []string{"python3"}, terminal: true, prints: "True\nfrom a terminal",
			args: []string{"-c", `
import os, pty, subprocess
ours, theirs = pty.openpty(); print(os.isatty(theirs))
subprocess.run(["sh", "-c", "test -t 1 && echo from a terminal"], stdin=theirs, stdout=theirs, check=True)
print(os.read(ours, 100).decode().strip())
`},
		},
		{
			name: "python multiprocessing spawn", programs: []string{"python3"}, args: []string{"main.py"}, prints: "[1, 4, 9]",
			workspace: map[string]string{"main.py": `
import multiprocessing as mp
def work(n): return n * n
if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool: print(pool.map(work, [1, 2, 3]))
`},
		},
		{
			name: "python venv", programs: []string{"python3"}, run: "python3",
			args:   []string{"-c", `import subprocess, venv; venv.create("env"); print(subprocess.check_output(["env/bin/python", "-c", "import sys; print(sys.prefix != sys.base_prefix)"], text=True).strip())`},
			prints: "True",
		},
		{
			name: "python script of the pack", programs: []string{"python3"}, run: "./bin/report.py", args: []string{"a b", "ü"}, stdin: "4\n5\n",
			pack: map[string]string{
				"bin/report.py":  "#!/usr/bin/env python3\nimport os, sys\nsys.path.insert(0, os.path.join(os.environ['PACKS_PACK_DIR'], 'lib'))\nimport helper\nprint(helper.total(sys.stdin), sys.argv[1:])\n",
				"lib/helper.py":  "def total(lines): return sum(int(x) for x in lines)\n",
				"lib/README.txt": "n",
			},
			prints: "9 ['a b', 'ü']",
		},
		{
			name: "system python", run: "/usr/bin/python3", programs: []string{"/usr/bin/python3"},
			args:   []string{"-c", "import multiprocessing as mp; mp.set_start_method('fork'); p = mp.Pool(2); print(p.map(abs, [-1, 2])); p.close(); p.join()"},
			prints: "[1, 2]",
		},
	}
}

func node(name, script, prints string) control {
	return control{name: "node " + name, programs: []string{"node"}, args: []string{"-e", script}, prints: prints}
}

func nodeControls() []control {
	return []control{
		node("spawn", `
const { spawn, execFileSync } = require("child_process");
const p = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
p.stdout.on("data", d => process.stdout.write(d)); p.stdin.end("through cat\n");
p.on("close", code => console.log(code, execFileSync("sh", ["-c", "echo $((1+1))"]).toString().trim()));
`, "through cat\n0 2"),
		{
			name: "node fork", programs: []string{"node"}, args: []string{"parent.js"},
			workspace: map[string]string{
				"parent.js": `const c = require("child_process").fork("./child.js"); c.on("message", m => { console.log(m.sum); c.disconnect(); }); c.send([1, 2, 3]); c.on("exit", n => console.log("exit", n));`,
				"child.js":  `process.on("message", m => process.send({ sum: m.reduce((a, b) => a + b) }));`,
			},
			prints: "6\nexit 0",
		},
		node("worker threads", `
const { Worker } = require("worker_threads");
const w = new Worker("require('worker_threads').parentPort.postMessage(new SharedArrayBuffer(8).byteLength)", { eval: true });
w.on("message", m => console.log(m)); w.on("exit", c => console.log("exit", c));
`, "8\nexit 0"),
		node("fs", `
const fs = require("fs"), os = require("os"), path = require("path");
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "x-")); fs.writeFileSync(path.join(dir, "f"), "data");
fs.mkdirSync("a/b", { recursive: true }); fs.cpSync(dir, "a/b/c", { recursive: true }); fs.rmSync(dir, { recursive: true });
console.log(fs.readdirSync("a", { recursive: true }).sort().join(" "), os.cpus().length > 0, os.userInfo().uid === process.getuid());
const w = fs.watch("a", () => {}); w.close();
fs.promises.readFile("a/b/c/f", "utf8").then(console.log);
`, "b b/c b/c/f true true\ndata"),
		node("crypto, streams, modules", `
import("zlib").then(async zlib => {
  const { pipeline } = require("stream/promises"), fs = require("fs"), crypto = require("crypto");
  fs.writeFileSync("in", "z".repeat(1 << 20));
  await pipeline(fs.createReadStream("in"), zlib.createGzip(), zlib.createGunzip(), fs.createWriteStream("out"));
  console.log(fs.statSync("out").size, crypto.createHash("sha256").update("").digest("hex").slice(0, 8), crypto.generateKeyPairSync("ed25519").publicKey.type);
});
`, "1048576 e3b0c442 public"),
		{
			name: "npm run", programs: []string{"npm", "node"}, args: []string{"run", "--silent", "hello"},
			workspace: map[string]string{"package.json": `{"name": "x", "version": "1.0.0", "scripts": {"hello": "node -p '6*7'"}}`},
			prints:    "42",
		},
		{
			name: "npm pack and install", programs: []string{"npm", "node", "sh"}, run: "sh",
			args: []string{"-c", "set -e; cd lib; npm pack --silent; cd ../app; npm install --offline --no-audit --no-fund --silent ../lib/lib-1.0.0.tgz; rm -rf node_modules; npm ci --offline --no-audit --no-fund --silent; node -p 'require(\"lib\")'"},
			workspace: map[string]string{
				"lib/package.json": `{"name": "lib", "version": "1.0.0"}`, "lib/index.js": "module.exports = 'installed';\n",
				"app/package.json": `{"name": "app", "version": "1.0.0", "private": true}`,
			},
			prints: "lib-1.0.0.tgz\ninstalled",
		},
	}
}

func compilerControls() []control {
	return []control{
		{
			name: "go build", programs: []string{"go", "sh"}, run: "sh", args: []string{"-c", "go build -o hello . && ./hello"},
			workspace: map[string]string{"go.mod": "module hello\n\ngo 1.21\n", "main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n"},
			env:       []string{"GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod -buildvcs=false", "GOTELEMETRY=off", "CGO_ENABLED=0", "GOCACHE=" + goCache},
			granted:   []string{goCache},
			prints:    "hello",
		},
		{
			name: "cc", programs: []string{"cc", "sh"}, run: "sh", args: []string{"-c", "cc -O1 -pthread -o sum sum.c && ./sum 4 5"},
			workspace: map[string]string{"sum.c": `#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
static long total;
static void *work(void *p) { total += atoi(p); return 0; }
int main(int n, char **v) {
	for (int i = 1; i < n; i++) { pthread_t t; if (pthread_create(&t, 0, work, v[i])) return 1; pthread_join(t, 0); }
	printf("%ld\n", total); return 0;
}
`},
			prints: "9",
		},
		{
			name: "make", programs: []string{"make", "sh"}, args: []string{"-s", "-j4", "all"},
			workspace: map[string]string{"Makefile": "all: a b c\n\tcat a b c\n%:\n\techo $@ > $@\n"},
			prints:    "a\nb\nc",
		},
		{
			name: "java", programs: []string{"java"}, args: []string{"Hello.java", "x"},
			workspace: map[string]string{"Hello.java": `public class Hello { public static void main(String[] a) throws Exception {
	Thread t = new Thread(() -> System.out.println("from a thread")); t.start(); t.join();
	System.out.println(new String(new ProcessBuilder("echo", a[0]).start().getInputStream().readAllBytes()).trim()); } }`},
			prints: "from a thread\nx",
		},
		{
			name: "perl", programs: []string{"perl"},
			args:   []string{"-e", `use strict; use File::Temp; use POSIX; my $f = File::Temp->new; print $f "x"; my $p = open(my $h, "-|", "echo", "child"); print <$h>; my $c = fork; if (!$c) { exit 7 } waitpid($c, 0); print $? >> 8, " ", strftime("%Y", gmtime 0), "\n";`},
			prints: "child\n7 1970",
		},
	}
}
