package decl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
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
	if named := n.Get("network"); named != nil && named.Kind != strictjson.Null {
		policy.Network, policy.Hosts = p.network(named)
		if requires != nil && requires.Truth != (policy.Network != tools.NetworkNone) {
			p.Report(diag.Error, tools.CodePolicyConflict, n.Get("network"), fmt.Sprintf("network is %q, and requires_network says otherwise", policy.Network), "keep network")
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

// network returns the network access that a tool asks for: a word, or hosts.
func (p *Parser) network(n *strictjson.Node) (tools.Network, []hosts.Host) {
	if n.Kind == strictjson.Text {
		return tools.Network(n.Text), nil
	}
	list := n.Get("hosts")
	if list == nil {
		return tools.NetworkNone, nil // the shape check reports it
	}
	var all []hosts.Host
	for _, item := range list.Items {
		if item.Kind != strictjson.Text {
			continue // a duplicate
		}
		h, err := hosts.Parse(item.Text)
		if err != nil {
			p.Report(diag.Error, tools.CodeHost, item, fmt.Sprintf("the host is %+q: %v", phrase.Clip(item.Text), err), `write a name and a port, as "api.github.com:443"`)
			continue
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b hosts.Host) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port)) })
	return tools.NetworkHosts, slices.Compact(all)
}

// timeout returns a number of seconds. Only tool packs can ask for more than the maximum,
// and they get the maximum.
func (p *Parser) timeout(n *strictjson.Node) time.Duration {
	const longest = int(tools.MaxTimeout / time.Second)
	secs, err := strconv.Atoi(strictjson.ShortNumber(n.Text))
	if err != nil || secs > longest {
		secs = longest
		p.Report(diag.Warning, tools.CodeTimeoutLong, n, fmt.Sprintf("timeout_secs is %s, and a tool gets at most %d", phrase.Clip(n.Text), longest), fmt.Sprintf("write %d or less", longest))
	}
	return time.Duration(secs) * time.Second
}

// integer returns a number that the shape check has shown to be a small integer. It may be
// written as 6e1.
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
