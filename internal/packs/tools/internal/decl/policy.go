package decl

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/cachename"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

func (p *Parser) policy(n *strictjson.Node) tools.Policy {
	policy := tools.Policy{
		ReadOnly:         n.IsTrue("read_only") || p.dialect.ReadOnly && n.Get("read_only") == nil,
		DeclaresReadOnly: n.IsTrue("read_only"),
		AlwaysAsk:        n.IsTrue("confirm_before_run"),
		Review:           n.StringAt("review") == tools.ReviewAll,
		Network:          tools.NetworkNone,
	}
	if at := n.Get("cache"); at != nil && at.Kind == strictjson.Text {
		if policy.Cache = at.Text; !cachename.Valid(at.Text) {
			p.Report(diag.Error, tools.CodeCacheName, at, fmt.Sprintf("the name of a cache is %+q", phrase.Clip(at.Text)), "write "+cachename.Want)
		}
	}
	requires := n.Get("requires_network")
	if requires != nil && requires.Truth {
		policy.Network = tools.NetworkFull
	}
	if network := n.StringAt("network"); network != "" {
		policy.Network = tools.Network(network)
		if requires != nil && requires.Truth != (policy.Network != tools.NetworkNone) {
			p.Report(diag.Error, tools.CodePolicyConflict, n.Get("network"), fmt.Sprintf("network is %q, and requires_network says otherwise", network), "keep network")
		}
	}
	if secs := n.Get("timeout_secs"); secs != nil {
		policy.Timeout = p.timeout(secs)
	}
	if codes := n.Get("allowed_exit_codes"); codes != nil {
		for _, c := range codes.Items {
			policy.AllowedExitCodes = append(policy.AllowedExitCodes, integer(c))
		}
		slices.Sort(policy.AllowedExitCodes)
		policy.AllowedExitCodes = slices.Compact(policy.AllowedExitCodes)
	}
	return policy
}

// timeout reads a number of seconds. Only tool packs can ask for more than
// there is, and get what there is.
func (p *Parser) timeout(n *strictjson.Node) time.Duration {
	const longest = int(tools.MaxTimeout / time.Second)
	secs, err := strconv.Atoi(strictjson.ShortNumber(n.Text))
	if err != nil || secs > longest {
		secs = longest
		p.Report(diag.Warning, tools.CodeTimeoutLong, n, fmt.Sprintf("timeout_secs is %s, and a tool gets at most %d", phrase.Clip(n.Text), longest), fmt.Sprintf("write %d or less", longest))
	}
	return time.Duration(secs) * time.Second
}

// integer reads a number that the shape says is a small integer; it may be
// written 6e1.
func integer(n *strictjson.Node) int {
	i, err := strconv.Atoi(strictjson.ShortNumber(n.Text))
	if err != nil {
		return 0
	}
	return i
}

func (p *Parser) output(n *strictjson.Node) tools.Output {
	if n == nil {
		return tools.Output{Speak: p.dialect.Speak}
	}
	o := tools.Output{
		Format:       n.StringAt("format"),
		ExtractField: n.StringAt("extract_field"),
		Template:     n.StringAt("template"),
		Speak:        n.IsTrue("speak") || p.dialect.Speak && n.Get("speak") == nil,
		Merged:       n.IsTrue("merged"),
	}
	if limit := n.Get("max_chars"); limit != nil {
		o.MaxChars = integer(limit)
	}
	if o.Template != "" {
		at := n.Get("template")
		a, ok := p.Template(at)
		for _, piece := range a.Pieces {
			if ok && piece.Form != template.Literal && (piece.Name != tools.OutputName || piece.Form == template.Spread || piece.Form == template.Option) {
				p.Report(diag.Error, tools.CodePlaceholderUnknown, at, fmt.Sprintf("the template has %s, and only {{output}} stands for something", piece), "write {{output}}, or {{{{ for a literal {{")
			}
		}
	}
	return o
}
