//go:build unix

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// networkControls returns the controls for network loopback, which only level full has. At
// level none, which enforces nothing, they use the machine's own loopback.
func networkControls() []control {
	controls := []control{
		{
			name: "loopback interfaces", programs: []string{"go"}, run: "./interfaces",
			prepare: func(t *testing.T, p *place) {
				cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(p.pack, "interfaces"), "./testdata/net")
				cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("building testdata/net: %v\n%s", err, out)
				}
			},
			matches: `(?s)^lo\S* up loopback 127\.0\.0\.1/8.*\nsent and received$`,
		},
		python("loopback server and client", `
import socket, threading, http.server, urllib.request
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
open("page", "w").write("served")
print(opener.open(f"http://127.0.0.1:{s.server_port}/page").read().decode())
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"udp", u.getsockname()); print(u.recv(10).decode())
print(socket.getaddrinfo("localhost", 80, socket.AF_INET)[0][4][0])
`, "served\nudp\n127.0.0.1"),
		systemPython("loopback multiprocessing manager", `
import multiprocessing as mp
if __name__ == "__main__":
    with mp.Manager() as m: d = m.dict(a=1); print(d["a"])
`, "1"),
		{
			name: "loopback multiprocessing forkserver", programs: []string{"/usr/bin/python3"}, args: []string{"main.py"}, prints: "42",
			workspace: map[string]string{"main.py": `
import multiprocessing as mp
def work(c): c.send(42)
if __name__ == "__main__":
    context = mp.get_context("forkserver")
    ours, theirs = context.Pipe()
    p = context.Process(target=work, args=(theirs,)); p.start(); print(ours.recv()); p.join()
`},
		},
		node("loopback server and client", `
const http = require("http");
const s = http.createServer((q, r) => r.end("served " + q.url)).listen(0, "127.0.0.1", () =>
  http.get({ host: "127.0.0.1", port: s.address().port, path: "/x" }, r => { r.on("data", d => console.log(d.toString())); r.on("end", () => s.close()); }));
`, "served /x"),
		shell("loopback curl", `: > log; python3 -m http.server --bind 127.0.0.1 0 > log 2>&1 & p=$!
for i in $(seq 100); do port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' log); [ -n "$port" ] && break; sleep 0.05; done
echo page > f; curl -sS --noproxy '*' "http://127.0.0.1:$port/f"; kill $p`, "page", "python3", "curl", "sed", "seq"),
	}
	for i := range controls {
		controls[i].network = sandbox.NetworkLoopback
		controls[i].env = append(controls[i].env, "PYTHONUNBUFFERED=1")
	}
	return controls
}
