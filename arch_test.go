// Package packsmcp_test enforces the map of the repository: which package may import which,
// who may start a process, who may speak MCP, and that only values are mutable.
//
// It parses the source with go/parser, not with "go list", because the test cache does not
// track what "go list" reads. It does not check that the code is correct.
package packsmcp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/packs-mcp/packs-mcp"

// row is one line of the map: a directory with everything below it, and the rows that it may
// import. Packages within a row may import each other.
type row struct {
	dir  string
	may  []string // directories of other rows, or "*" for all of them
	exec bool     // may start processes
	mcp  bool     // may speak MCP
	init bool     // may have init functions
	otel string   // which part of OpenTelemetry it may use: "", "api" or "all"
	free bool     // holds tests and their helpers: only its imports are checked
}

// theMap is the table of ARCHITECTURE.md; arrows point down. A package that no row covers is
// a failure: decide first where it belongs.
func theMap() []row {
	return []row{
		// Packages of commands import cli, but not each other.
		{dir: "cmd/packs-mcp/internal/cli", may: []string{"internal/server/offer", "internal/audit", "internal/caches", "internal/config", "internal/config/places", "internal/config/problem", "internal/gate", "internal/gate/call", "internal/gate/grants", "internal/gate/grantshared", "internal/gate/prompt", "internal/packs", "internal/packs/packfs", "internal/private", "internal/rules", "internal/safetext", "internal/sandbox/changes", "internal/sandbox/paths", "internal/scan", "internal/scan/findings", "internal/server", "internal/server/httpd", "internal/sources", "internal/sources/change", "internal/sources/lock", "internal/sources/store", "internal/sources/trust", "internal/store", "internal/strictjson", "internal/audit/chains"}},
		{dir: "cmd/packs-mcp/internal/get/signing", may: []string{"cmd/packs-mcp/internal/cli", "internal/launch", "internal/safetext", "internal/sources", "internal/sources/archive", "internal/sources/git", "internal/sources/lock", "internal/sources/oci", "internal/sources/site", "internal/sources/trust"}},
		{dir: "cmd/packs-mcp/internal/get/shown", may: []string{"cmd/packs-mcp/internal/cli", "internal/safetext", "internal/scan/findings", "internal/sources/change"}},
		{dir: "cmd/packs-mcp/internal/get/own", may: []string{"cmd/packs-mcp/internal/cli", "cmd/packs-mcp/internal/get/shown", "internal/safetext", "internal/scan", "internal/scan/findings", "internal/sources", "internal/sources/archive", "internal/sources/change"}},
		{dir: "cmd/packs-mcp/internal/get", may: []string{"cmd/packs-mcp/internal/cli", "cmd/packs-mcp/internal/get/own", "cmd/packs-mcp/internal/get/shown", "cmd/packs-mcp/internal/get/signing", "internal/audit", "internal/config", "internal/packs", "internal/safetext", "internal/sandbox/temp", "internal/scan", "internal/scan/findings", "internal/sources", "internal/sources/address", "internal/sources/archive", "internal/sources/change", "internal/sources/git", "internal/sources/lock", "internal/sources/oci", "internal/sources/rulebook", "internal/sources/site", "internal/sources/stage", "internal/sources/store", "internal/sources/trust", "internal/sources/web"}},
		{dir: "cmd/packs-mcp/internal/approve/team", may: []string{"cmd/packs-mcp/internal/cli", "internal/approvals/terminal", "internal/config", "internal/launch", "internal/oidc/login", "internal/private", "internal/safetext"}},
		{dir: "cmd/packs-mcp/internal/approve", may: []string{"cmd/packs-mcp/internal/approve/team", "cmd/packs-mcp/internal/cli", "internal/approvals/control", "internal/approvals/terminal", "internal/approvers", "internal/audit", "internal/config", "internal/gate", "internal/gate/call", "internal/gate/grants", "internal/gate/prompt", "internal/gate/queue", "internal/launch", "internal/packs", "internal/private", "internal/safetext"}},
		{dir: "cmd/packs-mcp/internal/auditcmd", may: []string{"cmd/packs-mcp/internal/cli", "internal/audit", "internal/audit/chains", "internal/config", "internal/gate/call", "internal/safetext", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program"}},
		{dir: "cmd/packs-mcp/internal/author", may: []string{"cmd/packs-mcp/internal/cli", "internal/packs", "internal/safetext", "internal/sandbox/program", "internal/sarif", "internal/scan", "internal/scan/findings", "schemas"}},
		{dir: "cmd/packs-mcp/internal/catalog", may: []string{"cmd/packs-mcp/internal/cli", "internal/audit", "internal/config", "internal/config/places", "internal/configedit", "internal/gate/call", "internal/packs", "internal/rules", "internal/safetext", "internal/scan", "internal/scan/findings", "internal/server/offer", "internal/server/toolname", "internal/sources"}},
		{dir: "cmd/packs-mcp/internal/changescmd", may: []string{"cmd/packs-mcp/internal/cli", "internal/approvals", "internal/audit", "internal/config", "internal/gate/queue", "internal/safetext", "internal/sandbox/changes"}},
		{dir: "cmd/packs-mcp/internal/doctor", may: []string{"cmd/packs-mcp/internal/cli", "cmd/packs-mcp/internal/clients", "internal/audit", "internal/caches", "internal/config", "internal/config/places", "internal/config/problem", "internal/configedit", "internal/packs", "internal/safetext", "internal/sandbox", "internal/sandbox/container", "internal/sandbox/drill", "internal/sandbox/runner"}}, // it tries each level
		{dir: "cmd/packs-mcp/internal/clients", may: []string{"cmd/packs-mcp/internal/cli", "internal/configedit", "internal/launch"}},
		{dir: "cmd/packs-mcp/internal/setup", may: []string{"cmd/packs-mcp/internal/cli", "cmd/packs-mcp/internal/clients", "internal/config", "internal/configedit", "internal/launch", "internal/packs", "internal/private", "internal/redact", "internal/safetext", "internal/strictjson"}},
		{dir: "cmd/packs-mcp/internal/scancmd", may: []string{"cmd/packs-mcp/internal/cli", "internal/packs", "internal/safetext", "internal/sarif", "internal/scan", "internal/scan/findings"}},
		{dir: "cmd/packs-mcp/internal/service", may: []string{"cmd/packs-mcp/internal/changescmd", "cmd/packs-mcp/internal/cli", "internal/approvals", "internal/approvals/control", "internal/approvals/signin", "internal/approvals/team", "internal/approvers", "internal/audit", "internal/caches", "internal/config", "internal/gate", "internal/gate/call", "internal/gate/grants", "internal/gate/queue", "internal/gate/runs", "internal/launch", "internal/oidc", "internal/oidc/login", "internal/packs", "internal/plan", "internal/quota", "internal/sandbox", "internal/sandbox/container", "internal/sandbox/changes", "internal/sandbox/program", "internal/sandbox/runner", "internal/server", "internal/server/httpd", "internal/server/wire", "internal/store", "internal/telemetry", "internal/workspaces", "internal/gate/call", "internal/server/httpd/guard"}}, // makes the runner, and gives it to the gate
		{dir: "cmd/packs-mcp/internal/runcmd", may: []string{"cmd/packs-mcp/internal/approve", "cmd/packs-mcp/internal/auditcmd", "cmd/packs-mcp/internal/cli", "cmd/packs-mcp/internal/service", "examples", "internal/audit", "internal/config", "internal/gate", "internal/gate/call", "internal/gate/queue", "internal/packs", "internal/rules", "internal/safetext", "internal/sandbox/temp", "internal/server", "internal/strictjson"}},
		{dir: "cmd/packs-mcp", may: []string{"*"}},
		// The second program knows only what a question and a verdict are.
		{dir: "cmd/packs-mcp-sigstore", may: []string{"internal/sources/lock", "internal/sources/trust"}},
		// The wire knows no tool and no pack. From gate/call and sandbox it uses one name each:
		// where a client is, and why a call ends.
		{dir: "internal/server/wire", may: []string{"internal/gate/call", "internal/sandbox", "internal/strictjson"}, mcp: true},
		// HTTP knows a host, but not the server.
		{dir: "internal/server/httpd/conns"},
		{dir: "internal/server/httpd/busy", may: []string{"internal/quota"}},
		{dir: "internal/server/httpd/reply", may: []string{"internal/safetext", "internal/server/wire"}},
		{dir: "internal/server/httpd/guard", may: []string{"internal/gate/call", "internal/oidc", "internal/safetext", "internal/server/httpd/reply"}},
		{dir: "internal/server/httpd", may: []string{"internal/gate/call", "internal/oidc", "internal/quota", "internal/server/httpd/busy", "internal/server/httpd/conns", "internal/server/httpd/guard", "internal/server/httpd/reply", "internal/server/wire"}, mcp: true},
		{dir: "internal/server/servertest", may: []string{"internal/sandbox", "internal/sandbox/changes", "internal/sandbox/paths", "internal/sandbox/runner", "testdata"}, free: true},
		{dir: "internal/server/toolerr", may: []string{"internal/gate", "internal/packs", "internal/plan", "internal/safetext", "internal/sandbox", "internal/sandbox/program", "internal/server/wire"}, mcp: true},
		{dir: "internal/server/callargs", may: []string{"internal/gate/call", "internal/safetext", "internal/strictjson"}},
		{dir: "internal/server/address", may: []string{"internal/packs"}},
		{dir: "internal/server/claims", may: []string{"internal/gate", "internal/sandbox", "internal/sandbox/paths"}},
		{dir: "internal/server/workspace", may: []string{"internal/packs", "internal/server/address", "internal/server/toolerr", "internal/workspaces"}},
		{dir: "internal/server/envelope", may: []string{"internal/packs", "internal/redact", "internal/safetext", "internal/sandbox", "internal/sandbox/capture", "internal/sandbox/changes", "internal/server/toolerr", "internal/server/workspace"}, mcp: true},
		{dir: "internal/server/tracing", may: []string{"internal/server/envelope", "internal/server/toolerr", "internal/server/wire", "internal/spans"}, mcp: true},
		{dir: "internal/server/toolresult", may: []string{"internal/server/toolerr", "internal/strictjson"}, mcp: true},
		{dir: "internal/server/meant", may: []string{"internal/packs", "internal/sandbox/program", "internal/server/toolerr", "internal/server/toolresult", "internal/server/workspace"}},
		{dir: "internal/server/skills", may: []string{"internal/packs", "internal/safetext", "internal/server/address", "internal/server/pages", "internal/server/toolresult"}},
		{dir: "internal/server/finder", may: []string{"internal/packs", "internal/server/address"}},
		{dir: "internal/server/toolname"},
		{dir: "internal/server/runs", may: []string{"internal/gate", "internal/packs", "internal/plan", "internal/quota", "internal/redact", "internal/safetext", "internal/sandbox", "internal/sandbox/changes", "internal/server/calls", "internal/server/claims", "internal/server/enabled", "internal/server/envelope", "internal/server/given", "internal/server/meant", "internal/server/offer", "internal/server/toolerr", "internal/server/wire", "internal/spans", "internal/strictjson"}},
		{dir: "internal/server/prompts", may: []string{"internal/gate", "internal/packs", "internal/redact", "internal/safetext", "internal/server/address", "internal/server/callargs", "internal/server/calls", "internal/server/chats", "internal/server/given", "internal/server/offer", "internal/server/pages", "internal/server/toolerr", "internal/server/wire", "internal/spans", "internal/strictjson"}, mcp: true},
		{dir: "internal/server/resources", may: []string{"internal/card", "internal/gate", "internal/packs", "internal/redact", "internal/safetext", "internal/server/address", "internal/server/callargs", "internal/server/calls", "internal/server/chats", "internal/server/given", "internal/server/offer", "internal/server/pages", "internal/server/prompts", "internal/server/resources", "internal/server/runs", "internal/server/skills", "internal/server/toolerr", "internal/server/wire", "internal/strictjson"}, mcp: true},
		{dir: "internal/server/calls", may: []string{"internal/card", "internal/gate", "internal/gate/answers", "internal/gate/lines", "internal/gate/queue", "internal/packs", "internal/plan", "internal/redact", "internal/safetext", "internal/server/address", "internal/server/callargs", "internal/server/chats", "internal/server/given", "internal/server/toolerr", "internal/server/wire", "internal/server/workspace", "internal/spans", "internal/strictjson"}, mcp: true},
		{dir: "internal/server/chats", may: []string{"internal/gate/call", "internal/packs", "internal/server/address", "internal/server/enabled", "internal/server/lists", "internal/server/offer", "internal/server/subscriptions", "internal/server/toolerr", "internal/server/wire", "internal/server/workspace"}, mcp: true},
		{dir: "internal/server/enabled", may: []string{"internal/packs", "internal/server/finder", "internal/server/offer", "internal/server/toolerr", "internal/server/toolname"}},
		{dir: "internal/server/lists", may: []string{"internal/packs", "internal/server/offer", "internal/server/wire"}, mcp: true},
		{dir: "internal/server/subscriptions", may: []string{"internal/packs", "internal/server/address"}},
		{dir: "internal/server/given", may: []string{"internal/gate/call", "internal/packs", "internal/safetext", "internal/server/toolerr"}},
		{dir: "internal/server/offer", may: []string{"internal/gate/call", "internal/packs", "internal/safetext", "internal/server/address", "internal/server/toolerr", "internal/server/toolname"}, mcp: true},
		{dir: "internal/server/pages", may: []string{"internal/server/toolerr", "internal/server/wire"}},
		{dir: "internal/server", may: []string{"internal/card", "internal/gate", "internal/gate/queue", "internal/packs", "internal/plan", "internal/quota", "internal/redact", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/changes", "internal/safetext", "internal/server/address", "internal/server/callargs", "internal/server/calls", "internal/server/chats", "internal/server/claims", "internal/server/enabled", "internal/server/envelope", "internal/server/finder", "internal/server/given", "internal/server/lists", "internal/server/meant", "internal/server/offer", "internal/server/pages", "internal/server/prompts", "internal/server/resources", "internal/server/runs", "internal/server/skills", "internal/server/subscriptions", "internal/server/toolerr", "internal/server/toolname", "internal/server/toolresult", "internal/server/tracing", "internal/server/wire", "internal/server/workspace", "internal/spans", "internal/strictjson"}, mcp: true},
		{dir: "internal/configedit"},
		{dir: "internal/quota"},
		{dir: "internal/oidc/login", may: []string{"internal/oidc", "internal/safetext"}},
		{dir: "internal/oidc", may: []string{"internal/approvers", "internal/safetext", "internal/strictjson"}},
		{dir: "internal/plan", may: []string{"internal/gate/call", "internal/packs", "internal/redact", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/changes", "internal/safetext"}},
		{dir: "internal/card", may: []string{"internal/gate/call", "internal/gate/prompt", "internal/gate/queue"}},
		// The desk and the terminal know their protocol, but not each other.
		{dir: "internal/approvals/control", may: []string{"internal/card", "internal/gate/prompt", "internal/gate/queue", "internal/safetext", "internal/strictjson"}},
		{dir: "internal/approvals/team", may: []string{"internal/approvals/control", "internal/approvers", "internal/gate/queue", "internal/safetext"}},
		{dir: "internal/approvals/runfolder", may: []string{"internal/approvals/control"}},
		{dir: "internal/approvals/terminal", may: []string{"internal/approvals/control", "internal/approvals/runfolder", "internal/gate/queue", "internal/safetext"}},
		{dir: "internal/approvals/signin", may: []string{"internal/approvals/control", "internal/approvals/page", "internal/oidc", "internal/oidc/login", "internal/safetext", "internal/store"}},
		{dir: "internal/approvals/page", may: []string{"internal/card"}},
		{dir: "internal/approvals", may: []string{"internal/approvals/control", "internal/approvals/page", "internal/approvals/runfolder", "internal/gate/queue", "internal/safetext"}},
		{dir: "internal/gate/call", may: []string{"internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program", "internal/strictjson"}},
		{dir: "internal/gate/prompt", may: []string{"internal/gate/call", "internal/safetext", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program", "internal/strictjson"}},
		{dir: "internal/gate/queue", may: []string{"internal/approvers", "internal/gate/call", "internal/gate/prompt", "internal/quota", "internal/safetext", "internal/sandbox", "internal/store", "internal/strictjson"}},
		{dir: "internal/gate/grants", may: []string{"internal/approvers", "internal/gate/call", "internal/gate/prompt"}},
		{dir: "internal/gate/grantshared", may: []string{"internal/gate/call", "internal/gate/grants", "internal/store", "internal/strictjson"}},
		{dir: "internal/gate/policy", may: []string{"internal/gate/call", "internal/gate/grants", "internal/gate/prompt", "internal/gate/queue", "internal/rules", "internal/safetext", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program"}},
		{dir: "internal/gate/lines", may: []string{"internal/audit", "internal/gate/call", "internal/gate/grants", "internal/gate/queue", "internal/safetext", "internal/sandbox", "internal/sandbox/changes", "internal/strictjson"}},
		{dir: "internal/gate/answers", may: []string{"internal/approvers", "internal/gate/call", "internal/gate/queue"}},
		{dir: "internal/gate/deciders", may: []string{"internal/approvers", "internal/gate/call", "internal/gate/grants", "internal/gate/queue", "internal/safetext"}},
		{dir: "internal/gate/runs", may: []string{"internal/audit", "internal/store", "internal/strictjson"}},
		{dir: "internal/gate", may: []string{"internal/approvers", "internal/audit", "internal/caches", "internal/gate/answers", "internal/gate/call", "internal/gate/deciders", "internal/gate/grants", "internal/gate/lines", "internal/gate/policy", "internal/gate/prompt", "internal/gate/queue", "internal/quota", "internal/private", "internal/rules", "internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/changes", "internal/safetext", "internal/store", "internal/strictjson"}},
		// Only stage decides what may come in, and only store keeps it.
		{dir: "internal/sources/stage", may: []string{"internal/packs"}},
		{dir: "internal/sources/lock", may: []string{"internal/strictjson"}},
		{dir: "internal/sources/store", may: []string{"internal/packs", "internal/private", "internal/sandbox/temp", "internal/sources/lock", "internal/sources/stage"}},
		{dir: "internal/sources/trust", may: []string{"internal/sources/lock", "internal/strictjson"}},
		{dir: "internal/sources/change", may: []string{"internal/packs", "internal/safetext"}},
		// Only web uses the network. Kinds of sources do not know each other, except that
		// registries and sites contain archives.
		{dir: "internal/sources/address"},
		{dir: "internal/sources/userfile"},
		{dir: "internal/sources/web", may: []string{"internal/hosts", "internal/sandbox/temp", "internal/sources/stage", "internal/sources/userfile"}},
		{dir: "internal/sources/archive", may: []string{"internal/sources", "internal/sources/lock", "internal/sources/stage", "internal/sources/userfile"}},
		{dir: "internal/sources/git", may: []string{"internal/sandbox/temp", "internal/sources", "internal/sources/address", "internal/sources/lock", "internal/sources/stage", "internal/sources/trust", "internal/sources/userfile", "internal/sources/web"}},
		{dir: "internal/sources/oci", may: []string{"internal/sources", "internal/sources/address", "internal/sources/archive", "internal/sources/lock", "internal/sources/stage", "internal/sources/web", "internal/strictjson"}},
		{dir: "internal/sources/site", may: []string{"internal/sources", "internal/sources/address", "internal/sources/archive", "internal/sources/stage", "internal/sources/web", "internal/strictjson"}},
		{dir: "internal/sources/rulebook", may: []string{"internal/packs", "internal/sources", "internal/sources/address", "internal/sources/stage", "internal/sources/web", "internal/strictjson"}},
		{dir: "internal/sources/sourcestest", may: []string{"internal/sources", "internal/sources/address", "internal/sources/stage", "internal/sources/web"}, free: true},
		{dir: "internal/sources", may: []string{"internal/packs", "internal/sources/address", "internal/sources/lock", "internal/sources/stage", "internal/sources/trust", "internal/strictjson"}},
		{dir: "internal/sarif"},
		{dir: "internal/scan/findings", may: []string{"internal/packs", "internal/safetext", "internal/tokens"}},
		{dir: "internal/scan/argv"},
		{dir: "internal/scan/filekind"},
		{dir: "internal/scan/letters", may: []string{"internal/packs"}},
		{dir: "internal/scan/secrets", may: []string{"internal/scan/letters", "internal/tokens"}},
		{dir: "internal/scan/words"},
		{dir: "internal/scan", may: []string{"internal/packs", "internal/redact", "internal/safetext", "internal/scan/argv", "internal/scan/filekind", "internal/scan/findings", "internal/scan/letters", "internal/scan/secrets", "internal/scan/words", "internal/strictjson", "internal/tokens"}},
		{dir: "internal/packs", may: []string{"internal/private", "internal/redact", "internal/safetext", "internal/strictjson", "schemas", "internal/hosts"}},
		{dir: "internal/sandbox/changes/protect"},
		{dir: "internal/sandbox/changes/tree"},
		{dir: "internal/sandbox/changes/gitdata", may: []string{"internal/safetext", "internal/sandbox/changes/protect"}},
		{dir: "internal/sandbox/changes/record", may: []string{"internal/sandbox/changes/tree"}},
		{dir: "internal/sandbox/changes/layer", may: []string{"internal/safetext", "internal/sandbox/changes/gitdata", "internal/sandbox/changes/protect", "internal/sandbox/changes/record", "internal/sandbox/changes/tree", "internal/sandbox/paths"}},
		{dir: "internal/sandbox/changes/apply", may: []string{"internal/sandbox/changes/record", "internal/sandbox/changes/tree"}},
		{dir: "internal/sandbox/changes/turns", may: []string{"internal/sandbox/changes/record", "internal/sandbox/changes/tree"}},
		{dir: "internal/sandbox/changes/journal", may: []string{"internal/sandbox/changes/apply", "internal/sandbox/changes/record", "internal/sandbox/changes/tree", "internal/sandbox/changes/turns"}},
		{dir: "internal/sandbox/changes", may: []string{"internal/safetext", "internal/sandbox/changes/gitdata", "internal/sandbox/changes/journal", "internal/sandbox/changes/layer", "internal/sandbox/changes/protect", "internal/sandbox/changes/record", "internal/sandbox/changes/tree", "internal/sandbox/changes/turns", "internal/sandbox/paths"}},
		{dir: "internal/sandbox/paths"},
		{dir: "internal/sandbox/program/file", may: []string{"internal/sandbox/paths"}},
		{dir: "internal/sandbox/program/shim", may: []string{"internal/sandbox/paths", "internal/sandbox/program/file"}},
		{dir: "internal/sandbox/program", may: []string{"internal/sandbox/paths", "internal/sandbox/program/file", "internal/sandbox/program/shim"}},
		{dir: "internal/sandbox/temp"},
		{dir: "internal/sandbox/egress", may: []string{"internal/hosts", "internal/sandbox"}},
		{dir: "internal/sandbox/winjob"},
		{dir: "internal/sandbox/seatbelt", exec: true},
		{dir: "internal/sandbox/confine/processes"},
		{dir: "internal/sandbox/confine/memory", may: []string{"internal/sandbox/confine/processes"}},
		{dir: "internal/sandbox/confine/seccomp"},
		{dir: "internal/sandbox/confine/groups"},
		{dir: "internal/sandbox/confine/probe"},
		{dir: "internal/sandbox/confine/broker", may: []string{"internal/sandbox/confine/memory", "internal/sandbox/confine/seccomp"}},
		{dir: "internal/sandbox/confine", may: []string{"internal/sandbox/confine/broker", "internal/sandbox/confine/memory", "internal/sandbox/confine/groups", "internal/sandbox/confine/probe", "internal/sandbox/confine/processes", "internal/sandbox/confine/seccomp", "internal/sandbox/seatbelt", "internal/sandbox/winjob"}, init: true},
		{dir: "internal/sandbox/capture", may: []string{"internal/sandbox", "internal/sandbox/paths"}},
		{dir: "internal/sandbox/disk", may: []string{"internal/sandbox", "internal/sandbox/confine/processes"}},
		{dir: "internal/sandbox/images", may: []string{"internal/sandbox", "internal/sandbox/paths", "internal/sandbox/program"}},
		// A level starts programs; the runner knows a system only through a level.
		{dir: "internal/sandbox/level", may: []string{"internal/sandbox", "internal/sandbox/images", "internal/sandbox/program", "internal/sandbox/winjob"}},
		{dir: "internal/sandbox/plain", may: []string{"internal/sandbox", "internal/sandbox/disk", "internal/sandbox/level"}, exec: true},
		{dir: "internal/sandbox/supervised", may: []string{"internal/sandbox", "internal/sandbox/confine", "internal/sandbox/level", "internal/sandbox/paths", "internal/sandbox/program"}},
		{dir: "internal/sandbox/linux", may: []string{"internal/sandbox", "internal/sandbox/confine", "internal/sandbox/confine/groups", "internal/sandbox/confine/probe", "internal/sandbox/confine/processes", "internal/sandbox/confine/seccomp", "internal/sandbox/disk", "internal/sandbox/images", "internal/sandbox/level", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/supervised", "internal/sandbox/temp"}, exec: true},
		{dir: "internal/sandbox/darwin", may: []string{"internal/sandbox", "internal/sandbox/confine", "internal/sandbox/level", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/seatbelt"}, exec: true},
		{dir: "internal/sandbox/windows", may: []string{"internal/sandbox", "internal/sandbox/confine", "internal/sandbox/confine/probe", "internal/sandbox/level", "internal/sandbox/program", "internal/sandbox/winjob"}, exec: true},
		// Many packages describe a run, but only the gate can reach what runs it.
		{dir: "internal/sandbox/container", may: []string{"internal/sandbox", "internal/sandbox/confine", "internal/sandbox/confine/groups", "internal/sandbox/confine/probe", "internal/sandbox/confine/seccomp", "internal/sandbox/disk", "internal/sandbox/images", "internal/sandbox/level", "internal/sandbox/paths", "internal/sandbox/program", "internal/sandbox/supervised", "internal/sandbox/temp"}, init: true},
		{dir: "internal/sandbox/runner", may: []string{"internal/sandbox", "internal/sandbox/capture", "internal/sandbox/changes", "internal/sandbox/darwin", "internal/sandbox/disk", "internal/sandbox/images", "internal/sandbox/level", "internal/sandbox/linux", "internal/sandbox/paths", "internal/sandbox/plain", "internal/sandbox/program", "internal/sandbox/temp", "internal/sandbox/windows", "internal/sandbox/egress"}},
		{dir: "internal/sandbox/drill", may: []string{"internal/sandbox", "internal/sandbox/program", "internal/sandbox/runner", "internal/sandbox/temp"}, exec: true},
		{dir: "internal/sandbox", may: []string{"internal/sandbox/changes", "internal/sandbox/paths", "internal/sandbox/program", "internal/hosts"}},
		{dir: "internal/audit/chains", may: []string{"internal/audit", "internal/store", "internal/strictjson"}},
		{dir: "internal/audit", may: []string{"internal/strictjson", "internal/tokens"}},
		{dir: "internal/approvers", may: []string{"internal/rules"}},
		{dir: "internal/config/problem"},
		{dir: "internal/config/units"},
		{dir: "internal/config/places", may: []string{"internal/config/problem"}},
		{dir: "internal/config/node", may: []string{"internal/config/problem"}},
		{dir: "internal/config/ownfile", may: []string{"internal/config/units"}},
		{dir: "internal/config", may: []string{"internal/approvers", "internal/config/node", "internal/config/ownfile", "internal/config/places", "internal/config/problem", "internal/config/units", "internal/quota", "internal/rules", "internal/sandbox/changes/protect"}},
		{dir: "internal/launch", exec: true},
		// Package spans defines spans and package telemetry sends them; the rest knows neither
		// how nor whether.
		{dir: "internal/spans", may: []string{"internal/audit", "internal/safetext"}, otel: "api"},
		{dir: "internal/telemetry", may: []string{"internal/spans"}, otel: "all"},
		{dir: "internal/caches", may: []string{"internal/private"}},
		{dir: "internal/store/storetest", may: []string{"internal/store"}, free: true},
		{dir: "internal/store"},
		{dir: "internal/workspaces"},
		{dir: "internal/private"},
		{dir: "internal/redact", may: []string{"internal/strictjson"}},
		{dir: "internal/hosts"},
		{dir: "internal/rules"},
		{dir: "internal/safetext"},
		{dir: "internal/strictjson"},
		{dir: "internal/tokens", may: []string{"internal/strictjson"}},
		{dir: "schemas"},
		{dir: "examples"},
		{dir: "release", may: []string{"*"}, free: true},
		{dir: "test", may: []string{"*"}, free: true},
		{dir: "testdata", free: true},
	}
}

// starters are the functions outside os/exec that start a program.
var starters = map[string][]string{
	"os":                       {"StartProcess"},
	"syscall":                  {"Exec", "ForkExec", "StartProcess", "CreateProcess", "CreateProcessAsUser"},
	"golang.org/x/sys/unix":    {"Exec"},
	"golang.org/x/sys/windows": {"CreateProcess", "CreateProcessAsUser", "ShellExecute"},
}

// constantCalls make package variables that nobody can change through them.
var constantCalls = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer",
	"sync.OnceFunc", "sync.OnceValue", "sync.OnceValues",
}

func TestArchitecture(t *testing.T) {
	problems, err := checkTree(os.DirFS("."), theMap())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// checkTree returns what is wrong in the tree, as "file:line: problem" in the
// order of the files.
func checkTree(tree fs.FS, rows []row) ([]string, error) {
	c := checker{rows: rows, fset: token.NewFileSet()}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" && name != "testdata" || base == "node_modules") {
			return fs.SkipDir // as the go command does; and third-party packages
		}
		return c.dir(tree, name)
	})
	return c.problems, err
}

type checker struct {
	rows     []row
	fset     *token.FileSet
	problems []string
}

func (c *checker) report(pos token.Pos, format string, args ...any) {
	p := c.fset.Position(pos)
	c.problems = append(c.problems, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
}

// dir checks the Go files of one directory.
func (c *checker) dir(tree fs.FS, dir string) error {
	names, err := fs.Glob(tree, path.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	var files []*ast.File
	for _, name := range names {
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(c.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, f)
		}
	}
	if len(names) == 0 || dir == "." && len(files) == 0 {
		return nil // the root contains this test, but no package
	}
	home := c.row(dir)
	if home == nil {
		c.problems = append(c.problems, fmt.Sprintf("%s: this package is not on the map: add it to the table in arch_test.go and ARCHITECTURE.md", dir))
		return nil
	}
	for _, f := range files {
		c.imports(home, f)
		if home.free {
			continue
		}
		c.starts(home, f)
		c.inits(home, f)
		c.variables(home, f, files)
	}
	return nil
}

// row returns the row that covers the directory, or nil.
func (c *checker) row(dir string) *row {
	for i := range c.rows {
		if r := &c.rows[i]; dir == r.dir || strings.HasPrefix(dir, r.dir+"/") {
			return r
		}
	}
	return nil
}

func (c *checker) imports(home *row, f *ast.File) {
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			c.report(spec.Pos(), "import %s cannot be read", spec.Path.Value)
			continue
		}
		if spec.Name != nil && spec.Name.Name == "." {
			c.report(spec.Pos(), "import %q with a dot hides who is called", imported)
		}
		if imported == module || strings.HasPrefix(imported, module+"/") {
			dir := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			there := c.row(dir)
			switch {
			case there == nil:
				c.report(spec.Pos(), "import of %q, which is not on the map", dir)
			case there.dir == home.dir:
			case !slices.Contains(home.may, there.dir) && !slices.Contains(home.may, "*"):
				c.report(spec.Pos(), "%s may not import %s", home.dir, there.dir)
			}
		}
		switch {
		case home.free:
		case imported == "C":
			c.report(spec.Pos(), "cgo: the binary is static")
		case imported == "os/exec" && !home.exec:
			c.report(spec.Pos(), "%s may not import os/exec: only internal/sandbox and internal/launch start processes", home.dir)
		case under(imported, "github.com/mark3labs/mcp-go") && !home.mcp:
			c.report(spec.Pos(), "%s may not import mcp-go: only internal/server and what is below it speak MCP", home.dir)
		case under(imported, "go.opentelemetry.io") && home.otel == "":
			c.report(spec.Pos(), "%s may not import OpenTelemetry: internal/spans makes spans, and internal/telemetry sends them", home.dir)
		case home.otel == "api" && (under(imported, "go.opentelemetry.io/otel/sdk") || under(imported, "go.opentelemetry.io/otel/exporters")):
			c.report(spec.Pos(), "%s may not import %q: only internal/telemetry sends spans", home.dir, imported)
		case under(imported, "github.com/modelcontextprotocol/go-sdk"):
			c.report(spec.Pos(), "the official SDK is for tests")
		}
	}
}

// under reports whether a package is the module or in it.
func under(imported, mod string) bool {
	return imported == mod || strings.HasPrefix(imported, mod+"/")
}

// starts finds code that starts a program without os/exec, by system calls.
func (c *checker) starts(home *row, f *ast.File) {
	local := map[string]string{} // :: name in this file → import path
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || starters[imported] == nil {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		local[name] = imported
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		imported := local[x.Name]
		if !home.exec && slices.Contains(starters[imported], sel.Sel.Name) {
			c.report(sel.Pos(), "%s may not use %s.%s: only internal/sandbox and internal/launch start processes", home.dir, x.Name, sel.Sel.Name)
		}
		return true
	})
	if home.exec {
		return
	}
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:linkname ") {
				c.report(comment.Pos(), "go:linkname reaches around the map")
			}
		}
	}
}

func (c *checker) inits(home *row, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !home.init {
			c.report(fn.Pos(), "no init functions: work happens when somebody asks for it")
		}
	}
}

// variables finds package variables that could hold state. It allows "_", embedded files,
// the results of constantCalls, and tables: unexported composite literals that no file of
// the package writes to.
func (c *checker) variables(home *row, f *ast.File, files []*ast.File) {
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok || embedded(decl.Doc) || embedded(spec.Doc) {
				continue
			}
			for i, name := range spec.Names {
				if name.Name == "_" || home.dir == "cmd/packs-mcp" && slices.Contains([]string{"version", "commit", "date"}, name.Name) { // set by the linker
					continue
				}
				var value ast.Expr
				if len(spec.Values) == len(spec.Names) {
					value = spec.Values[i]
				}
				if why := mutable(name, value); why != "" {
					c.report(name.Pos(), "package variable %q is state: %s", name.Name, why)
				} else if at := written(name.Name, files); at.IsValid() {
					c.report(at, "package variable %q is state: it is written here", name.Name)
				}
			}
		}
	}
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// mutable returns why a variable with this initial value counts as state, or "".
func mutable(name *ast.Ident, value ast.Expr) string {
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.AND {
		value = u.X // &Table{…}
	}
	switch v := value.(type) {
	case nil:
		return "it has no value of its own"
	case *ast.CompositeLit:
		if name.IsExported() {
			return "others could write to it; offer a function"
		}
		return ""
	case *ast.CallExpr:
		fun := v.Fun
		if generic, ok := fun.(*ast.IndexExpr); ok {
			fun = generic.X
		}
		if _, ok := fun.(*ast.ArrayType); ok && !name.IsExported() { // []byte("…")
			return ""
		}
		if sel, ok := fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(constantCalls, x.Name+"."+sel.Sel.Name) {
				return ""
			}
		}
	}
	return "make it a constant, a parameter or a field"
}

// written returns the first place in the files where something assigns to name or to a part
// of it, takes its address, or empties it. A local variable with the same name counts as
// well, so give it another name.
func written(name string, files []*ast.File) token.Pos {
	at := token.NoPos
	is := func(e ast.Expr) bool {
		for {
			switch x := e.(type) {
			case *ast.Ident:
				return x.Name == name
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			default:
				return false
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			var targets []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					targets = n.Lhs
				}
			case *ast.IncDecStmt:
				targets = []ast.Expr{n.X}
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					targets = []ast.Expr{n.Key, n.Value}
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					targets = []ast.Expr{n.X}
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy", "append"}, fun.Name) && len(n.Args) > 0 {
					targets = n.Args[:1]
				}
			}
			if !at.IsValid() && slices.ContainsFunc(targets, is) {
				at = n.Pos()
			}
			return !at.IsValid()
		})
	}
	return at
}

// Each case is a small tree and what the checker must report about it: a check that cannot
// fail is worthless.
func TestTheCheckerFinds(t *testing.T) {
	const ours = `import _ "` + module + `/`
	for _, tc := range []struct {
		name string
		tree map[string]string
		want []string // none: the tree is fine
	}{
		{"the arrows down", map[string]string{
			"cmd/packs-mcp/a.go":            "package main\n" + ours + "internal/config\"\n" + ours + "internal/server\"\n" + ours + "examples\"",
			"internal/server/a.go":          "package server\nimport _ \"github.com/mark3labs/mcp-go/server\"\n" + ours + "internal/gate\"\n" + ours + "internal/packs/tools\"",
			"internal/gate/a.go":            "package gate\n" + ours + "internal/audit\"\n" + ours + "internal/sandbox\"",
			"internal/packs/b/a.go":         "package b\n" + ours + "internal/packs/diag\"\n" + ours + "schemas\"",
			"internal/sandbox/confine/a.go": "package confine\nfunc init() {}",
			"internal/sandbox/linux/a.go":   "package linux\nimport _ \"os/exec\"",
			"internal/launch/a.go":          "package launch\nimport _ \"os/exec\"",
			"internal/gate/a_test.go":       "package gate\nimport _ \"os/exec\"\n" + ours + "internal/packs\"\nvar x int\nfunc init() {}",
		}, nil},
		{"an arrow up", map[string]string{
			"internal/audit/a.go": "package audit\n" + ours + "internal/gate\"",
		}, []string{"internal/audit/a.go:2: internal/audit may not import internal/gate"}},
		{"an arrow across", map[string]string{
			"internal/gate/a.go": "package gate\n" + ours + "internal/packs/tools\"",
		}, []string{"internal/gate/a.go:2: internal/gate may not import internal/packs"}},
		{"commands that know each other", map[string]string{
			"cmd/packs-mcp/a.go":                  "package main\n" + ours + "cmd/packs-mcp/internal/author\"",
			"cmd/packs-mcp/internal/author/a.go":  "package author\n" + ours + "cmd/packs-mcp/internal/cli\"",
			"cmd/packs-mcp/internal/catalog/a.go": "package catalog\n" + ours + "cmd/packs-mcp/internal/author\"",
			"cmd/packs-mcp/internal/approve/a.go": "package approve\n" + ours + "internal/sandbox/runner\"",
		}, []string{
			"cmd/packs-mcp/internal/approve/a.go:2: cmd/packs-mcp/internal/approve may not import internal/sandbox/runner",
			"cmd/packs-mcp/internal/catalog/a.go:2: cmd/packs-mcp/internal/catalog may not import cmd/packs-mcp/internal/author",
		}},
		{"the configuration below cmd", map[string]string{
			"internal/server/a.go": "package server\n" + ours + "internal/config\"",
		}, []string{"internal/server/a.go:2: internal/server may not import internal/config"}},
		{"a name that only begins like a row", map[string]string{
			"internal/packsutil/a.go": "package packsutil",
			"internal/packs/a.go":     "package packs\n" + ours + "internal/packsutil\"",
		}, []string{
			`internal/packs/a.go:2: import of "internal/packsutil", which is not on the map`,
			"internal/packsutil: this package is not on the map: add it to the table in arch_test.go and ARCHITECTURE.md",
		}},
		{"code in the root", map[string]string{
			"a.go": "package packsmcp",
		}, []string{".: this package is not on the map: add it to the table in arch_test.go and ARCHITECTURE.md"}},
		{"a package of tests only, not on the map", map[string]string{
			"internal/x/a_test.go": "package x",
		}, []string{"internal/x: this package is not on the map: add it to the table in arch_test.go and ARCHITECTURE.md"}},
		{"what the go command skips", map[string]string{
			"internal/packs/testdata/a.go": "not Go",
			"test/node_modules/x/a.go":     "not Go",
			".cache/a.go":                  "not Go",
		}, nil},
		{"os/exec outside of sandbox and launch", map[string]string{
			"internal/gate/a.go": "package gate\nimport _ \"os/exec\"",
			"cmd/packs-mcp/a.go": "package main\nimport _ \"os/exec\"",
		}, []string{
			"cmd/packs-mcp/a.go:2: cmd/packs-mcp may not import os/exec: only internal/sandbox and internal/launch start processes",
			"internal/gate/a.go:2: internal/gate may not import os/exec: only internal/sandbox and internal/launch start processes",
		}},
		{"a file for another system", map[string]string{
			"internal/audit/a_plan9.go": "//go:build plan9\n\npackage audit\nimport _ \"os/exec\"",
		}, []string{"internal/audit/a_plan9.go:4: internal/audit may not import os/exec: only internal/sandbox and internal/launch start processes"}},
		{"starting without os/exec", map[string]string{
			"internal/packs/a.go": "package packs\nimport (\n\t\"os\"\n\tsc \"syscall\"\n)\nvar _ = os.StartProcess\nfunc f() { sc.Exec(\"x\", nil, nil) }",
			"internal/gate/a.go":  "package gate\nimport _ \"unsafe\"\n//go:linkname f os.StartProcess\nfunc f()",
		}, []string{
			"internal/gate/a.go:3: go:linkname reaches around the map",
			"internal/packs/a.go:6: internal/packs may not use os.StartProcess: only internal/sandbox and internal/launch start processes",
			"internal/packs/a.go:7: internal/packs may not use sc.Exec: only internal/sandbox and internal/launch start processes",
		}},
		{"a runner beside the gate", map[string]string{
			"cmd/packs-mcp/a.go":   "package main\n" + ours + "internal/sandbox/runner\"",
			"internal/gate/a.go":   "package gate\n" + ours + "internal/sandbox\"\n" + ours + "internal/sandbox/runner\"",
			"internal/server/a.go": "package server\n" + ours + "internal/sandbox\"\n" + ours + "internal/sandbox/runner\"",
		}, []string{
			"internal/gate/a.go:3: internal/gate may not import internal/sandbox/runner",
			"internal/server/a.go:3: internal/server may not import internal/sandbox/runner",
		}},
		{"MCP outside the server", map[string]string{
			"cmd/packs-mcp/a.go":  "package main\nimport _ \"github.com/mark3labs/mcp-go/client\"",
			"internal/gate/a.go":  "package gate\nimport _ \"github.com/mark3labs/mcp-go/mcp\"",
			"internal/packs/a.go": "package packs\nimport _ \"github.com/modelcontextprotocol/go-sdk/mcp\"",
		}, []string{
			"cmd/packs-mcp/a.go:2: cmd/packs-mcp may not import mcp-go: only internal/server and what is below it speak MCP",
			"internal/gate/a.go:2: internal/gate may not import mcp-go: only internal/server and what is below it speak MCP",
			"internal/packs/a.go:2: the official SDK is for tests",
		}},
		{"traces outside of their two packages", map[string]string{
			"internal/server/a.go":      "package server\nimport _ \"go.opentelemetry.io/otel/trace\"",
			"internal/spans/a.go":       "package spans\nimport _ \"go.opentelemetry.io/otel/trace\"\nimport _ \"go.opentelemetry.io/otel/sdk/trace\"",
			"internal/telemetry/a.go":   "package telemetry\nimport _ \"go.opentelemetry.io/otel/sdk/trace\"",
			"internal/server/a_test.go": "package server\nimport _ \"go.opentelemetry.io/otel/sdk/trace\"",
		}, []string{
			"internal/server/a.go:2: internal/server may not import OpenTelemetry: internal/spans makes spans, and internal/telemetry sends them",
			"internal/spans/a.go:3: internal/spans may not import \"go.opentelemetry.io/otel/sdk/trace\": only internal/telemetry sends spans",
		}},
		{"cgo and dots", map[string]string{
			"internal/sandbox/a.go": "package sandbox\nimport \"C\"\nimport . \"fmt\"",
		}, []string{
			"internal/sandbox/a.go:2: cgo: the binary is static",
			"internal/sandbox/a.go:3: import \"fmt\" with a dot hides who is called",
		}},
		{"init", map[string]string{
			"internal/packs/a.go": "package packs\ntype t int\nfunc (t) init() {}\nfunc init() {}",
		}, []string{"internal/packs/a.go:4: no init functions: work happens when somebody asks for it"}},
		{"variables that are constants in all but name", map[string]string{
			"internal/packs/a.go": `package packs
var ErrA = errors.New("a")
var (
	name  = regexp.MustCompile("a")
	table = map[string]int{"a": 1}
	ascii = &unicode.RangeTable{R16: nil}
	once  = sync.OnceValue(func() int { return table["a"] })
	typed = sync.OnceValue[int](f)
	bytes = []byte("a")
	_ I   = (*T)(nil)
)
//go:embed x
var X embed.FS
var (
	//go:embed y
	y string
)
func f() int { x := 1; x++; return x + table["b"] }`,
			"cmd/packs-mcp/a.go": "package main\nvar version = \"devel\"",
		}, nil},
		{"variables that are state", map[string]string{
			"internal/gate/a.go": `package gate
var a int
var b, c = 1, new(T)
var D = map[string]int{}
var e sync.Mutex
var version = "1"
var f = func() {}
var g, h = pair()
// go:embed x
var i string`,
		}, []string{
			`internal/gate/a.go:2: package variable "a" is state: it has no value of its own`,
			`internal/gate/a.go:3: package variable "b" is state: make it a constant, a parameter or a field`,
			`internal/gate/a.go:3: package variable "c" is state: make it a constant, a parameter or a field`,
			`internal/gate/a.go:4: package variable "D" is state: others could write to it; offer a function`,
			`internal/gate/a.go:5: package variable "e" is state: it has no value of its own`,
			`internal/gate/a.go:6: package variable "version" is state: make it a constant, a parameter or a field`,
			`internal/gate/a.go:7: package variable "f" is state: make it a constant, a parameter or a field`,
			`internal/gate/a.go:8: package variable "g" is state: it has no value of its own`,
			`internal/gate/a.go:8: package variable "h" is state: it has no value of its own`,
			`internal/gate/a.go:10: package variable "i" is state: it has no value of its own`,
		}},
		{"tables that are written", map[string]string{
			"internal/audit/a.go": `package audit
var a = map[string]int{}
var b = []int{1}
var c = T{}
var d = map[string]int{}
var e = T{}
var f = []int{}
var g = errors.New("g")
var h = []int{}`,
			"internal/audit/b.go": `package audit
func x() {
	a["x"] = 1
	b[0]++
	c.field.other = 2
	clear(d)
	use(&e)
	f = append(f, 1)
	g = nil
	for h[0] = range 3 { }
}`,
		}, []string{
			`internal/audit/b.go:3: package variable "a" is state: it is written here`,
			`internal/audit/b.go:4: package variable "b" is state: it is written here`,
			`internal/audit/b.go:5: package variable "c" is state: it is written here`,
			`internal/audit/b.go:6: package variable "d" is state: it is written here`,
			`internal/audit/b.go:7: package variable "e" is state: it is written here`,
			`internal/audit/b.go:8: package variable "f" is state: it is written here`,
			`internal/audit/b.go:9: package variable "g" is state: it is written here`,
			`internal/audit/b.go:10: package variable "h" is state: it is written here`,
		}},
		{"helpers of the tests", map[string]string{
			"test/bench/a.go": "package main\nimport _ \"os/exec\"\nimport _ \"github.com/mark3labs/mcp-go/server\"\n" + ours + "internal/packs\"\nvar n int",
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, src := range tc.tree {
				tree[name] = &fstest.MapFile{Data: []byte(src)}
			}
			got, err := checkTree(tree, theMap())
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("checkTree(…) = %v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestTheCheckerReadsEveryFile(t *testing.T) {
	tree := fstest.MapFS{"internal/packs/a.go": {Data: []byte("package packs\nfunc {")}}
	if problems, err := checkTree(tree, theMap()); err == nil {
		t.Errorf("checkTree of a file that is not Go = %v, nil, want an error", problems)
	}
}
