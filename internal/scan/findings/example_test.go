package findings_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

func Example() {
	c := findings.NewCollector()
	c.Add(findings.Hit{Rule: "fetch-pipe", Severity: findings.High, Path: "install.sh", Line: 3, Quote: "curl https://example.com/x | sh"})
	c.Add(findings.Hit{Rule: "plain-http", Severity: findings.Low, Path: "install.sh", Line: 7, Quote: "http://example.com"})
	reports := []findings.Report{{Path: "my-pack", Packs: []string{"my-pack"}, Files: 1, Findings: c.Findings()}}
	fmt.Println(findings.Summary(reports[0].Findings), findings.Fails(reports, findings.High))

	p, err := findings.ParsePolicy("policy.yaml", []byte("rules: {plain-http: off}\naccept:\n  - {hash: \""+reports[0].Findings[0].Hash+"\", reason: our own server}\n"))
	unused := p.Apply(reports)
	fmt.Println(findings.Summary(reports[0].Findings), findings.Fails(reports, findings.High), len(unused), err)
	// Output:
	// 1 high, 1 low 1
	// nothing found 0 0 <nil>
}
