package audit_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")

	log, err := audit.Open(path, audit.Options{Server: "4711"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	for _, e := range []audit.Entry{
		{Event: audit.EventDecision, Kind: "run", Pack: "acme/lint", Tool: "fmt", Decision: "deny", Channel: "elicitation", Reason: "no answer"},
		{Event: audit.EventRunStart, Run: "r1", Pack: "acme/lint", Tool: "fmt", Program: "/usr/bin/gofmt"},
	} {
		if err := log.Append(e); err != nil { // if it cannot be recorded, nothing is run
			fmt.Println(err)
			return
		}
	}

	for line, err := range audit.Read(path) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(line.Number, line.Entry.Event, line.Entry.Pack)
	}
	report, err := audit.Verify(path)
	fmt.Println(report.OK, report.Entries, err)
	// Output:
	// 1 decision acme/lint
	// 2 run.start acme/lint
	// true 2 <nil>
}
